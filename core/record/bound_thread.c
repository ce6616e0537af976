/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "record/bound_thread.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"
#include "ring/names.h"

#define TOLD_NS	   (D9__SECOND_NS / 100)
#define NAME_BYTES 32

/* Put "0-3" or "8" behind the |used| bytes of |cpus|.  Where that ends. */
static size_t put_range(char *cpus, size_t size, size_t used, int first, int last)
{
	const char *comma = used ? "," : "";
	int n;

	if (first == last)
		n = snprintf(cpus + used, size - used, "%s%d", comma, first);
	else
		n = snprintf(cpus + used, size - used, "%s%d-%d", comma, first, last);
	return used + (size_t)n;
}

unsigned d9__bound_thread_cpus(uint32_t tid, unsigned online, char *cpus, size_t size)
{
	cpu_set_t set;
	size_t used = 0;
	int first = -1;

	if (sched_getaffinity((pid_t)tid, sizeof(set), &set) || (unsigned)CPU_COUNT(&set) >= online)
		return 0;
	for (int i = 0; i <= CPU_SETSIZE && used < size; i++) {
		bool is_in = i < CPU_SETSIZE && CPU_ISSET((size_t)i, &set);

		if (is_in && first < 0)
			first = i;
		if (is_in || first < 0)
			continue;
		used = put_range(cpus, size, used, first, i - 1);
		first = -1;
	}
	return used < size ? (unsigned)CPU_COUNT(&set) : 0;
}

/* The kernel's name of the thread; "": it has ended. */
static void read_name(int task_dir, uint32_t tid, char *name, size_t size)
{
	char path[32];
	ssize_t len;
	int fd;

	name[0] = '\0';
	snprintf(path, sizeof(path), "%u/comm", tid);
	fd = openat(task_dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, name, size - 1);
	name[len > 0 ? len : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	close(fd);
}

void d9__bound_thread_write(struct d9__slot *own, uint64_t now_ns, int task_dir, unsigned online,
			    const struct d9__thread_growth *growth)
{
	char cpus[D9__BOUND_CPUS_MAX], name[NAME_BYTES];
	uint32_t names[2], ids[2];
	uint8_t *p;

	if ((growth->cpu_ns < TOLD_NS && growth->wait_ns < TOLD_NS) ||
	    !d9__bound_thread_cpus(growth->tid, online, cpus, sizeof(cpus)))
		return;
	read_name(task_dir, growth->tid, name, sizeof(name));
	names[0] = d9__name_intern(name, strlen(name));
	names[1] = d9__name_intern(cpus, strlen(cpus));
	p = d9__emit_begin_named(own, D9__EVENT_BOUND_THREAD, now_ns, 12 + 2 * D9__VARINT_MAX,
				 names, ids, 2);
	if (!p)
		return;
	p = d9__wire_put_u32(p, growth->tid);
	p = d9__wire_put_u32(p, ids[0]);
	p = d9__wire_put_u32(p, ids[1]);
	p = d9__varint_put(p, growth->cpu_ns);
	d9__emit_end(own, d9__varint_put(p, growth->wait_ns));
}
