/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "drain/dump_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/descriptors.h"
#include "base/time.h"
#include "ring/clock.h"

#define DAY_S	  86400

void d9__dump_manifest_begin(struct d9__manifest *manifest, const struct d9__trigger *trigger, uint64_t fired_ns,
			uint64_t suppressed)
{
	memset(manifest, 0, sizeof(*manifest));
	memcpy(manifest->pairs, trigger->pairs, sizeof(manifest->pairs));
	manifest->fired_ns = fired_ns;
	manifest->real_offset = (int64_t)(d9__clock_real_ns() - d9__clock_mono_ns());
	manifest->then_ns = trigger->then_ns;
	manifest->suppressed = suppressed;
}

void d9__dump_manifest_add(struct d9__manifest *manifest, const struct d9__trigger *trigger, uint64_t ns, uint64_t value)
{
	uint64_t i = manifest->n_fired++;

	if (i >= D9__MANIFEST_FIRED)
		return;
	memcpy(manifest->fired[i].name, trigger->name, sizeof(trigger->name));
	manifest->fired[i].kind = trigger->kind;
	manifest->fired[i].threshold = trigger->threshold;
	manifest->fired[i].value = value;
	manifest->fired[i].ns = ns;
}

static void segment_name(const struct d9__writer *own, uint64_t index, char name[D9__SEGMENT_NAME_MAX])
{
	snprintf(name, D9__SEGMENT_NAME_MAX, "trace.%" PRIu64 "%s", index, d9__packer_suffix(own->compress));
}

void d9__dump_manifest_choose(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__writer *own)
{
	const struct d9__retention *ret = &own->ret;
	uint64_t from_ns = d9__dump_from(dump) + (uint64_t)manifest->real_offset;

	dump->from_ns = d9__dump_from(dump);
	manifest->n_segments = 0;
	dump->bytes = 0;
	for (size_t i = 0; i < ret->n; i++) {
		char name[D9__SEGMENT_NAME_MAX];
		struct stat st;

		if (ret->families[i].peer || ret->families[i].sealed_ns < from_ns)
			continue;
		segment_name(own, ret->families[i].index, name);
		if (!own->has_dir || fstatat(own->ns.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (manifest->n_segments < D9__MANIFEST_SEGMENTS)
			manifest->segments[manifest->n_segments] = ret->families[i].index;
		manifest->n_segments++;
		dump->bytes += (uint64_t)st.st_size;
	}
	dump->segments = (uint32_t)manifest->n_segments;
}

void d9__dump_manifest_take(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__writer *own)
{
	const struct d9__retention *ret = &own->ret;

	manifest->n_segments = dump->bytes = 0;
	for (size_t i = 0; i < ret->n; i++) {
		const struct d9__family *family = &ret->families[i];

		if (family->peer || !family->dumped || family->dumps)
			continue;
		if (manifest->n_segments < D9__MANIFEST_SEGMENTS)
			manifest->segments[manifest->n_segments] = family->index;
		manifest->n_segments++;
		dump->bytes += family->bytes;
	}
	dump->segments = (uint32_t)manifest->n_segments;
}

/* ---- JSON ---- */

struct text {
	char bytes[D9__MANIFEST_BYTES];
	size_t len;
	bool full;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *out, const char *fmt, ...)
{
	size_t room = sizeof(out->bytes) - out->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(out->bytes + out->len, room, fmt, args);
	va_end(args);
	out->full |= n < 0 || (size_t)n >= room;
	if (!out->full)
		out->len += (size_t)n;
}

static void put_string(struct text *out, const char *s, size_t len)
{
	put(out, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		put(out, c == '"' || c == '\\' ? "\\%c" : c < ' ' ? "\\u%04x" : "%c", c);
	}
	put(out, "\"");
}

/* RFC 3339.  gmtime_r() takes a lock, which a child that is forked meanwhile would find held. */
static void put_time(struct text *out, uint64_t real_ns)
{
	uint64_t s = real_ns / D9__SECOND_NS, day = s / DAY_S + 719468, era = day / 146097, of_era = day % 146097;
	uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;

	/* Years that begin in March: leap days come last. */
	put(out, "\"%04" PRIu64 "-%02" PRIu64 "-%02" PRIu64 "T%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%09" PRIu64 "Z\"",
	    year + era * 400 + (month >= 10), month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1, s / 3600 % 24,
	    s / 60 % 60, s % 60, real_ns % D9__SECOND_NS);
}

static void put_pairs(struct text *out, const char *pairs)
{
	const char *comma = "";

	put(out, ",\n  \"pairs\": {");
	for (; *pairs; pairs += strlen(pairs) + 1) {
		const char *equal = strchr(pairs, '=');

		put(out, "%s", comma);
		put_string(out, pairs, (size_t)(equal - pairs));
		put(out, ": ");
		put_string(out, equal + 1, strlen(equal + 1));
		comma = ", ";
	}
	put(out, "}");
}

static void put_fired(struct text *out, const struct d9__manifest *manifest)
{
	put(out, ",\n  \"fired\": [");
	for (uint64_t i = 0; i < manifest->n_fired && i < D9__MANIFEST_FIRED; i++) {
		put(out, "%s\n    {\"trigger\": ", i ? "," : "");
		put_string(out, manifest->fired[i].name, strlen(manifest->fired[i].name));
		put(out, ", \"condition\": \"%s\", \"threshold\": %" PRIu64 ", \"value\": %" PRIu64 ", \"time\": ",
		    d9__trigger_kind_name(manifest->fired[i].kind), manifest->fired[i].threshold, manifest->fired[i].value);
		put_time(out, manifest->fired[i].ns + (uint64_t)manifest->real_offset);
		put(out, "}");
	}
	put(out, "\n  ],\n  \"fired_count\": %" PRIu64 ",\n  \"suppressed_before\": %" PRIu64, manifest->n_fired, manifest->suppressed);
}

static void put_segments(struct text *out, const struct d9__manifest *manifest, const struct d9__dump *dump,
			 const struct d9__writer *own)
{
	const char *slash = strrchr(dump->path, '/');

	put(out, ",\n  \"segments\": [");
	if (slash && !manifest->n_segments)
		put_string(out, slash + 1, strlen(slash + 1));
	for (uint64_t i = 0; i < manifest->n_segments && i < D9__MANIFEST_SEGMENTS; i++) {
		char name[D9__SEGMENT_NAME_MAX];

		segment_name(own, manifest->segments[i], name);
		put(out, "%s", i ? ", " : "");
		put_string(out, name, strlen(name));
	}
	put(out, "],\n  \"segment_count\": %" PRIu32 ",\n  \"bytes\": %" PRIu64, dump->segments, dump->bytes);
}

static void put_manifest(struct text *out, const struct d9__manifest *manifest, const struct d9__dump *dump,
			 const struct d9__writer *own, bool closed)
{
	uint64_t real = (uint64_t)manifest->real_offset, to_ns = manifest->fired_ns + manifest->then_ns;

	put(out, "{\n  \"dump_id\": \"%s\",\n  \"trigger\": ", dump->id);
	put_string(out, manifest->fired[0].name, strlen(manifest->fired[0].name));
	put(out, ",\n  \"trigger_time\": ");
	put_time(out, manifest->fired_ns + real);
	put(out, ",\n  \"state\": \"%s\"", !closed ? "open" : dump->err ? "failed" : "closed");
	if (dump->err) {
		put(out, ",\n  \"error\": ");
		put_string(out, d9_strerror(dump->err), strlen(d9_strerror(dump->err)));
	}
	put(out, ",\n  \"from\": ");
	put_time(out, (closed && dump->from_ns ? dump->from_ns : d9__dump_from(dump)) + real);
	put(out, ",\n  \"to\": ");
	put_time(out, (closed && dump->to_ns ? dump->to_ns : to_ns) + real);
	put(out, ",\n  \"mode\": \"%s\"", manifest->flight ? "flight" : "continuous");
	put(out, ",\n  \"complete\": %s", closed && dump->complete && !dump->err ? "true" : "false");
	put_segments(out, manifest, dump, own);
	put_fired(out, manifest);
	put_pairs(out, manifest->pairs);
	put(out, "\n}\n");
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int d9__dump_manifest_write(const struct d9__manifest *manifest, const struct d9__dump *dump, const struct d9__writer *own,
		       bool closed)
{
	static struct text text;
	char name[D9__DUMP_ID_LEN + 16], part[D9__DUMP_ID_LEN + 24];
	int fd, err;

	if (!own->has_dir)
		return -ENOENT;
	text.len = 0;
	text.full = false;
	put_manifest(&text, manifest, dump, own, closed);
	if (text.full)
		return -E2BIG;
	snprintf(name, sizeof(name), "dump.%s.json", dump->id);
	snprintf(part, sizeof(part), ".%s.part", name);
	unlinkat(own->ns.dir_fd, part, 0);
	fd = d9__descriptor_place(openat(own->ns.dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (fd < 0)
		return -errno;
	err = write_all(fd, text.bytes, text.len);
	close(fd);
	if (!err && renameat(own->ns.dir_fd, part, own->ns.dir_fd, name))
		err = -errno;
	if (err)
		unlinkat(own->ns.dir_fd, part, 0);
	return err;
}

/* ---- when the window is over ---- */

/* What a full device cut off, in the middle of the window, has to be finished first. */
static int settle_flight(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	int err;

	maker->prepare();
	err = d9__writer_finish_dump(maker->own);
	if (!err && manifest->written)
		d9__dump_manifest_take(manifest, dump, maker->own);
	return err;
}

/* What waits in the ring, because nothing can be written now, may still come. */
static int settle_continuous(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	maker->seal();
	dump->err = maker->own->retry_ns ? atomic_load_explicit(&maker->own->counters->error, memory_order_relaxed) : 0;
	d9__dump_manifest_choose(manifest, dump, maker->own);
	return dump->err;
}

int d9__dump_manifest_settle(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	int err = manifest->flight ? settle_flight(manifest, dump, maker) : settle_continuous(manifest, dump, maker);
	int written = d9__dump_manifest_write(manifest, dump, maker->own, true);
	uint64_t n = manifest->n_segments;

	if (!err && !written)
		d9__writer_keep_dump(maker->own, dump->id, manifest->segments, n < D9__MANIFEST_SEGMENTS ? n : D9__MANIFEST_SEGMENTS);
	return err ? err : written;
}
