/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "cli/diagram/task_life.h"
#include "cli/diagram/task_life_text.h"
#include "text/text.h"
#include "text/units.h"

/* State of the walk over the marks. */
struct walk {
	uint64_t since_ns; /* the latest change between busy and idle */
	uint64_t wake_ns;  /* of the wake that no enter has answered; 0: none */
};

/* Write a text of the trace, escaped, and a newline. */
static void put_line(struct d9__text_out *out, const char *text)
{
	d9__text_escaped(out, text, strlen(text));
	d9__text_char(out, '\n');
}

static void put_enter(struct walk *walk, const struct d9__task_life_mark *mark, struct d9__text_out *out)
{
	if (mark->worker == D9__LIFE_NO_WORKER && mark->tid)
		d9__text_printf(out, "enter   thread %" PRIu64, mark->tid);
	else
		d9__text_printf(out, "enter   worker %" PRIu64, mark->worker);
	d9__text_printf(out, ", idle for %s", d9__units_ns(mark->ns - walk->since_ns).text);
	if (walk->wake_ns)
		d9__text_printf(out, ", woken %s before", d9__units_ns(mark->ns - walk->wake_ns).text);
	d9__text_char(out, '\n');
	walk->since_ns = mark->ns;
	walk->wake_ns = 0;
}

static void put_sums(const struct d9__task_life *life, struct d9__text_out *out)
{
	struct d9__task_life_sums sums = d9__task_life_sum(life);

	d9__text_printf(out, "busy for %s, entered %s times, idle for %s\n", d9__units_ns(sums.busy_ns).text,
		d9__units_count(sums.enters).text, d9__units_ns(sums.idle_ns).text);
	if (!sums.wakes)
		return;
	d9__text_printf(out,
		"woken %s times: %s by itself, %s by other tasks, %s from outside; waited for its turn "
		"for %s, %s at most\n",
		d9__units_count(sums.wakes).text, d9__units_count(sums.self_wakes).text,
		d9__units_count(sums.foreign_wakes).text,
		d9__units_count(sums.wakes - sums.self_wakes - sums.foreign_wakes).text,
		d9__units_ns(sums.waited_ns).text, d9__units_ns(sums.waited_max_ns).text);
}

static void put_mark(const struct d9__task_life *life, struct walk *walk,
		     const struct d9__task_life_mark *mark, struct d9__text_out *out)
{
	char what[256];

	d9__text_printf(out, "%14.9f  ", ((double)mark->ns - (double)life->first_ns) / 1e9);
	switch (mark->kind) {
	case D9__LIFE_NEW:
		d9__text_string(out, "new\n");
		break;
	case D9__LIFE_WAKE:
		d9__task_life_describe_waker(life, mark, what, sizeof(what));
		d9__text_string(out, "wake    by ");
		put_line(out, what);
		walk->wake_ns = mark->ns;
		break;
	case D9__LIFE_ENTER:
		put_enter(walk, mark, out);
		break;
	case D9__LIFE_EXIT:
		d9__text_printf(out, "exit    busy for %s\n", d9__units_ns(mark->ns - walk->since_ns).text);
		walk->since_ns = mark->ns;
		break;
	case D9__LIFE_INSIDE:
		d9__task_life_describe_inside(life, mark, what, sizeof(what));
		d9__text_string(out, "  |     ");
		put_line(out, what);
		break;
	case D9__LIFE_CLOSE:
		d9__text_printf(out, "close   idle for %s\n", d9__units_ns(mark->ns - walk->since_ns).text);
		break;
	}
}

void d9__task_life_text(const struct d9__task_life *life, struct d9__text_out *out)
{
	struct walk walk = { .since_ns = life->marks[0].ns };

	d9__text_printf(out, "%s %" PRIu64 "  ", life->is_span ? "span" : "task", life->id);
	d9__text_escaped(out, life->name, strlen(life->name));
	if (life->kind[0])
		d9__text_string(out, "  ");
	d9__text_escaped(out, life->kind, strlen(life->kind));
	if (life->fd >= 0)
		d9__text_printf(out, "  descriptor %" PRId64, life->fd);
	d9__text_char(out, '\n');
	for (size_t i = 0; i < life->n; i++)
		put_mark(life, &walk, &life->marks[i], out);
	put_sums(life, out);
}
