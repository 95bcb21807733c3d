# The kernel's own fq_codel behind a link of 10 Mbit/s: every packet that comes to it, every time it is asked for one, and
# what it answers. See qdisc.test.ts.

tracing=/sys/kernel/tracing

# trace_fq_codel: probes at fq_codel's entrance and exit, with what a packet's headers say and when fq_codel saw it.
trace_fq_codel() {
  mountpoint -q $tracing || mount -t tracefs none $tracing
  "$LAB_NODE" "$lab_peers/fq-codel-probe.mjs" > $tracing/kprobe_events
  echo 32768 > $tracing/buffer_size_kb
  echo mono > $tracing/trace_clock
}

# link: v0 behind 10 Mbit/s, to 10.9.0.1 in the namespace dev. Packets are no larger than frames. The far end takes
# everything and says nothing of its own.
link() {
  ip netns add dev
  ip link add v0 type veth peer name v1 netns dev
  echo 1 > /proc/sys/net/ipv6/conf/v0/disable_ipv6
  in_peer bash -c 'echo 1 | tee /proc/sys/net/ipv6/conf/{all,v1}/disable_ipv6' > /dev/null
  # TCP's too: otherwise a packet of the qdisc is a bundle of many.
  ip link set v0 gso_max_segs 1
  in_peer ip link set v1 gso_max_segs 1
  ip address add 10.9.0.2/24 dev v0
  ip link set v0 up
  ip -n dev address add 10.9.0.1/24 dev v1
  ip -n dev link set v1 up
  tc qdisc add dev v0 root handle 1: htb default 1
  tc class add dev v0 parent 1: classid 1:1 htb rate 10mbit burst 1600 cburst 1600 quantum 1514
  in_peer perl -e '
    use Socket;
    my @sockets = map { socket(my $s, PF_INET, SOCK_DGRAM, 0); bind($s, pack_sockaddr_in($_, INADDR_ANY)) or die; $s } @ARGV;
    sleep 600' 7001 7002 7003 7004 7005 7006 &
  busybox ping -c 1 10.9.0.1 > /dev/null
}

# traced "OPTION..." FUNCTION ARGUMENT...: gives v0 an fq_codel, runs the function with the probes on and leaves what they saw.
# Nothing has come to that fq_codel before: a flow that has run empty may still stand in its lists.
traced() {
  local missed
  missed=$(missed)
  echo > $tracing/trace
  echo 1 > $tracing/events/kprobes/enable
  tc qdisc add dev v0 parent 1:1 handle 10: fq_codel $1
  shift
  "$@"
  # What waits has to leave, at 10 Mbit/s.
  wait_for 20 is_empty
  echo 0 > $tracing/events/kprobes/enable
  tc -s -j qdisc show dev v0 > "$scenario_folder/qdisc.json"
  fact overruns "$(awk '/^(overrun|dropped events)/ {sum += $NF} END {print sum}' $tracing/per_cpu/cpu*/stats)"
  fact missed $(($(missed) - missed))
  cat $tracing/trace > "$scenario_folder/trace.txt"
}
missed() {
  awk '{ sum += $3 } END { print sum + 0 }' $tracing/kprobe_profile
}
is_empty() {
  tc -s -j qdisc show dev v0 | grep -q '"kind":"fq_codel".*"qlen":0,'
}

flows() {
  perl "$lab_peers/udp-flows.pl" 10.9.0.1 "$@" > "$scenario_folder/flows.txt"
}
# Sparse flows, of senders that speak ECN (1, 2) and of others.
sparse=(7003:200:50:0 7004:200:50:2 7005:100:20:0 7006:600:33:1)

# Two senders that never slow down, one of which speaks ECN and pauses now and then.
udp() {
  link
  traced "" flows 12 7001:1472:680:0 7002:1472:1000:2:400:600 "${sparse[@]}"
}

# TCP with and without ECN, as iperf3 sends it: several streams, since the kernel lets each have no more than a few packets
# in a qdisc of its own machine.
tcp() {
  link
  in_peer iperf3 -4 -s -1 -p 5201 > /dev/null &
  in_peer iperf3 -4 -s -1 -p 5202 > /dev/null &
  wait_for 20 in_peer grep -q ':1451 ' /proc/net/tcp
  wait_for 20 in_peer grep -q ':1452 ' /proc/net/tcp
  traced "" tcp_streams
}
tcp_streams() {
  echo 1 > /proc/sys/net/ipv4/tcp_ecn
  iperf3 -c 10.9.0.1 -p 5201 -P 6 -t 14 > "$scenario_folder/iperf3-ecn.txt" 2>&1 &
  local first=$!
  pause 2
  echo 0 > /proc/sys/net/ipv4/tcp_ecn
  iperf3 -c 10.9.0.1 -p 5202 -P 6 -t 14 > "$scenario_folder/iperf3.txt" 2>&1 &
  local second=$!
  flows 12 "${sparse[@]}"
  wait "$first" "$second"
}

# More than there is room for: batches from the longest backlog.
full() {
  link
  traced "limit 200" flows 6 7001:1472:1200:0 7002:700:1500:2 "${sparse[@]}"
}

# Other settings than the standard ones.
options() {
  link
  traced "target 20ms interval 60ms quantum 300 flows 16 limit 600 noecn" flows 8 7001:1472:500:0 7002:700:900:2 "${sparse[@]}"
}

modprobe -a veth sch_htb sch_fq_codel
trace_fq_codel
scenario udp 90 udp
ip link delete v0 2> /dev/null || true
scenario tcp 120 tcp
ip link delete v0 2> /dev/null || true
scenario full 90 full
ip link delete v0 2> /dev/null || true
scenario options 90 options
