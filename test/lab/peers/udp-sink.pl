# The far end of a UDP load: reads every datagram and keeps a count of datagrams and bytes: perl udp-sink.pl PORT FILE
# FILE is a JSON document, rewritten twice a second: { datagrams, bytes, firstMs, lastMs }. It exists once the socket is
# bound. Datagrams that the socket had no room for are not in it: /proc/net/snmp counts those.
use strict;
use warnings;
use Socket;
use Time::HiRes qw(time);

my ($port, $file) = @ARGV;
socket(my $socket, PF_INET, SOCK_DGRAM, 0) or die "socket: $!";
setsockopt($socket, SOL_SOCKET, SO_RCVBUF, pack('i', 212_992)) or die "SO_RCVBUF: $!";
# Half a second, so that what came is told also when nothing more comes.
setsockopt($socket, SOL_SOCKET, SO_RCVTIMEO, pack('l!l!', 0, 500_000)) or die "SO_RCVTIMEO: $!";
bind($socket, pack_sockaddr_in($port, INADDR_ANY)) or die "bind: $!";

my ($datagrams, $bytes, $first, $last) = (0, 0, 0, 0);
sub save {
  open(my $out, '>', "$file.new") or die "$file.new: $!";
  printf $out qq({"datagrams":%d,"bytes":%d,"firstMs":%d,"lastMs":%d}\n), $datagrams, $bytes, 1000 * $first, 1000 * $last;
  close($out);
  rename("$file.new", $file) or die "$file: $!";
}
$SIG{TERM} = sub { save(); exit 0 };

my $saved = -1;
my $due = 0;
while (1) {
  my $now = time;
  if ($now >= $due) {
    save() if $saved != $datagrams;
    $saved = $datagrams;
    $due = $now + 0.5;
  }
  defined recv($socket, my $datagram, 65_535, 0) or next;
  $last = time;
  $first = $last if $datagrams == 0;
  $datagrams++;
  $bytes += length $datagram;
}
