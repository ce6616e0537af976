#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Root watches programs of other users: their rings, and the files that these name, are read with their rights.
# With a /dev/shm and processes of its own.
other_users=yes
# shellcheck source=tests/cli/own_shm.sh
. "$top_srcdir/tests/cli/own_shm.sh"
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

chmod 755 "$work"
# Where nobody can reach them: the tree may lie below a folder of root's alone.
cp "$top_builddir"/adapters/.libs/libdial9-*.so* "$top_builddir"/core/.libs/libdial9.so* "$top_builddir/tests/cli/make_hostile" /mnt

# A callback that never returns; "become": in a daemon of root's that gave up its rights.
cat >hang.c <<'END'
#include <event2/event.h>
#include <grp.h>
#include <unistd.h>

static char **words;

void on_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	alarm(300);
	for (;;)
		pause();
}

static void on_start(evutil_socket_t fd, short what, void *base)
{
	struct timeval soon = { 0, 2000 };

	(void)fd, (void)what;
	if (words[1] && (setgroups(0, NULL) || setgid(65534) || setuid(65534)))
		_exit(9);
	event_base_once(base, -1, EV_TIMEOUT, on_request, NULL, &soon);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();

	(void)argc;
	words = argv;
	event_base_once(base, -1, EV_TIMEOUT, on_start, base, NULL);
	return event_base_dispatch(base) < 0;
}
END
${CC:-cc} -g -o hang hang.c -levent || skip "no libevent to build with"

# begin CMD...: it is recorded, is $pid, and hangs since more than a second.
begin() {
	rm -rf traces
	mkdir -m 755 traces
	chown "$owner" traces
	DIAL9_TRACE_DIR="$work/traces" DIAL9_ENABLED=true LD_LIBRARY_PATH=/mnt LD_PRELOAD=/mnt/libdial9-preload.so "$@" &
	pid=$!
	until "$dial9" status -j "$pid" 2>/dev/null | grep -q '"for_ns":[0-9]\{10\}'; do
		kill -0 "$pid" 2>/dev/null || { echo "it is gone before it hangs"; break; }
		sleep 0.05
	done
}

watch() {
	"$dial9" status "$pid" | grep -o 'running now: [^ ]*'
	"$dial9" status -j "$pid" | grep -o '"callback":"[^"]*"'
	"$dial9" top --once "$pid" | grep -o 'running now: [^ ]*'
}

# twice: its user may read the program, and then not any more.
twice() {
	chmod 755 hang
	watch
	chmod 700 hang
	watch
	chmod 755 hang
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	"$dial9" status -j | grep -o '"callback":"[^"]*"'
	rm -rf /dev/shm/dial9-*
}

say "another user's"
owner=65534
begin setpriv --reuid=65534 --regid=65534 --clear-groups "$work/hang"
twice

say "a daemon of root's that became another user"
owner=65534
begin "$work/hang" become
twice

say "root's own"
owner=0
begin "$work/hang"
twice

# calls: what top finds in the files of the directory.
calls() {
	"$dial9" top --json "$pid" | sed -n 's/^  "calls": 0,$/no calls/p; t; s/^  "calls": .*/calls/p'
}

say "a directory that a ring names is read by those who may"
mkdir -m 755 live
mkdir -m 700 secret
mkdir secret/live
mkfifo end
chown 65534 live
setpriv --reuid=65534 --regid=65534 --clear-groups /mnt/make_hostile live "$work/live/ring" \
	"$work/secret" 0 <end >ready &
pid=$!
exec 4>end
until [ -s ready ]; do kill -0 $pid || exit 99; done
"$top_builddir/tests/cli/make_hostile" recent secret/live/trace.0.bin.active 0
calls
chmod 711 secret
chmod 755 secret/live
calls
exec 4>&-
wait $pid

finish 's/+0x[0-9a-f]*/+OFFSET/g'
