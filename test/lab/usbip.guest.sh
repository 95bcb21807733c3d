# USB/IP both ways (usbip.test.ts). First the kernel's own drivers on our virtual devices: `queuescope serve-usbip` runs on
# the host (10.0.2.2), the guest attaches them with Debian's usbip. /mnt/port is the server's, /mnt/devices.tsv its devices:
# bus id, name, product. Then our client against Debian's usbipd, both in the guest.

port=$(< /mnt/port)
far_host=10.64.0.1
near_host=10.64.0.2

# exchange NAME SECONDS: ping and UDP both ways, in the namespace NAME; leaves facts.
exchange() {
  local name=$1
  ip netns exec "$name" ping -q -i 0.5 -c $((2 * $2)) "$far_host" > "$scenario_folder/$name.ping" &
  ip netns exec "$name" "$LAB_NODE" "$lab_peers/udp-echo.mjs" "$far_host" 7 "$2" 30 1000 > "$scenario_folder/$name.json"
  wait
}

# All four at the same time, each in a namespace of its own: their far ends have the same addresses.
all() {
  local busid name product usb netdev jobs=()
  detach_served
  while IFS=$'\t' read -r busid name product; do
    attach_served "$port" "$busid" "$product"
    fact "$name.driver" "$(driver_of "$netdev")"
    fact "$name.speed" "$(usb_speed "$usb")"
    ip netns add "$name"
    ip link set "$netdev" netns "$name"
    ip -n "$name" link set "$netdev" name link0
    ip -n "$name" link set link0 up
    ip netns exec "$name" bash -c '. "$0"; wait_for 20 has_carrier link0' "$LAB_CHECKOUT/test/lab/vm/guest-functions.sh"
    ip netns exec "$name" busybox udhcpc -i link0 -n -q -t 10 -T 1 -s /bin/true > "$scenario_folder/$name.dhcp" 2>&1
    ip -n "$name" address add "$near_host/24" dev link0
    fact "$name.limitBefore" "$(ip netns exec "$name" cat /sys/class/net/link0/queues/tx-0/byte_queue_limits/limit)"
  done < /mnt/devices.tsv
  while IFS=$'\t' read -r busid name product; do
    exchange "$name" 60 &
    jobs+=($!)
  done < /mnt/devices.tsv
  wait "${jobs[@]}"
  while IFS=$'\t' read -r busid name product; do
    fact "$name.errors" "$(ip netns exec "$name" bash -c "$(declare -f error_counters); error_counters link0")"
    fact "$name.qdisc" "$(ip netns exec "$name" tc -s qdisc show dev link0 | tr '\n' ' ')"
    fact "$name.limit" "$(ip netns exec "$name" cat /sys/class/net/link0/queues/tx-0/byte_queue_limits/limit)"
    fact "$name.txPackets" "$(ip netns exec "$name" cat /sys/class/net/link0/statistics/tx_packets)"
    fact "$name.rxPackets" "$(ip netns exec "$name" cat /sys/class/net/link0/statistics/rx_packets)"
  done < /mnt/devices.tsv
  detach_served
}

# ---- our client against Debian's server ------------------------------------------------------------------------------

# offer BUSID: takes the device from the kernel's driver and offers it; sets $server to the server's process.
offer() {
  usbip bind --busid "$1"
  serve
}
serve() {
  usbipd &
  server=$!
  wait_for 20 usbip list --remote 127.0.0.1
}
withdraw() {
  usbip unbind --busid "$1"
}

# run_remote NAME BUSID ARGUMENT...: to its end; its exit code is the fact NAME.
run_remote() {
  local name=$1 busid=$2 code=0
  shift 2
  "${queuescope[@]}" run "usbip://127.0.0.1/$busid" --json "$@" \
    > "$scenario_folder/$name.jsonl" 2> "$scenario_folder/$name.err" || code=$?
  fact "$name" "$code"
  [ "$code" -eq 0 ] || cat "$scenario_folder/$name.err"
}
# start ID NAME ARGUMENT...: behind; sets $run, and waits until it measures. Its load leaves time for others.
start() {
  local id=$1 name=$2
  shift 2
  "${queuescope[@]}" run "$id" --json --load-rate 2M "$@" > "$scenario_folder/$name.jsonl" 2> "$scenario_folder/$name.err" &
  run=$!
  wait_for 60 has_samples "$name" 30
}
has_more_samples() {
  has_samples "$1" $(($2 + 30))
}
has_event() {
  grep -q "\"kind\":\"$2\"" "$scenario_folder/$1.jsonl"
}

static=(--address 10.9.0.2/24 --target 10.9.0.1)

# exported FUNCTION SPEED: a gadget with its far end, offered; sets $usb.
exported() {
  gadget "$scenario_name" "$1" "$2"
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  netdev_of "$usb" > /dev/null
  offer "$usb"
}

# A gadget through the server, and back to the kernel's driver.
client() {
  local usb server
  exported "$1" "$2"
  udp_sink
  "${queuescope[@]}" list --usbip 127.0.0.1 --json > "$scenario_folder/list.json"
  fact busid "$usb"
  run_remote run "$usb" "${static[@]}" --duration 5
  udp_counters
  withdraw "$usb"
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

# QEMU's usb-net, whose active configuration may be the one for RNDIS: full speed, set-configuration, DHCP.
client_of_qemu() {
  local usb server
  usb=$(usb_device 'RNDIS/QEMU USB Network Device')
  echo "${1}" > "/sys/bus/usb/devices/$usb/bConfigurationValue"
  offer "$usb"
  run_remote run "$usb" --duration 5 --load-rate 2M --target 10.0.3.2
  withdraw "$usb"
}

# Two programs on one device.
busy() {
  local usb server run code=0
  exported ncm super
  start "usbip://127.0.0.1/$usb" first "${static[@]}" --duration 100
  usbip list --remote 127.0.0.1 > "$scenario_folder/list.txt" 2>&1 || true
  run_remote second "$usb" "${static[@]}" --duration 1
  # And the kernel is not let in either.
  usbip attach --remote 127.0.0.1 --busid "$usb" > "$scenario_folder/attach.txt" 2>&1 || code=$?
  fact attach "$code"
  kill -INT "$run"
  end first 30
}

# The server is killed: its connections are the kernel's and live on. Then the device is taken away, and given back.
lost() {
  local usb server run samples
  exported ncm super
  start "usbip://127.0.0.1/$usb" waiting "${static[@]}" --duration 120 --wait 100
  kill -KILL "$server"
  samples=$(samples_of waiting)
  wait_for 30 has_more_samples waiting "$samples"
  fact survived yes
  withdraw "$usb"
  wait_for 20 has_event waiting unplug
  offer "$usb"
  wait_for 60 has_event waiting gap
  samples=$(samples_of waiting)
  wait_for 60 has_more_samples waiting "$samples"
  kill -INT "$run"
  end waiting 30
  # The same without waiting.
  start "usbip://127.0.0.1/$usb" ending "${static[@]}" --duration 120
  withdraw "$usb"
  end ending 30
}

# A device of this machine that is unplugged and plugged in again, with a run that waits for it.
replugged() {
  local usb run samples
  gadget "$scenario_name" ncm super
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  netdev_of "$usb" > /dev/null
  start "usb:$usb" waiting "${static[@]}" --duration 120 --wait 100
  unplug "$scenario_name"
  wait_for 20 has_event waiting unplug
  plug "$scenario_name"
  fact samePlace "$([ "$(usb_device "$scenario_name")" = "$usb" ] && echo yes || echo no)"
  wait_for 60 has_event waiting gap
  samples=$(samples_of waiting)
  wait_for 60 has_more_samples waiting "$samples"
  kill -INT "$run"
  end waiting 30
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

# Debian's fq_codel drops what waits too long, and where processors are emulated, things do.
echo pfifo_fast > /proc/sys/net/core/default_qdisc
kernel_drivers
modprobe -a vhci-hcd usbip-host
scenario all 200 all
scenario client-ncm 120 client ncm super
scenario client-ecm 120 client ecm high
scenario client-qemu-ecm 90 client_of_qemu 1
scenario client-qemu-rndis 90 client_of_qemu 2
scenario busy 120 busy
scenario lost 240 lost
scenario replugged 180 replugged
