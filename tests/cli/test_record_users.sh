#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `dial9 record` of root, and programs that become another user: what they do is recorded into the directory that
# was named, wherever that is.  With a /dev/shm and processes of its own.
other_users=yes
# shellcheck source=tests/cli/own_shm.sh
. "$top_srcdir/tests/cli/own_shm.sh"
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

port=$((19000 + $$ % 1000))

# gives WHEN: 40 calls of a timer, as nobody from the start on (early), from the 20th (late); in the background,
# as nobody before or after its parent has ended (daemon, later); with another root (chroot); killed at last
# (killed); without a loop, while samples would be taken (none).  Linked, into a directory of its own choice (own).
cat >gives.c <<'END'
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct event *timer;
static int calls, late, killed;

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		_exit(9);
}

static void call(evutil_socket_t fd, short what, void *arg)
{
	struct timeval next = { 0, 2000 };

	(void)fd, (void)what, (void)arg;
	if (++calls == 20 && late)
		become_nobody();
	if (calls == 40 && killed)
		raise(SIGKILL);
	if (calls < 40)
		event_add(timer, &next);
}

/* The parent's end is seen, not waited for. */
static void go_to_background(void)
{
	int fds[2];

	if (pipe(fds) || fork())
		_exit(0);
	close(fds[1]);
	setsid();
	poll(&(struct pollfd){ .fd = fds[0] }, 1, -1);
	for (int fd = 0; fd < 256; fd++)
		close(fd);
}

int main(int argc, char **argv)
{
	struct event_base *base;
	const char *when = argc > 1 ? argv[1] : "";

	killed = !strcmp(when, "killed");
	late = killed || !strcmp(when, "late");
	if (!strcmp(when, "none"))
		return poll(NULL, 0, 300) || !event_get_version();
	if (!strcmp(when, "chroot") && chroot("root"))
		return 8;
	if (!strcmp(when, "early") || !strcmp(when, "daemon"))
		become_nobody();
	if (!strcmp(when, "daemon") || !strcmp(when, "later"))
		go_to_background();
	if (!strcmp(when, "later"))
		become_nobody();
#ifdef ATTACH
	if (!strcmp(when, "own")) {
		struct d9_options *options;

		d9_options_new(&options);
		d9_options_set_trace_dir(options, "own/place");
		for (int i = 0; i < 2; i++)
			puts(d9_strerror(d9_recorder_start(options, NULL)));
		fflush(stdout);
		d9_options_free(options);
	}
#endif
	base = event_base_new();
#ifdef ATTACH
	d9_event_base_attach(base);
#endif
	timer = event_new(base, -1, 0, call, NULL);
	call(-1, 0, NULL);
	return event_base_dispatch(base) < 0;
}
END
$CC -o gives gives.c -levent || skip "no libevent to build with"
sed -i '1i #include <dial9/error.h>\n#include <dial9/libevent.h>\n#include <dial9/recorder.h>\n#include <stdio.h>' gives.c
$CC -DATTACH -I"$top_srcdir/core/include" -I"$top_srcdir/adapters/include" -o linked gives.c \
	-L"$top_builddir/adapters/.libs" -L"$top_builddir/core/.libs" -ldial9-libevent -levent -ldial9 || exit 99
# Where nobody can reach them, too: the tree may lie below a folder of root's alone.
open=/mnt
cp gives "$dial9" "$top_builddir"/adapters/.libs/libdial9-*.so* "$top_builddir"/core/.libs/libdial9.so* $open
LD_LIBRARY_PATH=$open
DIAL9_PRELOAD=$open/libdial9-preload.so
export LD_LIBRARY_PATH DIAL9_PRELOAD

nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'

# The helper ends by itself, and so do the programs here; a process that was not waited for is none.
until_all_ended() {
	while ps -e -o stat=,comm= | awk '$1 !~ /^Z/ && /dial9|gives|linked|memcached/ { n++ } END { exit !n }'; do
		sleep 0.05
	done
}

words='s/[a-z]\{4\}-[0-9]\{1,\}/ID/g; s/recorded [0-9]* events/recorded N events/'

# trace DIR: whose it all is, the calls that are in it, and rings that were left.
trace() {
	until_all_ended
	find "$1" ! -name .peers -printf '%y %m %U %p\n' | sed "$words" | sort
	"$dial9" report --json "$1" | tr '{' '\n' | sed -n 's/.*"polls": *\([0-9]*\).*/\1/p' | sort -n | tail -n 1 |
		sed 's/^/calls of the timer: /'
	find /dev/shm -name ring | sed "$words"
	rm -rf "$1"
}

say "before it has a loop"
run record -o tr -- ./gives early
trace tr
say "what was not compressed is, with the rights of whose it is, whatever lies above it"
mkdir -m 700 above
DIAL9_PRESSURE=yes run record -o above/tr -- ./gives early
find above/tr -name 'trace.*' -printf '%m %U %f\n'
[ "$(find above/tr -name 'trace.*' -printf %s)" -lt "$("$dial9" info above/tr | sed -n 's/^  segment.raw_bytes *//p')" ] &&
	echo "compressed"
rm -r above
say "with its loop running, and linked"
run record -o tr -- ./gives late
trace tr
run record -o tr -- ./linked late
trace tr
say "linked, where the program names a directory of its own, and what began before main() has another"
run record -q -o tr -- ./linked own
trace own/place
ls tr 2>&1
say "killed"
run record -q -o tr -- ./gives killed 2>/dev/null
trace tr
say "by those that start programs as other users"
for how in "$nobody" "runuser -u nobody --" "chroot --userspec=65534:65534 /"; do
	# shellcheck disable=SC2086
	run record -o tr -- $how $open/gives
	trace tr
done
say "without root it says who could"
cp gives $open/other
chmod 4755 $open/other
for how in "" "nice -n 0" "sh -c"; do
	# shellcheck disable=SC2086
	(cd $open && $nobody ./dial9 record -o /dev/shm/none -- $how ./other)
done

say "behind chroot"
mkdir -p root
ldd ./gives "$DIAL9_PRELOAD" | awk '$3 ~ "^/" { print $3 } $1 ~ "^/" && !/:$/ { print $1 }' |
	sort -u | while read -r lib; do
	mkdir -p "root$(dirname "$lib")" && cp -L "$lib" "root$lib"
done
mkdir -p root$open && cp "$DIAL9_PRELOAD" "root$DIAL9_PRELOAD" && cp gives root/
run record -o tr -- chroot --userspec=65534:65534 root /gives
trace tr
run record -o tr -- chroot root /gives
trace tr
run record -o tr -- ./gives chroot
trace tr
[ ! -e "root$work" ] || echo "there is a trace behind chroot"

say "in the background"
for when in daemon later; do
	"$dial9" record -q -o tr -- ./gives $when
	trace tr
done

say "in a directory of root's that was there, and with a trace of root's own in it"
mkdir -m 755 tr
run record -o tr -- sh -c './gives early; ./gives'
trace tr

say "in a directory that all may write to, where each makes its own"
mkdir -m 1777 tr
run record -o tr -- sh -c './gives early; ./gives'
trace tr
mkdir -m 1777 $open/tr
# shellcheck disable=SC2086
(cd $open && $nobody ./dial9 record -o tr -- ./gives && trace tr)

say "pipes that its user puts in the place of lock and segments hold up nobody"
cat >$open/pipes.sh <<'END'
/mnt/gives && cd /mnt/tr/*/ && rm .lock && mkfifo .lock trace.9.bin
END
mkdir -m 755 $open/tr
# shellcheck disable=SC2086
(cd $open && "$dial9" record -o tr -- $nobody sh pipes.sh 2>&1 && trace tr)

say "without a loop nothing is left, and nobody"
run record -o tr -- sh -c "$nobody true; ./gives none"
until_all_ended
ls tr 2>&1

if command -v memcached >/dev/null; then
	say "memcached"
	for background in '' -d; do
		# shellcheck disable=SC2086
		"$dial9" record -q -o tr -- memcached $background -u nobody -l 127.0.0.1 -p $port -U 0 -t 2 &
		recorder=$!
		until pid=$(pgrep -x -n memcached) && "$dial9" status -j "$pid" 2>/dev/null | grep -q '"events_written":[1-9]\|"written":[1-9]'; do
			sleep 0.05
		done
		kill "$pid"
		wait $recorder
		until_all_ended
		find tr ! -name .peers -printf '%y %m %U %p\n' | sed "$words" | sort
		"$dial9" report --json tr | grep -c '"memcached"' | sed 's/^[1-9][0-9]*$/it is in the report/'
		rm -r tr
	done
else
	printf '\n# memcached\n'
	for background in '' -d; do
		printf 'd 700 65534 tr/ID\nd 711 0 tr\nf 600 65534 tr/ID/.lock\nf 600 65534 tr/ID/trace.0.bin.zst\nit is in the report\n'
	done
fi

finish "$words; s/libeID[.so0-9]*/libevent.so/"
