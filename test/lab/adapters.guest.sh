# Linux's own ax88179_178a and asix on our virtual adapters, each served from this machine (10.0.2.2) with
# `queuescope serve-usbip`, and with a TAP interface of this machine at the far end of its link: what answers there is
# this machine's kernel, and a stock TCP. /mnt/devices.tsv: name, port of the server, product.

far_host=10.64.0.1
# Its address on the link, of its MAC address 02:51:53:00:ff:01.
far_host6=fe80::51:53ff:fe00:ff01
near_host=10.64.0.2
stream_bytes=10000000

# adapter NAME PORT PRODUCT: from plugging in to unplugging.
adapter() {
  local name=$1 port=$2 product=$3 usb netdev each lost=()
  attach_served "$port" 1-1 "$product"
  fact driver "$(driver_of "$netdev")"
  fact speed "$(usb_speed "$usb")"
  fact address "$(< "/sys/class/net/$netdev/address")"
  ip link set "$netdev" up
  wait_for 30 has_carrier "$netdev"
  ethtool "$netdev" > "$scenario_folder/ethtool.txt" 2>&1 || true
  busybox udhcpc -i "$netdev" -n -q -t 10 -T 1 -s /bin/true > "$scenario_folder/dhcp" 2>&1
  ip address add "$near_host/24" dev "$netdev"
  ping -i 0.2 -c 30 -I "$netdev" "$far_host" > "$scenario_folder/ping"
  # Around the sizes at which a transfer ends on a packet boundary, with each of the headers (0, 4 and 8 bytes).
  for each in 465 466 467 469 470 471 973 974 975 977 978 979 981 982 983 1472; do
    ping -q -c 1 -W 3 -s "$each" -I "$netdev" "$far_host" > /dev/null || lost+=("$each")
  done
  fact lost "${lost[*]}"
  "$LAB_NODE" "$lab_peers/tcp-stream.mjs" connect "$far_host" 7000 "$stream_bytes" > "$scenario_folder/stream.json"
  # IPv6 finds its neighbours by group addresses, which the driver lets in by a hash of each.
  ping -6 -i 0.2 -c 10 "$far_host6%$netdev" > "$scenario_folder/ping6"
  fact limit "$(bql "$netdev" limit)"
  fact counters "$(error_counters "$netdev")"
  # Closed and opened again; a driver that resets its PHY then loses the link for a moment, and drops what was to be sent.
  ip link set "$netdev" down
  pause 1
  ip link set "$netdev" up
  pause 3
  wait_for 30 has_carrier "$netdev"
  ip address replace "$near_host/24" dev "$netdev"
  ping -i 0.2 -c 10 -I "$netdev" "$far_host" > "$scenario_folder/again"
  fact inflight "$(bql "$netdev" inflight)"
  fact countersAgain "$(error_counters "$netdev")"
  fact qdisc "$(tc -s qdisc show dev "$netdev" | tr '\n' ' ')"
  fact txBytes "$(< "/sys/class/net/$netdev/statistics/tx_bytes")"
  fact rxBytes "$(< "/sys/class/net/$netdev/statistics/rx_bytes")"
  detach_served
  dmesg > "$scenario_folder/kernel.txt"
}

echo pfifo_fast > /proc/sys/net/core/default_qdisc
modprobe -a xhci-pci vhci-hcd ax88179_178a asix
while IFS=$'\t' read -r name port product; do
  scenario "$name" 200 adapter "$name" "$port" "$product"
done < /mnt/devices.tsv
