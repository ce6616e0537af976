# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by the tests of the program.  What they print becomes a transcript, which must equal
# TEST.expected; UPDATE_EXPECTED=1 writes that file instead.
set -u

dial9=$top_builddir/core/dial9
# shellcheck disable=SC2034 # used by those that source this
make_trace=$top_builddir/tests/cli/make_trace
test_name=$(basename "$0" .sh)
expected=$top_srcdir/tests/cli/$test_name.expected
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD 2>/dev/null
LC_ALL=C
export LC_ALL
cd "$work" || exit 99
exec 3>&1 >"$work/.transcript" 2>&1

# run ARGUMENTS...: dial9, as a line of the transcript, its output, its status unless that is 0.
run() {
	printf '$ dial9 %s\n' "$*"
	"$dial9" "$@"
	status=$?
	[ $status = 0 ] || echo "[exit status $status]"
}

# say TEXT...: a heading.
say() {
	printf '\n# %s\n' "$*"
}

# skip WHY: not a failure, but said.
skip() {
	echo "$1" >&3
	exit 77
}

# build_timer: ./prog MICROSECONDS [TIMES [STATUS]], a timer of libevent that is called so often; then it
# ends with STATUS; without one by an alarm, longer than any test may take.
build_timer() {
	cat >prog.c <<-'END_C'
		#include <event2/event.h>
		#include <stdlib.h>
		#include <unistd.h>

		static struct event *timer;
		static long us, left = -1;
		static int ends;

		static void arm(void)
		{
			struct timeval next = { us / 1000000, us % 1000000 };

			event_add(timer, &next);
		}

		static void on_timer(evutil_socket_t fd, short what, void *base)
		{
			(void)fd;
			(void)what;
			if (left < 0 || --left > 0)
				arm();
			else if (ends)
				event_base_loopbreak(base);
		}

		int main(int argc, char **argv)
		{
			struct event_base *base = event_base_new();

			us = atol(argv[1]);
			if (argc > 2)
				left = atol(argv[2]);
			ends = argc > 3;
			alarm(300);
			timer = evtimer_new(base, on_timer, base);
			arm();
			return event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY) + (ends ? atoi(argv[3]) : 0);
		}
	END_C
	$CC -o prog prog.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"
}

# finish SED-SCRIPT: compare, after replacing what differs from machine to machine.
finish() {
	exec >&3 2>&3
	sed -e "s|$work|WORK|g" -e "$1" "$work/.transcript" >"$work/.result"
	if [ -n "${UPDATE_EXPECTED:-}" ]; then
		cp "$work/.result" "$expected"
	fi
	diff -u "$expected" "$work/.result" || exit 1
	exit 0
}
