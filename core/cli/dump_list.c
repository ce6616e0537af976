/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/dump_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"
#include "base/time.h"
#include "cli/info_json.h"
#include "read/folder.h"
#include "text/json.h"
#include "text/units.h"

#define MEASURE_LEN (2 * D9__UNITS_MAX)
#define NAME_MOST   24
#define NAME_LEAST  8
#define NAMED	    8 /* missing segments or fired triggers are listed by name, at most */
#define OVERDUE_NS  (60 * D9__SECOND_NS)

/* ---- gathering ---- */

static int add_broken(struct d9__dump_list *list, const char *path, const char *why)
{
	struct d9__no_manifest *more;

	if (!d9__array_grow(list->broken, list->n_broken))
		return -ENOMEM;
	more = &list->broken[list->n_broken++];
	*more = (struct d9__no_manifest){ strdup(path), strdup(why) };
	return more->path && more->why ? 0 : -ENOMEM;
}

/*
 * Add the manifest at |path|.  |follow|: a symbolic link may lead there, because the user named the
 * path.
 */
static int add_manifest(struct d9__dump_list *list, const char *path, bool follow)
{
	char *why;
	int err;

	if (!d9__array_grow(list->dumps, list->n))
		return -ENOMEM;
	err = d9__kept_dump_load(&list->dumps[list->n], path, follow, &why);
	if (!err) {
		list->n++;
		return 0;
	}
	d9__kept_dump_release(&list->dumps[list->n]);
	/* -ENOENT: it was removed since. */
	if (err != -ENOMEM)
		err = err == -ENOENT ? 0 : add_broken(list, path, why ? why : strerror(-err));
	free(why);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct d9__kept_dump *x = a, *y = b;

	if (x->fired_ns != y->fired_ns)
		return x->fired_ns < y->fired_ns ? -1 : 1;
	return strcmp(x->id, y->id);
}

int d9__dump_list_add(struct d9__dump_list *list, const char *path)
{
	struct d9__folder folder = { 0 };
	struct stat st;
	int err = stat(path, &st) ? -errno : 0;

	if (!err && !S_ISDIR(st.st_mode))
		err = add_manifest(list, path, true);
	else if (!err)
		err = d9__folder_list_named(&folder, path, d9__kept_dump_is_name);
	for (size_t i = 0; i < folder.n && !err; i++)
		err = add_manifest(list, folder.paths[i], false);
	d9__folder_release(&folder);
	if (list->n)
		qsort(list->dumps, list->n, sizeof(*list->dumps), compare);
	return err;
}

void d9__dump_list_release(struct d9__dump_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		d9__kept_dump_release(&list->dumps[i]);
	for (size_t i = 0; i < list->n_broken; i++) {
		free(list->broken[i].path);
		free(list->broken[i].why);
	}
	free(list->dumps);
	free(list->broken);
	*list = (struct d9__dump_list){ 0 };
}

/* ---- a row ---- */

static const char *state_of(const struct d9__kept_dump *dump)
{
	if (dump->state != D9__KEPT_CLOSED)
		return d9__kept_state_name(dump->state);
	return dump->complete && !dump->n_missing && !dump->n_unlisted ? "complete" : "incomplete";
}

static void measure_of(const struct d9__kept_dump *dump, char out[MEASURE_LEN])
{
	out[0] = '\0';
	if (dump->n_fired)
		d9__kept_fire_measure(&dump->fired[0], out, MEASURE_LEN);
}

/* "2026-11-28 15:19:51" */
static const char *time_of(uint64_t ns, char buf[D9__WALL_LEN])
{
	d9__wall_text(ns, buf);
	buf[strlen("2026-11-28T15:19:51")] = '\0';
	buf[strlen("2026-11-28")] = ' ';
	return buf;
}

/* How wide columns have to be, and whether a line takes a path, too. */
struct widths {
	size_t name, measure, size, path;
	bool in_line;
};

static void widen(size_t *width, const char *text, size_t most)
{
	size_t len = strlen(text);

	if (len > most)
		len = most;
	if (len > *width)
		*width = len;
}

static struct widths find_widths(const struct d9__dump_list *list)
{
	struct widths widths = { strlen("TRIGGER"), strlen("VALUE"), strlen("SIZE"), 0, false };
	size_t columns = d9__text_columns(), fixed = strlen("2026-11-28 15:19:51          incomplete");
	char measure[MEASURE_LEN], size[D9__SIZE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		measure_of(&list->dumps[i], measure);
		widen(&widths.measure, measure, SIZE_MAX);
		widen(&widths.size, d9__size_text(list->dumps[i].bytes, size), SIZE_MAX);
		widen(&widths.path, list->dumps[i].path, SIZE_MAX);
	}
	fixed += widths.measure + widths.size;
	for (size_t i = 0; i < list->n; i++)
		widen(&widths.name, list->dumps[i].trigger,
		      columns < fixed + NAME_LEAST ? NAME_LEAST : columns < fixed + NAME_MOST ? columns - fixed : NAME_MOST);
	widths.in_line = fixed + widths.name + widths.path < columns - 1;
	return widths;
}

static void put_row(struct d9__text_out *out, const struct d9__kept_dump *dump, const struct widths *widths)
{
	char when[D9__WALL_LEN], measure[MEASURE_LEN], size[D9__SIZE_LEN];
	size_t used;

	measure_of(dump, measure);
	d9__text_printf(out, "%s  ", time_of(dump->fired_ns, when));
	used = d9__text_fitting(out, dump->trigger, widths->name);
	d9__text_printf(out, "%*s  %-*s  %*s  ", (int)(widths->name - used), "", (int)widths->measure, measure, (int)widths->size,
			d9__size_text(dump->bytes, size));
	d9__text_printf(out, widths->in_line ? "%-10s  " : "%s\n  ", state_of(dump));
	d9__text_escaped(out, dump->path, strlen(dump->path));
	d9__text_char(out, '\n');
}

/* ---- what is to be said beside ---- */

static void put_line(struct d9__text_out *out, const char *text)
{
	d9__text_string(out, "  ");
	d9__text_wrapped(out, text, strlen(text), 2);
}

/* True if a trigger before |i| has the same name. */
static bool was_told(const struct d9__kept_dump *dump, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(dump->fired[k].trigger, dump->fired[i].trigger))
			return true;
	return false;
}

static size_t times_of(const struct d9__kept_dump *dump, const char *trigger)
{
	size_t n = 0;

	for (size_t i = 0; i < dump->n_fired; i++)
		n += !strcmp(dump->fired[i].trigger, trigger);
	return n;
}

/* Print each trigger that fired by name. */
static void print_fired(FILE *out, const struct d9__kept_dump *dump)
{
	size_t n = 0;

	if (dump->fired_count < 2)
		return;
	fprintf(out, "fired %" PRIu64 " times", dump->fired_count);
	if (dump->fired_count > dump->n_fired)
		fprintf(out, ", of the first %zu", dump->n_fired);
	for (size_t i = 0; i < dump->n_fired; i++) {
		if (was_told(dump, i) || n > NAMED)
			continue;
		if (n++ == NAMED)
			fputs(", ...", out);
		else
			fprintf(out, "%s %s %zu", n == 1 ? ":" : ",", dump->fired[i].trigger,
				times_of(dump, dump->fired[i].trigger));
	}
}

static void print_missing(FILE *out, const struct d9__kept_dump *dump)
{
	size_t n = 0;

	if (dump->n_missing)
		fprintf(out, "%zu of %zu segments %s not there:", dump->n_missing, dump->n_segments,
			dump->n_missing == 1 ? "is" : "are");
	for (size_t i = 0; i < dump->n_segments && n <= NAMED; i++) {
		if (!dump->segments[i].missing)
			continue;
		fprintf(out, "%s %s", n ? "," : "", n < NAMED ? dump->segments[i].name : "...");
		n++;
	}
}

static void print_rest(FILE *out, const struct d9__kept_dump *dump)
{
	if (dump->n_unlisted)
		fprintf(out, "%" PRIu64 " more segments are not in its list", dump->n_unlisted);
}

/* A dump is overdue if its window should have closed: the recorder rewrites the manifest then. */
static void print_overdue(FILE *out, const struct d9__kept_dump *dump)
{
	uint64_t now_ns = (uint64_t)time(NULL) * D9__SECOND_NS;

	if (dump->state == D9__KEPT_OPEN && dump->to_ns && dump->to_ns + OVERDUE_NS < now_ns)
		fprintf(out, "its window is over, and nobody has closed it: its process has ended, or cannot write");
}

static void print_loss(FILE *out, const struct d9__kept_dump *dump)
{
	if (dump->error)
		fputs(dump->error, out);
	else if (!dump->complete && dump->state == D9__KEPT_CLOSED)
		fputs("events of it were lost", out);
}

static void print_suppressed(FILE *out, const struct d9__kept_dump *dump)
{
	if (dump->suppressed)
		fprintf(out, "before it, %" PRIu64 " firing%s made no dump: there were as many as its trigger allows in an hour",
			dump->suppressed, dump->suppressed == 1 ? "" : "s");
}

static void print_pair(void *arg, const char *key, const char *value)
{
	FILE *out = arg;

	fprintf(out, "%s%s=%s", ftell(out) > 0 ? ", " : "", key, value);
}

static void print_pairs(FILE *out, const struct d9__kept_dump *dump)
{
	d9__kept_dump_pairs(dump, print_pair, out);
}

/* Put the line that |print| writes about |dump|, unless it is empty. */
static void put_said(struct d9__text_out *out, const struct d9__kept_dump *dump,
		     void (*print)(FILE *out, const struct d9__kept_dump *dump))
{
	char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);

	if (memory)
		print(memory, dump);
	if (memory && !fclose(memory) && len)
		put_line(out, text);
	free(text);
}

void d9__dump_list_text(struct d9__text_out *out, const struct d9__dump_list *list)
{
	static void (*const says[])(FILE *, const struct d9__kept_dump *) = {
		print_overdue, print_loss, print_missing, print_rest, print_fired, print_suppressed, print_pairs,
	};
	struct widths widths = find_widths(list);

	d9__text_printf(out, "%-19s  %-*s  %-*s  %*s  %s\n", "FIRED (UTC)", (int)widths.name, "TRIGGER", (int)widths.measure,
			"VALUE", (int)widths.size, "SIZE", widths.in_line ? "STATE       DUMP" : "STATE");
	for (size_t i = 0; i < list->n; i++) {
		put_row(out, &list->dumps[i], &widths);
		for (size_t k = 0; k < sizeof(says) / sizeof(says[0]); k++)
			put_said(out, &list->dumps[i], says[k]);
	}
}

/* ---- JSON ---- */

static void put_time(struct d9__json *json, const char *key, uint64_t ns)
{
	char buf[D9__WALL_LEN];

	d9__json_string(json, key, ns ? d9__wall_text(ns, buf) : NULL);
}

static void put_fired(struct d9__json *json, const struct d9__kept_dump *dump)
{
	d9__json_open(json, "fired", '[');
	for (size_t i = 0; i < dump->n_fired; i++) {
		const struct d9__kept_fire *fire = &dump->fired[i];

		d9__json_open(json, NULL, '{');
		d9__json_string(json, "trigger", fire->trigger);
		d9__json_string(json, "condition", fire->condition);
		d9__json_u64(json, "value", fire->value);
		d9__json_u64(json, "threshold", fire->threshold);
		d9__json_string(json, "unit", d9__kept_fire_unit(fire));
		put_time(json, "time", fire->ns);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_u64(json, "fired_count", dump->fired_count);
	d9__json_u64(json, "suppressed_before", dump->suppressed);
}

static void put_segments(struct d9__json *json, const struct d9__kept_dump *dump)
{
	d9__json_open(json, "segments", '[');
	for (size_t i = 0; i < dump->n_segments; i++) {
		const struct d9__kept_segment *segment = &dump->segments[i];

		d9__json_open(json, NULL, '{');
		d9__json_string(json, "path", segment->path);
		d9__json_bool(json, "missing", segment->missing);
		d9__json_u64(json, "bytes", segment->bytes);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_u64(json, "missing", dump->n_missing);
	d9__json_u64(json, "unlisted", dump->n_unlisted);
}

static void put_pair(void *json, const char *key, const char *value)
{
	d9__json_string(json, key, value);
}

static void put_pairs(struct d9__json *json, const struct d9__kept_dump *dump)
{
	d9__json_open(json, "pairs", '{');
	d9__kept_dump_pairs(dump, put_pair, json);
	d9__json_close(json, '}');
}

static void put_dump(struct d9__json *json, const struct d9__kept_dump *dump)
{
	d9__json_open(json, NULL, '{');
	d9__json_string(json, "id", dump->id);
	d9__json_string(json, "path", dump->path);
	d9__json_string(json, "trigger", dump->trigger);
	put_time(json, "time", dump->fired_ns);
	put_time(json, "from", dump->from_ns);
	put_time(json, "to", dump->to_ns);
	d9__json_string(json, "state", d9__kept_state_name(dump->state));
	d9__json_string(json, "error", dump->error);
	d9__json_bool(json, "complete", !strcmp(state_of(dump), "complete"));
	d9__json_u64(json, "bytes", dump->bytes);
	put_fired(json, dump);
	put_segments(json, dump);
	put_pairs(json, dump);
	d9__json_close(json, '}');
}

void d9__dump_list_json(const struct d9__dump_list *list)
{
	struct d9__json json = { .out = stdout };

	d9__json_open(&json, NULL, '{');
	d9__json_open(&json, "dumps", '[');
	for (size_t i = 0; i < list->n; i++)
		put_dump(&json, &list->dumps[i]);
	d9__json_close(&json, ']');
	d9__json_open(&json, "unreadable", '[');
	for (size_t i = 0; i < list->n_broken; i++) {
		d9__json_open(&json, NULL, '{');
		d9__json_string(&json, "path", list->broken[i].path);
		d9__json_string(&json, "error", list->broken[i].why);
		d9__json_close(&json, '}');
	}
	d9__json_close(&json, ']');
	d9__json_close(&json, '}');
}
