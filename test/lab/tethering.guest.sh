# RNDIS, EEM, ECM, NCM and Huawei's NCM both ways (tethering.test.ts). First our drivers: `queuescope run --tap` on the
# kernel's gadgets and on QEMU's usb-net, and stock netcats that send 10 MB each way over TCP through the TAP interface.
# Then the kernel's drivers: our virtual devices, each served by this machine (10.0.2.2), a netcat of this machine at the
# far end of each link. /mnt/gadgets.tsv: name, function, speed; /mnt/served.tsv: name, port of the server, product.

stream_bytes=10000000
stream_port=7000

# errors NETDEV: every counter that counts something going wrong, with its value if it is not 0. What is counted as dropped
# on receive is nobody's fault: IPv6 and LLDP that no one asked for.
errors() {
  local file value
  for file in /sys/class/net/"$1"/statistics/{rx_errors,rx_length_errors,rx_crc_errors,rx_frame_errors,rx_over_errors,rx_missed_errors,tx_errors,tx_dropped,tx_carrier_errors,tx_fifo_errors,collisions}; do
    value=$(< "$file")
    [ "$value" = 0 ] || echo -n "${file##*/}=$value "
  done
}

# netcat NAME SECONDS PORT: the far end: sends random bytes, takes what comes; facts NAME.sent and NAME.received are hashes.
netcat() {
  local name=$1 seconds=$2 folder=/run/work/$scenario_name.$1 code=0
  mkdir -p "$folder"
  head -c "$stream_bytes" /dev/urandom > "$folder/sent"
  timeout "$seconds" busybox nc -l -p "$3" < "$folder/sent" > "$folder/received" || code=$?
  tell_stream "$name" "$folder" "$code"
}
# stream NAME SECONDS HOST PORT: the near end of it. Reads while it writes: two netcats that both write wait for each other
# for ever once neither has room for more.
stream() {
  local name=$1 seconds=$2 folder=/run/work/$scenario_name.$1 code=0
  mkdir -p "$folder"
  head -c "$stream_bytes" /dev/urandom > "$folder/sent"
  timeout "$seconds" bash -c 'exec 3<> "/dev/tcp/$1/$2"; head -c "$3" <&3 > "$4/received" & cat "$4/sent" >&3; wait' \
    stream "$3" "$4" "$stream_bytes" "$folder" || code=$?
  tell_stream "$name" "$folder" "$code"
}
tell_stream() {
  fact "$1.code" "$3"
  fact "$1.sent" "$(sha256sum < "$2/sent")"
  fact "$1.received" "$(sha256sum < "$2/received")"
  fact "$1.bytes" "$(stat -c %s "$2/received")"
}

# start_run USB-POSITION ARGUMENT...: behind; sets $run, and waits until its TAP interface has its address and its route,
# which comes with the interface's going up.
start_run() {
  "${queuescope[@]}" run "usb:$1" --json --no-load --duration 600 --tap qs0 "${@:2}" \
    > "$scenario_folder/run.jsonl" 2> "$scenario_folder/run.err" &
  run=$!
  wait_for 60 tap_is_up || { cat "$scenario_folder/run.err"; tail -c 2000 "$scenario_folder/run.jsonl"; return 1; }
}
tap_is_up() {
  ip -4 -o address show dev qs0 | grep -q inet && ip -4 route show dev qs0 | grep -q .
}
end_run() {
  local code=0
  kill -INT "$run"
  wait "$run" || code=$?
  fact code "$code"
}

# Our driver on one of the kernel's gadgets.
on_gadget() {
  local usb run far
  gadget "$scenario_name" "$1" "$2"
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  fact driverBefore "$(driver_of "$(netdev_of "$usb")")"
  start_run "$usb" --address 10.9.0.2/24 --target 10.9.0.1
  in_peer bash -c "$(declare -f netcat tell_stream fact); scenario_name=$scenario_name stream_bytes=$stream_bytes netcat far 200 $stream_port" &
  far=$!
  # ping waits for its last answer no longer than it waited between two, or twice the slowest before: a second, since our code
  # has yet to be compiled here.
  ping -q -c 5 -i 1 -I qs0 10.9.0.1 > "$scenario_folder/ping"
  wait_for 60 netcat_listens
  stream near 200 10.9.0.1 "$stream_port"
  wait "$far"
  ip -s link show dev qs0 > "$scenario_folder/tap.txt"
  in_peer ip -s link show dev "$(device_netdev "$scenario_name")" > "$scenario_folder/gadget.txt"
  fact gadgetErrors "$(in_peer bash -c "$(declare -f errors); errors $(device_netdev "$scenario_name")")"
  end_run
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

netcat_listens() {
  in_peer grep -qi ":$(printf %04x "$stream_port") " /proc/net/tcp /proc/net/tcp6
}

# Our driver on QEMU's usb-net in the configuration for RNDIS; at the other end of it is a program of this machine.
on_qemu() {
  local usb run
  usb=$(usb_device 'RNDIS/QEMU USB Network Device')
  echo 1 > "/sys/bus/usb/devices/$usb/bConfigurationValue"
  fact configurationBefore "$(< "/sys/bus/usb/devices/$usb/bConfigurationValue")"
  start_run "$usb" --configuration 2
  fact configurationDuring "$(< "/sys/bus/usb/devices/$usb/bConfigurationValue")"
  # This machine is 10.0.3.2 from there; our own default route leads elsewhere.
  stream near 400 10.0.3.2 "$(< /mnt/stream-port)"
  ip -s link show dev qs0 > "$scenario_folder/tap.txt"
  end_run
  fact configurationAfter "$(< "/sys/bus/usb/devices/$usb/bConfigurationValue")"
}

# The kernel's driver on one of our virtual devices.
on_kernel() {
  local name=$1 port=$2 product=$3 usb netdev each wdm
  usbip --tcp-port "$port" attach --remote 10.0.2.2 --busid 1-1
  usb=$(usb_device "$product" 20)
  netdev=$(netdev_of "$usb" 30)
  fact driver "$(driver_of "$netdev")"
  fact address "$(< "/sys/class/net/$netdev/address")"
  ip link set "$netdev" up
  wait_for 30 has_carrier "$netdev"
  busybox udhcpc -i "$netdev" -n -q -t 10 -T 1 -s /bin/true > "$scenario_folder/dhcp" 2>&1
  ip address add 10.64.0.2/24 dev "$netdev"
  ping -i 0.3 -c 20 -I "$netdev" 10.64.0.1 > "$scenario_folder/ping"
  if [ "$(driver_of "$netdev")" = huawei_cdc_ncm ]; then
    # The AT channel is a character device of cdc-wdm.
    wdm=$(compgen -G "/sys/bus/usb/devices/$usb:*/usbmisc/cdc-wdm*" | head -1)
    at_commands "/dev/${wdm##*/}" 'AT^NDISDUP=1,1' 'AT^NDISSTATQRY?'
  fi
  stream near 200 10.64.0.1 "$stream_port"
  fact errors "$(errors "$netdev")"
  fact qdisc "$(tc -s qdisc show dev "$netdev" | tr '\n' ' ')"
  fact limit "$(bql "$netdev" limit)"
  # Closed and opened again.
  ip link set "$netdev" down
  ip link set "$netdev" up
  wait_for 30 has_carrier "$netdev"
  ip address replace 10.64.0.2/24 dev "$netdev"
  ping -i 0.3 -c 10 -I "$netdev" 10.64.0.1 > "$scenario_folder/again"
  for each in $(usbip port 2> /dev/null | sed -n 's/^Port \([0-9]*\):.*/\1/p'); do usbip detach --port "$each"; done
  wait_for 10 is_gone "$product"
  dmesg > "$scenario_folder/kernel.txt"
}
is_gone() {
  ! find_usb_device "$1"
}

# at_commands DEVICE COMMAND...: what is answered, in $scenario_folder/at. Read by cat: bash takes the device for a file in
# which it could go back, and loses what stands behind the first line of a message.
at_commands() {
  local device=$1 command answers=0 reader
  shift
  : > "$scenario_folder/at"
  cat "$device" > "$scenario_folder/at" &
  reader=$!
  pause 1
  for command; do
    printf '%s\r' "$command" > "$device"
    answers=$((answers + 1))
    wait_for 10 has_answers "$answers"
  done
  kill "$reader"
}
has_answers() {
  [ "$(grep -c '^OK' "$scenario_folder/at")" -ge "$1" ]
}

echo pfifo_fast > /proc/sys/net/core/default_qdisc
# What TCP has on its way is less than the 1,000 packets of our queue, however slowly the machine empties it: none are dropped.
echo 4096 65536 600000 > /proc/sys/net/ipv4/tcp_wmem
kernel_drivers
modprobe -a vhci-hcd tun huawei_cdc_ncm
while IFS=$'\t' read -r name function speed; do
  scenario "$name" 260 on_gadget "$function" "$speed"
done < /mnt/gadgets.tsv
scenario qemu-rndis 460 on_qemu
while IFS=$'\t' read -r name port product; do
  scenario "$name" 260 on_kernel "$name" "$port" "$product"
done < /mnt/served.tsv
