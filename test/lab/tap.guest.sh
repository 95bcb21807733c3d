# A TAP interface on devices that are not ours (tap.test.ts): stock programs use the kernel's gadgets through our stack.

far_host=10.9.0.1
static=(--address 10.9.0.2/24 --target "$far_host" --no-load --json)
tap=qs0

# The run writes to memory: each write to the host's file system holds an emulated program up for milliseconds.
memory=/run/work/memory

# start NAME ARGUMENT...: a run behind, once its pings are answered; sets $run.
start() {
  local name=$1
  shift
  "${queuescope[@]}" run "usb:$usb" "${static[@]}" "$@" \
    > "$memory/$name.jsonl" 2> "$memory/$name.err" &
  run=$!
  wait_for 120 grep -q "$far_host answers" "$memory/$name.jsonl"
}
interrupt() {
  local code=0
  kill -INT "$run" || true
  wait_for 20 is_over
  wait "$run" || code=$?
  cp "$memory"/run.* "$scenario_folder"
  fact "$1" "$code"
}

statistic() {
  echo "$(< "/sys/class/net/$tap/statistics/$1")"
}
# Answers to pings that this kernel got, whoever had asked.
echo_replies() {
  awk '/^Icmp:/ { if (!n) { for (i = 2; i <= NF; i++) if ($i == "InEchoReps") n = i; next } print $n }' /proc/net/snmp
}

# measure NAME ARGUMENT...: iperf3 from here to the far end and its own account of it. A server that has not yet heard of the
# end of the test before says that it is busy: asked again then.
measure() {
  wait_for 20 measured "$@"
}
measured() {
  local file=$scenario_folder/$1.json
  shift
  iperf3 --client "$far_host" --json "$@" > "$file" || ! grep -q 'server is busy' "$file"
}

attach() {
  rm -rf "$memory"
  mkdir "$memory"
  gadget "$scenario_name" "$1" "$2"
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  netdev_of "$usb" > /dev/null
}

has_route() {
  ip route get "$far_host" > /dev/null 2>&1
}

# checksum_errors: segments and datagrams that did not add up for the kernel that got them.
checksum_errors() {
  awk '/^(Tcp|Udp):/ { if ($1 != name) { name = $1; for (i = 2; i <= NF; i++) column[$i] = i; next }
    sum += $(column["InCsumErrors"]) } END { print sum + 0 }' /proc/net/snmp
}

# byte_for_byte up|down: 2 MB of chance by TCP, and whether what arrives is what was sent.
byte_for_byte() {
  local sent=$memory/sent.$1 got=$memory/got.$1 listen connect
  head -c 2000000 /dev/urandom > "$sent"
  listen='socket(L, PF_INET, SOCK_STREAM, 0); setsockopt(L, SOL_SOCKET, SO_REUSEADDR, 1);
    bind(L, pack_sockaddr_in(7000, INADDR_ANY)) or die; listen(L, 1); accept(S, L);'
  connect="socket(S, PF_INET, SOCK_STREAM, 0);
    connect(S, pack_sockaddr_in(7000, inet_aton('$far_host'))) or die;"
  local in='binmode STDOUT; while (sysread(S, $b, 65536)) { print $b }'
  local out='binmode STDIN; while (sysread(STDIN, $b, 65536)) { syswrite(S, $b) } shutdown(S, 1); sysread(S, $b, 1)'
  if [ "$1" = up ]; then
    in_peer perl -MSocket -e "$listen $in" > "$got" &
    pause 2
    perl -MSocket -e "$connect $out" < "$sent"
  else
    in_peer perl -MSocket -e "$listen $out" < "$sent" &
    pause 2
    perl -MSocket -e "$connect $in" > "$got"
  fi
  wait $!
  fact "same.$1" "$(cmp "$sent" "$got" > /dev/null && echo yes || echo no)"
}

host_uses_it() {
  local usb run before bytes reads
  attach "$1" "$2"
  in_peer iperf3 --server --daemon
  start run --tap "$tap" --ping-interval 50 --duration 300
  wait_for 10 has_address
  # The address may be there before the interface is up, and the route with it.
  wait_for 10 has_route
  fact route "$(ip route get "$far_host")"

  # Our own pings are answered all the time; nothing of it reaches this kernel.
  before=$(echo_replies)
  pause 3
  fact strayReplies $(($(echo_replies) - before))
  ping -c 10 -i 0.5 "$far_host" > "$scenario_folder/ping.txt"
  fact replies $(($(echo_replies) - before))

  # What the kernel handed over at a time, on average: a frame is 1,514 bytes at most.
  bytes=$(statistic tx_bytes)
  reads=$(statistic tx_packets)
  measure tcp-up --time 4
  fact bytesPerRead $((($(statistic tx_bytes) - bytes) / ($(statistic tx_packets) - reads)))
  byte_for_byte up
  byte_for_byte down
  fact checksumErrors "$(checksum_errors)"
  fact farChecksumErrors "$(in_peer bash -c "$(declare -f checksum_errors); checksum_errors")"
  measure tcp-down --time 4 --reverse
  measure udp-up --time 4 --udp --bitrate 1M
  measure udp-down --time 4 --udp --bitrate 1M --reverse
  fact dropsBefore $(($(statistic tx_dropped) + $(statistic rx_dropped)))

  # With the host's side down, what the far end sends is taken by nobody: that is told.
  ip link set "$tap" down
  in_peer perl "$lab_peers/udp-flood.pl" 10.9.0.2 9 1 > /dev/null
  pause 3
  interrupt run
  fact tapAfter "$([ -e /sys/class/net/$tap ] && echo there || echo gone)"
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}
has_address() {
  [[ $(ip -4 address show "$tap") = *10.9.0.2/24* ]]
}

# A user without rights: what is told makes it work.
without_rights() {
  local usb run code=0 as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/run/work/nobody)
  mkdir -p /run/work/nobody
  chown 65534:65534 /run/work/nobody
  attach ncm super
  chmod 666 "$(usb_node "$usb")" /dev/net/tun
  chmod 777 "$scenario_folder"
  "${as_nobody[@]}" "${queuescope[@]}" run "usb:$usb" "${static[@]}" --tap qs1 --duration 2 \
    > "$scenario_folder/refused.jsonl" 2> "$scenario_folder/refused.err" || code=$?
  fact refused "$code"
  # As told, without the sudo that root does not need.
  sed -n 's/^ *sudo \(ip [^)]*\)$/\1/p' "$scenario_folder/refused.err" > /run/work/commands
  cat /run/work/commands
  # shellcheck disable=SC1091
  . /run/work/commands
  "${as_nobody[@]}" "${queuescope[@]}" run "usb:$usb" "${static[@]}" --tap qs1 --duration 60 \
    > "$memory/run.jsonl" 2> "$memory/run.err" &
  run=$!
  wait_for 120 grep -q "$far_host answers" "$memory/run.jsonl"
  # Its address too is for root to set; the run says so.
  ip address replace 10.9.0.2/24 dev qs1
  ping -c 5 -i 0.5 -I qs1 "$far_host" > "$scenario_folder/ping.txt"
  interrupt run
  fact told "$(grep -o 'sudo ip address replace [^"\\]*' "$scenario_folder/run.jsonl" | tail -1)"
  fact tapAfter "$([ -e /sys/class/net/qs1 ] && echo there || echo gone)"
  ip tuntap del dev qs1 mode tap
}

kernel_drivers
modprobe tun
scenario tap-ncm 240 host_uses_it ncm super
scenario tap-ecm 240 host_uses_it ecm high
scenario without-rights 240 without_rights
