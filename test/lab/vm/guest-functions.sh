# Sourced before every guest script: devices, their far ends, scenarios and results. The scripts of one guest share it.
set -euo pipefail
lab_peers=$LAB_CHECKOUT/test/lab/peers
lab_gadgets=/sys/kernel/config/usb_gadget
# The command line: "${queuescope[@]}" run ...
queuescope=("$LAB_NODE" "$lab_peers/queuescope.mjs")

fail() {
  echo "failed: $*" >&2
  exit 1
}

# pause SECONDS: what sleep does, without a program: starting one keeps an emulated processor busy for a tenth of a second.
# Nothing is ever written to what it reads from.
[ -p /run/lab/pause ] || mkfifo /run/lab/pause
exec {lab_pause}<> /run/lab/pause
pause() {
  read -r -t "$1" -u "$lab_pause" || true
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails with its words when it has not within that time. What it
# waits for needs the processors too: between two looks there is as much time as one takes, within bounds.
wait_for() {
  local seconds=$1 end=$((SECONDS + $1)) begin rest
  shift
  while true; do
    begin=${EPOCHREALTIME/[.,]/}
    if "$@" > /dev/null 2>&1; then return; fi
    if [ "$SECONDS" -ge "$end" ]; then
      echo "not within $seconds s: $*" >&2
      return 1
    fi
    rest=$((${EPOCHREALTIME/[.,]/} - begin))
    [ "$rest" -ge 100000 ] || rest=100000
    [ "$rest" -le 300000 ] || rest=300000
    pause "0.$rest"
  done
}

# ---- Scenarios and results -------------------------------------------------------------------------------------------

# fact KEY VALUE: one result of the scenario that runs, a line in /mnt/facts.tsv; the test reads it. Values are strings of
# one line; what is longer belongs in a file in $scenario_folder.
fact() {
  printf '%s\t%s\t%s\n' "$scenario_name" "$1" "${2//[$'\t\n\r']/ }" >> /mnt/facts.tsv
}

# scenario NAME SECONDS FUNCTION [ARGUMENT...]: runs the function in a shell of its own with a deadline, ends what it
# left running, and goes on with the next one whatever happened. What it prints stands in $scenario_folder/log.txt. That
# folder is in memory while it runs, where a write takes no time, and is /mnt/NAME afterwards. Leaves the facts "exitCode"
# (124: it ran into its deadline) and "seconds".
scenario() {
  local seconds=$2 begin=$SECONDS code=0
  scenario_name=$1
  scenario_folder=/run/lab/scenarios/$1
  shift 2
  mkdir -p "$scenario_folder"
  # Job control gives the job a process group, so that all of it can be ended.
  set -m
  (trap 'echo "failed: $BASH_COMMAND (${FUNCNAME[0]:-script}, line $LINENO)" >&2' ERR; set -E; "$@") \
    > "$scenario_folder/log.txt" 2>&1 &
  local job=$!
  set +m
  while kill -0 "$job" 2> /dev/null; do
    if [ $((SECONDS - begin)) -ge "$seconds" ]; then
      echo "laboratory: stopped after $seconds s; processes then:" >> "$scenario_folder/log.txt"
      ps -eo pgid,pid,stat,etime,wchan,args | awk -v job="$job" '$1 == job' >> "$scenario_folder/log.txt" || true
      code=124
      break
    fi
    pause 0.1
  done
  { if [ "$code" -eq 0 ]; then wait "$job" || code=$?; fi
    kill -KILL -- "-$job" || true
    wait "$job" || true; } 2> /dev/null
  fact seconds $((SECONDS - begin))
  fact exitCode "$code"
  keep_folder "$scenario_name"
  echo "scenario $scenario_name: exit code $code after $((SECONDS - begin)) s"
  clean_up
}

# keep_folder NAME: puts a scenario's folder where the test finds it.
keep_folder() {
  rm -rf "/mnt/$1"
  # Something that it left running may still rename a file; it ends with the cleaning up.
  cp -r "/run/lab/scenarios/$1" "/mnt/$1" || true
  rm -rf "/run/lab/scenarios/$1"
}

# Puts the machine back: no gadget, no namespace, and none of the programs in them.
clean_up() {
  local each
  for each in "$lab_gadgets"/*/; do
    if [ -d "$each" ]; then
      each=${each%/}
      remove_gadget "${each##*/}" || true
    fi
  done
  for each in /run/netns/*; do
    [ -e "$each" ] || continue
    ip netns pids "${each##*/}" | xargs -r kill -KILL || true
    ip netns delete "${each##*/}" || true
  done
}

# ---- Devices ---------------------------------------------------------------------------------------------------------

# The kernel's own drivers, QEMU's USB controller among them. There is no udev in the guest to load them.
kernel_drivers() {
  modprobe -a xhci-pci cdc_ether cdc_ncm cdc_eem rndis_host
}

# Software host controllers, each wired to a software device controller: four USB 3 buses with their USB 2 halves.
controllers() {
  [ ! -e /sys/class/udc/dummy_udc.0 ] || return 0
  modprobe -a libcomposite usb_f_ncm usb_f_ecm usb_f_rndis usb_f_eem
  modprobe dummy_hcd is_super_speed=1 num=4
  mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
}

# free_controller: sets $controller to a device controller that no gadget uses.
free_controller() {
  local gadget user
  for controller in /sys/class/udc/*; do
    controller=${controller##*/}
    for gadget in "$lab_gadgets"/*/UDC; do
      user=
      [ ! -e "$gadget" ] || read -r user < "$gadget" || true
      [ "$user" != "$controller" ] || continue 2
    done
    return
  done
  fail 'all device controllers are in use'
}

# gadget NAME FUNCTION [SPEED]: plugs in a device implemented by the kernel: ncm, ecm, rndis or eem, at super, high or
# full speed. NAME is its product string. Its link's MAC addresses end in :01 (device) and :02 (host).
gadget() {
  local name=$1 function=$2 speed=${3:-super} controller mac
  controllers
  free_controller
  mac=02:00:00:00:0${controller##*.}
  mkdir -p "$lab_gadgets/$name"
  (
    cd "$lab_gadgets/$name"
    echo 0x1d6b > idVendor
    echo 0x0103 > idProduct
    echo "$speed-speed" > max_speed
    mkdir strings/0x409 configs/c.1 "functions/$function.0"
    echo 0001 > strings/0x409/serialnumber
    echo "$name" > strings/0x409/product
    echo laboratory > strings/0x409/manufacturer
    echo "$mac:01" > "functions/$function.0/dev_addr"
    echo "$mac:02" > "functions/$function.0/host_addr"
    ln -s "functions/$function.0" configs/c.1/
    echo "$controller" > UDC
  )
  wait_for 10 find_usb_device "$name"
}

# plug NAME, unplug NAME: what the cable does.
plug() {
  local controller
  free_controller
  echo "$controller" > "$lab_gadgets/$1/UDC"
}
unplug() {
  echo '' > "$lab_gadgets/$1/UDC"
}

remove_gadget() {
  local folder=$lab_gadgets/$1
  unplug "$1" 2> /dev/null || true
  rm -f "$folder"/configs/c.1/*.0
  rmdir "$folder"/functions/* "$folder"/configs/c.1 "$folder"/strings/0x409 "$folder"
}

# usb_device PRODUCT [SECONDS]: the bus position (as in usb:1-1) of the device with this product string.
usb_device() {
  wait_for "${2:-10}" find_usb_device "$1"
  find_usb_device "$1"
}
# Without a program started: each one costs a tenth of a second in the guest.
find_usb_device() {
  local file product
  for file in /sys/bus/usb/devices/*/product; do
    product=
    read -r product 2> /dev/null < "$file" || true
    if [ "$product" = "$1" ]; then
      file=${file%/product}
      echo "${file##*/}"
      return
    fi
  done
  return 1
}

usb_speed() {
  echo "$(< "/sys/bus/usb/devices/$1/speed")"
}

# usb_node BUS-POSITION: its usbfs node.
usb_node() {
  printf '/dev/bus/usb/%03d/%03d\n' "$(< "/sys/bus/usb/devices/$1/busnum")" "$(< "/sys/bus/usb/devices/$1/devnum")"
}

# netdev_of BUS-POSITION [SECONDS]: the kernel netdev on one of this device's interfaces.
netdev_of() {
  local path
  wait_for "${2:-10}" compgen -G "/sys/bus/usb/devices/$1:*/net/*"
  path=$(compgen -G "/sys/bus/usb/devices/$1:*/net/*")
  echo "${path##*/}"
}

# driver_of NETDEV: the kernel driver behind it.
driver_of() {
  local path
  path=$(readlink "/sys/class/net/$1/device/driver")
  echo "${path##*/}"
}

# netdev_of_driver DRIVER: the first netdev of that driver.
netdev_of_driver() {
  local path
  for path in /sys/class/net/*; do
    if [ -e "$path/device/driver" ] && [ "$(driver_of "${path##*/}")" = "$1" ]; then
      echo "${path##*/}"
      return
    fi
  done
  return 1
}

# has_carrier NETDEV: an interface that is up and whose link is there.
has_carrier() {
  local carrier=0
  read -r carrier 2> /dev/null < "/sys/class/net/$1/carrier" || true
  [ "$carrier" = 1 ]
}

# bql NETDEV FILE: one of its Byte Queue Limits files (limit, inflight, limit_min, limit_max, hold_time).
bql() {
  echo "$(< "/sys/class/net/$1/queues/tx-0/byte_queue_limits/$2")"
}

# error_counters NETDEV: every counter of it that counts something going wrong, with its value if it is not 0.
error_counters() {
  local file value
  for file in /sys/class/net/"$1"/statistics/*{error,dropped,missed,collisions,over}*; do
    value=$(< "$file")
    [ "$value" = 0 ] || echo -n "${file##*/}=$value "
  done
}

# attach_served PORT BUSID PRODUCT: a device that this machine's host serves over USB/IP; sets $usb and $netdev.
attach_served() {
  usbip --tcp-port "$1" attach --remote 10.0.2.2 --busid "$2"
  usb=$(usb_device "$3" 20)
  netdev=$(netdev_of "$usb" 30)
}
# detach_served: all of them, and waits until they are gone.
detach_served() {
  local each
  for each in $(usbip port 2> /dev/null | sed -n 's/^Port \([0-9]*\):.*/\1/p'); do usbip detach --port "$each"; done
  wait_for 10 nothing_attached
}
nothing_attached() {
  ! compgen -G '/sys/devices/platform/vhci_hcd.*/usb*/*-*/product'
}

# ---- Far ends --------------------------------------------------------------------------------------------------------

# device_netdev NAME: the netdev at the gadget's end of the link.
device_netdev() {
  cat "$lab_gadgets/$1"/functions/*.0/ifname
}

# peer NAME [ADDRESS [NAMESPACE]]: gives the gadget's end a network namespace (dev) and an address (10.9.0.1/24).
# Two oddities of the kernel's software devices are stepped around; their causes are guessed. An end that comes up only
# after the host configured the device now and then is never said to be connected (of two notifications the second seems
# to get lost): so the cable is pulled and put back once the end is up. And after that, what an NCM end sends may never
# arrive (as if a datagram were stuck in f_ncm's aggregation): so the end says nothing of its own (no IPv6).
peer() {
  local address=${2:-10.9.0.1/24} namespace=${3:-dev} netdev
  netdev=$(device_netdev "$1")
  ip netns add "$namespace"
  ip netns exec "$namespace" bash -c 'for each in all default; do echo 1 > "/proc/sys/net/ipv6/conf/$each/disable_ipv6"; done'
  ip link set "$netdev" netns "$namespace"
  printf '%s\n' 'link set lo up' "address add $address dev $netdev" "link set $netdev up" | ip -n "$namespace" -batch -
  unplug "$1"
  wait_for 10 is_away "$1"
  plug "$1"
  wait_for 10 find_usb_device "$1"
}
is_away() {
  ! find_usb_device "$1"
}

# in_peer COMMAND...: runs it at the far end.
in_peer() {
  ip netns exec dev "$@"
}

# dhcp_server NAME: busybox's udhcpd at the gadget's end (after peer), handing out 10.9.0.20 to 10.9.0.29.
dhcp_server() {
  local leases=/run/work/$scenario_name.leases configuration
  : > "$leases"
  configuration=$(< "$lab_peers/udhcpd.conf")
  configuration=${configuration//@netdev@/$(device_netdev "$1")}
  echo "${configuration//@leases@/"$leases"}" > "$leases.conf"
  in_peer busybox udhcpd -f "$leases.conf" > "$scenario_folder/udhcpd.txt" 2>&1 &
}

# udp_sink [PORT]: a program that reads and counts UDP datagrams at the far end, in $scenario_folder/sink.json.
udp_sink() {
  in_peer perl "$lab_peers/udp-sink.pl" "${1:-9}" "$scenario_folder/sink.json" &
  wait_for 20 test -s "$scenario_folder/sink.json"
}

# udp_counters: what the far end's kernel counted: the facts farDatagrams, farNoPort and farOverflows (datagrams that the
# sink's socket had no room for). Their sum is what the link delivered.
udp_counters() {
  in_peer awk '/^Udp:/ {
    if (!named) { for (i = 2; i <= NF; i++) column[$i] = i; named = 1; next }
    print "farDatagrams", $column["InDatagrams"]
    print "farNoPort", $column["NoPorts"]
    print "farOverflows", $column["RcvbufErrors"]
  }' /proc/net/snmp > /run/work/counters
  local key value
  while read -r key value; do fact "$key" "$value"; done < /run/work/counters
}

# ping_from NETDEV ADDRESS [COUNT]: busybox's ping through one netdev; fails unless one was answered.
ping_from() {
  busybox ping -c "${3:-3}" -W 2 -I "$1" "$2"
}

# ---- programs that run behind; $run is the process, $scenario_folder/NAME.jsonl and NAME.err are what it prints ----

samples_of() {
  grep -c '"type":"sample"' "$scenario_folder/$1.jsonl"
}
has_samples() {
  [ "$(samples_of "$1")" -ge "$2" ]
}
is_over() {
  ! kill -0 "$run" 2> /dev/null
}
# end NAME SECONDS: waits for its end and leaves its exit code as the fact NAME.
end() {
  local code=0
  wait_for "$2" is_over || cat "$scenario_folder/$1.err"
  wait "$run" || code=$?
  fact "$1" "$code"
}
