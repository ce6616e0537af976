# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced first by tests that deal with all the rings there are: runs the test again with a /dev/shm, a /mnt and
# processes of its own.  With other_users=yes the test needs to be root, who alone can start programs of others.
if [ -z "${D9_OWN_SHM:-}" ]; then
	contain="unshare -m -p -f --mount-proc"
	command -v unshare >/dev/null || { echo "no unshare(1)"; exit 77; }
	if [ "$(id -u)" != 0 ]; then
		[ -z "${other_users:-}" ] || { echo "not root, who alone can start programs of other users"; exit 77; }
		contain="$contain -Ur"
	fi
	$contain mount -t tmpfs none /dev/shm 2>/dev/null || { echo "no namespaces here"; exit 77; }
	[ -z "${other_users:-}" ] || setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null ||
		{ echo "no other users here"; exit 77; }
	exec $contain sh -c 'mount -t tmpfs -o mode=1777 none /dev/shm && mount -t tmpfs -o mode=755 none /mnt &&
		D9_OWN_SHM=yes sh "$0"' "$0"
fi
