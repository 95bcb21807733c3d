#!/bin/bash
# make-initrd.sh: build (once for each kernel and version of this script) the small initial file system with which the
# guest starts, and print its path. It mounts this machine's own root read-only over 9p, lays a tmpfs over it, mounts the
# exchange folder on /mnt, and hands over to /mnt/guest-init.sh.
set -euo pipefail
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$vm/kernel.sh"

kernel=$(lab_kernel_dir)
version=$(lab_kernel_version "$kernel")
key=$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-12)
initrd=$lab_checkout/.cache/lab/initrd-$version-$key.gz
if [ -e "$initrd" ]; then echo "$initrd"; exit; fi
lab_needs cpio:cpio modprobe:kmod xz:xz-utils busybox:busybox-static
busybox=$(command -v busybox)
# Nothing but this one program is in the initial file system, so it must not need a C library.
if ldd "$busybox" 2> /dev/null | grep -q '=>'; then
  lab_fail "$busybox is not a static program: apt-get install busybox-static"
fi
lab_check_modules "$kernel" "$version"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,modules,proc,sys,dev,root,host,over}
cp "$busybox" "$work/bin/busybox"
for applet in sh cat mount insmod mkdir switch_root poweroff; do ln -s busybox "$work/bin/$applet"; done

plain() {
  case $1 in
    *.xz) xz -dc "$1" ;;
    *.zst) zstd -dqc "$1" ;;
    *.gz) gzip -dc "$1" ;;
    *) cat "$1" ;;
  esac
}
files=$(PATH=$PATH:/usr/sbin:/sbin
  for module in virtio_pci 9p 9pnet_virtio overlay; do
    modprobe -d "$kernel/root/usr" -S "$version" --show-depends "$module"
  done | awk '$1 == "insmod" && !seen[$2]++ {print $2}')
number=100
for file in $files; do
  number=$((number + 1))
  plain "$file" > "$work/modules/$number.ko"
done

cat > "$work/init" <<'INIT'
#!/bin/sh
fail() { echo "laboratory: the guest cannot start: $*"; poweroff -f; }
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev || fail "no proc, sys or dev"
for module in /modules/*; do insmod "$module" || fail "$module does not load"; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose host /host || fail "no host file system"
mount -t tmpfs tmpfs /over && mkdir -p /over/upper /over/work || fail "no tmpfs"
mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work overlay /root || fail "no overlay"
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 exchange /root/mnt || fail "no exchange folder"
# The guest's time, in a file whose own time is the host's; see clock_ratio in guest-init.sh.
cat /proc/uptime > /root/mnt/clock
for place in dev proc sys; do mount --move "/$place" "/root/$place"; done
exec switch_root /root /bin/bash /mnt/guest-init.sh
INIT
chmod +x "$work/init"
mkdir -p "$(dirname "$initrd")"
(cd "$work" && find . | cpio -o -H newc --quiet | gzip -1) > "$initrd.$$"
mv "$initrd.$$" "$initrd"
echo "$initrd"
