# Sourced by the laboratory's scripts on the host: where the kernel stands and what it must hold.

# The first kernel with Byte Queue Limits in usbnet.
lab_kernel_least=6.19
lab_checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

# What the laboratory uses: software USB controllers and device functions, the drivers for them, USB/IP both ways, TAP,
# capture, the guest's network card, and the queueing disciplines.
lab_modules=(dummy_hcd libcomposite usb_f_ncm usb_f_ecm usb_f_rndis usb_f_eem usbnet cdc_ether cdc_ncm cdc_eem rndis_host
  cdc_mbim vhci-hcd usbip-host usbip-vudc tun usbmon xhci-pci virtio_net virtio_pci 9p 9pnet_virtio overlay
  huawei_cdc_ncm cdc-wdm ax88179_178a asix mii phylink
  sch_fq sch_fq_codel sch_htb sch_tbf sch_netem sch_prio sch_ingress veth)

lab_fail() {
  echo "laboratory: $*" >&2
  exit 1
}

# lab_needs COMMAND:PACKAGE...: fails with what is missing and the command that brings it.
lab_needs() {
  local need missing=()
  for need in "$@"; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${need%%:*}" > /dev/null || missing+=("${need##*:}")
  done
  [ ${#missing[@]} -eq 0 ] || lab_fail "missing programs; they come with: apt-get install ${missing[*]}"
}

lab_version_at_least() {
  [ "$(printf '%s\n' "$2" "$1" | sort -V | sed -n 1p)" = "$2" ]
}

lab_kernel_dir() {
  echo "${LAB_KERNEL_DIR:-$lab_checkout/.cache/lab/kernel}"
}

# lab_kernel_version [DIR]: the newest kernel there; fails where there is none that is new enough.
lab_kernel_version() {
  local dir=${1:-$(lab_kernel_dir)} version
  for version in $(ls "$dir/root/usr/lib/modules" 2> /dev/null | sort -rV); do
    [ -r "$dir/root/usr/lib/modules/$version/vmlinuz" ] || continue
    lab_version_at_least "$version" "$lab_kernel_least" || break
    echo "$version"
    return 0
  done
  lab_fail "no kernel of at least $lab_kernel_least in $dir; this fetches one: test/lab/vm/fetch-kernel.sh"
}

# lab_check_modules DIR VERSION: each module is there, as a file or built in.
lab_check_modules() {
  local module missing=()
  for module in "${lab_modules[@]}"; do
    PATH=$PATH:/usr/sbin:/sbin modinfo -b "$1/root/usr" -k "$2" -n "$module" > /dev/null 2>&1 || missing+=("$module")
  done
  [ ${#missing[@]} -eq 0 ] || lab_fail "Linux $2 in $1 lacks the modules ${missing[*]}"
}
