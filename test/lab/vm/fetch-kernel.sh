#!/bin/bash
# fetch-kernel.sh [DIR]: put a stock Debian kernel (image, config, modules) of at least 6.19, the first with Byte Queue
# Limits in usbnet, under DIR/root/usr/lib/modules/VERSION, and print VERSION. DIR: .cache/lab/kernel of the checkout.
# It asks the mirror that this machine's apt is set up with; apt checks the signatures, and nothing is installed.
# A kernel that is already there is kept. LAB_SUITES: Debian suites to look in, in this order. LAB_MIRROR: another mirror.
set -euo pipefail
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$vm/kernel.sh"

dir=${1:-$(lab_kernel_dir)}
suites=${LAB_SUITES:-trixie-backports forky sid}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

if version=$(lab_kernel_version "$dir" 2>/dev/null); then
  echo "$version"
  exit
fi
[ "$(uname -m)" = x86_64 ] || lab_fail "the laboratory's kernel is for x86-64, this machine is $(uname -m)"
lab_needs apt-get:apt dpkg-deb:dpkg depmod:kmod
[ -r "$keyring" ] || lab_fail "$keyring is missing: apt-get install debian-archive-keyring"

# The mirror's address stands in apt's configuration; the word "Debian" in its release file tells it from other sources.
debian_mirror() {
  local targets
  targets=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages')
  { awk '$1 == "Debian" && $2 == "Debian" && NF == 3 {print $3}' <<< "$targets"
    awk '$NF ~ "/debian/?$" {print $NF}' <<< "$targets"; } | sed -n 1p
}
mirror=${LAB_MIRROR:-$(debian_mirror)}
[ -n "$mirror" ] || lab_fail "apt knows no Debian mirror (run apt-get update first, or set LAB_MIRROR)"

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,debs,root}
options=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o APT::Sandbox::User= -o Acquire::Retries=3 -o Acquire::Languages=none)

# image_in SUITE: the newest kernel image package of that suite, or nothing where it is too old or the suite is missing.
image_in() {
  echo "deb [arch=amd64 signed-by=$keyring] $mirror $1 main" > "$work/sources.list"
  apt-get "${options[@]}" -qq update >&2 || return 0
  local image
  image=$(apt-cache "${options[@]}" depends linux-image-amd64 2>/dev/null |
    awk '/Depends: linux-image-[0-9]/ && !found {print $2; found = 1}')
  [ -n "$image" ] || return 0
  if lab_version_at_least "${image#linux-image-}" "$lab_kernel_least"; then echo "$image"; fi
}

image=
for suite in $suites; do
  image=$(image_in "$suite")
  if [ -n "$image" ]; then break; fi
  echo "fetch-kernel: no kernel of at least $lab_kernel_least in $suite" >&2
done
[ -n "$image" ] || lab_fail "no suite of ($suites) on apt's mirror has a kernel of at least $lab_kernel_least"
version=${image#linux-image-}
echo "fetch-kernel: fetching Linux $version from $suite" >&2

# Newer packages are split: beside the image there are linux-base, linux-binary and linux-modules of the same version.
# Without the -dbg packages of the same name.
packages=$(apt-cache "${options[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
  --no-replaces --no-enhances "$image" 2>/dev/null | awk -v end="-$version" \
  '/^[a-z]/ && substr($1, length($1) - length(end) + 1) == end && !seen[$1]++ {print $1}')
(cd "$work/debs" && apt-get "${options[@]}" -qq download $packages >&2)
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done

# Where /usr is not merged in the package, modules and image stand in /lib and /boot.
modules=$work/root/usr/lib/modules
if [ -d "$work/root/lib/modules" ]; then mkdir -p "$modules"; cp -a "$work/root/lib/modules/." "$modules"; fi
[ -d "$modules/$version/kernel" ] || lab_fail "the packages ($packages) hold no modules of $version"
[ -e "$modules/$version/vmlinuz" ] || cp "$work/root/boot/vmlinuz-$version" "$modules/$version/vmlinuz"
[ -e "$modules/$version/config" ] || cp "$work/root/boot/config-$version" "$modules/$version/config"
depmod -b "$work/root/usr" "$version" 2>/dev/null || depmod -b "$work/root" "$version"
lab_check_modules "$work" "$version"

# Moved into place whole, so that an interrupted fetch leaves no half kernel.
mkdir -p "$dir/root/usr/lib/modules"
rm -rf "${dir:?}/root/usr/lib/modules/$version"
mv "$modules/$version" "$dir/root/usr/lib/modules/$version"
echo "$version"
