/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/ship/ship_status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "cli/cmd.h"
#include "ship/refused.h"
#include "ship/shipped.h"
#include "text/json.h"
#include "text/text.h"
#include "text/units.h"

struct row {
	uint64_t stored, stored_bytes, waiting, waiting_bytes, dumps, refused, missing;
	char gaps[256]; /* the missing ones: "41-57" */
};

/* One that was sent twice is one. */
static void count(const struct d9__shipped *shipped, struct row *row)
{
	struct d9__ranges stored = { 0 }, gaps = { 0 };
	int err = 0;

	for (size_t i = 0; i < shipped->n && !err; i++)
		err = d9__ranges_add(&stored, shipped->indexes[i], shipped->indexes[i]);
	for (size_t i = 0; i < shipped->n_gaps && !err; i++)
		for (size_t k = 0; k < shipped->gaps[i].ranges.n && !err; k++)
			err = d9__ranges_add(&gaps, shipped->gaps[i].ranges.items[k].first, shipped->gaps[i].ranges.items[k].last);
	row->stored = d9__ranges_count(&stored);
	row->stored_bytes = shipped->bytes;
	row->missing = d9__ranges_count(&gaps);
	d9__ranges_write(&gaps, row->gaps, sizeof(row->gaps));
	d9__ranges_release(&stored);
	d9__ranges_release(&gaps);
}

static void measure(const struct d9__ship_process *process, struct row *row)
{
	struct d9__shipped shipped = { 0 };
	int fd = d9__directory_open(process->path, 0);

	*row = (struct row) { .waiting = process->n_segments, .dumps = process->n_dumps };
	for (size_t i = 0; i < process->n_segments; i++) {
		struct stat st;

		if (!lstat(process->segments[i].path, &st))
			row->waiting_bytes += (uint64_t)st.st_size;
	}
	if (fd < 0)
		return;
	if (!d9__shipped_read(&shipped, fd))
		count(&shipped, row);
	d9__shipped_release(&shipped);
	row->refused = d9__refused_count(fd);
	close(fd);
}

static void print_json(const struct d9__ship_tree *tree)
{
	struct d9__json json = { .out = stdout };

	d9__json_open(&json, NULL, '{');
	d9__json_open(&json, "processes", '[');
	for (size_t i = 0; i < tree->n; i++) {
		struct row row;

		measure(&tree->processes[i], &row);
		d9__json_open(&json, NULL, '{');
		d9__json_string(&json, "directory", tree->processes[i].path);
		d9__json_u64(&json, "missing", row.missing);
		d9__json_string(&json, "missing_indexes", row.gaps);
		d9__json_u64(&json, "stored", row.stored);
		d9__json_u64(&json, "stored_bytes", row.stored_bytes);
		d9__json_u64(&json, "waiting", row.waiting);
		d9__json_u64(&json, "waiting_bytes", row.waiting_bytes);
		d9__json_u64(&json, "dumps_waiting", row.dumps);
		d9__json_u64(&json, "refused", row.refused);
		d9__json_close(&json, '}');
	}
	d9__json_close(&json, ']');
	d9__json_close(&json, '}');
	putchar('\n');
}

static void print_text(const struct d9__ship_tree *tree)
{
	static struct d9__text_out out;

	d9__text_init(&out, STDOUT_FILENO);
	for (size_t i = 0; i < tree->n; i++) {
		const char *path = tree->processes[i].path;
		struct row row;

		measure(&tree->processes[i], &row);
		d9__text_escaped(&out, path, strlen(path));
		d9__text_printf(&out, ": ");
		if (row.missing)
			d9__text_printf(&out, "%" PRIu64 " missing (%s), evicted before they were stored; ", row.missing, row.gaps);
		d9__text_printf(&out, "%" PRIu64 " stored, %s; ", row.stored, d9__units_bytes(row.stored_bytes).text);
		d9__text_printf(&out, "%" PRIu64 " wait, %s", row.waiting, d9__units_bytes(row.waiting_bytes).text);
		if (row.dumps)
			d9__text_printf(&out, "; %" PRIu64 " dump%s", row.dumps, row.dumps == 1 ? " waits" : "s wait");
		if (row.refused)
			d9__text_printf(&out, "; %" PRIu64 " refused", row.refused);
		d9__text_char(&out, '\n');
	}
	d9__text_finish(&out, "ship");
}

int d9__ship_status(const struct d9__ship_tree *tree, bool json)
{
	if (json)
		print_json(tree);
	else if (!tree->n)
		puts("no process has recorded here");
	else
		print_text(tree);
	return tree->n_refused ? D9__EXIT_FINDING : D9__EXIT_OK;
}
