/* SPDX-License-Identifier: Apache-2.0 */
/* Seams: what loop/ needs from the recorder's background half. */

#ifndef D9_LOOP_SEAMS_H
#define D9_LOOP_SEAMS_H

#include <stddef.h>
#include <stdint.h>

struct d9__slot;

struct d9__source {
	const char *name;
	uint64_t period_ns;
	void (*sample)(struct d9__source *source, struct d9__slot *slot, uint64_t now_ns);
	struct d9__source *next;
	uint64_t due_ns;
};

/* Weak while they live elsewhere: without them nothing is recorded, and nothing breaks. */
int d9__metadata_set(const char *key, const char *value) __attribute__((weak));
void d9__source_add(struct d9__source *source) __attribute__((weak));
int d9__module_name_of(const void *addr, char *buf, size_t len) __attribute__((weak));
int d9__recorder_ensure(void) __attribute__((weak));

static inline void d9__recorder_child_check(void)
{
}

#endif /* D9_LOOP_SEAMS_H */
