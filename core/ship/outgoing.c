/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/outgoing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/time.h"
#include "ship/hour.h"
#include "ship/shipped.h"
#include "stage/packed_output.h"
#include "stage/program.h"
#include "stage/repack.h"

#define VALUE_MAX  256 /* of a pair of the caller's */
#define FIXED_MAX  (D9__BUCKET_META_MAX - 64)
#define SUMMARY_DEPTH 8

static uint64_t number(struct json_object *of, const char *name)
{
	struct json_object *value = json_object_object_get(of, name);
	int64_t n = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;

	return n > 0 ? (uint64_t)n : 0;
}

/* ---- beside it ---- */

/* Bytes that the value of |name| may have. */
static size_t room_for(const struct d9__outgoing *out, const char *name)
{
	size_t used = out->meta_len + strlen(D9__BUCKET_META) + strlen(name), left = sizeof(out->texts) - out->texts_len;

	if (out->n_pairs == D9__OUTGOING_PAIRS || used >= FIXED_MAX || !left)
		return 0;
	return FIXED_MAX - used < left - 1 ? FIXED_MAX - used : left - 1;
}

static void take(struct d9__outgoing *out, const char *name, size_t len)
{
	char *text = out->texts + out->texts_len;

	for (char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '_';
	out->pairs[out->n_pairs++] = (struct d9__bucket_pair) { name, text };
	out->texts_len += len + 1;
	out->meta_len += strlen(D9__BUCKET_META) + strlen(name) + len;
}

/* Add an entry; one that does not fit is left out. */
__attribute__((format(printf, 3, 4))) static void say(struct d9__outgoing *out, const char *name, const char *format, ...)
{
	size_t room = room_for(out, name);
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(out->texts + out->texts_len, room ? room + 1 : 0, format, args);
	va_end(args);
	if (room && len > 0 && (size_t)len <= room)
		take(out, name, (size_t)len);
}

/* Add as much of a comma-separated list as fits; "..." shows that it was cut. */
static void say_list(struct d9__outgoing *out, const char *name, const char *list)
{
	static const char cut[] = ",...";
	size_t room = room_for(out, name), len = strlen(list);
	char *text = out->texts + out->texts_len;

	if (len <= room) {
		say(out, name, "%s", list);
		return;
	}
	len = room < sizeof(cut) ? 0 : room - sizeof(cut) + 2;
	while (len && list[len - 1] != ',')
		len--;
	if (!len)
		return;
	memcpy(text, list, len - 1);
	memcpy(text + len - 1, cut, sizeof(cut));
	take(out, name, len - 1 + strlen(cut));
}

static bool is_reserved(const char *name)
{
	static const char *const names[] = { "service", "boot-id", "segment-index", "start-time", "host", "dump-id", "missing",
					     "events", "lost", "first-ns", "last-ns", "format" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void say_pair(void *arg, const char *key, const char *value)
{
	size_t len = strlen(key);

	if (len && len <= 128 && strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len && !is_reserved(key) &&
	    strlen(value) <= VALUE_MAX)
		say(arg, key, "%s", value);
}

static void say_pairs(struct d9__outgoing *out, const struct d9__ship_process *process, const char *ids)
{
	for (size_t i = 0; i < process->n_dumps; i++)
		if (strstr(ids, process->dumps[i].id))
			d9__kept_dump_pairs(&process->dumps[i], say_pair, out);
}

static void say_missing(struct d9__outgoing *out)
{
	struct d9__shipped shipped;
	struct d9__ranges missing = { 0 };
	char text[D9__BUCKET_META_MAX];
	int err;

	if (!out->facts.evicted[0] || out->claim.copies)
		return;
	err = d9__shipped_read(&shipped, out->claim.dir);
	if (!err)
		err = d9__shipped_missing(&shipped, out->facts.evicted, &missing);
	d9__ranges_write(&missing, text, sizeof(text));
	/* Rather too many than too few. */
	if (err || missing.n)
		say_list(out, "missing", err ? out->facts.evicted : text);
	d9__ranges_release(&missing);
	d9__shipped_release(&shipped);
}

static void say_all(struct d9__outgoing *out, const struct d9__object_key *key, const struct d9__ship_process *process,
		    const struct d9__ship_segment *segment)
{
	say(out, "service", "%s", key->service);
	say(out, "boot-id", "%s", key->boot_id);
	say(out, "segment-index", "%" PRIu64, key->index);
	say(out, "start-time", "%" PRIu64, key->epoch_s);
	say(out, "host", "%s", out->facts.host[0] ? out->facts.host : key->instance);
	if (out->summary) {
		say(out, "events", "%" PRIu64, number(out->summary, "events"));
		say(out, "lost", "%" PRIu64, number(out->summary, "lost"));
		say(out, "first-ns", "%" PRIu64, out->first_ns);
		say(out, "last-ns", "%" PRIu64, out->last_ns);
	}
	say(out, "format", "trc1");
	say_missing(out);
	if (segment->dumps) {
		say_list(out, "dump-id", segment->dumps);
		say_pairs(out, process, segment->dumps);
	}
}

/* ---- its key ---- */

static const char *ending_of(enum d9__container_kind kind)
{
	return kind == D9__CONTAINER_ZSTD ? ".bin.zst" : kind == D9__CONTAINER_GZIP ? ".bin.gz" : ".bin";
}

static int name_it(struct d9__outgoing *out, const struct d9__outgoing_options *options, const struct d9__ship_process *process,
		   const struct d9__ship_segment *segment)
{
	char host[256] = "";
	struct d9__object_key key = {
		.prefix = options->prefix,
		.service = options->service ? options->service : out->facts.service,
		.instance = options->instance ? options->instance : host,
		.boot_id = process->boot_id[0] && !out->claim.copies ? process->boot_id
								     : out->facts.boot_id,
		.epoch_s = out->facts.start_ns ? out->facts.start_ns / D9__SECOND_NS
					       : (uint64_t)out->claim.st.st_mtim.tv_sec,
		.index = segment->index,
		.ending = ending_of(options->gzip ? D9__CONTAINER_GZIP : out->facts.kind),
		.original = options->original_keys,
	};
	int len;

	gethostname(host, sizeof(host) - 1);
	if (out->facts.host[0])
		snprintf(host, sizeof(host), "%s", out->facts.host);
	if (!*key.service)
		key.service = "unknown";
	if (!*key.boot_id)
		key.boot_id = process->boot_id;
	len = d9__object_key_write(&key, out->key, sizeof(out->key));
	if (len < 0)
		return len;
	out->index = segment->index;
	out->epoch_s = key.epoch_s;
	d9__object_part(key.service, out->service);
	d9__object_part(key.instance, out->instance);
	d9__object_part(key.boot_id, out->boot_id);
	say_all(out, &key, process, segment);
	return 0;
}

/* ---- its summary ---- */

static struct json_object *parse(const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(SUMMARY_DEPTH);
	struct json_object *of = tokener ? json_tokener_parse_ex(tokener, text, (int)len) : NULL;

	if (tokener)
		json_tokener_free(tokener);
	if (json_object_is_type(of, json_type_object))
		return of;
	json_object_put(of);
	return NULL;
}

/* Read the summary from |fd|; NULL: it is none. */
static struct json_object *read_summary(int fd)
{
	struct json_object *of = NULL;
	struct stat st;
	void *text;

	if (fstat(fd, &st) || !st.st_size || st.st_size > D9__HOUR_BYTES)
		return NULL;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return NULL;
	of = parse(text, (size_t)st.st_size);
	munmap(text, (size_t)st.st_size);
	return of;
}

static void take_figures(struct d9__outgoing *out)
{
	struct json_object *callbacks = json_object_object_get(out->summary, "callbacks");
	uint64_t first_ns = number(out->summary, "first_ns"), last_ns = number(out->summary, "last_ns");
	size_t n = json_object_is_type(callbacks, json_type_array) ? json_object_array_length(callbacks) : 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t ns = number(json_object_array_get_idx(callbacks, i), "longest_ns");

		out->worst_ns = ns > out->worst_ns ? ns : out->worst_ns;
	}
	out->first_ns = number(out->summary, "wall_ns");
	out->last_ns = out->first_ns && last_ns > first_ns ? out->first_ns + last_ns - first_ns : out->first_ns;
}

/*
 * Summarise the bytes to be sent, not the recorded ones, so that no summary names what a stage
 * removed.
 */
static void summarise(struct d9__outgoing *out, const struct d9__outgoing_options *options)
{
	struct d9__program_end end;
	struct d9__program program = { .call = options->summarise,
				       .timeout_ns = options->stages->timeout_ns,
				       .pulse = options->stages->pulse,
				       .context = options->stages->context };
	char path[32];
	int fd = memfd_create("summary", MFD_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", out->fd);
	program.path = path;
	if (fd >= 0 && !d9__program_run(&program, -1, fd, &end) && !end.status && !end.write_err)
		out->summary = read_summary(fd);
	if (fd >= 0)
		close(fd);
	if (out->summary)
		take_figures(out);
}

/* ---- the whole ---- */

static const char *type_of(enum d9__container_kind kind)
{
	return kind == D9__CONTAINER_ZSTD ? "application/zstd" : kind == D9__CONTAINER_GZIP ? "application/gzip" :
											       "application/octet-stream";
}

static int open_claim(struct d9__outgoing *out, const struct d9__outgoing_options *options, const char *path)
{
	int dir, err;

	if (!options->any_owner)
		return d9__claim_open(&out->claim, path);
	/* Where replacements are made, without a name. */
	dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	err = d9__claim_open_copy(&out->claim, path, dir);
	close(dir);
	return err;
}

static enum d9__outgoing_end run_stages(struct d9__outgoing *out, const struct d9__outgoing_options *options)
{
	if (options->dry_run && !options->explained)
		return D9__OUTGOING_READY;
	switch (d9__stages_run(options->stages, &out->claim, true, &out->fd)) {
	case D9__STAGES_SAME:
	case D9__STAGES_REPLACED:
		return D9__OUTGOING_READY;
	case D9__STAGES_DROPPED:
		if (!out->claim.copies && !options->dry_run)
			d9__claim_remove(&out->claim);
		return D9__OUTGOING_DROPPED;
	case D9__STAGES_GONE:
		return D9__OUTGOING_TAKEN;
	default:
		return D9__OUTGOING_FAILED;
	}
}

/*
 * Compress what the recorder wrote raw, here, too: it takes several times the room until the store
 * has it.  Where that fails the segment goes as it is.
 */
static int compress_raw(struct d9__outgoing *out, const struct d9__outgoing_options *options)
{
	int err = options->dry_run || options->gzip || out->claim.copies ? 0
									 : d9__repack(&out->claim);

	return err == -EAGAIN ? err : 0;
}

/* As for a file that stays, what is sent of it. */
static void compress_raw_copy(struct d9__outgoing *out, const struct d9__outgoing_options *options)
{
	int fd;

	if (!out->claim.copies || options->dry_run || options->gzip ||
	    d9__repack_copy(&out->claim, out->fd, &fd) != 1)
		return;
	if (out->fd != out->claim.fd)
		close(out->fd);
	out->fd = fd;
}

/* Without them the segment goes as it would, unless nothing may go past a stage that failed. */
static enum d9__outgoing_end make_tables(struct d9__outgoing *out, const struct d9__outgoing_options *options,
					 void (*tell)(void *context, const char *path, const char *what), void *context)
{
	char text[512], what[576];
	int err;

	if (!options->stages->tables || options->dry_run)
		return D9__OUTGOING_READY;
	err = d9__table_objects_make(&out->tables, out->fd, options->prefix, out->key, options->stages, text, sizeof(text));
	snprintf(what, sizeof(what), "stage 'parquet': %s", text);
	if (*text)
		tell(context, out->claim.path, what);
	return err && options->stages->on_error == D9__STAGE_ERROR_KEEP ? D9__OUTGOING_FAILED : D9__OUTGOING_READY;
}

/* Compress by gzip, unless it is compressed. */
static int pack(struct d9__outgoing *out)
{
	int packed = d9__claim_unnamed(&out->claim);
	int err = packed < 0 ? packed : d9__packed_output_copy(out->fd, packed, D9__CONTAINER_GZIP);

	if (err) {
		if (packed >= 0)
			close(packed);
		return err;
	}
	if (out->fd != out->claim.fd)
		close(out->fd);
	out->fd = packed;
	return 0;
}

static const char *why(int err)
{
	switch (err) {
	case -EBADMSG:
		return "it is no segment of a trace; left where it is";
	case -EPERM:
		return "its directory is not this user's alone; run dial9 ship as the user that records";
	case -EINVAL:
		return "it is no file of this user's; left where it is";
	default:
		return d9_strerror(err);
	}
}

static int measure(struct d9__outgoing *out)
{
	struct stat st;

	if (fstat(out->fd, &st))
		return -errno;
	out->bytes = (uint64_t)st.st_size;
	return d9__segment_facts_read(&out->facts, out->fd);
}

static int pack_and_measure(struct d9__outgoing *out)
{
	int err = pack(out);

	return err ? err : measure(out);
}

enum d9__outgoing_end d9__outgoing_open(struct d9__outgoing *out, const struct d9__outgoing_options *options,
					const struct d9__ship_process *process, const struct d9__ship_segment *segment,
					void (*tell)(void *context, const char *path, const char *what), void *context)
{
	enum d9__outgoing_end end;
	int err = open_claim(out, options, segment->path);

	if (!err)
		err = compress_raw(out, options);
	if (err == -EAGAIN || err == -ENOENT)
		return D9__OUTGOING_TAKEN;
	if (err) {
		tell(context, segment->path, why(err));
		return D9__OUTGOING_FAILED;
	}
	out->fd = out->claim.fd;
	out->n_pairs = out->texts_len = out->meta_len = out->next = out->tables.n = 0;
	out->summary = NULL;
	out->worst_ns = out->first_ns = out->last_ns = 0;
	end = out->claim.st.st_size ? run_stages(out, options) : D9__OUTGOING_EMPTY;
	if (end == D9__OUTGOING_READY)
		compress_raw_copy(out, options);
	err = end == D9__OUTGOING_READY ? measure(out) : 0;
	if (!err && end == D9__OUTGOING_READY && options->gzip && !options->dry_run && out->facts.kind != D9__CONTAINER_GZIP)
		err = pack_and_measure(out);
	if (!err && end == D9__OUTGOING_READY && options->summarise && !options->dry_run)
		summarise(out, options);
	if (!err && end == D9__OUTGOING_READY)
		err = name_it(out, options, process, segment);
	if (!err && end == D9__OUTGOING_READY && options->explained)
		err = d9__explained_add(options->explained, out->fd, out->pairs, out->n_pairs);
	out->type = type_of(out->facts.kind);
	if (!err && end == D9__OUTGOING_READY)
		end = make_tables(out, options, tell, context);
	if (err) {
		tell(context, segment->path, why(err));
		end = D9__OUTGOING_FAILED;
	}
	if (end != D9__OUTGOING_READY)
		d9__outgoing_release(out);
	return end;
}

void d9__outgoing_let_go(struct d9__outgoing *out)
{
	if (out->fd >= 0 && out->fd != out->claim.fd)
		close(out->fd);
	if (out->claim.fd >= 0)
		close(out->claim.fd);
	out->fd = out->claim.fd = -1;
}

void d9__outgoing_release(struct d9__outgoing *out)
{
	json_object_put(out->summary);
	out->summary = NULL;
	d9__table_objects_release(&out->tables);
	d9__outgoing_let_go(out);
	d9__claim_release(&out->claim);
}
