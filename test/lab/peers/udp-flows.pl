# Sends paced UDP flows: perl udp-flows.pl ADDRESS SECONDS FLOW...
# A flow is PORT:PAYLOAD_BYTES:PACKETS_PER_SECOND:TOS, and with :ON_MS:OFF_MS it sends in bursts of that length and pauses
# between them. Each datagram begins with its number in the flow (32 bits, big-endian). A datagram that could not be sent
# on time is sent late, never left out. A socket buffer that would hold back a sender is made large enough not to.
# Prints for each flow its port and how many datagrams it has sent.
use strict;
use warnings;
use Socket qw(:DEFAULT IPPROTO_IP);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

my ($address, $seconds, @specifications) = @ARGV;
my @flows;
for my $specification (@specifications) {
  my ($port, $bytes, $rate, $tos, $on, $off) = split /:/, $specification;
  socket(my $socket, PF_INET, SOCK_DGRAM, 0) or die "socket: $!";
  setsockopt($socket, IPPROTO_IP, 1, pack('i', $tos)) or die "IP_TOS: $!";
  setsockopt($socket, SOL_SOCKET, 32, pack('i', 64 << 20)) or die "SO_SNDBUFFORCE: $!";
  connect($socket, pack_sockaddr_in($port, inet_aton($address))) or die "connect: $!";
  push @flows, {
    socket => $socket, port => $port, padding => "\0" x ($bytes - 4), step => 1 / $rate, sent => 0,
    due => 0, on => ($on // 0) / 1000, period => (($on // 0) + ($off // 0)) / 1000,
  };
}
my $start = clock_gettime(CLOCK_MONOTONIC);
while ((my $now = clock_gettime(CLOCK_MONOTONIC) - $start) < $seconds) {
  my $next = $seconds;
  for my $flow (@flows) {
    if ($flow->{due} <= $now) {
      send($flow->{socket}, pack('N', $flow->{sent}++) . $flow->{padding}, 0);
      $flow->{due} += $flow->{step};
      if ($flow->{period} > 0) {
        my $begin = $flow->{period} * int($flow->{due} / $flow->{period});
        $flow->{due} = $begin + $flow->{period} if $flow->{due} - $begin >= $flow->{on};
      }
    }
    $next = $flow->{due} if $flow->{due} < $next;
  }
  my $wait = $next - (clock_gettime(CLOCK_MONOTONIC) - $start);
  sleep($wait) if $wait > 0.0002;
}
print "$_->{port} $_->{sent}\n" for @flows;
