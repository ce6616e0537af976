/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts, by kernel uprobes, how often the machine runs through places of a file while CMD lives: a
 * count that shares nothing with dial9.  A uprobe belongs to an inode, so give it a private copy of
 * the file, and only CMD and its children are counted.  (Counting by task instead is not to be had:
 * the kernel reads the path again, in the new task's memory, when a thread inherits the counter,
 * and pthread_create() then fails in the program.)
 *
 *	uprobe_count OUT FILE OFFSET [FILE OFFSET]... -- CMD ARGS...
 *
 * OFFSET is the offset in FILE, hexadecimal.  OUT gets a line `FILE OFFSET COUNT` each once CMD has
 * ended.  Exits as CMD does; 77 if the kernel offers no uprobes or refuses them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define PROBES_MAX 128
#define CPUS_MAX   64

static pid_t child;

static void forward(int sig)
{
	kill(child, sig);
}

static int uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%d", &type) != 1)
		type = -1;
	fclose(f);
	return type;
}

static int open_probe(int type, const char *file, uint64_t offset, int cpu)
{
	struct perf_event_attr attr = {
		.type = (uint32_t)type,
		.size = sizeof(attr),
		.config1 = (uint64_t)(uintptr_t)file,
		.config2 = offset,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int usage(void)
{
	fputs("usage: uprobe_count OUT FILE OFFSET [FILE OFFSET]... -- CMD ARGS...\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static int fds[PROBES_MAX][CPUS_MAX];
	int n = 0, first, status, type = uprobe_type();
	int cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	FILE *out;

	for (first = 2; first < argc && strcmp(argv[first], "--") != 0; first += 2)
		n++;
	if (first >= argc - 1 || n > PROBES_MAX || !n)
		return usage();
	if (type < 0 || cpus > CPUS_MAX)
		return 77;
	for (int i = 0; i < n; i++)
		for (int cpu = 0; cpu < cpus; cpu++) {
			uint64_t offset = strtoull(argv[3 + 2 * i], NULL, 16);

			fds[i][cpu] = open_probe(type, argv[2 + 2 * i], offset, cpu);
			if (fds[i][cpu] < 0) {
				fprintf(stderr, "uprobe %s+%s: %s\n", argv[2 + 2 * i],
					argv[3 + 2 * i], strerror(errno));
				return 77;
			}
		}
	child = fork();
	if (child < 0)
		return 99;
	if (!child) {
		execvp(argv[first + 1], argv + first + 1);
		_exit(127);
	}
	signal(SIGTERM, forward);
	signal(SIGINT, forward);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	out = fopen(argv[1], "w");
	if (!out)
		return 99;
	for (int i = 0; i < n; i++) {
		uint64_t sum = 0, count;

		for (int cpu = 0; cpu < cpus; cpu++) {
			if (read(fds[i][cpu], &count, sizeof(count)) != sizeof(count))
				return 99;
			sum += count;
		}
		fprintf(out, "%s %s %llu\n", argv[2 + 2 * i], argv[3 + 2 * i],
			(unsigned long long)sum);
	}
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
