#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the sandbox of the shipper's unit (PrivateUsers=, ProtectProc=invisible, ProcSubset=pid) no other process is to be seen: a
# program that lives is not taken for dead there, even if its locks were taken from it, and one that died is recovered and stored.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
[ "$(id -u)" = 0 ] || { echo "only root can make that sandbox"; exit 77; }
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
# shellcheck source=tests/ship/timer.sh
. "$top_srcdir/tests/ship/timer.sh"
user=65532
as_user="setpriv --reuid $user --regid $user --clear-groups"

# confined COMMAND...: in such a sandbox, as that user.
cat >confine <<END
mount -t proc -o hidepid=invisible,subset=pid proc /proc || exit 77
exec $as_user unshare --user --map-user=$user --map-group=$user -- "\$@"
END
confined() {
	unshare --mount --propagation private -- sh "$work/confine" "$@"
}
# shellcheck disable=SC2016
confined sh -c '[ ! -e /proc/1 ] && [ "$(id -u)" = '$user' ]' 2>said || { echo "no such sandbox here: $(head -n 1 said)"; exit 77; }

chmod 755 "$work"
mkdir traces
chown $user:$user traces
start_store
AWS_ENDPOINT_URL_S3=$address
export AWS_ENDPOINT_URL_S3
# Programs of this tree may lie where nobody else can go.
# shellcheck disable=SC2086
$as_user "$dial9" --version >/dev/null 2>&1 || { echo "another user cannot run $dial9"; exit 77; }

env DIAL9_TRACE_DIR="$work/traces" DIAL9_ROTATION_SECS=3600 $as_user env LD_PRELOAD="$preload" ./timer 0 9>&- &
program=$!
await has_active traces
boot=$(ls traces)
ring=/dev/shm/dial9-$user/$boot/ring
active=$(find traces -name 'trace.*.active')
[ -e "$ring" ] || fail "there is no ring"

# lives WHEN: nothing of it was touched.
lives() {
	if [ ! -e "$ring" ] || [ ! -e "$active" ] || [ "$(segments traces)" != 0 ]; then
		fail "$1: a program that lives was taken for dead: $(ls -A traces/*) $(cat said)"
	fi
}
confined "$dial9" recover "$work/traces" >said 2>&1 9>&- || true
lives "with its locks"
status=0
"$top_srcdir/tests/ship/drop_locks.py" "$program" >said || status=$?
[ $status != 77 ] || echo "its locks could not be taken: $(cat said)"
if [ $status != 77 ]; then
	equal "status of taking locks" $status 0
	flock -n "$ring" true || fail "its ring is still locked"
	$as_user "$dial9" recover "$work/traces" >said 2>&1 9>&- || true
	lives "without its locks, seen"
	confined "$dial9" recover "$work/traces" >said 2>&1 9>&- || true
	lives "without its locks, not seen"
	confined "$dial9" ship "$work/traces" --raw --once --to s3://bucket/p >said 2>&1 9>&- || true
	lives "without its locks, shipped"
fi

# Now it is dead, and what stood in its ring is stored.
kill -KILL $program
wait $program 2>/dev/null || true
is_stored() {
	confined "$dial9" ship "$work/traces" --raw --once --to s3://bucket/p >said 2>&1 9>&- || true
	[ ! -e "$ring" ] && [ "$(objects '*/p/version=1/*')" -ge 1 ]
}
await is_stored
equal "segments left" "$(find traces -name 'trace.*' | wc -l | tr -d ' ')" 0
rmdir "/dev/shm/dial9-$user" 2>/dev/null || true
stop_store
[ $status != 77 ] || exit 77
