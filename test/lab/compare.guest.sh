# One device, two drivers: the kernel's and ours, in the same guest, over the same USB/IP connection's kind, each with BQL off
# and on, one after the other (compare.ts). /mnt/port is the server's; /mnt/cases.tsv one phase a line:
# name, bus id, product, stack (kernel or ours), BQL (off or on), seconds, limit_min that stands for "off" in the kernel.

far_host=10.64.0.1
near_host=10.64.0.2
ping_interval_ms=50
settle_seconds=4
warm_up_seconds=20
port=$(< /mnt/port)

# What the processors did since the guest began, in ticks of USER_HZ: all but idle and waiting.
busy_ticks() {
  awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat
}

kernel_stack() {
  local bql=$1 seconds=$2 off=$3 before after begin inflight most=0 limit flood pinging ticks
  local queue=/sys/class/net/$netdev/queues/tx-0/byte_queue_limits counter=/sys/class/net/$netdev/statistics/tx_bytes
  ip address add "$near_host/24" dev "$netdev"
  ip link set "$netdev" up
  wait_for 20 has_carrier "$netdev"
  [ "$bql" = on ] || echo "$off" > "$queue/limit_min"
  ping -c 1 "$far_host" > /dev/null
  perl "$lab_peers/udp-flood.pl" "$far_host" 9 $((seconds + settle_seconds + 1)) > /dev/null &
  flood=$!
  sleep "$settle_seconds"
  ping -n -Q 0x10 -i "0.0$ping_interval_ms" -w "$seconds" "$far_host" > "$memory/ping.txt" &
  pinging=$!
  : > "$memory/queue.txt"
  ticks=$(busy_ticks)
  read -r before < "$counter"
  begin=$EPOCHREALTIME
  # Nothing is started while it measures: each program's start costs the emulated processors a tenth of a second.
  while kill -0 "$pinging" 2> /dev/null; do
    read -r inflight < "$queue/inflight"
    read -r limit < "$queue/limit"
    echo "$inflight $limit" >> "$memory/queue.txt"
    pause 0.1
  done
  read -r after < "$counter"
  fact seconds_measured "$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')"
  fact bytes $((after - before))
  fact busyTicks $(($(busy_ticks) - ticks))
  wait "$flood"
}

# Ours is measured once its code has been compiled: in an emulated machine that takes a while.
ours_stack() {
  local bql=$1 seconds=$2
  "${queuescope[@]}" run "usb:$usb" --bql "$bql" --duration $((seconds + warm_up_seconds)) --ping-interval "$ping_interval_ms" \
    --address "$near_host/24" --target "$far_host" --json > "$memory/run.jsonl"
  fact seconds_asked "$seconds"
}

# What is written while it measures goes to memory: each write to the host's file system takes the guest milliseconds.
memory=/run/work/memory
phase() {
  local usb netdev
  rm -rf "$memory"
  mkdir "$memory"
  fact kernel "$(uname -r | sed 's/[+-].*//')"
  attach_served "$port" "$1" "$2"
  "$3_stack" "$4" "$5" "$6"
  cp "$memory"/* "$scenario_folder"
  detach_served
}

echo pfifo_fast > /proc/sys/net/core/default_qdisc
kernel_drivers
modprobe -a vhci-hcd
while IFS=$'\t' read -r name busid product stack bql seconds off; do
  scenario "$name" $((seconds + 150)) phase "$busid" "$product" "$stack" "$bql" "$seconds" "$off"
  detach_served
done < /mnt/cases.tsv
