# The kernel's own driver on our virtual modem with 10 Mbit/s behind it, served from this machine (10.0.2.2) with
# `queuescope serve-usbip` (slow-modem.test.ts). /mnt/port is the server's, /mnt/devices.tsv its device: bus id, name, product.

port=$(< /mnt/port)
far_host=10.64.0.1
near_host=10.64.0.2

# loaded NAME: a prioritised ping while UDP is sent as fast as the driver takes it; the most that was in flight. Nothing
# is started while it runs: each program's start costs the emulated processors a tenth of a second.
loaded() {
  local flood pinging inflight most=0 before after begin counter=/sys/class/net/$netdev/statistics/tx_bytes
  local file=/sys/class/net/$netdev/queues/tx-0/byte_queue_limits/inflight
  perl "$lab_peers/udp-flood.pl" "$far_host" 9 16 > "$scenario_folder/$1.sent" &
  flood=$!
  pause 3
  ping -Q 0x10 -I "$netdev" -i 0.2 -w 11 "$far_host" > "$scenario_folder/$1.ping" &
  pinging=$!
  read -r before < "$counter"
  begin=$EPOCHREALTIME
  while kill -0 "$pinging" 2> /dev/null; do
    read -r inflight < "$file"
    [ "$inflight" -le "$most" ] || most=$inflight
    pause 0.2
  done
  read -r after < "$counter"
  fact "$1.bitsPerSecond" "$(awk -v a="$begin" -v b="$EPOCHREALTIME" -v n=$((after - before)) 'BEGIN { print 8 * n / (b - a) }')"
  fact "$1.inflightMax" "$most"
  fact "$1.limit" "$(bql "$netdev" limit)"
  wait "$flood"
}

nothing_in_flight() {
  [ "$(bql "$netdev" inflight)" = 0 ]
}

# The case that the kernel's patch was made for: 10 Mbit/s behind a SuperSpeed device.
slow_link() {
  local usb netdev busid name product
  IFS=$'\t' read -r busid name product < /mnt/devices.tsv
  attach_served "$port" "$busid" "$product"
  ip address add "$near_host/24" dev "$netdev"
  ip link set "$netdev" up
  wait_for 20 has_carrier "$netdev"
  fact qdisc "$(tc qdisc show dev "$netdev" | head -1)"
  ping -Q 0x10 -I "$netdev" -i 0.2 -w 6 "$far_host" > "$scenario_folder/idle.ping"
  # BQL off, as far as it can be: no limit below what the driver lets wait itself.
  echo 10000000 > "/sys/class/net/$netdev/queues/tx-0/byte_queue_limits/limit_min"
  loaded off
  echo 0 > "/sys/class/net/$netdev/queues/tx-0/byte_queue_limits/limit_min"
  # Down and up again sets the limit back; what would be in flight then would count as errors.
  wait_for 5 nothing_in_flight
  ip link set "$netdev" down
  ip link set "$netdev" up
  wait_for 20 has_carrier "$netdev"
  loaded on
  fact errors "$(error_counters "$netdev")"
  detach_served
}

# Debian's fq_codel drops what waits too long, and where processors are emulated, things do.
echo pfifo_fast > /proc/sys/net/core/default_qdisc
kernel_drivers
modprobe -a vhci-hcd
scenario slow-link 150 slow_link
