#!/usr/bin/env bash
# Prints the folder that holds a kernel and an initramfs for run_in_guest.sh:
# Debian's stock kernel with rdma_rxe. Made once per kernel version and state of
# guest/, in $GLOO_GUEST_CACHE (default ~/.cache/gloo_guest).
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
cache=${GLOO_GUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gloo_guest}

die() { echo "run_in_guest: $*" >&2; exit 125; }

[[ $(uname -m) == x86_64 ]] ||
  die "guests are x86_64 and need such a host; this one is $(uname -m)"

# The package that Debian's linux-image-amd64 stands for; empty when apt knows
# of none.
kernel_package() {
  apt-cache depends linux-image-amd64 2>/dev/null |
    awk '/Depends: linux-image-[0-9]/ {print $2; exit}'
}

update_lists() {
  local sudo=()
  [[ $(id -u) == 0 ]] || sudo=(sudo -n)
  "${sudo[@]}" apt-get update -qq >&2 ||
    die "apt-get update failed: run it as root, with a network"
}

state=$(cat "$here/image.sh" "$here/guest/init" "$here/guest/modules" |
  sha256sum | cut -c1-12)
package=$(kernel_package)
if [[ -z $package ]]; then
  # An image that is there needs no package lists.
  image=$(ls -d "$cache"/*-"$state" 2>/dev/null | tail -1) || true
  if [[ -n $image ]]; then
    echo "$image"
    exit
  fi
  update_lists
  package=$(kernel_package)
  [[ -n $package ]] || die "apt knows no linux-image-amd64: is this Debian?"
fi

image=$cache/$package-$state
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [[ -s $image/initrd.gz ]]; then
  echo "$image"
  exit
fi

echo "run_in_guest: making a guest image of $package" >&2
work=$(mktemp -d "$cache/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
# apt drops its rights to a user who cannot write here; hence the option.
fetch() {
  (cd "$work" && apt-get download -q -o APT::Sandbox::User=root "$package" \
    >"$work/log" 2>&1)
}
# Stale lists name a file that the mirror has no more.
fetch || { update_lists; package=$(kernel_package); fetch; } ||
  die "cannot download $package: $(tail -1 "$work/log")"
dpkg-deb -x "$work/$package"_*.deb "$work/kernel"
release=$(ls "$work/kernel/lib/modules")
depmod -b "$work/kernel" "$release"

files=$work/files
mkdir -p "$files"/{bin,modules,proc,sys,dev,lower,upper,tree}
cp /bin/busybox "$files/bin/"
cp "$here/guest/init" "$files/init"
chmod +x "$files/init"
while read -r module; do
  modprobe -d "$work/kernel" -S "$release" --show-depends "$module" ||
    die "$package has no module $module"
done < "$here/guest/modules" | awk '/^insmod/ && !seen[$2]++ {print $2}' |
  while read -r file; do
    cp "$file" "$files/modules/"
    basename "$file"
  done > "$work/order"
mv "$work/order" "$files/modules/order"

mkdir "$work/image"
(cd "$files" && find . | cpio -o -H newc --quiet | gzip -1) \
  > "$work/image/initrd.gz"
cp "$work"/kernel/boot/vmlinuz-* "$work/image/vmlinuz"
rm -rf "$image"
mv "$work/image" "$image"
echo "$image"
