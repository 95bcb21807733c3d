# What the laboratory offers, shown with stock parts only: the kernel's own drivers, Debian's tools. See laboratory.test.ts.

kernel() {
  fact version "$(uname -r)"
  fact node "$("$LAB_NODE" --version)"
  modprobe -a tun usbmon vhci-hcd usbip-host usbip-vudc sch_fq sch_fq_codel sch_tbf sch_netem cdc_mbim
}

# kernel_drives FUNCTION SPEED: the kernel's driver passes a ping and a small load to the gadget's end.
kernel_drives() {
  local usb netdev listing
  gadget "$scenario_name" "$1" "$2"
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  netdev=$(netdev_of "$usb")
  fact speed "$(usb_speed "$usb")"
  fact driver "$(driver_of "$netdev")"
  fact node "$(stat -c %F "$(usb_node "$usb")")"
  # Meanwhile: it takes node some seconds to start.
  "$LAB_NODE" "$lab_peers/usb-list.cjs" "$usb" > "$scenario_folder/usb-package" &
  listing=$!
  ip address add 10.9.0.2/24 dev "$netdev"
  ip link set "$netdev" up
  wait_for 10 has_carrier "$netdev"
  ping_from "$netdev" 10.9.0.1 2
  udp_sink
  perl "$lab_peers/udp-source.pl" 10.9.0.1 9 300
  wait_for 20 arrived 300
  udp_counters
  wait_for 10 sink_has_told
  fact limitBytes "$(bql "$netdev" limit)"
  wait "$listing"
  fact usbPackage "$(< "$scenario_folder/usb-package")"
}

# arrived COUNT: whether the far end's kernel has as many datagrams, read or thrown away.
arrived() {
  in_peer awk -v count="$1" '/^Udp:/ && $2 ~ /[0-9]/ { exit !($2 + $6 >= count) }' /proc/net/snmp
}
sink_has_told() {
  local counted
  counted=$(awk '$1 == "farDatagrams" { print $2 }' /run/work/counters)
  grep -q "\"datagrams\":$counted," "$scenario_folder/sink.json"
}

# The device that QEMU implements, on its user network (here 10.0.3.0/24).
qemu_usb_net() {
  local usb netdev
  usb=$(usb_device 'RNDIS/QEMU USB Network Device')
  fact speed "$(usb_speed "$usb")"
  fact configurations "$(< "/sys/bus/usb/devices/$usb/bNumConfigurations")"
  # Configuration 1 is CDC ECM, 2 RNDIS.
  echo 1 > "/sys/bus/usb/devices/$usb/bConfigurationValue"
  netdev=$(netdev_of "$usb")
  fact driver "$(driver_of "$netdev")"
  ip address add 10.0.3.20/24 dev "$netdev"
  ip link set "$netdev" up
  wait_for 10 has_carrier "$netdev"
  ping_from "$netdev" 10.0.3.2 2
  ip link set "$netdev" down
}

dhcp() {
  local netdev
  gadget dhcp ecm high
  peer dhcp
  netdev=$(netdev_of "$(usb_device dhcp)")
  dhcp_server dhcp
  ip link set "$netdev" up
  wait_for 10 has_carrier "$netdev"
  busybox udhcpc -i "$netdev" -n -q -t 5 -T 1 -s /bin/true 2>&1 | tee "$scenario_folder/udhcpc.txt"
}

# A cable that is pulled and put back: the netdev goes and returns.
unplugged() {
  local usb
  gadget unplugged ncm super
  usb=$(usb_device unplugged)
  netdev_of "$usb"
  unplug unplugged
  wait_for 5 is_away unplugged
  fact gone yes
  plug unplugged
  usb=$(usb_device unplugged)
  fact driver "$(driver_of "$(netdev_of "$usb")")"
}

# iperf3 over the kernel's driver, and a trace of usbnet's completion half while it runs.
measured() {
  local netdev tracing=/sys/kernel/tracing
  gadget measured ncm super
  peer measured
  netdev=$(netdev_of "$(usb_device measured)")
  ip address add 10.9.0.2/24 dev "$netdev"
  ip link set "$netdev" up
  wait_for 10 has_carrier "$netdev"
  echo 'p:completions usbnet:usbnet_bh' > "$tracing/kprobe_events"
  echo 1 > "$tracing/events/kprobes/completions/enable"
  in_peer iperf3 --server --one-off --daemon
  sleep 1
  iperf3 --client 10.9.0.1 --time 3 --json > "$scenario_folder/iperf3.json"
  fact completions "$(grep -c completions: "$tracing/trace")"
  echo 0 > "$tracing/events/kprobes/completions/enable"
  echo > "$tracing/kprobe_events"
}

# USB/IP against Debian's own server: the guest exports a gadget and attaches it to itself.
usbip_loop() {
  local usb
  modprobe -a usbip-host vhci-hcd
  gadget exported ecm high
  usb=$(usb_device exported)
  usbip bind --busid "$usb"
  usbipd &
  wait_for 10 usbip list --remote 127.0.0.1
  usbip list --remote 127.0.0.1 | tee "$scenario_folder/list.txt"
  usbip attach --remote 127.0.0.1 --busid "$usb"
  attached() { compgen -G '/sys/devices/platform/vhci_hcd.*/usb*/*-*/*/net/*'; }
  wait_for 10 attached
  fact netdev "$(attached)"
  usbip detach --port 0
  usbip unbind --busid "$usb"
}

# The guest reaches a server that the test opened on the host.
network() {
  local answer
  exec 3<> "/dev/tcp/10.0.2.2/$(< /mnt/host-port)"
  echo 'from the guest' >&3
  read -r -t 10 answer <&3
  fact answer "$answer"
}

# An interface made by a program, as `--tap` will.
tap() {
  modprobe tun
  ip tuntap add dev labtap mode tap user nobody
  fact driver "$(ethtool -i labtap | sed -n 's/^driver: //p')"
  ip link delete labtap
}

kernel_drivers
scenario kernel 60 kernel
scenario network 20 network
scenario qemu-usb-net 60 qemu_usb_net
scenario ncm-super 60 kernel_drives ncm super
scenario ecm-high 60 kernel_drives ecm high
scenario rndis-high 60 kernel_drives rndis high
scenario eem-full 60 kernel_drives eem full
scenario dhcp 60 dhcp
scenario unplugged 60 unplugged
scenario measured 60 measured
scenario usbip 60 usbip_loop
scenario tap 30 tap
