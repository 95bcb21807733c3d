# Sends UDP datagrams of 1,472 bytes as fast as the sockets take them: perl udp-flood.pl ADDRESS PORT SECONDS [SOCKETS]
# One socket holds no more than about 90 datagrams that are not on the wire yet; several, taken in turns, fill a driver's
# queue. In Perl, which every Debian has, since an emulated processor is quickly busy with a larger runtime alone.
# Prints how many were handed over.
use strict;
use warnings;
use Socket;

my ($address, $port, $seconds, $count) = @ARGV;
my $to = pack_sockaddr_in($port, inet_aton($address));
my @sockets = map { socket(my $socket, PF_INET, SOCK_DGRAM, 0) or die "socket: $!"; $socket } 1 .. ($count // 6);
my $datagram = "\0" x 1472;
my $end = time + $seconds;
my $sent = 0;
while (time < $end) {
  for my $socket (@sockets) {
    send($socket, $datagram, 0, $to) or die "send: $!";
    $sent++;
  }
}
print "$sent\n";
