/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "analyze/histogram.h"
#include "analyze/texts.h"
#include "base/array.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/info_json.h"
#include "cli/raw_terminal.h"
#include "read/known_text.h"
#include "symbol/symbolizer.h"
#include "text/page.h"
#include "text/text.h"
#include "tool/args.h"
#include "tool/symbol_options.h"
#include "watch/live.h"
#include "watch/open_calls_now.h"
#include "watch/recorders.h"
#include "watch/recover_child.h"

#define WORKERS       1024
#define CALLBACKS_MAX 4096 /* further ones are one */
#define ROWS          20   /* where there is no screen */
#define PIPE_WIDTH    1000 /* of a line that no screen cuts */
#define NAME_MIN      16   /* columns; figures give way for them */
#define SPANS_MAX     8    /* that lie in each other inside a poll */

#define WAY " > "

enum { OPT_ONCE = 256, OPT_NO_SYMBOLS };

static const struct d9__opt opts[] = {
	{ 'i', "interval", "DUR", "time between two tables, and what each covers [1s]" },
	{ 'n', "rows", "N", "at most so many callbacks [what the terminal has, else 20]" },
	{ OPT_ONCE, "once", NULL, "one table, of the last interval" },
	{ 'j', "json", NULL, "one JSON object of the last interval" },
	{ OPT_NO_SYMBOLS, "no-symbols", NULL, "module and offset instead of names of functions" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "top",
	.synopsis = "[OPTIONS] PID",
	.text = "The callbacks of process PID as they run, busiest first.  q ends it; on a pipe\n"
		"it prints one table.  \"bufferevent read > render\": the library's callback, and\n"
		"the program's inside it.\n"
		"Exit status: 0 fine; 1 the process has no recorder, or may not be looked at;\n"
		"2 bad usage.\n",
	.opts = opts,
};

struct options {
	uint64_t interval_ns, rows;
	bool once, json, no_symbols;
};

struct callback {
	const char *name; /* as recorded */
	struct d9__histogram took; /* of calls that ended in this interval, and of |open| so far */
	uint64_t open; /* calls that have not ended */
	uint64_t busy_ns; /* in this interval, of these calls and of those that are open */
	uint64_t queue; /* deepest that one of its calls found */
};

struct worker {
	uint64_t began_ns; /* 0: in no callback */
	uint64_t told_ns;  /* up to here the time of the open callback was counted; 0: not at all */
	size_t callback;

	/* The program's callbacks that the loop library calls from one of its own callbacks. */
	struct {
		uint64_t id, began_ns;
		size_t callback;
	} spans[SPANS_MAX];
	size_t n_spans;
	size_t inner; /* the one that took longest so far; SIZE_MAX: none */
	uint64_t inner_ns;
};

struct top {
	const struct options *options;
	struct d9__recorder_seen *recorder;
	struct d9__symbolizer *symbols;
	struct callback *callbacks;
	size_t n;
	struct d9__texts names; /* callback i has text i; those beyond the last share its place */
	struct worker workers[WORKERS];
	uint64_t oldest_ns, newest_ns; /* of this interval's events */
	uint64_t calls, busy_ns, global_queue;
	bool no_memory;
};

/* ---- counting ---- */

/* "CALLBACK @ PLACE": all places of a callback are one. */
static size_t name_len(struct d9_text loc)
{
	for (size_t i = 0; i + 3 <= loc.len; i++)
		if (!memcmp(loc.data + i, " @ ", 3))
			return i;
	return loc.len;
}

/* Find the callback called |name|, or make it; SIZE_MAX: out of memory. */
static size_t find_named(struct top *top, const char *name, size_t len)
{
	uint32_t number;

	if (d9__texts_number(&top->names, name, len, &number))
		goto fail;
	if (number >= CALLBACKS_MAX) {
		d9__budget_leave_out(D9__KEPT_CALLBACKS, 1);
		number = CALLBACKS_MAX - 1;
	}
	while (number >= top->n) {
		if (!d9__array_grow(top->callbacks, top->n))
			goto fail;
		top->callbacks[top->n] = (struct callback){ .name = top->names.items[top->n] };
		top->n++;
	}
	return number;
fail:
	top->no_memory = true;
	return SIZE_MAX;
}

static size_t find_callback(struct top *top, struct d9_text loc)
{
	return find_named(top, loc.data, name_len(loc));
}

/* "OUTER > INNER": a call counts once, under both names. */
static size_t find_way(struct top *top, size_t outer, size_t inner)
{
	size_t number = SIZE_MAX;
	char *name;
	int len = asprintf(&name, "%s" WAY "%s", top->callbacks[outer].name, top->callbacks[inner].name);

	if (len < 0) {
		top->no_memory = true;
		return SIZE_MAX;
	}
	number = find_named(top, name, (size_t)len);
	free(name);
	return number;
}

static void begin_poll(struct top *top, const struct d9_event *event, struct worker *worker)
{
	uint64_t queue = d9_event_known_u64(event, D9_POLL_START_LOCAL_QUEUE, 0);

	worker->callback = find_callback(top, d9__known_text(event, D9_POLL_START_SPAWN_LOC));
	worker->began_ns = event->timestamp_ns;
	worker->told_ns = 0;
	worker->n_spans = 0;
	worker->inner = SIZE_MAX;
	worker->inner_ns = 0;
	if (worker->callback != SIZE_MAX && queue > top->callbacks[worker->callback].queue)
		top->callbacks[worker->callback].queue = queue;
}

/* Add the time of |worker|'s callback |number| up to |ns| that was not added yet. */
static void add_busy(struct top *top, struct worker *worker, size_t number, uint64_t ns)
{
	uint64_t from_ns = worker->told_ns ? worker->told_ns : worker->began_ns;

	if (ns <= from_ns)
		return;
	top->callbacks[number].busy_ns += ns - from_ns;
	top->busy_ns += ns - from_ns;
	worker->told_ns = ns;
}

static void end_poll(struct top *top, const struct d9_event *event, struct worker *worker)
{
	uint64_t took_ns = event->timestamp_ns - worker->began_ns;

	if (!worker->began_ns || worker->callback == SIZE_MAX || event->timestamp_ns < worker->began_ns)
		return;
	if (worker->inner != SIZE_MAX)
		worker->callback = find_way(top, worker->callback, worker->inner);
	if (worker->callback == SIZE_MAX)
		return;
	top->calls++;
	add_busy(top, worker, worker->callback, event->timestamp_ns);
	worker->began_ns = 0;
	if (d9__histogram_add(&top->callbacks[worker->callback].took, took_ns))
		top->no_memory = true;
}

/* A span that an adapter wrote is called "CALLBACK @ PLACE", too; the program's own have other names. */
static void enter_span(struct top *top, const struct d9_event *event, struct worker *worker)
{
	struct d9_text name = d9__known_text(event, D9_SPAN_SPAN_NAME);
	size_t n = worker->n_spans;

	if (!worker->began_ns || n == SPANS_MAX || name_len(name) == name.len)
		return;
	worker->spans[n].id = d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0);
	worker->spans[n].began_ns = event->timestamp_ns;
	worker->spans[n].callback = find_callback(top, name);
	worker->n_spans += worker->spans[n].callback != SIZE_MAX;
}

static void exit_span(const struct d9_event *event, struct worker *worker)
{
	uint64_t id = d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0), took_ns;

	for (size_t i = worker->n_spans; i--;) {
		if (worker->spans[i].id != id)
			continue;
		took_ns = event->timestamp_ns - worker->spans[i].began_ns;
		if (worker->inner == SIZE_MAX || took_ns > worker->inner_ns) {
			worker->inner = worker->spans[i].callback;
			worker->inner_ns = took_ns;
		}
		worker->n_spans = i;
		return;
	}
}

static void see(void *arg, const struct d9_event *event)
{
	struct top *top = arg;
	/* Polls and spans have it in the same place. */
	uint64_t id = d9_event_known_u64(event, D9_POLL_END_WORKER_ID, WORKERS);
	uint64_t queue;

	switch (event->kind) {
	case D9_EVENT_MODULE:
		if (d9__symbolizer_learn(top->symbols, event))
			top->no_memory = true;
		return;
	case D9_EVENT_POLL_START:
		if (id < WORKERS)
			begin_poll(top, event, &top->workers[id]);
		break;
	case D9_EVENT_POLL_END:
		if (id < WORKERS)
			end_poll(top, event, &top->workers[id]);
		break;
	case D9_EVENT_SPAN_ENTER:
		if (id < WORKERS)
			enter_span(top, event, &top->workers[id]);
		break;
	case D9_EVENT_SPAN_EXIT:
		if (id < WORKERS)
			exit_span(event, &top->workers[id]);
		break;
	case D9_EVENT_QUEUE_SAMPLE:
		queue = d9_event_known_u64(event, D9_QUEUE_SAMPLE_GLOBAL_QUEUE, 0);
		if (queue > top->global_queue)
			top->global_queue = queue;
		break;
	case D9_EVENT_LAST_SIGN:
	case D9_EVENT_STUCK_POLL:
		break;
	default:
		return;
	}
	if (!top->oldest_ns || event->timestamp_ns < top->oldest_ns)
		top->oldest_ns = event->timestamp_ns;
	if (event->timestamp_ns > top->newest_ns)
		top->newest_ns = event->timestamp_ns;
}

static void forget_interval(struct top *top)
{
	for (size_t i = 0; i < top->n; i++) {
		d9__histogram_release(&top->callbacks[i].took);
		top->callbacks[i].took = (struct d9__histogram){ 0 };
		top->callbacks[i].queue = top->callbacks[i].busy_ns = top->callbacks[i].open = 0;
	}
	top->oldest_ns = top->newest_ns; /* the next interval begins where this one ended */
	top->calls = top->busy_ns = top->global_queue = 0;
}

/* ---- calls that are open ---- */

/*
 * Take the calls that began before this program looked from the ring, because the segment does not
 * have them yet.
 */
static void adopt_open_calls(struct top *top)
{
	struct d9__open_calls_now running[D9__RING_OPEN_MAX];
	unsigned n = d9__open_calls_now(top->recorder, NULL, D9__RUNNING_LONG_NS, running);

	for (unsigned i = 0; i < n; i++) {
		const struct d9__ring_open *call = running[i].call;
		struct worker *worker = &top->workers[call->worker % WORKERS];

		if (worker->began_ns || call->around || call->outside)
			continue;
		*worker = (struct worker){ .began_ns = call->since_ns, .inner = SIZE_MAX };
		worker->callback = find_named(top, call->loc, strlen(call->loc));
		if (call->span[0]) {
			worker->spans[0].began_ns = call->since_ns;
			worker->spans[0].callback = find_named(top, call->span, strlen(call->span));
			worker->n_spans = worker->spans[0].callback != SIZE_MAX;
		}
		/* Count this interval alone, not the time before. */
		if (top->newest_ns < top->recorder->look.mono_ns)
			top->newest_ns = top->recorder->look.mono_ns;
		if (!top->oldest_ns)
			top->oldest_ns = top->newest_ns - top->options->interval_ns;
		worker->told_ns = top->oldest_ns > call->since_ns ? top->oldest_ns : 0;
	}
}

/* Open calls count up to the newest sign of life. */
static void count_open_calls(struct top *top)
{
	adopt_open_calls(top);
	for (unsigned i = 0; i < WORKERS; i++) {
		struct worker *worker = &top->workers[i];
		size_t number = worker->callback;

		if (!worker->began_ns || number == SIZE_MAX || worker->began_ns >= top->newest_ns)
			continue;
		if (worker->n_spans)
			number = find_way(top, number, worker->spans[worker->n_spans - 1].callback);
		if (number == SIZE_MAX)
			continue;
		add_busy(top, worker, number, top->newest_ns);
		top->callbacks[number].open++;
		if (d9__histogram_add(&top->callbacks[number].took, top->newest_ns - worker->began_ns))
			top->no_memory = true;
	}
}

/* ---- printing ---- */

static const struct top *sorted; /* by qsort(), which passes nothing along */

static int by_busy(const void *a, const void *b)
{
	const struct callback *x = &sorted->callbacks[*(const size_t *)a];
	const struct callback *y = &sorted->callbacks[*(const size_t *)b];

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns < y->busy_ns ? 1 : -1;
	return (x->took.count < y->took.count) - (x->took.count > y->took.count);
}

/* One callback's name for people. */
static const char *plain_name(struct top *top, const char *name, size_t len)
{
	return d9__symbolizer_function(top->symbols, name, len, D9__ENTRY);
}

/* "bufferevent read > render", in new memory; NULL: out of memory. */
static char *shown_name(struct top *top, const char *name)
{
	const char *inner = strstr(name, WAY), *known;
	size_t outer_len = inner ? (size_t)(inner - name) : strlen(name);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	known = plain_name(top, name, outer_len);
	if (!name[0])
		fputs("(unknown)", out);
	else if (known)
		fputs(known, out);
	else
		fwrite(name, 1, outer_len, out);
	if (inner) {
		inner += strlen(WAY);
		known = plain_name(top, inner, strlen(inner));
		fprintf(out, WAY "%s", known ? known : inner);
	}
	return fclose(out) ? (free(text), NULL) : text;
}

/*
 * Return the seconds between the interval's first and last event; the requested interval if it has
 * none.
 */
static double span_s(const struct top *top)
{
	uint64_t ns = top->newest_ns - top->oldest_ns;

	return (double)(ns ? ns : top->options->interval_ns) / (double)D9__SECOND_NS;
}

/* ---- the table ---- */

/*
 * The figures before a callback's name.  On a narrow screen those with the lowest |order| are left
 * out first.
 */
enum figure {
	CALLS_S,
	BUSY,
	P50,
	P99,
	LONGEST,
	QUEUE,
	FIGURES
};

static const struct {
	const char *title;
	int width, order;
} figures[FIGURES] = {
	[CALLS_S] = { "CALLS/S", 9, 4 }, [BUSY] = { "BUSY %", 6, 6 },  [P50] = { "P50", 9, 1 },
	[P99] = { "P99", 9, 3 },	 [LONGEST] = { "MAX", 9, 5 }, [QUEUE] = { "QUEUE", 6, 2 },
};

/* The columns and lines that fit on the screen. */
struct layout {
	bool has[FIGURES];
	size_t name; /* columns of the callback's name */
	size_t width;
	size_t lines; /* of the screen */
	const char *end; /* the bytes that end a line, before '\n' */
};

static void lay_out(struct layout *layout)
{
	size_t used = 1;

	for (unsigned i = 0; i < FIGURES; i++) {
		layout->has[i] = true;
		used += (size_t)figures[i].width + 1;
	}
	for (int order = 1; order < FIGURES && layout->width < used + 1 + NAME_MIN; order++)
		for (unsigned i = 0; i < FIGURES; i++)
			if (figures[i].order == order) {
				layout->has[i] = false;
				used -= (size_t)figures[i].width + 1;
			}
	layout->name = layout->width > used + NAME_MIN ? layout->width - used : NAME_MIN;
}

static void put_figure(struct d9__text_out *out, const struct top *top, const struct callback *c,
		       enum figure figure)
{
	char text[D9__DURATION_LEN + 16];
	double seconds = span_s(top);

	switch (figure) {
	case CALLS_S:
		snprintf(text, sizeof(text), "%.1f", (double)(c->took.count - c->open) / seconds);
		break;
	case BUSY:
		snprintf(text, sizeof(text), "%.1f",
			 (double)c->busy_ns / (double)D9__SECOND_NS / seconds * 100);
		break;
	case P50:
		d9__duration_text(d9__histogram_quantile(&c->took, 0.5), text);
		break;
	case P99:
		d9__duration_text(d9__histogram_quantile(&c->took, 0.99), text);
		break;
	case LONGEST:
		d9__duration_text(c->took.max, text);
		break;
	default:
		snprintf(text, sizeof(text), "%" PRIu64, c->queue);
	}
	d9__text_printf(out, "%*s ", figures[figure].width, text);
}

/* |name| in |layout->name| columns: the library's callback gives way to the program's. */
static void put_name(struct d9__text_out *out, const struct layout *layout, const char *name)
{
	const char *inner = strstr(name, WAY);
	struct d9__page page = { .width = (unsigned)layout->width };
	char *fitting;

	if (inner && strlen(name) > layout->name)
		name = inner + strlen(WAY);
	fitting = d9__page_shorten(&page, name, 0, layout->name);
	if (fitting)
		d9__text_escaped(out, fitting, strlen(fitting));
	free(fitting);
}

static void put_row(struct d9__text_out *out, struct top *top, const struct callback *c,
		    const struct layout *layout)
{
	char *name = shown_name(top, c->name);

	for (unsigned i = 0; i < FIGURES; i++)
		if (layout->has[i])
			put_figure(out, top, c, i);
	d9__text_char(out, ' ');
	if (name)
		put_name(out, layout, name);
	free(name);
}

/* Put a line, cut at the screen's width. */
static void put_line(struct d9__text_out *out, const struct layout *layout, const char *text)
{
	struct d9__page page = { .width = (unsigned)layout->width };
	char *fitting = d9__page_shorten(&page, text, 0, layout->width);

	if (fitting)
		d9__text_escaped(out, fitting, strlen(fitting));
	free(fitting);
	d9__text_string(out, layout->end);
	d9__text_char(out, '\n');
}

/* Put the recorder and the loops, in as few lines as the width takes.  Returns their number. */
static size_t put_head(struct d9__text_out *out, struct top *top, const struct layout *layout)
{
	char parts[5][160], line[512] = "", whole[16] = "";
	unsigned loops = top->recorder->look.n_workers;
	size_t lines = 1;

	snprintf(parts[0], sizeof(parts[0]), "%s (%d): %s", d9__recorder_program(top->recorder),
		 (int)top->recorder->view.pid, d9__recorder_state_word(top->recorder));
	snprintf(parts[1], sizeof(parts[1]), "%.0f calls a second", (double)top->calls / span_s(top));
	if (loops > 1)
		snprintf(whole, sizeof(whole), " of %u", 100 * loops);
	snprintf(parts[2], sizeof(parts[2]), "loop%s %.1f%s %% busy", loops > 1 ? "s" : "",
		 (double)top->busy_ns / (double)D9__SECOND_NS / span_s(top) * 100, whole);
	snprintf(parts[3], sizeof(parts[3]), "queue %" PRIu64, top->global_queue);
	snprintf(parts[4], sizeof(parts[4]), "%" PRIu64 " lost", top->recorder->lost);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t used = strlen(line);

		if (used && used + 2 + strlen(parts[i]) > layout->width) {
			put_line(out, layout, line);
			lines++;
			line[used = 0] = '\0';
		}
		snprintf(line + used, sizeof(line) - used, "%s%s", used ? ", " : "", parts[i]);
	}
	put_line(out, layout, line);
	return lines;
}

/* Callbacks that have been running for long; how many lines. */
static size_t put_running(struct d9__text_out *out, struct top *top, const struct layout *layout)
{
	struct d9__open_calls_now running[D9__RING_OPEN_MAX];
	unsigned n = d9__open_calls_now(top->recorder, top->symbols, D9__RUNNING_LONG_NS, running);
	char text[D9__RUNNING_LEN], line[D9__RUNNING_LEN + 16];

	for (unsigned i = 0; i < n; i++) {
		d9__open_calls_now_text(&running[i], text);
		snprintf(line, sizeof(line), "running now: %s", text);
		put_line(out, layout, line);
	}
	return n;
}

static bool is_shown(const struct callback *callback)
{
	return callback->took.count || callback->busy_ns;
}

/*
 * Write the line about files or rings that were left out because of the memory budget.  Returns the
 * number of lines.
 */
static size_t put_left_out(struct d9__text_out *out, const struct layout *layout)
{
	char *text = d9__budget_left_out(), line[512];

	if (!text)
		return 0;
	snprintf(line, sizeof(line), "left out: %s", text);
	free(text);
	put_line(out, layout, line);
	return 1;
}

static void put_titles(struct d9__text_out *out, const struct layout *layout)
{
	for (unsigned i = 0; i < FIGURES; i++)
		if (layout->has[i])
			d9__text_printf(out, "%*s ", figures[i].width, figures[i].title);
	d9__text_printf(out, " CALLBACK%s\n", layout->end);
}

static void put_table(struct d9__text_out *out, struct top *top, const size_t *order, size_t rows,
		      struct layout *layout)
{
	size_t used;

	lay_out(layout);
	used = put_head(out, top, layout) + put_left_out(out, layout) + put_running(out, top, layout) +
	       2; /* the titles, and the cursor */
	if (!top->options->rows && layout->lines)
		rows = layout->lines > used ? layout->lines - used : 1;
	put_titles(out, layout);
	for (size_t i = 0; i < top->n && i < rows && is_shown(&top->callbacks[order[i]]); i++) {
		put_row(out, top, &top->callbacks[order[i]], layout);
		d9__text_printf(out, "%s\n", layout->end);
	}
}

static void put_json(struct d9__text_out *out, struct top *top, const size_t *order, size_t rows)
{
	d9__text_printf(out, "{\"pid\":%d,\"state\":\"%s\",\"seconds\":", (int)top->recorder->view.pid,
			d9__recorder_state_word(top->recorder));
	d9__text_f64(out, span_s(top));
	d9__text_printf(out, ",\"calls\":%" PRIu64 ",\"busy_ns\":%" PRIu64 ",\"global_queue\":%" PRIu64
			     ",\"lost\":%" PRIu64 ",\"callbacks\":[",
			top->calls, top->busy_ns, top->global_queue, top->recorder->lost);
	for (size_t i = 0; i < top->n && i < rows && is_shown(&top->callbacks[order[i]]); i++) {
		const struct callback *c = &top->callbacks[order[i]];
		char *name = shown_name(top, c->name);

		d9__text_string(out, i ? ",{\"callback\":" : "{\"callback\":");
		d9__text_json(out, name ? name : "", name ? strlen(name) : 0);
		free(name);
		d9__text_printf(out, ",\"calls\":%" PRIu64 ",\"busy_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64
				     ",\"max_ns\":%" PRIu64 ",\"queue\":%" PRIu64 "}",
				c->took.count - c->open, c->busy_ns, d9__histogram_quantile(&c->took, 0.99),
				c->took.max, c->queue);
	}
	d9__text_string(out, "],\"left_out\":");
	d9__left_out_json(out);
	d9__text_string(out, "}\n");
}

/* 0 or an exit status. */
static int show(struct top *top, bool screen)
{
	static struct d9__text_out out;
	size_t *order, rows = ROWS;
	struct layout layout = { .width = PIPE_WIDTH, .end = screen ? "\033[K" : "" };
	struct winsize size = { 0 };
	int status;

	count_open_calls(top);
	order = calloc(top->n + 1, sizeof(*order));
	if (!order || top->no_memory) {
		free(order);
		return d9__cmd_fail("top", "out of memory");
	}
	for (size_t i = 0; i < top->n; i++)
		order[i] = i;
	sorted = top;
	qsort(order, top->n, sizeof(*order), by_busy);
	if (screen && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col) {
		layout.lines = size.ws_row;
		layout.width = size.ws_col;
	}
	if (top->options->rows)
		rows = (size_t)top->options->rows;
	d9__text_init(&out, STDOUT_FILENO);
	if (screen)
		d9__text_string(&out, "\033[H");
	if (top->options->json)
		put_json(&out, top, order, rows);
	else
		put_table(&out, top, order, rows, &layout);
	if (screen)
		d9__text_string(&out, "\033[J");
	free(order);
	status = d9__text_finish(&out, "top");
	return status;
}

/* ---- the command ---- */

static int look(struct top *top)
{
	struct d9__recorder_seen *recorder = top->recorder;

	recorder->owner = d9__ring_view_owner(&recorder->view);
	if (recorder->owner == D9__OWNER_DEAD)
		return -ESRCH;
	recorder->problems = 0;
	if (recorder->owner == D9__OWNER_SUSPENDED)
		recorder->problems = D9__PROBLEM_SUSPENDED;
	recorder->lost = 0;
	if (d9__ring_view_look(&recorder->view, &recorder->look))
		return -ESRCH;
	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
		recorder->lost += recorder->look.lost[cause];
	return 0;
}

static int loop(struct top *top, struct d9__live *live)
{
	bool screen = !top->options->once && !top->options->json && isatty(STDOUT_FILENO) == 1;
	uint64_t shown_ns = 0;
	int status = 0, err = look(top);
	bool quit = false;

	if (screen) {
		d9__raw_terminal_begin();
		if (write(STDOUT_FILENO, "\033[2J", 4) < 0)
			return D9__EXIT_USAGE;
	}
	while (!err && !status && !quit) {
		err = d9__live_read(live, top->recorder->look.flight);
		if (err)
			break;
		/* Segments grow once a second: until then the table before holds. */
		if (!screen || top->calls || d9__mono_ns() - shown_ns > 2 * D9__SECOND_NS) {
			status = show(top, screen);
			forget_interval(top);
			shown_ns = d9__mono_ns();
		}
		if (!screen || status)
			break;
		quit = d9__raw_terminal_quits(top->options->interval_ns);
		err = quit ? 0 : look(top);
	}
	d9__raw_terminal_end();
	if (err == -ESRCH || (err && look(top)))
		return screen ? 0 : (d9__cmd_fail("top", "the process has ended"), D9__EXIT_FINDING);
	return err ? d9__cmd_fail("top", "%s", strerror(-err)) : status;
}

/*
 * Let root read another user's ring, and the files that it names, with that user's rights.  0 or
 * -errno.
 */
static int give_up_rights(const struct d9__ring_view *view)
{
	struct d9__child_user user = d9__recover_child_user_of(view);

	return geteuid() || !user.uid ? 0 : d9__rights_give_up(&user);
}

static int run(const struct options *options, pid_t pid)
{
	struct d9__recorders recorders;
	struct top *top = calloc(1, sizeof(*top));
	struct d9__live *live = calloc(1, sizeof(*live));
	int err = top && live ? d9__recorders_find(&recorders, "top", pid, NULL) : -ENOMEM;
	int status = D9__EXIT_FINDING;

	if (!err && recorders.n)
		err = give_up_rights(&recorders.list[0].view);
	if (!err && recorders.n) {
		/*
		 * Look back one second further than the interval, because events reach the segment
		 * up to a second late.
		 */
		uint64_t back_ns = options->interval_ns + D9__SECOND_NS, ns = d9__mono_ns();

		/* Start without a limit, because a running process writes an unknown amount. */
		d9__budget_start(0);
		top->options = options;
		top->recorder = &recorders.list[0];
		if (!options->no_symbols)
			err = d9__symbol_open(&top->symbols);
		d9__live_begin(live, &top->recorder->view, ns > back_ns ? ns - back_ns : 0, see, top);
		if (!err)
			status = loop(top, live);
		d9__live_end(live);
		d9__symbolizer_close(top->symbols);
		for (size_t i = 0; i < top->n; i++)
			d9__histogram_release(&top->callbacks[i].took);
		free(top->callbacks);
		d9__texts_release(&top->names);
	}
	if (top && live)
		d9__recorders_release(&recorders);
	free(top);
	free(live);
	return err ? d9__cmd_fail("top", "%s", strerror(-err)) : status;
}

int d9__cmd_top(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { .interval_ns = D9__SECOND_NS };
	uint64_t pid;
	int key;

	while ((key = d9__args_next(&args)) > 0) {
		if (key == 'i' && !d9__args_duration_ns(&args, &options.interval_ns))
			return D9__EXIT_USAGE;
		if (key == 'n' && !d9__args_u64(&args, &options.rows))
			return D9__EXIT_USAGE;
		options.once |= key == OPT_ONCE;
		options.json |= key == 'j';
		options.no_symbols |= key == OPT_NO_SYMBOLS;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (args.first + 1 != argc)
		return d9__cmd_fail("top", "which PID? see dial9 top --help");
	if (!d9__parse_u64(argv[args.first], &pid) || !pid || pid > INT_MAX)
		return d9__cmd_fail("top", "'%s' is no process id", argv[args.first]);
	if (options.interval_ns < 10000000 || options.interval_ns > 3600 * D9__SECOND_NS)
		return d9__cmd_fail("top", "--interval wants 10ms to 1h");
	return run(&options, (pid_t)pid);
}
