#!/bin/bash
# The guest's process 1, started by the initial file system: sets the machine up, runs /mnt/run.sh, powers off.
# What goes wrong here still ends in a power-off; boot.sh then finds no exit code and shows the console.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LC_ALL=C.UTF-8
power_off() {
  sync
  echo o > /proc/sysrq-trigger
  sleep 30
}
trap power_off EXIT
set -e
. /mnt/guest.env

# How fast the guest's clock runs beside the host's, since the initial file system. On a busy host the kernel may find a
# wrong frequency for its clock; nothing that is measured then is true, and deadlines come early.
clock_ratio() {
  cat /proc/uptime > /mnt/clock-now
  awk -v began="$(stat -c %.Y /mnt/clock)" -v now="$(stat -c %.Y /mnt/clock-now)" '
    { uptime[FILENAME] = $1 }
    END { printf "%.3f\n", (uptime["/mnt/clock-now"] - uptime["/mnt/clock"]) / (now - began) }' /mnt/clock /mnt/clock-now
}

# A run folder of its own, so that no socket of the host's services is seen.
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm /run/home /run/lock /run/work /run/lab
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tracefs none /sys/kernel/tracing
export HOME=/run/home TMPDIR=/run/work
chmod 1777 /run/work
mkdir -p /usr/lib/modules
mount --bind "$LAB_MODULES" /usr/lib/modules
# The checkout and node under paths that every user of the guest may enter, whatever folder of root's they stand in.
mkdir -p /run/lab/checkout
mount --bind "$LAB_CHECKOUT_ON_HOST" /run/lab/checkout
if [ -n "$LAB_NODE_ON_HOST" ]; then
  : > /run/lab/node
  mount --bind "$LAB_NODE_ON_HOST" /run/lab/node
fi
export LAB_CHECKOUT=/run/lab/checkout LAB_NODE=/run/lab/node
# A build that came along is the one to test, whatever happens to the checkout meanwhile.
if [ -d /mnt/dist ]; then
  cp -r /mnt/dist /run/lab/dist
  mount --bind /run/lab/dist /run/lab/checkout/dist
fi
hostname laboratory
ip link set lo up
modprobe -qa virtio_net
if [ -e /sys/class/net/eth0 ]; then
  ip address add 10.0.2.15/24 dev eth0
  ip link set eth0 up
  ip route add default via 10.0.2.2
fi

ratio=$(clock_ratio)
if awk -v ratio="$ratio" 'BEGIN { exit !(ratio < 0.9 || ratio > 1.1) }'; then
  echo "$ratio" > /mnt/clock-wrong
  exit
fi

# Its own deadline comes before the one that ends the machine, so that a script which hangs still leaves its results.
read -r up _ < /proc/uptime
seconds=$((LAB_LIMIT_SECONDS - ${up%.*} - 10))
[ "$seconds" -gt 1 ] || seconds=1
echo "$up" > /mnt/boot-seconds
set +e
cd /run/work
timeout --kill-after=3 "$seconds" bash -c '. "$LAB_CHECKOUT/test/lab/vm/guest-functions.sh" && . /mnt/run.sh' \
  > /mnt/output.txt 2>&1 < /dev/null
code=$?
[ "$code" -ne 124 ] || echo "laboratory: the script was stopped after $seconds s" >> /mnt/output.txt
# What a scenario had found when the script was stopped.
cp -r /run/lab/scenarios/. /mnt 2> /dev/null
dmesg > /mnt/dmesg.txt
clock_ratio > /mnt/clock-ratio
echo "$code" > /mnt/exit-code
