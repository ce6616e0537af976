#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Loop libraries that the hooks refuse: copies of the installed ones in which something is missing, or
# too old.  The programs run as alone, and everyone says why there is nothing of them.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"
# shellcheck source=tests/cli/altered.sh
. "$top_srcdir/tests/cli/altered.sh"

cat >libevent.c <<'END'
#include <event2/event.h>
#include <stdio.h>

static int left = 50;

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (--left == 0)
		event_base_loopbreak(arg);
}

int main(void)
{
	static const struct timeval soon = { 0, 100 };
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);

	event_add(timer, &soon);
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	puts("50 callbacks");
	return 0;
}
END
cat >libev.c <<'END'
#include <ev.h>
#include <stdio.h>

static int left = 50;

static void on_timer(struct ev_loop *loop, ev_timer *timer, int what)
{
	(void)timer;
	(void)what;
	if (--left == 0)
		ev_break(loop, EVBREAK_ALL);
}

int main(void)
{
	struct ev_loop *loop = ev_loop_new(0);
	ev_timer timer;

	ev_timer_init(&timer, on_timer, 0.0001, 0.0001);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	puts("50 callbacks");
	return 0;
}
END
cat >glib.c <<'END'
#include <glib.h>
#include <stdio.h>

static int left = 50;

static gboolean on_timer(gpointer loop)
{
	if (--left == 0)
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	g_timeout_add(1, on_timer, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	puts("50 callbacks");
	return 0;
}
END
# Beside libevent, whose timer is recorded: it waits for a loop of libev's.
cat >both.c <<'END'
#include <sys/wait.h>
#include <stdlib.h>

int main(void)
{
	return WEXITSTATUS(system("./libevent && ./libev"));
}
END
$CC -o libevent libevent.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"
$CC -o libev libev.c -lev 2>errors || skip "no libev to build with: $(head -n 1 errors)"
# shellcheck disable=SC2046 # a list of words
$CC -o glib glib.c $(pkg-config --cflags --libs glib-2.0 2>errors) 2>>errors ||
	skip "no GLib to build with: $(head -n 1 errors)"
$CC -o both both.c

alter ./libevent ./libev ./glib
hide='s/\(libevent\|libev\|glib\|GLib\) [0-9][0-9.a-z-]*/\1 VERSION/; s/[0-9]* events/N events/
	s/ *pid [0-9]*//; s/[a-z]\{4\}-[0-9]\{1,\}/BOOT-PID/g'

for library in libevent libev glib; do
	say "$library, as it is and altered"
	run record -q --require -o "$library.found" ./$library
	LD_LIBRARY_PATH=altered
	export LD_LIBRARY_PATH
	run record -o $library.trace ./$library
	run record -q --require -o $library.trace ./$library
	"$dial9" report -v $library.trace | tr -s ' \n' ' ' | grep -o "Nothing of $library is recorded" | sort -u
	unset LD_LIBRARY_PATH
done

say "one is refused, one is not"
rm altered/libevent*
LD_LIBRARY_PATH=altered "$dial9" record -o both.trace ./both

# Two loops of libev, each of which takes a table: the recorder gets no memory while the first is made.
cat >memory.h <<'END'
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool out;

/* The C library's own calls, for malloc(), do not come here. */
void *mmap(void *address, size_t len, int protection, int flags, int fd, off_t offset)
{
	if (!out)
		return (void *)syscall(SYS_mmap, address, len, protection, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}
END
sed 's/int main(void)/static int run(struct ev_loop *loop)/
	s/struct ev_loop \*loop = ev_loop_new(0);/left = 50;/; s/^	ev_timer timer;/	static ev_timer timer;/' libev.c >libev_out.c
cat >>libev_out.c <<'END'
#include "memory.h"

int main(void)
{
	struct ev_loop *first;

	out = true;
	first = ev_loop_new(0);
	out = false;
	return run(first) + run(ev_loop_new(0));
}
END
$CC -D_GNU_SOURCE -o libev_out libev_out.c -lev
say "no memory to record the first of two loops"
run record -q --require -o libev.out ./libev_out
echo "$("$dial9" events -e PollStartEvent libev.out | wc -l) polls"
"$dial9" report -v libev.out | tr -s ' \n' ' ' | grep -o "Loops of libev are not in the trace"

say "no descriptors for a trial"
"$dial9" record -q --require -o few.less sh -c 'ulimit -n 8; exec ./libevent'
"$dial9" report -v few.less | tr -s ' \n' ' ' | grep -o "there were no descriptors for its trial" | head -n 1

finish "$hide"
