#!/bin/sh
# `make test-fresh`: the README's two commands on a Debian 12 that has never seen this project.
#
# Makes a bare Debian root (git, make and certificates, nothing else) from the package sources of this machine,
# clones the committed tree into it and runs `make run` and `make test` there with an empty environment. The
# compiler cache is shared with this machine, so what was compiled before is not compiled again; KEEP=1 keeps the
# root. Needs root or sudo. A package missing from tools/packages.txt shows here and nowhere else: a machine
# that has built the project before has it by chance.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || exec sudo CI="${CI:-}" KEEP="${KEEP:-}" "$0" "$@"
tools/install_packages.sh tools/packages_fresh.txt
folder=$PWD/build/fresh
root=$folder/root
cache=${CCACHE_DIR:-$HOME/.cache/ccache}
mkdir -p "$folder" "$cache"

# The archives this machine itself installs from, without those of other vendors.
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT) # $(ORIGIN)' 'Created-By: Packages' |
  sed -n 's/ # Debian$//p' > "$folder/sources.list"
[ -s "$folder/sources.list" ] || { echo "test-fresh: no Debian package lists here; run 'apt-get update' first" >&2; exit 1; }

try=1
until rm -rf --one-file-system "$root" &&
      mmdebstrap --quiet --variant=minbase --include=ca-certificates,git,make bookworm "$root" "$folder/sources.list"; do
  echo "test-fresh: no Debian root at try $try of 3" >&2
  [ "$try" -lt 3 ] || { [ -n "${CI:-}" ] && exit 1; echo "test-fresh: SKIPPED, a Debian root could not be made" >&2; exit 0; }
  try=$((try + 1))
  sleep 10
done
git clone --quiet --no-local . "$root/plimsoll"
[ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$root/etc/resolv.conf"

echo "== make run, then make test, on a bare Debian $(cat "$root/etc/debian_version") at $(git rev-parse --short HEAD)"
status=0
unshare --mount --pid --fork --kill-child sh -eu -c '
  mkdir -p "$1/root/.cache/ccache"
  mount --bind "$2" "$1/root/.cache/ccache"
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  exec chroot "$1" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    sh -eu -c "cd /plimsoll; for goal in run test; do
      begin=\$(date +%s); make \$goal; echo \"== make \$goal took \$((\$(date +%s) - begin)) s, packages included\"; done"
' test-fresh "$root" "$cache" || status=$?
[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
exit "$status"
