/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soak/usage.h"

static void add(struct series *series, uint64_t value)
{
	if (series->n == series->capacity) {
		size_t capacity = series->capacity ? 2 * series->capacity : 4096;
		uint64_t *values = realloc(series->values, capacity * sizeof(*values));

		if (!values)
			return;
		series->values = values;
		series->capacity = capacity;
	}
	series->values[series->n++] = value;
}

/* Without what is shared: the ring has its size, and how much of it is touched depends on how busy the machine is. */
static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size = 0, resident = 0, shared = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lu %lu %lu", &size, &resident, &shared) != 3 || shared > resident)
		resident = shared = 0;
	fclose(file);
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	uint64_t n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* The flush thread has a table of its own: the largest of all threads', added to ours. */
static uint64_t count_descriptors(void)
{
	uint64_t own = count_entries("/proc/self/fd"), other = 0;
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300];

	while (dir && (entry = readdir(dir))) {
		uint64_t n;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/fd", entry->d_name);
		n = count_entries(path);
		/* Tables that are shared are counted once; this directory is open in ours. */
		if (n + 1 != own && n != own && n > other)
			other = n;
	}
	if (dir)
		closedir(dir);
	return own + other;
}

static uint64_t size_of(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint64_t bytes = 0;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		bytes += S_ISDIR(st.st_mode) ? size_of(fd, entry->d_name) : (uint64_t)st.st_size;
	}
	if (dir)
		closedir(dir);
	return bytes;
}

void usage_sample(struct usage *usage, const char *dir)
{
	add(&usage->resident, resident_bytes());
	add(&usage->descriptors, count_descriptors());
	add(&usage->disk, size_of(AT_FDCWD, dir));
}

uint64_t series_most(const struct series *series, double from, double to)
{
	size_t first = (size_t)((double)series->n * from), end = (size_t)((double)series->n * to);
	uint64_t most = 0;

	for (size_t i = first; i < end && i < series->n; i++)
		if (series->values[i] > most)
			most = series->values[i];
	return most;
}

void usage_release(struct usage *usage)
{
	free(usage->resident.values);
	free(usage->descriptors.values);
	free(usage->disk.values);
}
