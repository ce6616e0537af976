/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "analyze/units.h"
#include "cli/life.h"

/* State of the walk over the marks. */
struct walk {
	uint64_t since_ns; /* the latest change between busy and idle */
	uint64_t wake_ns;  /* of the wake that no enter has answered; 0: none */
};

static void put_enter(struct walk *walk, const struct d9__life_mark *mark, FILE *out)
{
	if (mark->worker == D9__LIFE_NO_WORKER && mark->tid)
		fprintf(out, "enter   thread %" PRIu64, mark->tid);
	else
		fprintf(out, "enter   worker %" PRIu64, mark->worker);
	fprintf(out, ", idle for %s", d9__units_ns(mark->ns - walk->since_ns).text);
	if (walk->wake_ns)
		fprintf(out, ", woken %s before", d9__units_ns(mark->ns - walk->wake_ns).text);
	fputc('\n', out);
	walk->since_ns = mark->ns;
	walk->wake_ns = 0;
}

static void put_sums(const struct d9__life *life, FILE *out)
{
	struct d9__life_sums sums = d9__life_sum(life);

	fprintf(out, "busy for %s, entered %s times, idle for %s\n", d9__units_ns(sums.busy_ns).text,
		d9__units_count(sums.enters).text, d9__units_ns(sums.idle_ns).text);
	if (!sums.wakes)
		return;
	fprintf(out,
		"woken %s times: %s by itself, %s by other tasks, %s from outside; waited for its turn "
		"for %s, %s at most\n",
		d9__units_count(sums.wakes).text, d9__units_count(sums.self_wakes).text,
		d9__units_count(sums.foreign_wakes).text,
		d9__units_count(sums.wakes - sums.self_wakes - sums.foreign_wakes).text,
		d9__units_ns(sums.waited_ns).text, d9__units_ns(sums.waited_max_ns).text);
}

static void put_mark(const struct d9__life *life, struct walk *walk,
		     const struct d9__life_mark *mark, FILE *out)
{
	char what[256];

	fprintf(out, "%14.9f  ", ((double)mark->ns - (double)life->first_ns) / 1e9);
	switch (mark->kind) {
	case D9__LIFE_NEW:
		fputs("new\n", out);
		break;
	case D9__LIFE_WAKE:
		d9__life_describe_waker(life, mark, what, sizeof(what));
		fprintf(out, "wake    by %s\n", what);
		walk->wake_ns = mark->ns;
		break;
	case D9__LIFE_ENTER:
		put_enter(walk, mark, out);
		break;
	case D9__LIFE_EXIT:
		fprintf(out, "exit    busy for %s\n", d9__units_ns(mark->ns - walk->since_ns).text);
		walk->since_ns = mark->ns;
		break;
	case D9__LIFE_INSIDE:
		d9__life_describe_inside(life, mark, what, sizeof(what));
		fprintf(out, "  |     %s\n", what);
		break;
	case D9__LIFE_CLOSE:
		fprintf(out, "close   idle for %s\n", d9__units_ns(mark->ns - walk->since_ns).text);
		break;
	}
}

void d9__life_text(const struct d9__life *life, FILE *out)
{
	struct walk walk = { .since_ns = life->marks[0].ns };

	fprintf(out, "%s %" PRIu64 "  %s", life->is_span ? "span" : "task", life->id, life->name);
	if (life->kind[0])
		fprintf(out, "  %s", life->kind);
	if (life->fd >= 0)
		fprintf(out, "  descriptor %" PRId64, life->fd);
	fputc('\n', out);
	for (size_t i = 0; i < life->n; i++)
		put_mark(life, &walk, &life->marks[i], out);
	put_sums(life, out);
}
