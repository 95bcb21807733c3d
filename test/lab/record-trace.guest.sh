# Traces of BQL in the guest's kernel (record-trace.ts). /mnt/cases.tsv, one a line: name, device, speed, load, seconds, stall
# threshold in milliseconds. Devices: a gadget's function (ncm, ecm, rndis, eem), `served BUSID PRODUCT` (a virtual device of
# the server on the host, at port /mnt/port), `virtio` or `e1000e` (a card of QEMU's, with the host behind it at the port
# /mnt/sink). Leaves in /mnt/NAME: trace.txt, and facts.

tracing=/sys/kernel/tracing

# set_probes: sets $probes, their names.
set_probes() {
  modprobe -a virtio_net e1000e
  "$LAB_NODE" "$lab_peers/bql-probe.mjs" cdc_ether virtio_net e1000e > /run/work/probes
  read -r -a probes < /run/work/probes
  tail -n +2 /run/work/probes > $tracing/kprobe_events
  echo 20000 > $tracing/buffer_size_kb
  echo global > $tracing/trace_clock
  # Nothing is overwritten: a trace with a hole is no trace.
  echo 0 > $tracing/options/overwrite
  echo 0 > $tracing/tracing_on
}

# card DRIVER NETWORK: the host is NETWORK.2.
card() {
  # Some drivers never set their queues back but when they are loaded.
  modprobe -r "$1"
  modprobe "$1"
  wait_for 10 netdev_of_driver "$1"
  netdev=$(netdev_of_driver "$1")
  near=$2.15
  far=$2.2
  sink=$(< /mnt/sink)
}

# device WORDS SPEED: sets $netdev (down), $near, $far and $sink.
device() {
  local busid product usb
  case $1 in
    virtio) card virtio_net 10.0.2 ;;
    e1000e) card e1000e 10.0.4 ;;
    served*)
      read -r _ busid product <<< "$1"
      usbip --tcp-port "$(< /mnt/port)" attach --remote 10.0.2.2 --busid "$busid"
      netdev=$(netdev_of "$(usb_device "$product" 20)" 20)
      near=10.64.0.2
      far=10.64.0.1
      sink=
      ;;
    *)
      gadget "$scenario_name" "$1" "$2"
      peer "$scenario_name"
      netdev=$(netdev_of "$(usb_device "$scenario_name")")
      near=10.9.0.2
      far=10.9.0.1
      sink=5201
      in_peer iperf3 --server --daemon
      ;;
  esac
  ip link set "$netdev" down
}

# load KIND SECONDS
load() {
  case $1 in
    iperf3-tcp-up) iperf3 --client "$far" --time "$2" ;;
    iperf3-tcp-bidir) iperf3 --client "$far" --time "$2" --bidir ;;
    iperf3-udp-up) iperf3 --client "$far" --time "$2" --udp --bitrate 0 ;;
    tcp-up) timeout "$2" busybox nc "$far" "$sink" < /dev/zero > /dev/null || true ;;
    udp-flood) perl "$lab_peers/udp-flood.pl" "$far" 9 "$2" ;;
    udp-bursts)
      local i
      for ((i = 0; i < $2; i++)); do
        perl "$lab_peers/udp-flood.pl" "$far" 9 1
        ping -c 2 -i 0.2 "$far" || true
      done
      ;;
  esac
}

record() {
  local netdev near far sink probe missed
  device "$1" "$2"
  fact driver "$(driver_of "$netdev")"
  [ "$5" = 0 ] || echo "$5" > "/sys/class/net/$netdev/queues/tx-0/byte_queue_limits/stall_thrs"
  for probe in "${probes[@]}"; do
    echo "dev == \"$netdev\"" > "$tracing/events/kprobes/$probe/filter"
    echo 1 > "$tracing/events/kprobes/$probe/enable"
  done
  missed=$(missed)
  echo > $tracing/trace
  echo 1 > $tracing/tracing_on
  ip link set "$netdev" up
  ip address replace "$near/24" dev "$netdev"
  wait_for 20 has_carrier "$netdev"
  load "$3" "$4"
  echo 0 > $tracing/tracing_on
  for probe in "${probes[@]}"; do echo 0 > "$tracing/events/kprobes/$probe/enable"; done
  # Events that the kernel could not record would be holes.
  fact missed $(($(missed) - missed))
  fact overrun "$(cat $tracing/per_cpu/cpu*/stats | awk '/^(overrun|dropped events)/ { sum += $NF } END { print sum }')"
  grep -a 'bql_' $tracing/trace > "$scenario_folder/trace.txt"
  fact kernel "$(uname -r)"
  detach
}
missed() {
  awk '$1 ~ /^bql_done/ { sum += $3 } END { print sum + 0 }' $tracing/kprobe_profile
}
detach() {
  local each
  for each in $(usbip port 2> /dev/null | sed -n 's/^Port \([0-9]*\):.*/\1/p'); do usbip detach --port "$each"; done
}

kernel_drivers
modprobe -a vhci-hcd
set_probes
while IFS=$'\t' read -r name device speed load seconds stall; do
  scenario "$name" 90 record "$device" "$speed" "$load" "$seconds" "$stall"
done < /mnt/cases.tsv
