# Sends UDP datagrams of 1,000 bytes at a modest pace: perl udp-source.pl ADDRESS PORT COUNT
use strict;
use warnings;
use Socket;
use Time::HiRes qw(sleep);

my ($address, $port, $count) = @ARGV;
socket(my $socket, PF_INET, SOCK_DGRAM, 0) or die "socket: $!";
my $to = pack_sockaddr_in($port, inet_aton($address));
my $datagram = "\0" x 1000;
for my $sent (1 .. $count) {
  send($socket, $datagram, 0, $to) or die "send: $!";
  sleep(0.005) if $sent % 10 == 0;
}
