# `queuescope observe` on the netdevs of the kernel's own drivers. See observe.test.ts.

observe=("${queuescope[@]}" observe)

# attach FUNCTION: a device with its far end, its netdev up with an address; sets $netdev and $limits.
attach() {
  local usb
  gadget "$scenario_name" "$1" super
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  configure "$(netdev_of "$usb")"
}

# configure NETDEV: as a system would. It says nothing of its own (no IPv6).
configure() {
  netdev=$1
  limits=/sys/class/net/$netdev/queues/tx-0/byte_queue_limits
  echo 1 > "/proc/sys/net/ipv6/conf/$netdev/disable_ipv6"
  ip address replace 10.9.0.2/24 dev "$netdev"
  ip link set "$netdev" up
  wait_for 30 has_carrier "$netdev"
}

# start NAME ARGUMENT...: starts an observation behind, sets $run to its process, and waits until it samples.
start() {
  local name=$1
  shift
  "${observe[@]}" "$netdev" --target 10.9.0.1 --json "$@" \
    > "$scenario_folder/$name.jsonl" 2> "$scenario_folder/$name.err" &
  run=$!
  wait_for 60 has_samples "$name" 20
}

# flood SECONDS: UDP through the netdev, as fast as it goes, into a host that takes it.
flood() {
  in_peer iperf3 -4 -s -1 > "$scenario_folder/iperf3-server.txt" 2>&1 &
  # Port 5201.
  wait_for 20 in_peer grep -q ':1451 ' /proc/net/tcp
  iperf3 -c 10.9.0.1 -u -b 0 -l 1400 -t "$1" > "$scenario_folder/iperf3.txt" 2>&1
}

# second_reader: what another program finds in the same files, until it is killed: bytes sent, limit, bytes in flight.
second_reader() {
  local bytes limit inflight
  while true; do
    read -r inflight < "$limits/inflight"
    read -r limit < "$limits/limit"
    read -r bytes < "/sys/class/net/$netdev/statistics/tx_bytes"
    echo "$bytes $limit $inflight"
    pause 0.005
  done > "$scenario_folder/reader.txt"
}

counter() {
  echo "$(< "/sys/class/net/$netdev/statistics/$1")"
}

# limit_facts PREFIX: the limits as they are in the files.
limit_facts() {
  local file
  for file in limit_min limit_max hold_time; do fact "$1.$file" "$(bql "$netdev" "$file")"; done
}

values() {
  local netdev limits run reader
  attach "$1"
  # One ping, at the beginning: what is sent is the flood.
  fact txBytesBefore "$(counter tx_bytes)"
  fact txPacketsBefore "$(counter tx_packets)"
  start values --duration 14 --ping-interval 60000 --out "/run/work/$scenario_name.qscope"
  second_reader &
  reader=$!
  flood 5
  kill "$reader"
  end values 60
  fact txBytesAfter "$(counter tx_bytes)"
  fact txPacketsAfter "$(counter tx_packets)"
  fact limitAfter "$(bql "$netdev" limit)"
  fact driver "$(driver_of "$netdev")"
  cp "/run/work/$scenario_name.qscope" "$scenario_folder/values.qscope"
}

# What is set holds while it is observed, and not longer. And the far end answers all the time.
set_and_restored() {
  local netdev limits run
  attach ncm
  echo 1500 > "$limits/limit_min"
  start set --duration 8 --limit-min 3000 --limit-max 30000 --hold-time 500
  wait_for 20 grep -qx 500 "$limits/hold_time"
  limit_facts during
  end set 60
  limit_facts after
}

# With a low limit_max there is no doubt what BQL holds back: this link is as fast as the machine, so BQL by itself would
# find a limit as large as the driver's own queue.
switched() {
  local netdev limits run
  attach ncm
  start switched --duration 16 --bql ab --limit-max 20000
  limit_facts off
  flood 12
  end switched 60
  limit_facts after
}

interrupted() {
  local netdev limits run
  attach ecm
  start interrupted --duration 60 --bql off
  limit_facts off
  kill -INT "$run"
  end interrupted 30
  limit_facts after
}

killed() {
  local netdev limits run
  attach ecm
  start killed --duration 60 --bql off
  kill -KILL "$run"
  end killed 10
  limit_facts left
  "${queuescope[@]}" list --json > "$scenario_folder/list.json"
  # The programs that it had started end by themselves.
  wait_for 30 has_no_helpers
  start next --duration 2
  end next 60
  limit_facts after
  "${queuescope[@]}" list --json > "$scenario_folder/list-after.json"
}
has_no_helpers() {
  ! ps -eo args | grep -E "^(ping -n|tc -s)"
}

not_permitted() {
  local netdev limits code=0
  attach ecm
  setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/run/work XDG_RUNTIME_DIR= \
    "${observe[@]}" "$netdev" --target 10.9.0.1 --bql off --duration 5 \
    > "$scenario_folder/denied.txt" 2> "$scenario_folder/denied.err" || code=$?
  fact denied "$code"
  limit_facts after
  code=0
  setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/run/work XDG_RUNTIME_DIR= \
    "${observe[@]}" "$netdev" --target 10.9.0.1 --duration 2 --json \
    > "$scenario_folder/read.jsonl" 2> "$scenario_folder/read.err" || code=$?
  fact read "$code"
}

vanished() {
  local netdev limits run before
  attach ncm
  before=$netdev
  start vanished --duration 30 --limit-min 2000
  unplug "$scenario_name"
  wait_for 30 grep -q '"kind":"unplug"' "$scenario_folder/vanished.jsonl"
  pause 2
  plug "$scenario_name"
  configure "$(netdev_of "$(usb_device "$scenario_name")" 30)"
  fact sameName "$([ "$netdev" = "$before" ] && echo yes || echo no)"
  wait_for 30 grep -q '"kind":"gap"' "$scenario_folder/vanished.jsonl"
  wait_for 20 grep -qx 2000 "$limits/limit_min"
  end vanished 90
  limit_facts after
}

kernel_drivers
scenario values-ncm 150 values ncm
scenario values-ecm 150 values ecm
scenario set 90 set_and_restored
scenario switched 120 switched
scenario interrupted 120 interrupted
scenario killed 180 killed
scenario not-permitted 120 not_permitted
scenario vanished 180 vanished
