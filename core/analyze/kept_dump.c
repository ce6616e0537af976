/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/kept_dump.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyze/fired.h"
#include "base/time.h"
#include "base/trigger_text.h"
#include "read/folder.h"

#define TEXT_MAX     ((size_t)1 << 20) /* a recorder's has 48 KiB */
#define DEPTH_MAX    8
#define ID_LEN	     26
#define SEGMENTS_MAX 4096
#define FIRED_MAX    1000
#define ACTIVE	     ".active"

static const char *const states[] = { "open", "closed", "failed" };

const char *d9__kept_state_name(enum d9__kept_state state)
{
	return states[state];
}

bool d9__kept_dump_is_name(const char *name)
{
	size_t len = strlen(name), end = strlen(".json");

	return !strncmp(name, "dump.", strlen("dump.")) && len > strlen("dump.") + end && !strcmp(name + len - end, ".json");
}

/* ---- what is wrong ---- */

__attribute__((format(printf, 2, 3))) static int refuse(char **why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(why, format, args) < 0)
		*why = NULL;
	va_end(args);
	return *why ? -EBADMSG : -ENOMEM;
}

/* ---- members ---- */

/* One object, and the first thing that is wrong in it. */
struct members {
	struct json_object *of;
	const char *where; /* "", "fired[]." */
	char **why;
	int err;
};

static void blame(struct members *in, const char *key, const char *what)
{
	if (!in->err)
		in->err = refuse(in->why, "\"%s%s\" is %s", in->where, key, what);
}

/* blame() says this of a member that is of another type than this one. */
static const char *const no_such[] = {
	[json_type_boolean] = "neither true nor false", [json_type_int] = "no whole number", [json_type_object] = "no object",
	[json_type_array] = "no list",			[json_type_string] = "no text",
};

/* NULL: it is not there, or not of |type|, which is told. */
static struct json_object *member(struct members *in, const char *key, enum json_type type, bool needed)
{
	struct json_object *value = json_object_object_get(in->of, key);

	if (value && json_object_is_type(value, type))
		return value;
	if (value)
		blame(in, key, no_such[type]);
	else if (needed)
		blame(in, key, "missing");
	return NULL;
}

/* NULL: there is none. */
static const char *text_of(struct members *in, const char *key, bool needed)
{
	struct json_object *value = member(in, key, json_type_string, needed);
	const char *text = value ? json_object_get_string(value) : NULL;

	if (text && strlen(text) != (size_t)json_object_get_string_len(value))
		blame(in, key, "no text");
	return text;
}

static uint64_t number_of(struct members *in, const char *key, uint64_t otherwise)
{
	struct json_object *value = member(in, key, json_type_int, false);
	int64_t n = value ? json_object_get_int64(value) : 0;

	if (n < 0)
		blame(in, key, "below 0");
	return value && n >= 0 ? (uint64_t)n : otherwise;
}

static bool flag_of(struct members *in, const char *key)
{
	struct json_object *value = member(in, key, json_type_boolean, true);

	return value && json_object_get_boolean(value);
}

/* The array |key|; |*n| is 0 where there is none, or it is longer than |max|. */
static struct json_object *array_of(struct members *in, const char *key, size_t max, size_t *n)
{
	struct json_object *value = member(in, key, json_type_array, true);

	*n = value ? json_object_array_length(value) : 0;
	if (*n > max) {
		blame(in, key, "too long");
		*n = 0;
	}
	return value;
}

/* "2026-11-28T15:19:51.123456789Z" */
static bool parse_time(const char *text, uint64_t *out_ns)
{
	static const char shape[] = "0000-00-00T00:00:00.000000000Z";
	struct tm tm = { 0 };
	unsigned ns = 0;
	time_t s;

	if (!text || strlen(text) != strlen(shape))
		return false;
	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != shape[i])
			return false;
	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%9u", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec, &ns) != 7)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	s = timegm(&tm);
	/* Behind the year 2500 ns have no room. */
	if (s < 0 || tm.tm_year >= 600)
		return false;
	*out_ns = (uint64_t)s * D9__SECOND_NS + ns;
	return true;
}

static uint64_t time_of(struct members *in, const char *key, bool needed)
{
	const char *text = text_of(in, key, needed);
	uint64_t ns = 0;

	if (text && !parse_time(text, &ns))
		blame(in, key, "no time");
	return ns;
}

/* ---- parts ---- */

/* Thirteen of its letters tell the time, the others make it the only one. */
static void take_id(struct d9__kept_dump *dump, struct members *in)
{
	dump->id = text_of(in, "dump_id", true);
	if (dump->id && (strlen(dump->id) != ID_LEN || strspn(dump->id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != ID_LEN))
		blame(in, "dump_id", "no id of a dump");
}

static void take_state(struct d9__kept_dump *dump, struct members *in)
{
	const char *text = text_of(in, "state", true);

	dump->error = text_of(in, "error", false);
	dump->complete = flag_of(in, "complete");
	for (size_t i = 0; text && i < sizeof(states) / sizeof(states[0]); i++) {
		dump->state = (enum d9__kept_state)i;
		if (!strcmp(states[i], text))
			return;
	}
	if (text)
		blame(in, "state", "none of open, closed, failed");
}

static int take_fired(struct d9__kept_dump *dump, struct members *in)
{
	struct json_object *fired = array_of(in, "fired", FIRED_MAX, &dump->n_fired);

	dump->fired = calloc(dump->n_fired + 1, sizeof(*dump->fired));
	if (!dump->fired)
		return -ENOMEM;
	for (size_t i = 0; i < dump->n_fired && !in->err; i++) {
		struct members one = { json_object_array_get_idx(fired, i), "fired[].", in->why, 0 };

		if (!json_object_is_type(one.of, json_type_object)) {
			blame(in, "fired[]", "no object");
			return 0;
		}
		dump->fired[i] = (struct d9__kept_fire){
			.trigger = text_of(&one, "trigger", true),
			.condition = text_of(&one, "condition", true),
			.threshold = number_of(&one, "threshold", 0),
			.value = number_of(&one, "value", 0),
			.ns = time_of(&one, "time", true),
		};
		in->err = one.err;
	}
	dump->fired_count = number_of(in, "fired_count", dump->n_fired);
	if (dump->fired_count < dump->n_fired)
		dump->fired_count = dump->n_fired;
	dump->suppressed = number_of(in, "suppressed_before", 0);
	return 0;
}

/* Names of segments, and no way out of the directory. */
static bool is_segment_name(const char *name)
{
	return !strchr(name, '/') && strlen(name) <= NAME_MAX - strlen(ACTIVE) && d9__folder_is_segment_name(name);
}

/* Whether the list has |name| before its place |i|, too. */
static bool is_listed_before(struct json_object *names, size_t i, const char *name)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(names, k)), name))
			return true;
	return false;
}

static int take_segments(struct d9__kept_dump *dump, struct members *in)
{
	uint64_t count;
	size_t n;
	struct json_object *names = array_of(in, "segments", SEGMENTS_MAX, &n);

	dump->segments = calloc(n + 1, sizeof(*dump->segments));
	if (!dump->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n && !in->err; i++) {
		struct json_object *value = json_object_array_get_idx(names, i);
		const char *name = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;

		if (!name)
			blame(in, "segments[]", "no text");
		else if (strlen(name) != (size_t)json_object_get_string_len(value) || !is_segment_name(name))
			in->err = refuse(in->why, "'%s' in \"segments\" is no name of a segment beside it", name);
		else if (!is_listed_before(names, i, name))
			dump->segments[dump->n_segments++].name = name;
	}
	count = number_of(in, "segment_count", n);
	dump->n_unlisted = count > n ? count - n : 0;
	return 0;
}

static void take_pairs(struct d9__kept_dump *dump, struct members *in)
{
	struct json_object *pairs = member(in, "pairs", json_type_object, false);
	struct json_object_iterator at, end;

	if (!pairs)
		return;
	at = json_object_iter_begin(pairs);
	end = json_object_iter_end(pairs);
	for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
		if (!json_object_is_type(json_object_iter_peek_value(&at), json_type_string))
			blame(in, json_object_iter_peek_name(&at), "no text");
	dump->pairs = pairs;
}

void d9__kept_dump_pairs(const struct d9__kept_dump *dump, d9__kept_pair_fn *fn, void *arg)
{
	struct json_object_iterator at, end;

	if (!dump->pairs)
		return;
	at = json_object_iter_begin(dump->pairs);
	end = json_object_iter_end(dump->pairs);
	for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
		fn(arg, json_object_iter_peek_name(&at), json_object_get_string(json_object_iter_peek_value(&at)));
}

static int take_all(struct d9__kept_dump *dump, struct members *in)
{
	int err;

	take_id(dump, in);
	dump->trigger = text_of(in, "trigger", true);
	dump->fired_ns = time_of(in, "trigger_time", true);
	dump->from_ns = time_of(in, "from", false);
	dump->to_ns = time_of(in, "to", false);
	take_state(dump, in);
	err = take_segments(dump, in);
	if (!err)
		err = take_fired(dump, in);
	take_pairs(dump, in);
	return err ? err : in->err;
}

/* ---- the whole ---- */

int d9__kept_dump_parse(struct d9__kept_dump *dump, const char *text, size_t len, char **why)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	enum json_tokener_error error = json_tokener_success;
	struct members in = { .where = "", .why = why };

	*dump = (struct d9__kept_dump){ .json = NULL };
	*why = NULL;
	if (!tokener)
		return -ENOMEM;
	if (len <= TEXT_MAX) {
		dump->json = json_tokener_parse_ex(tokener, text, (int)len);
		error = json_tokener_get_error(tokener);
	}
	json_tokener_free(tokener);
	if (len > TEXT_MAX)
		return refuse(why, "it is larger than any manifest");
	if (error == json_tokener_continue)
		return refuse(why, len ? "it ends too early" : "it is empty");
	if (!json_object_is_type(dump->json, json_type_object))
		return refuse(why, "it is no JSON object");
	in.of = dump->json;
	return take_all(dump, &in);
}

/* All of |fd|, or TEXT_MAX + 1 bytes.  0 or -errno. */
static int read_text(int fd, char **out, size_t *len)
{
	ssize_t n = 1;

	*len = 0;
	*out = malloc(TEXT_MAX + 1);
	if (!*out)
		return -ENOMEM;
	while (n > 0 && *len <= TEXT_MAX) {
		n = read(fd, *out + *len, TEXT_MAX + 1 - *len);
		if (n < 0 && errno != EINTR)
			return -errno;
		*len += n > 0 ? (size_t)n : 0;
		n = n < 0 ? 1 : n;
	}
	return 0;
}

/* A descriptor or -errno; nothing that is no file is waited for. */
static int open_manifest(const char *path, bool follow, char **why)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	struct stat st;

	if (fd < 0 && errno == ELOOP && !follow)
		return refuse(why, "it is a link");
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return refuse(why, "it is no file");
}

/* Whether a file, and no link, is at |path|. */
static bool is_there(const char *path, uint64_t *bytes)
{
	struct stat st;

	if (lstat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	*bytes = (uint64_t)st.st_size;
	return true;
}

/* While it is being written it has another name, and gets its own at any moment. */
static int find_segment(struct d9__kept_segment *segment, const char *dir, size_t len)
{
	char *sealed, *active = NULL;

	if (asprintf(&sealed, "%.*s%s", (int)len, dir, segment->name) < 0)
		return -ENOMEM;
	if (asprintf(&active, "%s" ACTIVE, sealed) < 0) {
		free(sealed);
		return -ENOMEM;
	}
	if (!is_there(sealed, &segment->bytes) && is_there(active, &segment->bytes) && !is_there(sealed, &segment->bytes)) {
		free(sealed);
		segment->path = active;
		return 0;
	}
	free(active);
	segment->path = sealed;
	segment->missing = !is_there(sealed, &segment->bytes);
	return 0;
}

static int find_segments(struct d9__kept_dump *dump)
{
	const char *slash = strrchr(dump->path, '/');
	size_t len = slash ? (size_t)(slash + 1 - dump->path) : 0;
	int err = 0;

	for (size_t i = 0; i < dump->n_segments && !err; i++) {
		err = find_segment(&dump->segments[i], dump->path, len);
		dump->n_missing += dump->segments[i].missing;
		dump->bytes += dump->segments[i].bytes;
	}
	return err;
}

/* ---- of a program that ended inside of the window ---- */

static int is_segment(const struct dirent *entry)
{
	return is_segment_name(entry->d_name);
}

static int is_manifest(const struct dirent *entry)
{
	return d9__kept_dump_is_name(entry->d_name);
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	return d9__folder_compare((*a)->d_name, (*b)->d_name);
}

static void free_entries(struct dirent **entries, int n)
{
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
}

/* Add to |taken|, as keys, what the manifest |name| lists. */
static void take_names_of(struct json_object *taken, int dir_fd, const char *name)
{
	struct d9__kept_dump other = { .json = NULL };
	int fd = openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
	char *text = NULL, *why = NULL;
	size_t len = 0;

	if (fd < 0)
		return;
	if (!read_text(fd, &text, &len) && !d9__kept_dump_parse(&other, text, len, &why))
		for (size_t i = 0; i < other.n_segments; i++)
			json_object_object_add(taken, other.segments[i].name, NULL);
	close(fd);
	free(text);
	free(why);
	d9__kept_dump_release(&other);
}

/* In flight mode a segment is of one dump, in continuous mode of all whose windows it reaches into. */
static struct json_object *taken_by_others(const struct d9__kept_dump *dump, int dir_fd)
{
	const char *mode = json_object_get_string(json_object_object_get(dump->json, "mode"));
	struct json_object *taken = json_object_new_object();
	struct dirent **names;
	int n = taken && mode && !strcmp(mode, "flight") ? scandirat(dir_fd, ".", &names, is_manifest, NULL) : 0;

	for (int i = 0; i < n; i++)
		take_names_of(taken, dir_fd, names[i]->d_name);
	if (n > 0)
		free_entries(names, n);
	return taken;
}

/* List the segments that were written since the window began, also by a recovery. */
static int list_what_is_there(struct d9__kept_dump *dump, int dir_fd)
{
	struct json_object *taken = taken_by_others(dump, dir_fd), *list = json_object_new_array();
	struct dirent **names = NULL;
	int n = taken && list ? scandirat(dir_fd, ".", &names, is_segment, compare_entries) : -1;
	struct stat st;

	for (int i = 0; i < n && json_object_array_length(list) < SEGMENTS_MAX; i++)
		if (!fstatat(dir_fd, names[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
		    d9__timespec_ns(&st.st_mtim) >= dump->from_ns &&
		    !json_object_object_get_ex(taken, names[i]->d_name, NULL))
			json_object_array_add(list, json_object_new_string(names[i]->d_name));
	if (n >= 0)
		free_entries(names, n);
	json_object_put(taken);
	if (n < 0) {
		json_object_put(list);
		return -ENOMEM;
	}
	return json_object_object_add(dump->json, "segments", list) ? -ENOMEM : 0;
}

/*
 * A program that is killed inside of the window leaves a manifest that is open and lists nothing, and what was recovered of it:
 * that is the dump, and no more comes.
 */
static int close_abandoned(struct d9__kept_dump *dump, char **why)
{
	struct members in = { dump->json, "", why, 0 };
	const char *slash = strrchr(dump->path, '/');
	char *dir = slash ? strndup(dump->path, (size_t)(slash + 1 - dump->path)) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, err = 0;

	/* The recorder held the lock, and no process does any more: it will not write the manifest again. */
	if (fd >= 0 && !d9__folder_is_held(fd)) {
		err = list_what_is_there(dump, fd);
		json_object_object_add(dump->json, "state", json_object_new_string("failed"));
		json_object_object_add(dump->json, "error", json_object_new_string("the program ended inside of its window"));
		free(dump->segments);
		dump->segments = NULL;
		dump->n_segments = 0;
		take_state(dump, &in);
		err = err ? err : take_segments(dump, &in);
		dump->n_unlisted = 0;
	}
	if (fd >= 0)
		close(fd);
	free(dir);
	return err ? err : in.err;
}

/* Where the segments are beside. */
static char *own_path(const char *path, bool follow)
{
	struct stat st;

	if (follow && !lstat(path, &st) && S_ISLNK(st.st_mode))
		return realpath(path, NULL);
	return strdup(path);
}

int d9__kept_dump_load(struct d9__kept_dump *dump, const char *path, bool follow, char **why)
{
	char *text = NULL;
	size_t len = 0;
	int fd, err;

	*dump = (struct d9__kept_dump){ .json = NULL };
	*why = NULL;
	fd = open_manifest(path, follow, why);
	if (fd < 0)
		return fd;
	err = read_text(fd, &text, &len);
	close(fd);
	if (!err)
		err = d9__kept_dump_parse(dump, text, len, why);
	free(text);
	dump->path = own_path(path, follow);
	if (!err && !dump->path)
		err = -ENOMEM;
	if (!err && dump->state == D9__KEPT_OPEN)
		err = close_abandoned(dump, why);
	return err ? err : find_segments(dump);
}

void d9__kept_dump_release(struct d9__kept_dump *dump)
{
	for (size_t i = 0; i < dump->n_segments; i++)
		free(dump->segments[i].path);
	free(dump->segments);
	free(dump->fired);
	free(dump->path);
	json_object_put(dump->json);
	*dump = (struct d9__kept_dump){ .json = NULL };
}

bool d9__kept_dump_is(const char *path)
{
	struct stat st;
	/* A pipe is not opened to look at it: its writer would take that for the reader, and be done before that one comes. */
	int fd = !stat(path, &st) && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	char head[64] = "";
	bool is_file = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
	ssize_t n = is_file ? pread(fd, head, sizeof(head) - 1, 0) : 0;

	if (fd >= 0)
		close(fd);
	return is_file && (d9__kept_dump_is_name(basename(path)) || (n > 0 && head[strspn(head, " \t\r\n")] == '{'));
}

/* ---- numbers ---- */

/* Numbers of a condition that a newer recorder knows are told as they are. */
static enum d9__trigger_unit unit_of(const struct d9__kept_fire *fire)
{
	for (enum d9__trigger_kind kind = 0; kind < D9__TRIGGER_KINDS; kind++)
		if (!strcmp(fire->condition, d9__trigger_kind_name(kind)))
			return d9__trigger_unit(kind);
	return D9__TRIGGER_COUNT;
}

const char *d9__kept_fire_unit(const struct d9__kept_fire *fire)
{
	static const char *const names[] = {
		[D9__TRIGGER_NO_UNIT] = "",
		[D9__TRIGGER_NS] = "ns",
		[D9__TRIGGER_COUNT] = "count",
		[D9__TRIGGER_PER_SECOND] = "per_second",
	};

	return names[unit_of(fire)];
}

void d9__kept_fire_measure(const struct d9__kept_fire *fire, char *out, size_t size)
{
	enum d9__trigger_unit unit = unit_of(fire);

	out[0] = '\0';
	if (unit != D9__TRIGGER_NO_UNIT)
		snprintf(out, size, "%s > %s", d9__fired_number(unit, fire->value).text,
			 d9__fired_number(unit, fire->threshold).text);
}
