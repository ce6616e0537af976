/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "cli/info_json.h"
#include "cli/status_log.h"

#define MS_DIGITS 23 /* of a wall time: up to the milliseconds */

void d9__status_log_counts_text(struct d9__text_out *out, const struct d9__log_counts *counts)
{
	static const struct {
		const char *one, *many;
	} words[] = { { "error", "errors" },
		      { "warning", "warnings" },
		      { "other line", "other lines" } };
	const char *between = "";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint64_t n = counts->lines[i];

		if (!n)
			continue;
		d9__text_printf(out, "%s%" PRIu64 " %s", between, n,
				n == 1 ? words[i].one : words[i].many);
		between = ", ";
	}
	if (!*between)
		d9__text_string(out, "nothing");
}

void d9__status_log_read(const struct d9__recorder_seen *recorder, struct d9__notes *notes,
			 struct d9__log_counts *counts)
{
	struct d9__note_line line;
	uint32_t at = 0;

	*counts = (struct d9__log_counts) { { 0 } };
	if (d9__ring_view_read(&recorder->view, D9__RING_NOTES_AT, notes, sizeof(*notes)))
		memset(notes, 0, sizeof(*notes));
	while (d9__notes_next(notes, &at, &line))
		counts->lines[line.level]++;
}

/* Time of day of a stamp of the recorder's. */
static uint64_t wall_ns(const struct d9__recorder_seen *recorder, uint64_t ns)
{
	const struct d9__anchor *anchor = &recorder->view.header.anchor;

	return anchor->real_ns + (ns - anchor->mono_ns);
}

static void put_line(struct d9__text_out *out, const struct d9__recorder_seen *recorder,
		     const struct d9__note_line *line)
{
	char wall[D9__WALL_LEN];
	uint32_t times = line->times + line->again;

	d9__wall_text(wall_ns(recorder, line->ns), wall);
	d9__text_printf(out, "%.*sZ %-7s ", MS_DIGITS, wall, d9__note_level(line->level));
	d9__text_escaped(out, line->text, strlen(line->text));
	if (times > 1)
		d9__text_printf(out, " (%u times)", times);
	d9__text_char(out, '\n');
}

void d9__status_log_text(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	struct d9__log_counts counts;
	struct d9__note_line line;
	struct d9__notes notes;
	uint32_t at = 0, next = 0;

	d9__status_log_read(recorder, &notes, &counts);
	while (d9__notes_next(&notes, &at, &line)) {
		if (line.number != next)
			d9__text_printf(out, "(%" PRIu32 " lines overwritten)\n",
					line.number - next);
		put_line(out, recorder, &line);
		next = line.number + 1;
	}
	if (!next)
		d9__text_string(out, "nothing noted\n");
}

static void put_member(struct d9__text_out *out, const char *key, const char *text)
{
	d9__text_printf(out, ",\"%s\":", key);
	d9__text_json(out, text, strlen(text));
}

void d9__status_log_json(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	struct d9__log_counts counts;
	struct d9__note_line line;
	struct d9__notes notes;
	const char *between = "";
	uint32_t at = 0;

	d9__status_log_read(recorder, &notes, &counts);
	d9__text_printf(out, "{\"pid\":%d", (int)recorder->view.pid);
	put_member(out, "boot_id", recorder->view.header.boot_id);
	d9__text_printf(out, ",\"errors\":%" PRIu64 ",\"warnings\":%" PRIu64 ",\"log\":[",
			counts.lines[D9_LOG_ERROR], counts.lines[D9_LOG_WARNING]);
	for (; d9__notes_next(&notes, &at, &line); between = ",") {
		d9__text_printf(
			out, "%s{\"number\":%" PRIu32 ",\"at_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64,
			between, line.number, line.ns, wall_ns(recorder, line.ns));
		put_member(out, "level", d9__note_level(line.level));
		put_member(out, "text", line.text);
		d9__text_printf(out, ",\"times\":%" PRIu32 "}", line.times + line.again);
	}
	d9__text_string(out, "]}\n");
}
