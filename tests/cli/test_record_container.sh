#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In a container: a root that is read-only, a /dev/shm that is tiny or missing, root and another user.
# What the quotes hold, the shells in the container expand.
# shellcheck disable=SC2016
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

command -v unshare >/dev/null || skip "no unshare(1)"
if [ "$(id -u)" = 0 ]; then
	contain="unshare -m"
else
	contain="unshare -Urm"
fi
# shellcheck disable=SC2086 # a list of words
$contain true 2>errors || skip "no namespaces here: $(cat errors)"

build_timer

# Another user cannot read a build in root's home; what it needs is here.
mkdir bin lib cwd tmp
cp "$top_builddir/core/dial9" prog bin
find "$top_builddir/core/.libs" "$top_builddir/adapters/.libs" -name 'libdial9*.so*' -exec cp -P {} lib \;
chmod 755 . bin lib cwd
chmod 1777 tmp
DIAL9_PRELOAD=$work/lib/libdial9-preload.so
LD_LIBRARY_PATH=$work/lib
TMPDIR=$work/tmp
export DIAL9_PRELOAD LD_LIBRARY_PATH TMPDIR work

# in_container SHM-OPTIONS COMMAND: the root and this folder read-only, but tmp.
cat >container <<'END'
#!/bin/sh
set -e
mount --make-rprivate / 2>/dev/null
mount --bind "$work" "$work"
mount --bind "$work/tmp" "$work/tmp"
mount -t tmpfs -o "$1" tmpfs /dev/shm
mount -o remount,bind,ro "$work"
mount -o remount,bind,ro / 2>/dev/null || :
cd "$work/cwd"
shift
exec "$@"
END
chmod +x container
in_container() {
	# shellcheck disable=SC2086 # a list of words
	$contain ./container "$@"
}
in_container mode=1777 sh -c ': >x' 2>/dev/null && skip "no read-only mounts here"
[ ! -e cwd/x ] || skip "no read-only mounts here"
in_container mode=1777 sh -c ': >/dev/shm/x && : >"$TMPDIR/x"' || skip "no mounts here"
rm -f tmp/x

# Who am I, and what was recorded.
cat >check <<'END'
"$work/bin/dial9" record "$@" "$work/bin/prog" 100 200 3
echo "[exit status $?]"
for trace in "$TMPDIR"/*/ /dev/shm/dial9-traces-*/ "$TMPDIR"/given; do
	[ -d "$trace" ] || continue
	stat -c '%a' "$trace"
	echo "$(basename "$trace"): $("$work/bin/dial9" events -e PollStartEvent "$trace" | wc -l) polls"
	rm -rf "$trace"
done
END

checks() {
	for options; do
		for shm in mode=1777,size=64M mode=1777,size=256k mode=755,size=4k,nr_inodes=1; do
			echo "\$ dial9 record$options prog    # /dev/shm: $shm"
			# shellcheck disable=SC2086 # a list of words
			in_container $shm $as sh "$work/check" $options
		done
	done
}

as=
say "a root that is read-only, and less and less of /dev/shm"
checks "" " -o $TMPDIR/given"

say "nothing can be written but /dev/shm, or not even that"
for shm in mode=1777,size=64M mode=755,size=4k,nr_inodes=1; do
	in_container $shm sh -c 'mount -o remount,bind,ro "$work/tmp" && mount --bind /tmp /tmp &&
		mount -o remount,bind,ro /tmp && exec sh "$work/check"'
done

say "nothing at all can be written: with --exec, with --require, and where a directory was named"
for options in --exec --require "-o traces"; do
	in_container mode=755,size=4k,nr_inodes=1 sh -c 'mount -o remount,bind,ro "$work/tmp" && mount --bind /tmp /tmp &&
		mount -o remount,bind,ro /tmp && exec sh "$work/check" $1' sh "$options"
done
in_container mode=755,size=4k,nr_inodes=1 sh -c 'mount -o remount,bind,ro "$work/tmp" && mount --bind /tmp /tmp &&
	mount -o remount,bind,ro /tmp && "$work/bin/dial9" record --require true; echo "[exit status $?]"'

say "a disk that is full until the program has ended"
in_container mode=1777,size=64M sh -c 'mkdir "$TMPDIR/full" && mount -t tmpfs -o mode=700,size=64k tmpfs "$TMPDIR/full"
	cd "$TMPDIR/full" && cat /dev/zero >fill 2>/dev/null
	"$work/bin/dial9" record -o traces "$work/bin/prog" 100 200 3
	echo "[exit status $?]"
	rm fill
	"$work/bin/dial9" recover traces | sed "s/.*: //"
	echo "$("$work/bin/dial9" events -e PollStartEvent traces | wc -l) polls"' 2>&1 |
	sed 's|/full/traces/[^:]*:|/full/traces/ID:|; s/process [0-9]*/process N/'
rmdir tmp/full

say "as another user"
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x bin/dial9 2>/dev/null; then
	as="setpriv --reuid=65534 --regid=65534 --clear-groups"
	checks ""
else
	sed -n '/^# as another user/,/^$/{/^[^#]/p;}' "$expected"
fi

say "a folder of that name that is not the user's alone is not taken"
as=
in_container mode=1777,size=64M sh -c 'mkdir -m 777 "$TMPDIR/dial9-traces-$(id -u)"
	"$work/bin/dial9" record "$work/bin/prog" 100 200 3 2>&1' | grep -o "in /[^,]*,"
ls tmp/*

finish 's/[0-9][0-9]* events/N events/; s/traces-[0-9][0-9]*/traces-UID/g; s|in /tmp/dial9-traces-UID[^,]*|in ANOTHER|; s|in /dev/shm/dial9-traces-UID[^,]*,|in ANOTHER,|; s|; see: dial9 report .*||'
