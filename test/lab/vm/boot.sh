#!/bin/bash
# boot.sh SCRIPT [QEMU ARGUMENT...]: run SCRIPT with bash as root in a guest that has the laboratory's kernel and sees this
# machine's whole file system (what it changes stays in the guest), print what it prints, and end with its exit code.
#   LAB_FOLDER      exchange folder, the guest's /mnt: output.txt, exit-code, cases.jsonl, console.txt, dmesg.txt and
#                   whatever the script leaves there (.cache/lab/runs/by-hand; emptied first unless LAB_KEEP_FOLDER=1)
#   LIMIT_SECONDS   the guest is stopped after so many (300)
#   LAB_NETWORK=1   gives the guest a network card on QEMU's user network (guest 10.0.2.15, host 10.0.2.2)
#   LAB_KERNEL_DIR  where fetch-kernel.sh put the kernel (.cache/lab/kernel)
#   LAB_NODE        the node that guest scripts use (the one on PATH)
# Exit code 124: the script ran into its deadline. 125: the guest did not come to its end.
set -euo pipefail
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$vm/kernel.sh"
[ $# -ge 1 ] && [ -r "$1" ] || lab_fail "usage: boot.sh SCRIPT [QEMU ARGUMENT...]"
script=$1
shift
lab_needs qemu-system-x86_64:qemu-system-x86 setpriv:util-linux
kernel=$(cd "$(lab_kernel_dir)" 2> /dev/null && pwd) || lab_fail "no kernel; this fetches one: test/lab/vm/fetch-kernel.sh"
version=$(lab_kernel_version "$kernel")
initrd=$("$vm/make-initrd.sh")
limit=${LIMIT_SECONDS:-300}
folder=${LAB_FOLDER:-$lab_checkout/.cache/lab/runs/by-hand}

[ -n "${LAB_KEEP_FOLDER:-}" ] || rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
case $folder in *,*) lab_fail "QEMU takes no comma in the exchange folder's path: $folder" ;; esac
cp "$script" "$folder/run.sh"
cp "$vm/guest-init.sh" "$folder/guest-init.sh"
node=${LAB_NODE:-$(command -v node || true)}
{
  printf '%s=%q\n' LAB_MODULES "$kernel/root/usr/lib/modules" LAB_CHECKOUT_ON_HOST "$lab_checkout"
  printf '%s=%q\n' LAB_NODE_ON_HOST "$([ -z "$node" ] || readlink -f "$node")" LAB_LIMIT_SECONDS "$limit"
} > "$folder/guest.env"
: > "$folder/output.txt"
network=(-nic none)
[ -z "${LAB_NETWORK:-}" ] || network=(-netdev user,id=lan -device virtio-net-pci,netdev=lan,romfile= -nic none)

# The guest's kernel measures the frequency of its clock, this machine's time stamp counter, and goes wrong where the
# machine is busy. A virtual machine that was told the frequency shows it; others are measured, and checked by the guest.
frequency=
if grep -qw tsc_known_freq /proc/cpuinfo; then
  frequency=$(awk -F: '/^cpu MHz/ {printf "tsc_early_khz=%d", $2 * 1000; exit}' /proc/cpuinfo)
fi

# What an emulated processor is slow at and nothing here needs: single bytes with "rep" (erms) where the kernel else takes
# words, supervisor-mode guards that end each translated block (smap), a fifth level of page tables (la57), memory that is
# cleared as it is handed out, pages of 2 MB, checks of security modules. Together that is half of a program's start.
processor=max,-erms,-smap,-la57
fast='mitigations=off init_on_alloc=0 randomize_kstack_offset=off hardened_usercopy=off transparent_hugepage=never'
fast+=' lsm=yama nowatchdog'

# The emulator spends a quarter of its time on looking up code in tables of tens of megabytes: in pages of 2 MB, where the C
# library and this machine's kernel have them to give.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1

machine=
trap '[ -z "$machine" ] || kill "$machine" 2> /dev/null; wait; exit 130' INT TERM
start_machine() {
  # setpriv: whatever becomes of this script, the machine ends with it.
  setpriv --pdeathsig TERM timeout --foreground --kill-after=5 "$limit" qemu-system-x86_64 \
    -M q35 -cpu "$processor" -accel tcg,thread=multi -smp 2 -m 3G -display none -vga none -monitor none -no-reboot \
    -serial "file:$folder/console.txt" \
    -kernel "$kernel/root/usr/lib/modules/$version/vmlinuz" -initrd "$initrd" \
    -append "console=ttyS0 quiet loglevel=5 panic=-1 nokaslr $fast tsc=reliable $frequency" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -virtfs "local,path=$folder,mount_tag=exchange,security_model=none,multidevs=remap" \
    "${network[@]}" -device qemu-xhci,id=xhci "$@" < /dev/null &
  machine=$!
}
# again: whether the machine's end says nothing about the script. Its clock may be wrong, it may not have come to the
# script, and now and then QEMU shows one processor an instruction that the other has just patched: the guest's kernel
# then dies of "int3".
again() {
  [ ! -s "$folder/exit-code" ] && [ "$code" -ne 124 ] && [ -s "$folder/console.txt" ] || return 1
  if [ -e "$folder/clock-wrong" ]; then
    echo "laboratory: the guest's clock ran $(cat "$folder/clock-wrong") times as fast as this machine's"
  elif grep -qa 'Oops: int3' "$folder/console.txt"; then
    echo "laboratory: the guest's kernel died of QEMU's fault with patched instructions (int3)"
  elif [ ! -e "$folder/boot-seconds" ]; then
    echo "laboratory: the guest did not come to its script"
  else
    return 1
  fi
}
attempt=1
while true; do
  start_machine "$@"
  tail -n +1 -f -s 0.2 --pid="$machine" "$folder/output.txt" &
  printer=$!
  code=0
  wait "$machine" || code=$?
  wait "$printer" || true
  if ! again >&2 || [ "$attempt" -ge 3 ]; then break; fi
  attempt=$((attempt + 1))
  echo "laboratory: attempt $attempt" >&2
  rm -f "$folder"/{clock*,boot-seconds,facts.tsv,dmesg.txt,console.txt}
  : > "$folder/output.txt"
done

if [ -s "$folder/exit-code" ]; then exit "$(cat "$folder/exit-code")"; fi
[ -s "$folder/console.txt" ] || lab_fail "QEMU did not start a guest (exit code $code)"
{
  if [ "$code" -eq 124 ]; then
    echo "laboratory: the guest was stopped after $limit s"
  else
    echo "laboratory: the guest ended without a result (QEMU's exit code: $code)"
  fi
  echo "The console's last lines ($folder/console.txt):"
  tail -n 45 "$folder/console.txt" | tr -d '\r' | sed 's/\x1b[^A-Za-z]*[A-Za-z]//g; s/^/  /'
} >&2
exit 125
