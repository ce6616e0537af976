/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "counters.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_COUNTERS 2048
#define LOG_BYTES    (256 * 1024)

static struct counter counters[MAX_COUNTERS];
static size_t n_counters;
static char log_text[LOG_BYTES];
static size_t log_len;
static int failures;

struct counter *counter_of(const char *name, void *address, enum kind kind)
{
	for (size_t i = 0; i < n_counters; i++) {
		if (counters[i].address == address && counters[i].kind == kind)
			return &counters[i];
	}
	counters[n_counters] = (struct counter) { .name = name, .address = address, .kind = kind };
	return &counters[n_counters++];
}

void log_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_len += (size_t)vsnprintf(log_text + log_len, LOG_BYTES - log_len - 1, format, args);
	va_end(args);
	log_text[log_len++] = '\n';
}

void complain(const char *what, long want, long is)
{
	fprintf(stderr, "%s: want %ld, is %ld\n", what, want, is);
	failures++;
}

static long open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	long n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Without the ring, which is shared.  0 under sanitizers, whose memory it would be. */
static long private_kib(void)
{
	long kib = 0;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];

	while (file && fgets(line, sizeof(line), file) && sscanf(line, "RssAnon: %ld", &kib) != 1)
		continue;
	if (file)
		fclose(file);
#endif
	return kib;
}

void expect_flat(void)
{
	static long descriptors, kib;
	long n = open_descriptors(), now_kib = private_kib();

	if (descriptors && n != descriptors)
		complain("descriptors", descriptors, n);
	/* The recorder's own thread packs meanwhile. */
	if (descriptors && now_kib > kib + 4096)
		complain("KiB of memory", kib, now_kib);
	descriptors = n;
	kib = now_kib;
}

static const char *const kind_names[] = {
	"poll",	    "span",   "tasks", "ended", "late", "least", "elsewhere",
	"closures", "reason", "waker", "depth", "site", "span_tasks", "internal_site",
};

/*
 * A line "pid PID", then "poll NAME ADDRESS OFFSET COUNT EXACT", where OFFSET counts from the
 * module's load bias.
 */
static void write_file(const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out) {
		complain(path, 0, errno);
		return;
	}
	fprintf(out, "pid %d\n", (int)getpid());
	for (size_t i = 0; i < n_counters; i++) {
		uintptr_t address = (uintptr_t)counters[i].address;
		struct link_map *map = NULL;
		Dl_info info;

		dladdr1(counters[i].address, &info, (void **)&map, RTLD_DL_LINKMAP);
		fprintf(out, "%s %s %p 0x%zx %lu %s\n", kind_names[counters[i].kind],
			counters[i].name, counters[i].address,
			(size_t)(map ? address - map->l_addr : address), counters[i].count,
			counters[i].timing ? "timing" : "exact");
	}
	fwrite(log_text, 1, log_len, out);
	fclose(out);
}

void counters_reset(void)
{
	for (size_t i = 0; i < n_counters; i++)
		counters[i].count = 0;
	log_len = 0;
}

unsigned long counters_sum(enum kind kind)
{
	unsigned long sum = 0;

	for (size_t i = 0; i < n_counters; i++)
		sum += counters[i].kind == kind ? counters[i].count : 0;
	return sum;
}

int counters_write(const char *path)
{
	if (path)
		write_file(path);
	return failures > 0;
}

void attach_with(const char *function, void *loop, const char *library)
{
	bool global = library && !strncmp(library, "global:", 7);
	int (*attach_it)(void *) = NULL;
	void *handle = RTLD_DEFAULT;
	int err = -1;

	if (library && !strcmp(library, "none"))
		return;
	if (library)
		handle = dlopen(library + (global ? 7 : 0),
				RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
	if (handle || !library)
		*(void **)&attach_it = dlsym(handle, function);
	if (attach_it)
		err = attach_it(loop);
	if (err) {
		fprintf(stderr, "%s\n", attach_it ? "" : dlerror());
		complain(function, 0, err);
	}
}

#ifdef STATIC_ADAPTER
#include <dial9/libevent.h>

void attach_base(struct event_base *base, const char *library)
{
	int err = d9_event_base_attach(base);

	if (err || library)
		complain("d9_event_base_attach", 0, err);
}
#else
void attach_base(struct event_base *base, const char *library)
{
	attach_with("d9_event_base_attach", base, library);
}
#endif
