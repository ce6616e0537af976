/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/hour.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "read/input.h"
#include "ship/object_key.h"
#include "ship/ranges.h"
#include "ship/shipped.h"
#include "ship/summary_sum.h"

#define HOUR_S	   3600
#define LATE_S	   120	       /* that the last segment of an hour may take */
#define KEEP_S	   (48 * 3600) /* that a segment may come late */
#define DEPTH_MAX  8
#define RANGES_MAX 4096 /* bytes */
#define NEW_FILE   ".hour.new"

/* ---- a file ---- */

static void name_of(uint64_t hour, char *out)
{
	time_t at = (time_t)(hour * HOUR_S);
	struct tm tm = { 0 };
	char text[32];

	gmtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H", &tm);
	snprintf(out, 32, D9__HOUR_NAME "%.20s", text);
}

static int read_all(int fd, char **text, size_t *len)
{
	struct stat st;
	ssize_t got = 0;

	*len = 0;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > D9__HOUR_BYTES)
		return -EBADMSG;
	*text = malloc((size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	while (*len < (size_t)st.st_size && (got = read(fd, *text + *len, (size_t)st.st_size - *len)) > 0)
		*len += (size_t)got;
	return got < 0 ? -errno : 0;
}

static int parse(const char *text, size_t len, struct json_object **out)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);

	if (!tokener)
		return -ENOMEM;
	*out = json_tokener_parse_ex(tokener, text, (int)len);
	json_tokener_free(tokener);
	if (json_object_is_type(*out, json_type_object))
		return 0;
	json_object_put(*out);
	*out = NULL;
	return -EBADMSG;
}

/*
 * Load the hour's file |name|.  0, -ENOENT, -EBADMSG: it is not an hour's, -ENOMEM, or an error of
 * reading.
 */
static int load(int dir, const char *name, struct json_object **hour)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err;
	char *text = NULL;
	size_t len;

	if (fd < 0)
		return -errno;
	err = read_all(fd, &text, &len);
	if (!err)
		err = parse(text, len, hour);
	free(text);
	close(fd);
	return err;
}

static int save(int dir, const char *name, struct json_object *hour)
{
	const char *text = json_object_to_json_string_ext(hour, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	int fd = text ? openat(dir, NEW_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1, err;

	if (fd < 0)
		return text ? -errno : -ENOMEM;
	err = d9__write_all(fd, text, strlen(text));
	if (!err && fsync(fd))
		err = -errno;
	close(fd);
	if (!err && renameat(dir, NEW_FILE, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, NEW_FILE, 0);
	return err;
}

/* ---- values ---- */

static uint64_t number(struct json_object *of, const char *name)
{
	struct json_object *value = json_object_object_get(of, name);
	int64_t n = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;

	return n > 0 ? (uint64_t)n : 0;
}

static const char *text_of(struct json_object *of, const char *name)
{
	struct json_object *value = json_object_object_get(of, name);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static int set(struct json_object *of, const char *name, struct json_object *value)
{
	if (value && !json_object_object_add(of, name, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

static int set_text(struct json_object *of, const char *name, const char *text)
{
	return set(of, name, json_object_new_string(text));
}

static int set_number(struct json_object *of, const char *name, uint64_t n)
{
	return set(of, name, json_object_new_int64(n > INT64_MAX ? INT64_MAX : (int64_t)n));
}

/* ---- adding ---- */

static int add_summary(struct json_object *hour, const struct d9__hour_segment *segment)
{
	int err = segment->summary ? d9__summary_add(hour, segment->summary, segment->key) : 0;

	return err || !segment->summary ? err : set_number(hour, "summarised", number(hour, "summarised") + 1);
}

static int add_figures(struct json_object *hour, const struct d9__hour_segment *segment, struct d9__ranges *indexes)
{
	char text[RANGES_MAX];
	int err = d9__ranges_add(indexes, segment->index, segment->index);

	d9__ranges_write(indexes, text, sizeof(text));
	if (!err)
		err = set_text(hour, "indexes", text);
	if (!err)
		err = set_text(hour, "service", segment->service);
	if (!err)
		err = set_text(hour, "instance", segment->instance);
	if (!err)
		err = set_text(hour, "boot_id", segment->boot_id);
	if (!err)
		err = set_number(hour, "segments", number(hour, "segments") + 1);
	if (!err)
		err = set_number(hour, "bytes", number(hour, "bytes") + segment->bytes);
	if (!err && segment->worst_ns > number(hour, "longest_ns"))
		err = set_number(hour, "longest_ns", segment->worst_ns);
	return err;
}

/* Load the hour's file, or begin a new one if it is missing or not an hour's. */
static int load_any(int dir, const char *name, struct json_object **hour)
{
	char told[48];
	int err = load(dir, name, hour);

	snprintf(told, sizeof(told), "%s" D9__HOUR_TOLD, name);
	if (err == -ENOENT || err == -EBADMSG)
		err = load(dir, told, hour);
	if (err != -ENOENT && err != -EBADMSG)
		return err;
	*hour = json_object_new_object();
	return *hour ? set_text(*hour, "hour", name + strlen(D9__HOUR_NAME)) : -ENOMEM;
}

static int add_locked(int dir, const char *name, const struct d9__hour_segment *segment)
{
	struct d9__ranges indexes = { 0 };
	struct json_object *hour = NULL;
	char told[48];
	int err = load_any(dir, name, &hour);

	snprintf(told, sizeof(told), "%s" D9__HOUR_TOLD, name);
	if (!err)
		err = d9__ranges_parse(&indexes, text_of(hour, "indexes"));
	if (!err && !d9__ranges_has(&indexes, segment->index)) {
		err = add_summary(hour, segment);
		if (!err)
			err = add_figures(hour, segment, &indexes);
		if (!err)
			err = save(dir, name, hour);
		if (!err)
			unlinkat(dir, told, 0);
	}
	d9__ranges_release(&indexes);
	json_object_put(hour);
	return err;
}

/* Several shippers may be at work.  A descriptor that holds the lock of |dir|, or -errno. */
static int lock(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (fd < 0 || !flock(fd, LOCK_EX))
		return fd < 0 ? -errno : fd;
	err = -errno;
	close(fd);
	return err;
}

int d9__hour_add(int dir, const struct d9__hour_segment *segment)
{
	char name[32];
	int locked = lock(dir), err;

	if (locked < 0)
		return locked;
	name_of(segment->epoch_s / HOUR_S, name);
	err = add_locked(dir, name, segment);
	close(locked);
	return err;
}

static void names_of(uint64_t epoch_s, char name[32], char told[48])
{
	name_of(epoch_s / HOUR_S, name);
	snprintf(told, 48, "%s" D9__HOUR_TOLD, name);
}

/* The marker of the hour of |epoch_s| is stored again. */
static void untell(int dir, uint64_t epoch_s)
{
	char name[32], told[48];
	int locked = lock(dir);

	names_of(epoch_s, name, told);
	if (locked >= 0) {
		renameat2(dir, told, dir, name, RENAME_NOREPLACE);
		close(locked);
	}
}

int d9__hour_lose(int dir, uint64_t index, uint64_t sealed_s)
{
	char number[24];
	int err;

	/*
	 * First, because a shipper that is killed behind the line would leave an hour that counts as told; and again, because another
	 * shipper may have told it in between.
	 */
	untell(dir, sealed_s);
	snprintf(number, sizeof(number), "%" PRIu64, index);
	err = d9__shipped_gap(dir, number, sealed_s);
	untell(dir, sealed_s);
	return err;
}

bool d9__hour_is_told(int dir, uint64_t epoch_s)
{
	char name[32], told[48];

	names_of(epoch_s, name, told);
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) && !faccessat(dir, told, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* ---- what is due ---- */

/*
 * Return the hour since 1970 in a file's name that ends in |ending|; UINT64_MAX: it is another
 * name.
 */
static uint64_t hour_of(const char *name, const char *ending)
{
	struct tm tm = { 0 };
	char again[48];
	time_t at;

	if (sscanf(name, D9__HOUR_NAME "%4d-%2d-%2dT%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour) != 4)
		return UINT64_MAX;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	at = timegm(&tm);
	if (at < 0)
		return UINT64_MAX;
	name_of((uint64_t)at / HOUR_S, again);
	strcat(again, ending);
	return strcmp(name, again) ? UINT64_MAX : (uint64_t)at / HOUR_S;
}

/* Write the numbers that the list gives as missing in |hour|. */
static int set_missing(struct json_object *body, int dir, uint64_t hour, uint64_t *n)
{
	struct d9__shipped shipped;
	struct d9__ranges missing = { 0 };
	char text[RANGES_MAX];
	int err = d9__shipped_read(&shipped, dir);

	for (size_t i = 0; i < shipped.n_gaps && !err; i++)
		for (size_t k = 0; k < shipped.gaps[i].ranges.n && !err && shipped.gaps[i].epoch_s / HOUR_S == hour; k++)
			err = d9__ranges_add(&missing, shipped.gaps[i].ranges.items[k].first,
					     shipped.gaps[i].ranges.items[k].last);
	d9__ranges_write(&missing, text, sizeof(text));
	*n = d9__ranges_count(&missing);
	d9__ranges_release(&missing);
	d9__shipped_release(&shipped);
	return err ? err : set_text(body, "missing", text);
}

static int write_key(struct d9__hour_marker *marker, const char *prefix, struct json_object *body, uint64_t missing)
{
	char service[D9__OBJECT_PART + 1], instance[D9__OBJECT_PART + 1], boot_id[D9__OBJECT_PART + 1], worst[24] = "-";
	const char *hour = marker->file + strlen(D9__HOUR_NAME);
	bool has_prefix = prefix && *prefix;

	d9__object_part(text_of(body, "service"), service);
	d9__object_part(text_of(body, "instance"), instance);
	d9__object_part(text_of(body, "boot_id"), boot_id);
	if (number(body, "longest_ns"))
		snprintf(worst, sizeof(worst), "%" PRIu64, number(body, "longest_ns") / 1000000);
	return asprintf(&marker->key, "%s%shours/%.10s/%s/%s/%s/%s.%" PRIu64 ".%" PRIu64 ".%s.%" PRIu64, has_prefix ? prefix : "",
			has_prefix ? "/" : "", hour, hour + 11, service, instance, boot_id, marker->segments,
			number(body, "bytes"), worst, missing) < 0 ?
		       -ENOMEM :
		       0;
}

static int make_marker(struct d9__hour_markers *out, int dir, const char *name, const char *prefix, struct json_object *hour)
{
	struct d9__hour_marker *marker;
	const char *body;
	uint64_t missing = 0;
	int err;

	if (!d9__array_grow(out->items, out->n))
		return -ENOMEM;
	marker = &out->items[out->n++];
	*marker = (struct d9__hour_marker) { .segments = number(hour, "segments") };
	snprintf(marker->file, sizeof(marker->file), "%.31s", name);
	err = set_missing(hour, dir, hour_of(name, ""), &missing);
	if (!err)
		err = write_key(marker, prefix, hour, missing);
	if (err)
		return err;
	body = json_object_to_json_string_ext(hour, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	marker->body = body ? strdup(body) : NULL;
	return marker->body ? 0 : -ENOMEM;
}

static int take(struct d9__hour_markers *out, int dir, const char *name, const char *prefix)
{
	struct json_object *hour = NULL;
	int err = load(dir, name, &hour);

	if (!err)
		err = make_marker(out, dir, name, prefix, hour);
	json_object_put(hour);
	return err == -ENOMEM ? err : 0;
}

/* Its own descriptor; NULL: it cannot be listed. */
static DIR *list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *out = fd < 0 ? NULL : fdopendir(fd);

	if (!out && fd >= 0)
		close(fd);
	return out;
}

int d9__hour_due(int dir, const char *prefix, uint64_t now_s, bool ended, struct d9__hour_markers *out)
{
	DIR *all = list(dir);
	struct dirent *entry;
	int err = 0;

	*out = (struct d9__hour_markers) { 0 };
	while (all && !err && (entry = readdir(all)) != NULL) {
		uint64_t hour = hour_of(entry->d_name, "");

		if (hour != UINT64_MAX && (ended || now_s >= (hour + 1) * HOUR_S + LATE_S))
			err = take(out, dir, entry->d_name, prefix);
	}
	if (all)
		closedir(all);
	return err;
}

void d9__hour_markers_release(struct d9__hour_markers *markers)
{
	for (size_t i = 0; i < markers->n; i++) {
		free(markers->items[i].key);
		free(markers->items[i].body);
	}
	free(markers->items);
	*markers = (struct d9__hour_markers) { 0 };
}

int d9__hour_told(int dir, const struct d9__hour_marker *marker)
{
	struct json_object *hour = NULL;
	char told[48];
	int locked = lock(dir), err;

	if (locked < 0)
		return locked;
	snprintf(told, sizeof(told), "%s" D9__HOUR_TOLD, marker->file);
	err = load(dir, marker->file, &hour);
	/*
	 * Rename it only if its number is the stored one, because another process may have added a
	 * segment meanwhile.
	 */
	if (!err && number(hour, "segments") == marker->segments && renameat(dir, marker->file, dir, told))
		err = -errno;
	json_object_put(hour);
	close(locked);
	return err;
}

void d9__hour_forget(int dir, uint64_t now_s)
{
	DIR *all = list(dir);
	struct dirent *entry;
	struct stat st;

	while (all && (entry = readdir(all)) != NULL)
		if (hour_of(entry->d_name, D9__HOUR_TOLD) != UINT64_MAX && !fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    now_s >= (uint64_t)st.st_mtim.tv_sec + KEEP_S)
			unlinkat(dir, entry->d_name, 0);
	if (all)
		closedir(all);
}
