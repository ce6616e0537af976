/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroup: the process's cgroup and those around it, and the limits that they put on it. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called with each cgroup: its files are in |dir|, of version 2 if |unified|, else 1. */
typedef void (*d9__cgroup_fn)(void *arg, const char *dir, bool unified);

/*
 * Call |fn| with the process's cgroups that may have |controller| ("memory", "cpu"), its own before those around it.
 * Opens files of /proc; changes errno.
 */
void d9__cgroup_each(const char *controller, d9__cgroup_fn fn, void *arg);

/* The limit that the cgroup whose files are in |dir| has, of version 2 if |unified|, else 1; UINT64_MAX: none. */
typedef uint64_t (*d9__cgroup_limit_fn)(const char *dir, bool unified);

/*
 * The least limit by |controller| ("memory", "cpu") of the process's cgroup and those around it; UINT64_MAX: none.
 * Opens files of /proc and /sys; changes errno.
 */
uint64_t d9__cgroup_least(const char *controller, d9__cgroup_limit_fn limit);

/* The beginning of file |name| in |dir|, ended.  False: it cannot be read or is empty, and |text| is "". */
bool d9__cgroup_read(const char *dir, const char *name, char *text, size_t size);

/* How many thousandths of a processor it may use. */
uint64_t d9__cgroup_cpu_limit(const char *dir, bool unified);

/* How many bytes of memory it may use. */
uint64_t d9__cgroup_memory_limit(const char *dir, bool unified);

/*
 * Parse the text of a file memory.max or memory.limit_in_bytes, in bytes.  UINT64_MAX: it is "max", a
 * number that means none, or no number.
 */
uint64_t d9__cgroup_parse_memory(const char *text);

/* Parse the text of a file cpu.max ("50000 100000"), in thousandths of a processor. */
uint64_t d9__cgroup_parse_cpu(const char *text);
