#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `dial9 record --memory` and `--profile-only`: programs that start others have no thread of ours, and do what they do alone;
# those that allocate or compute are sampled.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# late COUNT|ALLOCATE|COMPUTE|QUIET|HANDLER: prints how many threads it has at last, or has had in a handler.
# late LOADER: forks while a thread has the loader's lock, which the child finds held for ever, and prints how the child ended.
cat >late.c <<'END'
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void compute(double seconds)
{
	volatile unsigned long x = 1;

	for (double end = used() + seconds; used() < end;)
		for (int i = 0; i < 10000; i++)
			x = x * 3 + 1;
}

/* A call that is no wait here. */
static void call(void)
{
	char byte;

	if (pread(STDIN_FILENO, &byte, 0, 0) > 0)
		abort();
}

static int threads(void)
{
	char text[4096], *line;
	FILE *file = fopen("/proc/self/status", "r");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	text[n] = '\0';
	line = strstr(text, "\nThreads:");
	return line ? atoi(line + 9) : 0;
}

static int seen;

static void handle(int signal)
{
	(void)signal;
	compute(0.3);
	for (int i = 0; i < 1000; i++) {
		char *volatile block = malloc(4096);

		free(block);
		call();
	}
	seen = threads();
}

static void allocate(void)
{
	for (int i = 0; i < 10000; i++) {
		char *volatile block = malloc(100000);

		free(block);
	}
}

static int hold(struct dl_phdr_info *info, size_t size, void *held)
{
	(void)info, (void)size;
	pthread_barrier_wait(held);
	pthread_barrier_wait(held);
	return 1;
}

static void *hold_loader(void *held)
{
	dl_iterate_phdr(hold, held);
	return NULL;
}

static int fork_with_loader_held(void)
{
	pthread_barrier_t held;
	pthread_t thread;
	int status = -1;
	pid_t pid;

	pthread_barrier_init(&held, NULL, 2);
	pthread_create(&thread, NULL, hold_loader, &held);
	pthread_barrier_wait(&held);
	pid = fork();
	if (!pid) {
		allocate();
		exit(0);
	}
	waitpid(pid, &status, 0);
	pthread_barrier_wait(&held);
	pthread_join(thread, NULL);
	printf("%d\n", status);
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	if (!strcmp(way, "loader"))
		return fork_with_loader_held();
	if (!strcmp(way, "allocate")) {
		allocate();
	} else if (!strcmp(way, "compute")) {
		for (int i = 0; i < 10; i++) {
			compute(0.05);
			call();
		}
	} else if (!strcmp(way, "quiet")) {
		compute(0.5);
	} else if (!strcmp(way, "handler")) {
		signal(SIGUSR1, handle);
		raise(SIGUSR1);
		printf("%d\n", seen);
		return 0;
	}
	printf("%d\n", threads());
	return 0;
}
END
$CC -O1 -g -fno-builtin -pthread -o late late.c || exit 99

say "threads in the end"
for flags in --memory --profile-only "--memory=1 --profile-only"; do
	for way in count allocate compute quiet handler; do
		# shellcheck disable=SC2086 # words
		echo "$flags: $way $("$dial9" record -q $flags -o t -- ./late $way)"
	done
done
echo "at once: $(DIAL9_LATE_START_ENABLED=no "$dial9" record -q --profile-only -o t -- ./late count)"
echo "at once: $(DIAL9_LATE_START_ENABLED=no "$dial9" record -q --memory -o t -- ./late count)"

echo "forked while a thread has the loader's lock: $(timeout 60 "$dial9" record -q --memory -o t -- ./late loader)"

say "what is sampled"
rm -rf t
"$dial9" record -q --memory -o t -- ./late allocate >out
"$dial9" info t | grep -o AllocEvent
rm -rf t
"$dial9" record -q --profile-only -o t -- ./late compute >out
"$dial9" info t | grep -o CpuSampleEvent
rm -rf t
"$dial9" record --profile-only -o t -- ./late quiet 2>&1 | grep -o 'made no call behind.*'

say "as alone"
cat >launchers <<'END'
env A=1 sh -c 'echo $A'
nice -n 3 nice
setsid echo setsid
timeout 60 echo timeout
sh -c 'exit 3'
setpriv --reuid 65534 --regid 65534 --clear-groups id -u
setpriv --reuid 65534 --regid 65534 --init-groups --inh-caps=-all --bounding-set=-all id -g
unshare -U -r id -u
unshare --map-root-user --net id -u
unshare --user --pid --fork --map-root-user id -u
runuser -u nobody -- id -u
su -s /bin/sh -c 'id -u' nobody
END
while read -r line; do
	sh -c "$line" >alone 2>&1 </dev/null
	status=$?
	for flags in '' --memory --memory=1 --profile-only '--memory=1 --profile-only'; do
		# shellcheck disable=SC2086 # words
		"$dial9" record -q $flags -o t -- sh -c "$line" >recorded 2>&1 </dev/null
		[ $? = $status ] || echo "[$flags] $line: another status"
		cmp -s alone recorded || { echo "[$flags] $line: another output" && diff alone recorded; }
	done
done <launchers

finish ''
