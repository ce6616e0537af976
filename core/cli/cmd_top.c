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
#include "base/array.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/raw_terminal.h"
#include "findings/owners.h"
#include "report/report.h"
#include "symbol/symbolizer.h"
#include "text/json.h"
#include "text/page.h"
#include "text/text.h"
#include "tool/args.h"
#include "tool/symbol_options.h"
#include "watch/live_analysis.h"
#include "watch/open_calls_now.h"
#include "watch/recorders.h"
#include "watch/recover_child.h"

#define ROWS	   20	/* where there is no screen */
#define PIPE_WIDTH 1000 /* of a line that no screen cuts */
#define NAME_MIN   16	/* columns; figures give way for them */
#define NAME_LEN   512
#define LOOPS_MAX  3 /* that have a line */

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

/* The calls of a callback that ended in this interval, and of those that go on. */
struct row {
	struct d9__histogram took;
	uint64_t open;
	uint64_t busy_ns; /* on all loops, by the interval's sums */
	uint64_t queue;	  /* deepest that one of its calls found */
};

struct top {
	const struct options *options;
	struct d9__recorder_seen *recorder;
	struct d9__symbolizer *symbols;
	struct d9__live_analysis live;
	struct d9__owners *owners; /* of the interval */
	struct row *rows;	   /* by number of the callback */
	size_t n;
	uint64_t calls, busy_ns, global_queue;
	bool no_memory;
};

/* ---- counting ---- */

/* The row of |callback|; NULL: out of memory. */
static struct row *row_of(struct top *top, const struct d9__callback *callback)
{
	if (d9__array_reach(top->rows, &top->n, callback->number))
		return &top->rows[callback->number];
	top->no_memory = true;
	return NULL;
}

static void add_call(struct top *top, const struct d9__callback *callback, uint64_t ns)
{
	struct row *row = row_of(top, callback);

	if (row && d9__histogram_add(&row->took, ns))
		top->no_memory = true;
}

/* Without the program's functions that the library called inside it: they are calls of their own.
 */
static void on_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	struct top *top = context;
	uint64_t ns = piece->end_ns - piece->start_ns;

	(void)worker;
	top->calls++;
	add_call(top, piece->task->callback, ns > piece->users.ns ? ns - piece->users.ns : 0);
}

static void on_inner_call(void *context, const struct d9__call_end *call)
{
	add_call(context, call->callback, call->ns);
}

static void note_queue(struct top *top, const struct d9_event *event)
{
	uint64_t id = d9_event_known_u64(event, D9_POLL_START_WORKER_ID, 0);
	uint64_t queue = d9_event_known_u64(event, D9_POLL_START_LOCAL_QUEUE, 0);
	const struct d9__worker *worker = d9__table_find(&top->live.analysis.timeline.by_id, id);
	struct row *row =
		worker && worker->piece.task ? row_of(top, worker->piece.task->callback) : NULL;

	if (row && queue > row->queue)
		row->queue = queue;
}

static int on_event(void *context, const struct d9_event *event)
{
	struct top *top = context;
	uint64_t queue;

	switch (event->kind) {
	case D9_EVENT_MODULE:
		return d9__symbolizer_learn(top->symbols, event);
	case D9_EVENT_POLL_START:
		note_queue(top, event);
		break;
	case D9_EVENT_QUEUE_SAMPLE:
		queue = d9_event_known_u64(event, D9_QUEUE_SAMPLE_GLOBAL_QUEUE, 0);
		if (queue > top->global_queue)
			top->global_queue = queue;
		break;
	default:
		break;
	}
	return 0;
}

static void forget_interval(struct top *top)
{
	for (size_t i = 0; i < top->n; i++) {
		d9__histogram_release(&top->rows[i].took);
		top->rows[i] = (struct row) { .open = 0 };
	}
	free(top->owners);
	top->owners = NULL;
	top->calls = top->busy_ns = top->global_queue = top->live.events = 0;
}

/* Long calls that are open count up to the end of the interval. */
static void count_open_calls(struct top *top)
{
	const struct d9__timeline *timeline = &top->live.analysis.timeline;

	for (size_t i = 0; i < timeline->n; i++) {
		const struct d9__piece *piece = &timeline->items[i]->piece;
		const struct d9__callback *callback;
		uint64_t since_ns;
		struct row *row;

		if (!piece->open)
			continue;
		callback = piece->users.open ? piece->users.callback : piece->task->callback;
		since_ns = piece->users.open ? piece->users.since_ns : piece->start_ns;
		row = row_of(top, callback);
		if (!row || top->live.until_ns < since_ns + D9__LONG_ROUND_NS)
			continue;
		row->open++;
		add_call(top, callback, top->live.until_ns - since_ns);
	}
}

/* The interval ends: its sums, its owners, and names for them.  0 or -ENOMEM. */
static int end_interval(struct top *top)
{
	const struct d9__namer namer = d9__symbol_namer(top->symbols);
	const struct d9__sums *sums = &top->live.interval;
	int err = d9__live_analysis_cut(&top->live);

	if (!err && top->symbols)
		err = d9__analysis_name_callbacks(&top->live.analysis, &namer);
	if (!err)
		top->owners = d9__owners_make(sums);
	if (!top->owners)
		return -ENOMEM;
	for (size_t i = 0; i < sums->n_calls; i++) {
		struct row *row = row_of(top, sums->calls[i].callback);

		if (row)
			row->busy_ns += sums->calls[i].on.ns;
		top->busy_ns += sums->calls[i].on.ns;
	}
	count_open_calls(top);
	return top->no_memory ? -ENOMEM : 0;
}

/* ---- printing ---- */

static const struct top *sorted; /* by qsort(), which passes nothing along */

static int by_busy(const void *a, const void *b)
{
	const struct row *x = &sorted->rows[*(const size_t *)a];
	const struct row *y = &sorted->rows[*(const size_t *)b];

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns < y->busy_ns ? 1 : -1;
	return (x->took.count < y->took.count) - (x->took.count > y->took.count);
}

/* The seconds of the interval. */
static double span_s(const struct top *top)
{
	uint64_t ns = top->live.until_ns - top->live.from_ns;

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

static void put_figure(struct d9__text_out *out, const struct top *top, const struct row *c,
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

static void put_row(struct d9__text_out *out, struct top *top, size_t number,
		    const struct layout *layout)
{
	char way[NAME_LEN];

	for (unsigned i = 0; i < FIGURES; i++)
		if (layout->has[i])
			put_figure(out, top, &top->rows[number], i);
	d9__text_char(out, ' ');
	put_name(out, layout,
		 d9__callback_way(top->live.analysis.callbacks.items[number], way, sizeof(way)));
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

/* Put the recorder, in as few lines as the width takes.  Returns their number. */
static size_t put_head(struct d9__text_out *out, struct top *top, const struct layout *layout)
{
	char parts[4][160], line[512] = "";
	size_t lines = 1;

	snprintf(parts[0], sizeof(parts[0]), "%s (%d): %s", d9__recorder_program(top->recorder),
		 (int)top->recorder->view.pid, d9__recorder_state_word(top->recorder));
	snprintf(parts[1], sizeof(parts[1]), "%.0f calls a second", (double)top->calls / span_s(top));
	snprintf(parts[2], sizeof(parts[2]), "queue %" PRIu64, top->global_queue);
	snprintf(parts[3], sizeof(parts[3]), "%" PRIu64 " lost", top->recorder->lost);
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

static double awake_share(const struct top *top, size_t loop)
{
	return d9__owners_share(&top->owners[loop], top->owners[loop].awake_ns);
}

/* The loop that was awake most, of those that are not among the |n| of |before|; SIZE_MAX: none. */
static size_t next_loop(const struct top *top, const size_t *before, size_t n)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < top->live.interval.n_loops; i++) {
		bool told = !top->owners[i].left_ns;

		for (size_t j = 0; j < n; j++)
			told |= before[j] == i;
		if (!told && (best == SIZE_MAX || awake_share(top, i) > awake_share(top, best)))
			best = i;
	}
	return best;
}

/* Put the account of each loop, as the report does; how many lines. */
static size_t put_loops(struct d9__text_out *out, const struct top *top,
			const struct layout *layout)
{
	const struct d9__analysis *a = &top->live.analysis;
	size_t numbers[LOOPS_MAX], n = 0;

	for (; n < LOOPS_MAX; n++) {
		const struct d9__owners *owners;
		char name[128], *line = NULL;
		size_t size;
		FILE *text;

		numbers[n] = next_loop(top, numbers, n);
		text = numbers[n] == SIZE_MAX ? NULL : open_memstream(&line, &size);
		if (!text)
			break;
		owners = &top->owners[numbers[n]];
		d9__report_loop_name(a, a->timeline.items[numbers[n]], name, sizeof(name));
		fprintf(text, "%s  ", name);
		d9__report_put_awake(text, a, owners, true);
		d9__report_put_taken(text, owners);
		if (!fclose(text))
			put_line(out, layout, line);
		free(line);
	}
	return n;
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

static bool is_shown(const struct row *row)
{
	return row->took.count || row->busy_ns;
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
	used = put_head(out, top, layout) + put_left_out(out, layout) +
	       put_loops(out, top, layout) + put_running(out, top, layout) +
	       2; /* the titles, and the cursor */
	if (!top->options->rows && layout->lines)
		rows = layout->lines > used ? layout->lines - used : 1;
	put_titles(out, layout);
	for (size_t i = 0; i < top->n && i < rows && is_shown(&top->rows[order[i]]); i++) {
		put_row(out, top, order[i], layout);
		d9__text_printf(out, "%s\n", layout->end);
	}
}

static void json_loops(struct d9__json *json, const struct top *top)
{
	const struct d9__analysis *a = &top->live.analysis;

	d9__json_open(json, "loops", '[');
	for (size_t i = 0; i < top->live.interval.n_loops; i++) {
		char name[128];

		if (!top->owners[i].left_ns)
			continue;
		d9__report_loop_name(a, a->timeline.items[i], name, sizeof(name));
		d9__json_open(json, NULL, '{');
		d9__json_u64(json, "id", a->timeline.items[i]->id);
		d9__json_string(json, "name", name);
		d9__report_json_owners(json, &top->owners[i]);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
}

static void json_callbacks(struct d9__json *json, const struct top *top, const size_t *order,
			   size_t rows)
{
	d9__json_open(json, "callbacks", '[');
	for (size_t i = 0; i < top->n && i < rows && is_shown(&top->rows[order[i]]); i++) {
		const struct row *c = &top->rows[order[i]];
		char way[NAME_LEN];

		d9__json_open(json, NULL, '{');
		d9__json_string(json, "callback",
				d9__callback_way(top->live.analysis.callbacks.items[order[i]], way,
						 sizeof(way)));
		d9__json_u64(json, "calls", c->took.count - c->open);
		d9__json_u64(json, "busy_ns", c->busy_ns);
		d9__json_u64(json, "p99_ns", d9__histogram_quantile(&c->took, 0.99));
		d9__json_u64(json, "max_ns", c->took.max);
		d9__json_u64(json, "queue", c->queue);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
}

static void put_json(struct d9__text_out *out, const struct top *top, const size_t *order,
		     size_t rows)
{
	char *text = NULL;
	size_t size = 0;
	struct d9__json json = { .out = open_memstream(&text, &size) };

	if (!json.out)
		return;
	d9__json_open(&json, NULL, '{');
	d9__json_i64(&json, "pid", top->recorder->view.pid);
	d9__json_string(&json, "state", d9__recorder_state_word(top->recorder));
	d9__json_double(&json, "seconds", span_s(top));
	d9__json_u64(&json, "from_ns", top->live.from_ns);
	d9__json_u64(&json, "until_ns", top->live.until_ns);
	d9__json_u64(&json, "calls", top->calls);
	d9__json_u64(&json, "busy_ns", top->busy_ns);
	d9__json_u64(&json, "global_queue", top->global_queue);
	d9__json_u64(&json, "lost", top->recorder->lost);
	json_loops(&json, top);
	json_callbacks(&json, top, order, rows);
	d9__budget_json(&json);
	d9__json_close(&json, '}');
	if (!fclose(json.out))
		d9__text_printf(out, "%s\n", text);
	free(text);
}

/* 0 or an exit status. */
static int show(struct top *top, bool screen)
{
	static struct d9__text_out out;
	size_t *order, rows = ROWS;
	struct layout layout = { .width = PIPE_WIDTH, .end = screen ? "\033[K" : "" };
	struct winsize size = { 0 };
	int status;

	order = end_interval(top) ? NULL : calloc(top->n + 1, sizeof(*order));
	if (!order) {
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

static int loop(struct top *top)
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
		err = d9__live_analysis_read(&top->live);
		if (err)
			break;
		/* Segments grow once a second: until then the table before holds. */
		if (!screen || top->live.events || d9__mono_ns() - shown_ns > 2 * D9__SECOND_NS) {
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

/* Begin with the first look.  0 or -errno. */
static int begin(struct top *top)
{
	/*
	 * Look back one second further than the interval, because events reach the segment
	 * up to a second late.
	 */
	uint64_t back_ns = top->options->interval_ns + D9__SECOND_NS, ns = d9__mono_ns();
	int err = look(top);

	if (err)
		return err;
	top->live.analysis.on_piece = on_piece;
	top->live.analysis.on_piece_context = top;
	top->live.analysis.spans.on_call = (struct d9__call_hook) { on_inner_call, top };
	top->live.on_event = on_event;
	top->live.context = top;
	return d9__live_analysis_begin(&top->live, top->recorder, ns > back_ns ? ns - back_ns : 0);
}

static void release(struct top *top)
{
	d9__live_analysis_end(&top->live);
	d9__symbolizer_close(top->symbols);
	forget_interval(top);
	free(top->rows);
}

static int run(const struct options *options, pid_t pid)
{
	struct d9__recorders recorders;
	struct top *top = calloc(1, sizeof(*top));
	int err = top ? d9__recorders_find(&recorders, "top", pid, NULL) : -ENOMEM;
	int status = D9__EXIT_FINDING;

	if (!err && recorders.n)
		err = give_up_rights(&recorders.list[0].view);
	if (!err && recorders.n) {
		/* Start without a limit, because a running process writes an unknown amount. */
		d9__budget_start(0);
		top->options = options;
		top->recorder = &recorders.list[0];
		if (!options->no_symbols)
			err = d9__symbol_open(&top->symbols);
		if (!err)
			err = begin(top);
		if (!err || err == -ESRCH) {
			status = loop(top);
			err = 0;
		}
		release(top);
	}
	if (top)
		d9__recorders_release(&recorders);
	free(top);
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
