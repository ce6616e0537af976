#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A set-user-ID program that links the recorder: what its caller put into the environment leads it nowhere.
set -eu

[ "$(id -u)" = 0 ] || { echo "not root, who alone can make a program set-user-ID"; exit 77; }
setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null || { echo "no other users here"; exit 77; }
owner=$((60000 + $$ % 5000))
work=$(mktemp -d)
trap 'rm -rf "$work" "/tmp/dial9-$owner" "/dev/shm/dial9-$owner"' EXIT
chmod 755 "$work"
cp "$top_builddir/tests/core/record/set_user_id" "$work/prog"
chown $owner "$work/prog"
chmod 4755 "$work/prog"

# A directory of the owner's, with what a dead process of the owner's left.
mkdir -p "$work/victim/dead-11" "$work/tmp"
chmod 700 "$work/victim" "$work/victim/dead-11" "$work/tmp"
touch "$work/victim/dead-11/.lock"
head -c 3000000 /dev/zero >"$work/victim/dead-11/trace.0.bin"
chown -R $owner "$work/victim" "$work/tmp"

found=$(cd / && setpriv --reuid=65534 --regid=65534 --clear-groups env DIAL9_TRACE_DIR="$work/victim" \
	TMPDIR="$work/tmp" STATE_DIRECTORY="$work/tmp" DIAL9_MAX_DISK_USAGE_MB=1 DIAL9_RING=disk "$work/prog")
case $found in
65534*) echo "no program is set-user-ID in $(dirname "$work")"; exit 77 ;;
"$owner 0 /tmp/dial9-$owner/"*) ;;
*) echo "user, error and directory: $found"; exit 1 ;;
esac
[ -z "$(find "$work/tmp" -mindepth 1)" ] || { echo "it wrote where its caller wanted"; exit 1; }
left=$(cd "$work/victim" && find . -mindepth 1 | LC_ALL=C sort | tr '\n' ' ')
[ "$left" = "./dead-11 ./dead-11/.lock ./dead-11/trace.0.bin " ] || {
	echo "in the owner's directory there is: $left"
	exit 1
}

# As the owner's own it does what it is told.
found=$(cd / && setpriv --reuid=$owner --regid=65534 --clear-groups env DIAL9_TRACE_DIR="$work/victim" "$work/prog")
case $found in
"$owner 0 $work/victim/"*) ;;
*) echo "by its owner: $found"; exit 1 ;;
esac
