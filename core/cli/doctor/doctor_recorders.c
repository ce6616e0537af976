/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/doctor_recorders.h"
#include "text/text.h"
#include "watch/recorders.h"

/* Of more, `dial9 status` tells. */
#define COMPLAINTS_MAX 6

struct text {
	char buf[512];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
	size_t room = sizeof(text->buf) - text->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->buf + text->len, room, format, args);
	va_end(args);
	if (n > 0)
		text->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* ---- those at work ---- */

static void append_fact(struct text *text, const struct d9__recorder_seen *recorder,
			const char *library, const char *what)
{
	char key[64];
	const char *value;
	size_t len;

	snprintf(key, sizeof(key), "loop.%s.%s", library, what);
	value = d9__recorder_fact(recorder, key, &len);
	if (value && len)
		append(text, "%s%s %s: %.*s", text->len ? "; " : "", library, what, (int)len, value);
}

/* Write the faults of |recorder| into |text|; empty if it has none. */
static void describe(const struct d9__recorder_seen *recorder, struct text *text)
{
	static const char *const libraries[] = { "libevent", "libev", "glib" };

	for (unsigned bit = 1; bit <= D9__PROBLEM_LOSSY; bit <<= 1)
		if (recorder->problems & bit)
			append(text, "%s%s", text->len ? "; " : "", d9__problem_name(bit));
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		append_fact(text, recorder, libraries[i], "refused");
		append_fact(text, recorder, libraries[i], "degraded");
	}
}

static void note_living(struct d9__doctor *doctor, const struct d9__recorders *recorders)
{
	struct text names = { .len = 0 };
	size_t alive = 0, complaints = 0;

	for (size_t i = 0; i < recorders->n; i++) {
		const struct d9__recorder_seen *recorder = &recorders->list[i];
		const char *program = d9__recorder_program(recorder);
		struct text text = { .len = 0 };
		int pid = (int)recorder->view.pid;

		if (recorder->owner == D9__OWNER_DEAD)
			continue;
		append(&names, "%s%s (%d, %s)", alive++ ? ", " : ": ", program, pid,
		       d9__recorder_state_word(recorder));
		describe(recorder, &text);
		if (!text.len || complaints++ >= COMPLAINTS_MAX)
			continue;
		d9__doctor_note(doctor, "recorder", D9__CHECK_WARN, "%s, process %d: %s", program, pid,
				text.buf);
		d9__doctor_advise(doctor, "see: dial9 status %d", pid);
	}
	d9__doctor_note(doctor, "recorders", D9__CHECK_OK, "%zu at work%s", alive,
			alive ? names.buf : "");
}

/* ---- rings that were left ---- */

static void note_dead(struct d9__doctor *doctor, const struct d9__recorders *recorders)
{
	static const char name[] = "left-over rings";
	const struct d9__recorder_seen *latest = NULL;
	char size[D9__SIZE_LEN];
	uint64_t bytes = 0;
	size_t dead = 0;

	for (size_t i = recorders->n; i-- > 0;) {
		if (recorders->list[i].owner != D9__OWNER_DEAD)
			continue;
		latest = &recorders->list[i];
		bytes += d9__ring_view_taken(&latest->view);
		dead++;
	}
	if (!latest) {
		d9__doctor_note(doctor, name, D9__CHECK_OK, "none");
		return;
	}
	d9__doctor_note(doctor, name, D9__CHECK_WARN,
			"%zu of processes that were killed or became other programs, %s; the latest of process %d", dead,
			d9__size_text(bytes, size), (int)latest->view.pid);
	d9__doctor_advise(doctor, "save their events: %s", d9__recorders_recover_all());
}

static void note_others(struct d9__doctor *doctor, const struct d9__recorders *recorders)
{
	char size[D9__SIZE_LEN];
	uint64_t bytes = 0;

	for (size_t i = 0; i < recorders->n_others; i++)
		bytes += recorders->others[i].bytes;
	if (!bytes)
		return;
	d9__doctor_note(doctor, "rings of others", D9__CHECK_WARN,
			"%zu of another version of dial9, %s, of processes that ended", recorders->n_others,
			d9__size_text(bytes, size));
	d9__doctor_advise(doctor, "recover them with that version, or remove them: dial9 status --json");
}

void d9__doctor_recorders(struct d9__doctor *doctor)
{
	struct d9__recorders recorders;

	if (!d9__recorders_find(&recorders, NULL, 0, NULL)) {
		d9__recorders_look(&recorders, NULL);
		note_living(doctor, &recorders);
		note_dead(doctor, &recorders);
		note_others(doctor, &recorders);
	}
	d9__recorders_release(&recorders);
}
