#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Samples stand for the CPU time of their thread within 2 %: of one that shares its processor with a competitor, so that a
# signal stands for many periods, and of one that blocks the signal, whose time has no stack but for 50 ms.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# Says which thread it is, and how many periods of 1 ms of CPU time it used.
cat >busy.c <<'END'
#include "cpu_work.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

/* On the processor of this thread, until this process ends. */
static void start_competitor(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		sink++;
}

int main(int argc, char **argv)
{
	double began;
	sigset_t all;

	sigfillset(&all);
	await_sampling();
	if (argc > 1 && !strcmp(argv[1], "beside"))
		start_competitor();
	began = used();
	if (argc > 1 && !strcmp(argv[1], "blocks")) {
		sigprocmask(SIG_BLOCK, &all, NULL);
		compute(1.5);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
	} else {
		compute(1.5);
	}
	printf("%d %.0f\n", (int)getpid(), (used() - began) * 1000);
	return 0;
}
END
cc -g -O2 -I"$top_srcdir/tests/cli" -o busy busy.c || exit 99

# weigh VARIANT: the samples of the program's own thread; the competitor, a forked child, has samples of its own.
weigh() {
	rm -rf tr
	"$dial9" record --quiet --profile-only --cpu 1000 -o tr -- ./busy "$1" >said
	read -r thread due <said
	"$dial9" events -e CpuSampleEvent tr | grep "\"tid\":$thread," >samples
	n=$(grep -c . samples)
	empty=$(grep -c '"callchain":\[\]' samples)
	[ $((n * 100)) -ge $((due * 98)) ] && [ $((n * 100)) -le $((due * 102)) ]
}

# Time that a host takes away just before the end is of no tick, and so of no sample: it is tried again.
for variant in beside blocks; do
	say "$variant"
	tries=1
	until weigh $variant || [ $tries = 4 ]; do tries=$((tries + 1)); done
	if [ $tries -lt 4 ]; then
		echo "its periods within 2 %"
	else
		echo "$n samples for $due periods"
	fi
	[ $variant = beside ] || [ $((n - empty)) -gt 150 ] || echo "without a stack but for 50 ms"
done
finish ''
