/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "record/system_facts.h"
#include "segment/metadata.h"

void d9__system_facts_model(const char *text, char *out, size_t size)
{
	/* Of each processor on x86; on aarch64 some machines have a line for themselves. */
	static const char *const keys[] = { "model name", "Model" };
	size_t len;

	*out = '\0';
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !*out; i++) {
		for (const char *line = text; *line; line += len, line += *line == '\n') {
			const char *colon = strchr(line, ':');
			size_t key = strlen(keys[i]);

			len = strcspn(line, "\n");
			if (strncmp(line, keys[i], key) != 0 || line[key + strspn(line + key, " \t")] != ':')
				continue;
			colon += 1 + strspn(colon + 1, " ");
			snprintf(out, size, "%.*s", (int)(line + len - colon), colon);
			break;
		}
	}
}

static void tell_number(const char *key, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	d9__metadata_set(key, text);
}

static void tell_model(void)
{
	char text[4096], model[128];

	d9__cgroup_read("/proc", "cpuinfo", text, sizeof(text));
	d9__system_facts_model(text, model, sizeof(model));
	if (model[0])
		d9__metadata_set("system.cpu_model", model);
}

/* "1.5" of processors; a limit that was lifted while the process lived is not told any more. */
static void tell_limits(void)
{
	uint64_t memory = d9__cgroup_least("memory", d9__cgroup_memory_limit);
	uint64_t cpu = d9__cgroup_least("cpu", d9__cgroup_cpu_limit);
	char text[32];

	if (memory != UINT64_MAX)
		tell_number("system.cgroup_memory_bytes", memory);
	if (cpu == UINT64_MAX)
		return;
	snprintf(text, sizeof(text), "%g", (double)cpu / 1000);
	d9__metadata_set("system.cgroup_cpus", text);
}

void d9__system_facts_tell(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN), page = sysconf(_SC_PAGESIZE);
	struct utsname name;
	struct sysinfo info;

	if (online > 0)
		tell_number("system.cpus_online", (uint64_t)online);
	if (page > 0)
		tell_number("system.page_bytes", (uint64_t)page);
	if (!uname(&name))
		d9__metadata_set("system.kernel", name.release);
	if (!sysinfo(&info))
		tell_number("system.memory_bytes", (uint64_t)info.totalram * info.mem_unit);
	tell_model();
	tell_limits();
}
