# The kernel's driver and our stack on the same gadget, in turns (throughput.bench.ts). /mnt/cases.tsv, one a line: name, gadget's
# function, speed, seconds, rounds. Where /mnt/profile exists, our processes leave CPU profiles.

far_host=10.9.0.1
near=10.9.0.2/24
tap=qs0
warm_up_seconds=40

# What is written while it measures goes to memory: each write to the host's file system takes the guest milliseconds.
memory=/run/work/memory

# busy_ticks: what all processors did since the guest began, in ticks of USER_HZ.
busy_ticks() {
  awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat
}
process_ticks() {
  awk '{ print $14 + $15 }' "/proc/$1/stat"
}
# datagrams: what reached UDP here, whether somebody took it or not.
datagrams() {
  awk '/^Udp:/ { if (!n) { for (i = 2; i <= NF; i++) c[$i] = i; n = 1; next }
    print $(c["InDatagrams"]) + $(c["NoPorts"]) + $(c["RcvbufErrors"]) }' /proc/net/snmp
}
far_datagrams() {
  in_peer bash -c "$(declare -f datagrams); datagrams"
}

# measure NAME ARGUMENT...: one iperf3 run; the processors' work goes along, and what arrived of UDP at either end.
measure() {
  local name=$1 ticks far near_end
  shift
  far=$(far_datagrams)
  near_end=$(datagrams)
  ticks=$(busy_ticks)
  iperf3 --client "$far_host" --json --time "$seconds" --omit 1 "$@" > "$memory/$name.json"
  fact "$name.busyTicks" $(($(busy_ticks) - ticks))
  fact "$name.farDatagrams" $(($(far_datagrams) - far))
  fact "$name.nearDatagrams" $(($(datagrams) - near_end))
}
streams() {
  measure "$1.tcpUp"
  measure "$1.tcpDown" --reverse
  measure "$1.udpUp" --udp --bitrate 0 --length 1472
  measure "$1.udpDown" --udp --bitrate 0 --length 1472 --reverse
}

kernel_stack() {
  local netdev
  netdev=$(netdev_of "$usb")
  ip address replace "$near" dev "$netdev"
  ip link set "$netdev" up
  wait_for 20 has_carrier "$netdev"
  ping -c 2 "$far_host" > /dev/null
  streams "kernel-$1"
  ip address flush dev "$netdev"
  ip link set "$netdev" down
}

# run_ours NAME ARGUMENT...: behind; sets $run.
run_ours() {
  local name=$1 profile=()
  shift
  [ ! -e /mnt/profile ] || profile=(--cpu-prof --cpu-prof-interval 5000 "--cpu-prof-dir=$memory")
  "${queuescope[0]}" "${profile[@]}" "${queuescope[@]:1}" run "usb:$usb" --address "$near" --target "$far_host" --json "$@" \
    > "$memory/$name.jsonl" 2> "$memory/$name.err" &
  run=$!
  # An emulated processor takes its time to start a program.
  wait_for 150 grep -q "$far_host answers" "$memory/$name.jsonl"
}

our_stack() {
  local run ticks before
  run_ours "ours-$1" --tap "$tap" --no-load --duration 600
  wait_for 10 has_address
  # Until its code has been compiled, which takes an emulated machine a while.
  iperf3 --client "$far_host" --time "$warm_up_seconds" --bidir > /dev/null
  streams "ours-$1"
  kill -INT "$run"
  wait "$run" || true
  # Our own generator, without a TAP between.
  run_ours "generator-$1" --duration 600
  sleep "$warm_up_seconds"
  ticks=$(process_ticks "$run")
  before=$(far_datagrams)
  sleep "$seconds"
  fact "ours-$1.generatorDatagrams" $(($(far_datagrams) - before))
  fact "ours-$1.generatorTicks" $(($(process_ticks "$run") - ticks))
  kill -INT "$run"
  wait "$run" || true
}
has_address() {
  [[ $(ip -4 address show "$tap") = *10.9.0.2/24* ]]
}

device() {
  local usb round seconds=$3
  rm -rf "$memory"
  mkdir "$memory"
  # Whatever becomes of it, what was measured is kept.
  trap 'cp "$memory"/* "$scenario_folder"' EXIT
  gadget "$scenario_name" "$1" "$2"
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  in_peer iperf3 --server --daemon > /dev/null
  # Takes what the generator sends and drops it at once.
  in_peer perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); setsockopt(S, SOL_SOCKET, SO_RCVBUF, 1);
    bind(S, pack_sockaddr_in(9, INADDR_ANY)); sleep 3600' &
  for ((round = 1; round <= $4; round++)); do
    kernel_stack "$round"
    our_stack "$round"
  done
}

kernel_drivers
modprobe tun
while IFS=$'\t' read -r name function speed seconds rounds; do
  scenario "$name" 600 device "$function" "$speed" "$seconds" "$rounds"
done < /mnt/cases.tsv
