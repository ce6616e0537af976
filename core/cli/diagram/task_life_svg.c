/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draw a life: one lane for it, above it one for each waker, a time axis below.  Widths are to
 * scale, but never invisible.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diagram/task_life.h"
#include "cli/diagram/task_life_svg.h"
#include "export/svg_text.h"
#include "text/page.h"
#include "text/units.h"

#define SCALE	  990.0 /* of the time axis */
#define LEFT_MIN  190.0 /* names of the lanes */
#define RIGHT	  20.0
#define MARGIN	  20.0
#define PER_CHAR  7.5 /* a wide font's column at 12 px; there is no knowing which font it will be */
#define PER_TITLE 9.0 /* at 14 px, bold */
#define NAME_COLUMNS 400 /* columns: longer names are shortened in their middle */
#define TOP	  50.0
#define LANE	  26.0
#define LIFE	  44.0 /* height of the life's own lane */
#define MIN_WIDTH 0.6
#define WAKERS	  8 /* lanes; the last holds all others */
#define TICKS	  10
#define PLACES	  4 /* to a unit */

/* The lanes: only things in the same lane can cover each other. */
enum { READY, BUSY, INSIDE, FIRST_WAKER, KINDS = FIRST_WAKER + WAKERS };

struct drawing {
	const struct d9__task_life *life;
	FILE *out;
	uint64_t from_ns, to_ns;
	double left, width; /* where the time axis begins; of the whole */
	char *name;         /* the life's, not too long */
	struct {
		uint64_t task;
		char text[1024];
	} wakers[WAKERS];
	size_t n_wakers;
	uint64_t too_close; /* things not drawn, as they would cover another */
	long latest[KINDS]; /* place of the latest of each kind that was drawn, in 1 / PLACES */
};

/*
 * True if a short thing of |kind| at |x| would cover the latest one of that kind.  It is counted
 * and not drawn.
 */
static bool is_too_close(struct drawing *d, unsigned kind, double x)
{
	long place = (long)(x * PLACES) + 1;

	if (d->latest[kind] == place) {
		d->too_close++;
		return true;
	}
	d->latest[kind] = place;
	return false;
}

static double x_of(const struct drawing *d, uint64_t ns)
{
	double part = ((double)ns - (double)d->from_ns) / ((double)d->to_ns - (double)d->from_ns);

	return d->left + part * SCALE;
}

static double lane_y(size_t lane)
{
	return TOP + LANE * (double)lane;
}

static double life_y(const struct drawing *d)
{
	return lane_y(d->n_wakers) + 8;
}

static void put_title(struct drawing *d, uint64_t ns, const char *what, const char *more)
{
	fprintf(d->out, "<title>%s  ", d9__units_offset(d->life->first_ns, ns).text);
	d9__svg_text(d->out, what);
	d9__svg_text(d->out, more);
	fputs("</title>", d->out);
}

/* ---- lanes ---- */

static size_t lane_of(struct drawing *d, const struct d9__task_life_mark *mark)
{
	char text[sizeof(d->wakers[0].text)];

	d9__task_life_describe_waker(d->life, mark, text, sizeof(text));
	for (size_t i = 0; i < d->n_wakers; i++)
		if (!strcmp(d->wakers[i].text, text))
			return i;
	if (d->n_wakers == WAKERS) {
		strcpy(d->wakers[WAKERS - 1].text, "others");
		return WAKERS - 1;
	}
	strcpy(d->wakers[d->n_wakers].text, text);
	return d->n_wakers++;
}

static void put_label(struct drawing *d, double y, const char *class, const char *text)
{
	fprintf(d->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"%s\">", d->left - 10, y, class);
	d9__svg_text(d->out, text);
	fputs("</text>\n", d->out);
}

static void put_lanes(struct drawing *d)
{
	for (size_t i = 0; i < d->n_wakers; i++) {
		double y = lane_y(i) + LANE / 2;

		put_label(d, y + 4, "label", d->wakers[i].text);
		fprintf(d->out, "<line x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\" class=\"lane\"/>\n",
			d->left, y, d->left + SCALE, y);
	}
	put_label(d, life_y(d) + LIFE / 2 + 4, "label own", d->name);
}

/* ---- time ---- */

/* 1, 2 or 5 times a power of ten, for about TICKS of them. */
static uint64_t step_of(uint64_t ns)
{
	uint64_t step = 1;

	while (step * TICKS < ns && step < UINT64_MAX / 10) {
		if (step * 2 * TICKS >= ns)
			return step * 2;
		if (step * 5 * TICKS >= ns)
			return step * 5;
		step *= 10;
	}
	return step;
}

/*
 * Write |ns| in the unit for times up to |most_ns|, with enough decimals to tell apart times
 * |step_ns| from each other.
 */
static void label_time(uint64_t ns, uint64_t most_ns, uint64_t step_ns, char *buf, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 } };
	uint64_t unit, part;
	size_t i = 0;
	int decimals = 0;

	while (units[i].ns > most_ns && units[i].ns > 1)
		i++;
	unit = part = units[i].ns;
	while (step_ns % part) {
		part /= 10;
		decimals++;
	}
	if (decimals)
		snprintf(buf, size, "%" PRIu64 ".%0*" PRIu64 " %s", ns / unit, decimals % 10, ns % unit / part,
			 units[i].name);
	else
		snprintf(buf, size, "%" PRIu64 " %s", ns / unit, units[i].name);
}

static void put_axis(struct drawing *d)
{
	char label[64];
	uint64_t step = step_of(d->to_ns - d->from_ns), first = d->life->first_ns;
	uint64_t at = first + (d->from_ns > first ? (d->from_ns - first + step - 1) / step * step : 0);
	double y = life_y(d) + LIFE + 14;

	for (; at >= first && at <= d->to_ns; at += step) {
		label_time(at - first, d->to_ns - first, step, label, sizeof(label));
		fprintf(d->out,
			"<line x1=\"%.2f\" y1=\"%.0f\" x2=\"%.2f\" y2=\"%.1f\" class=\"grid\"/>"
			"<text x=\"%.2f\" y=\"%.1f\" class=\"tick\">%s</text>\n",
			x_of(d, at), TOP, x_of(d, at), y, x_of(d, at), y + 12,
			label);
		/* The next step may lie beyond the end of all time. */
		if (d->to_ns - at < step)
			break;
	}
}

/* ---- marks ---- */

static void put_box(struct drawing *d, unsigned kind, const char *class, uint64_t from_ns, uint64_t to_ns,
		    const char *what)
{
	double x = x_of(d, from_ns), width = x_of(d, to_ns) - x;

	if (width * PLACES < 1 && is_too_close(d, kind, x))
		return;
	fprintf(d->out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\" class=\"%s\">", x,
		life_y(d), width < MIN_WIDTH ? MIN_WIDTH : width, LIFE, class);
	put_title(d, from_ns, what, d9__units_ns(to_ns - from_ns).text);
	fputs("</rect>\n", d->out);
}

static void put_wake(struct drawing *d, const struct d9__task_life_mark *mark)
{
	size_t lane = lane_of(d, mark);
	double x = x_of(d, mark->ns), y = lane_y(lane) + LANE / 2, end = life_y(d);

	if (is_too_close(d, FIRST_WAKER + (unsigned)lane, x))
		return;
	fprintf(d->out,
		"<g class=\"%s\"><circle cx=\"%.2f\" cy=\"%.1f\" r=\"2.5\"/>"
		"<path d=\"M%.2f %.1fV%.1fm-3 -5l3 5l3 -5\"/>",
		mark->waker == d->life->id ? "self" : "wake", x, y, x, y, end);
	put_title(d, mark->ns, "woken by ", d->wakers[lane].text);
	fputs("</g>\n", d->out);
}

static void put_inside(struct drawing *d, const struct d9__task_life_mark *mark)
{
	char what[256];

	if (is_too_close(d, INSIDE, x_of(d, mark->ns)))
		return;
	d9__task_life_describe_inside(d->life, mark, what, sizeof(what));
	fprintf(d->out, "<path d=\"M%.2f %.1fv%.1f\" class=\"inside\">", x_of(d, mark->ns),
		life_y(d) + 4, LIFE - 8);
	put_title(d, mark->ns, what, "");
	fputs("</path>\n", d->out);
}

static void put_end(struct drawing *d, const struct d9__task_life_mark *mark, const char *what)
{
	fprintf(d->out, "<path d=\"M%.2f %.1fv%.1f\" class=\"end\">", x_of(d, mark->ns),
		life_y(d) - 5, LIFE + 10);
	put_title(d, mark->ns, what, "");
	fputs("</path>\n", d->out);
}

/* Below, so that wakes and events are not hidden. */
static void put_sections(struct drawing *d)
{
	const struct d9__task_life *life = d->life;
	uint64_t wake_ns = 0, enter_ns = 0, exit_ns = 0;

	for (size_t i = 0; i < life->n; i++) {
		const struct d9__task_life_mark *mark = &life->marks[i];

		if (mark->kind == D9__LIFE_WAKE) {
			wake_ns = mark->ns;
		} else if (mark->kind == D9__LIFE_ENTER) {
			if (wake_ns && mark->ns > exit_ns)
				put_box(d, READY, "ready", wake_ns > exit_ns ? wake_ns : exit_ns, mark->ns,
					"ready, waited ");
			wake_ns = 0;
			enter_ns = mark->ns;
		} else if (mark->kind == D9__LIFE_EXIT && enter_ns) {
			put_box(d, BUSY, "busy", enter_ns, mark->ns, "busy for ");
			enter_ns = 0;
			exit_ns = mark->ns;
		}
	}
	if (enter_ns)
		put_box(d, BUSY, "busy open", enter_ns, d->to_ns, "still busy at the end, for ");
}

static void put_marks(struct drawing *d)
{
	for (size_t i = 0; i < d->life->n; i++) {
		const struct d9__task_life_mark *mark = &d->life->marks[i];

		if (mark->kind == D9__LIFE_WAKE)
			put_wake(d, mark);
		else if (mark->kind == D9__LIFE_INSIDE)
			put_inside(d, mark);
		else if (mark->kind == D9__LIFE_NEW)
			put_end(d, mark, "new");
		else if (mark->kind == D9__LIFE_CLOSE)
			put_end(d, mark, "close");
	}
}

/* ---- the whole ---- */

static void put_head(struct drawing *d, double height)
{
	const struct d9__task_life *life = d->life;
	struct d9__task_life_sums sums = d9__task_life_sum(life);

	fprintf(d->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
		"height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<style>text{fill:#222}.label{text-anchor:end}.own{font-weight:bold}"
		".tick{text-anchor:middle;fill:#666;font-size:10px}.grid{stroke:#e4e4e4}"
		".lane{stroke:#ccc}.idle{fill:#eef1f4}.busy{fill:#2b7bba}.open{fill-opacity:.6}"
		".gone{fill:#c8d0d8}.ready{fill:#f2b441}.wake{stroke:#b5481a;fill:#b5481a}.self{stroke:#777;fill:#777}"
		".wake path,.self path{fill:none}.inside{stroke:#fff;stroke-width:1.2}"
		".end{stroke:#222;stroke-width:2}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"20\" y=\"20\" "
		"font-size=\"14\" font-weight=\"bold\">%s %" PRIu64 "  ",
		d->width, height, d->width, height, life->is_span ? "span" : "task", life->id);
	d9__svg_text(d->out, d->name);
	fprintf(d->out,
		"</text>\n<text x=\"20\" y=\"37\"><tspan class=\"busy\">\342\226\240</tspan> busy %s in %s "
		"sections, <tspan class=\"gone\">\342\226\240</tspan> idle %s, <tspan class=\"ready\">"
		"\342\226\240</tspan> ready and waiting %s, %s at most</text>\n",
		d9__units_ns(sums.busy_ns).text, d9__units_count(sums.enters).text,
		d9__units_ns(sums.idle_ns).text, d9__units_ns(sums.waited_ns).text,
		d9__units_ns(sums.waited_max_ns).text);
}

/* Room for all names: those of the lanes at the left, and the one above. */
static void measure(struct drawing *d)
{
	struct d9__page page = { .utf8 = true };
	size_t most = d9__page_columns(&page, d->name);
	double title = 2 * MARGIN + PER_TITLE * (double)(most + strlen("task 18446744073709551615  "));

	for (size_t i = 0; i < d->n_wakers; i++)
		if (d9__page_columns(&page, d->wakers[i].text) > most)
			most = d9__page_columns(&page, d->wakers[i].text);
	d->left = MARGIN + PER_CHAR * (double)most + 10;
	if (d->left < LEFT_MIN)
		d->left = LEFT_MIN;
	d->width = d->left + SCALE + RIGHT;
	if (d->width < title)
		d->width = title;
}

int d9__task_life_svg(const struct d9__task_life *life, FILE *out)
{
	struct d9__page page = { .utf8 = true };
	struct drawing d = { .life = life, .out = out, .from_ns = life->marks[0].ns,
			     .to_ns = life->last_ns };

	d.name = d9__page_shorten(&page, life->name, 0, NAME_COLUMNS);
	if (!d.name)
		return -ENOMEM;
	if (life->marks[life->n - 1].kind == D9__LIFE_CLOSE)
		d.to_ns = life->marks[life->n - 1].ns;
	if (d.to_ns <= d.from_ns)
		d.to_ns = d.from_ns + 1;
	for (size_t i = 0; i < life->n; i++)
		if (life->marks[i].kind == D9__LIFE_WAKE)
			lane_of(&d, &life->marks[i]);
	measure(&d);
	put_head(&d, life_y(&d) + LIFE + 40);
	put_axis(&d);
	put_lanes(&d);
	fprintf(out, "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" class=\"idle\"/>\n",
		d.left, life_y(&d), SCALE, LIFE);
	put_sections(&d);
	put_marks(&d);
	if (d.too_close)
		fprintf(out,
			"<text x=\"%.0f\" y=\"%.1f\" class=\"label\">%s more lie too close to others to be drawn: dial9 "
			"events --life</text>\n",
			d.left + SCALE, life_y(&d) + LIFE + 38, d9__units_count(d.too_close).text);
	fputs("</svg>\n", out);
	free(d.name);
	return 0;
}
