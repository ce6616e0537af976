#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stacks of loop threads, sampled by their CPU time: how many, with what in them, what the report makes of them, and
# programs that use the signal themselves, block it, or cannot have one.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >busy.c <<'END'
#include "cpu_work.h"
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t own_signals;
static const char *how;
static int left = 30;

static void on_prof(int signal)
{
	(void)signal;
	own_signals++;
}

static void use_signal(void)
{
	struct itimerval every = { { 0, 20000 }, { 0, 20000 } };

	signal(SIGPROF, on_prof);
	setitimer(ITIMER_PROF, &every, NULL);
}

static void block(int what)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(what, &all, NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (left == 30 && strcmp(how, "usual-off"))
		await_sampling();
	if (left == 20 && !strcmp(how, "takes"))
		use_signal();
	if (left == 20 && !strcmp(how, "forks") && !fork()) {
		compute(0.05);
		_exit(0);
	}
	if (left == 10 && !strcmp(how, "dies"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "blocks"))
		block(left <= 5 ? SIG_UNBLOCK : SIG_BLOCK);
	compute(0.02);
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);
	struct sigaction action;

	how = argc > 1 ? argv[1] : "";
	if (!strcmp(how, "uses"))
		use_signal();
	event_add(timer, &(struct timeval){ 0, 5000 });
	event_base_dispatch(base);
	while (!strcmp(how, "uses") && own_signals < 25)
		compute(0.02);
	sigaction(SIGPROF, NULL, &action);
	printf("%.0f %s\n", used() * 99, action.sa_handler == SIG_DFL ? "default" :
	       action.sa_handler == on_prof ? "its own" : "ours");
	return 0;
}
END
cc -g -O2 -rdynamic -I"$top_srcdir/tests/cli" -o busy busy.c -levent || exit 99

# recorded OPTION...: busy; whether there are samples within 6 of what its CPU time makes, most of them with a stack.
recorded() {
	rm -rf "$work/tr.$variant"
	"$dial9" record --quiet -o "$work/tr.$variant" "$@" -- ./busy "$variant" >said
	status=$?
	due=$(sed 's/ .*//' said)
	# Killed in its 21st call of 20 ms, of which 99 make 2 s.
	[ -s said ] || due=40
	"$dial9" events -e CpuSampleEvent "$work/tr.$variant" 2>/dev/null | grep '"source":0' >samples
	n=$(grep -c callchain samples)
	# Those that come after more than 50 ms stand for time of which nobody knows where it went.
	empty=$(grep -c '"callchain":\[\]' samples)
	# A host that takes the processor away for a while takes the timer's ticks with it: the last ones never come.
	[ "$n" -ge $((due - due / 4)) ] && [ "$n" -le $((due + 6)) ] && has_all=1 || has_all=0
	[ $has_all = 1 ] && { [ "$variant" = blocks ] || [ "$empty" -le $((n / 2)) ]; }
}

# try VARIANT OPTION...: what was recorded, the signal, and what the trace says; again where the machine kept samples away.
try() {
	variant=$1
	shift
	say "$variant $*"
	for _ in 1 2 3 4; do
		! recorded "$@" || break
		case $variant in usual-* | takes | dies) break ;; esac
	done
	[ $status = 0 ] || echo "status $status"
	if [ $has_all = 1 ]; then
		echo "as many samples as its CPU time makes"
	else
		echo "samples: $n" | sed 's/: 0$/: none/; s/: [1-9].*/: some/'
	fi
	[ "$empty" -le $((n / 2)) ] || echo "most without a stack"
	# But for one that comes while the dynamic loader resolves a symbol.
	cut=$(grep '"truncated":true' samples | grep -vc '"callchain":\[\]')
	[ "$n" -eq "$empty" ] || [ $((20 * cut)) -gt "$n" ] || echo "whole stacks"
	sed 's/^[0-9]* /SIGPROF is /' said
	"$dial9" info "$work/tr.$variant" | grep '^  source.cpu'
}

try usual
"$dial9" report "$work/tr.usual" | sed -n 's/[0-9]* % in/N % in/g; s/^  at: /at: /p' | sed 's/, N.*//' | uniq
"$dial9" report -v "$work/tr.usual" | sed -n 's/[0-9]* % in/N % in/g; s/^  on the CPU: /on the CPU: /p' | sed 's/, N.*//' | uniq
echo "frames of the recorder in SQL: $("$dial9" query -f csv "$work/tr.usual" "SELECT count(*) FROM frames WHERE module LIKE 'libdial9%' OR function LIKE 'd9~_~_%' ESCAPE '~'" | tail -n 1)"
try usual-off --cpu off
try usual-fast --cpu 500
try uses
try takes
try blocks
try forks
try dies
# With all of its signals blocked, and read as they come.
cat >reads.c <<'END'
#include "cpu_work.h"
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>

static int left = 50;

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo info;

	(void)what, (void)arg;
	while (read(fd, &info, sizeof(info)) == sizeof(info))
		printf("got signal %u\n", info.ssi_signo);
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	compute(0.02);
	if (left == 25)
		kill(getpid(), SIGUSR1);
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	event_add(event_new(base, signalfd(-1, &all, SFD_NONBLOCK), EV_READ | EV_PERSIST, on_signal, NULL), NULL);
	event_add(event_new(base, -1, EV_PERSIST, on_timer, base), &(struct timeval){ 0, 5000 });
	return event_base_dispatch(base) < 0;
}
END
cc -g -O2 -I"$top_srcdir/tests/cli" -o reads reads.c -levent || exit 99
say "a thread that reads all signals itself gets its own alone"
"$dial9" record --quiet -o "$work/tr.reads" -- ./reads
"$dial9" info "$work/tr.reads" | grep '^  source.cpu' | sed 's/thread [0-9]*/thread N/'

say "no signal may be queued"
prlimit --sigpending=0 "$dial9" record --quiet -o "$work/none" -- ./busy | sed 's/^[0-9]* //'
"$dial9" info "$work/none" | grep '^  source.cpu'

run record --cpu 0 true
run record --cpu fast true
run record --cpu 1001 true
finish 's/cpu_work\.h:[0-9]*/cpu_work.h:N/g; s/  */ /g'
