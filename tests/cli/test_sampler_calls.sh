#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the handler that samples a thread asks of the kernel, as strace sees it: nothing while a thread that runs no loop
# computes, but the end of the handler, and one look at a stack that lies elsewhere.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

strace -o /dev/null true 2>/dev/null || {
	echo "strace cannot trace here"
	exit 77
}

# The thread tells the kernel where its computing begins and ends by calls that nothing else makes: getppid() and getpgrp().
cat >alone.c <<'END'
#include "cpu_work.h"
#include <pthread.h>
#include <stdlib.h>

static void *helper(void *unused)
{
	(void)unused;
	await_sampling();
	getppid();
	for (int i = 0; i < 5; i++)
		compute(0.2);
	getpgrp();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	/* The flush thread has nothing to do for so long that it rests. */
	sleep(2);
	pthread_create(&thread, NULL, helper, NULL);
	pthread_join(thread, NULL);
	return 0;
}
END
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -o alone alone.c || exit 99

say "a thread that computes after a rest"
# One file for each thread: in one of all, calls that others interrupt are told in two lines.
strace -ff -o calls "$dial9" record --quiet --profile-only -o tr -- ./alone
file=$(grep -l '^getpgrp()' calls.*)
thread=${file#calls.}
# The program's own clock_gettime() aside.
sed -n '/^getppid()/,/^getpgrp()/p' "$file" | sed '1d;$d; /^--- /d; s/(.*//; /^clock_gettime$/d; s/^process_vm_readv$/rt_sigreturn/' | sort -u
samples=$("$dial9" events -e CpuSampleEvent tr | grep -c "\"tid\":$thread,")
[ "$samples" -ge 50 ] && echo "it was sampled"
finish 's/  */ /g'
