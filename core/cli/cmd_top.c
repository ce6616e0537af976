/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "analyze/histogram.h"
#include "analyze/table.h"
#include "cli/args.h"
#include "cli/cmd.h"
#include "cli/elf_symbols.h"
#include "cli/live.h"
#include "cli/recorders.h"
#include "cli/text.h"

#define SECOND_NS     UINT64_C(1000000000)
#define WORKERS       256
#define CALLBACKS_MAX 4096 /* further ones are one */
#define FIXED_COLUMNS 47   /* before the callback's name */

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
	.text = "The callbacks of process PID as they run, busiest first.  Ends with Ctrl-C; on a pipe it\n"
		"prints one table.\n"
		"Exit status: 0 fine; 1 the process has no recorder, or may not be looked at; 2 bad usage.\n",
	.opts = opts,
};

struct options {
	uint64_t interval_ns, rows;
	bool once, json, no_symbols;
};

struct callback {
	const char *name; /* as recorded */
	struct d9__histogram took; /* in this interval */
	uint64_t queue; /* deepest that one of its calls found */
};

struct worker {
	uint64_t began_ns; /* 0: in no callback */
	size_t callback;
};

struct top {
	const struct options *options;
	struct d9__recorder_seen *recorder;
	struct d9__symbols *symbols;
	struct callback *callbacks;
	size_t n, capacity;
	struct d9__texts names; /* callback i has text i; those beyond the last share its place */
	struct worker workers[WORKERS];
	uint64_t oldest_ns, newest_ns; /* of this interval's events */
	uint64_t calls, busy_ns, global_queue;
	bool no_memory;
};

/* ---- counting ---- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

static struct d9_text text_of(const struct d9_event *event, unsigned k)
{
	const struct d9_value *value = d9_event_known(event, k);

	if (!value || !value->present || value->unresolved)
		return (struct d9_text){ "", 0 };
	return value->u.text;
}

/* "CALLBACK @ PLACE": all places of a callback are one. */
static size_t name_len(struct d9_text loc)
{
	for (size_t i = 0; i + 3 <= loc.len; i++)
		if (!memcmp(loc.data + i, " @ ", 3))
			return i;
	return loc.len;
}

static size_t find_callback(struct top *top, struct d9_text loc)
{
	struct callback *grown;
	uint32_t number;

	if (d9__texts_number(&top->names, loc.data, name_len(loc), &number))
		goto fail;
	if (number >= CALLBACKS_MAX)
		number = CALLBACKS_MAX - 1;
	if (number < top->n)
		return number;
	if (top->n == top->capacity) {
		grown = reallocarray(top->callbacks, top->capacity * 2 + 64, sizeof(*grown));
		if (!grown)
			goto fail;
		top->callbacks = grown;
		top->capacity = top->capacity * 2 + 64;
	}
	top->callbacks[top->n] = (struct callback){ .name = top->names.items[number] };
	return top->n++;
fail:
	top->no_memory = true;
	return SIZE_MAX;
}

static void begin_poll(struct top *top, const struct d9_event *event, struct worker *worker)
{
	uint64_t queue = d9_event_known_u64(event, D9_POLL_START_LOCAL_QUEUE, 0);

	worker->callback = find_callback(top, text_of(event, D9_POLL_START_SPAWN_LOC));
	worker->began_ns = event->timestamp_ns;
	if (worker->callback != SIZE_MAX && queue > top->callbacks[worker->callback].queue)
		top->callbacks[worker->callback].queue = queue;
}

static void end_poll(struct top *top, const struct d9_event *event, struct worker *worker)
{
	uint64_t took_ns = event->timestamp_ns - worker->began_ns;

	if (!worker->began_ns || worker->callback == SIZE_MAX)
		return;
	worker->began_ns = 0;
	top->calls++;
	top->busy_ns += took_ns;
	if (d9__histogram_add(&top->callbacks[worker->callback].took, took_ns))
		top->no_memory = true;
}

static void add_module(struct top *top, const struct d9_event *event)
{
	struct d9_text path = text_of(event, 3), build_id = text_of(event, 4);
	struct d9__module module = { .base = d9_event_known_u64(event, 0, 0),
				     .start = d9_event_known_u64(event, 1, 0),
				     .size = d9_event_known_u64(event, 2, 0),
				     .path = path.data,
				     .build_id = build_id.data,
				     .path_len = path.len,
				     .build_id_len = build_id.len };

	if (top->symbols && d9__symbols_module_add(top->symbols, &module))
		top->no_memory = true;
}

static void see(void *arg, const struct d9_event *event)
{
	struct top *top = arg;
	/* Poll events have it in the same place. */
	uint64_t id = d9_event_known_u64(event, D9_POLL_END_WORKER_ID, WORKERS);
	uint64_t queue;

	switch (event->kind) {
	case D9_EVENT_MODULE:
		add_module(top, event);
		return;
	case D9_EVENT_POLL_START:
		if (id < WORKERS)
			begin_poll(top, event, &top->workers[id]);
		break;
	case D9_EVENT_POLL_END:
		if (id < WORKERS)
			end_poll(top, event, &top->workers[id]);
		break;
	case D9_EVENT_QUEUE_SAMPLE:
		queue = d9_event_known_u64(event, D9_QUEUE_SAMPLE_GLOBAL_QUEUE, 0);
		if (queue > top->global_queue)
			top->global_queue = queue;
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
		top->callbacks[i].queue = 0;
	}
	top->oldest_ns = top->newest_ns; /* the next interval begins where this one ended */
	top->calls = top->busy_ns = top->global_queue = 0;
}

/* ---- printing ---- */

static const struct top *sorted; /* by qsort(), which passes nothing along */

static int by_busy(const void *a, const void *b)
{
	const struct d9__histogram *x = &sorted->callbacks[*(const size_t *)a].took;
	const struct d9__histogram *y = &sorted->callbacks[*(const size_t *)b].took;

	if (x->sum != y->sum)
		return x->sum < y->sum ? 1 : -1;
	return (x->count < y->count) - (x->count > y->count);
}

static const char *shown_name(struct top *top, const char *name)
{
	struct d9__symbol symbol;

	if (top->symbols && d9__symbols_name(top->symbols, name, strlen(name), false, &symbol))
		return symbol.function;
	return name[0] ? name : "(unknown)";
}

/* Seconds that the events of the interval span; what was asked for if there are none. */
static double span_s(const struct top *top)
{
	uint64_t ns = top->newest_ns - top->oldest_ns;

	return (double)(ns ? ns : top->options->interval_ns) / (double)SECOND_NS;
}

static void put_row(struct d9__text_out *out, struct top *top, const struct callback *c, size_t width)
{
	char p99[D9__DURATION_LEN], max[D9__DURATION_LEN];
	const char *name = shown_name(top, c->name);
	size_t len = strlen(name);

	d9__text_printf(out, "%9.1f %6.1f %9s %9s %6" PRIu64 "  ", (double)c->took.count / span_s(top),
			(double)c->took.sum / (double)SECOND_NS / span_s(top) * 100,
			d9__duration_text(d9__histogram_quantile(&c->took, 0.99), p99),
			d9__duration_text(c->took.max, max), c->queue);
	d9__text_escaped(out, name, len < width ? len : width);
}

static void put_head(struct d9__text_out *out, struct top *top, const char *end)
{
	uint64_t now = now_ns();
	char since[D9__DURATION_LEN];
	const char *name;

	d9__text_escaped(out, d9__recorder_program(top->recorder),
			 strlen(d9__recorder_program(top->recorder)));
	d9__text_printf(out, " (%d): %s, %.0f calls a second, loops %.1f %% busy, queue %" PRIu64
			     ", %" PRIu64 " lost%s\n",
			(int)top->recorder->view.pid, d9__recorder_state_word(top->recorder),
			(double)top->calls / span_s(top),
			(double)top->busy_ns / (double)SECOND_NS / span_s(top) * 100,
			top->global_queue, top->recorder->lost, end);
	for (unsigned i = 0; i < WORKERS; i++) {
		const struct worker *w = &top->workers[i];

		if (!w->began_ns || w->callback == SIZE_MAX ||
		    now - w->began_ns < 2 * top->options->interval_ns)
			continue;
		d9__text_printf(out, "worker %u has been for %s in ", i,
				d9__duration_text(now - w->began_ns, since));
		name = shown_name(top, top->callbacks[w->callback].name);
		d9__text_escaped(out, name, strlen(name));
		d9__text_printf(out, "%s\n", end);
	}
}

static void put_table(struct d9__text_out *out, struct top *top, const size_t *order, size_t rows,
		      size_t width, const char *end)
{
	put_head(out, top, end);
	d9__text_printf(out, "  CALLS/S BUSY %%       P99       MAX  QUEUE  CALLBACK%s\n", end);
	for (size_t i = 0; i < top->n && i < rows && top->callbacks[order[i]].took.count; i++) {
		put_row(out, top, &top->callbacks[order[i]], width);
		d9__text_printf(out, "%s\n", end);
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
	for (size_t i = 0; i < top->n && i < rows && top->callbacks[order[i]].took.count; i++) {
		const struct callback *c = &top->callbacks[order[i]];
		const char *name = shown_name(top, c->name);

		d9__text_string(out, i ? ",{\"callback\":" : "{\"callback\":");
		d9__text_json(out, name, strlen(name));
		d9__text_printf(out, ",\"calls\":%" PRIu64 ",\"busy_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64
				     ",\"max_ns\":%" PRIu64 ",\"queue\":%" PRIu64 "}",
				c->took.count, c->took.sum, d9__histogram_quantile(&c->took, 0.99),
				c->took.max, c->queue);
	}
	d9__text_string(out, "]}\n");
}

/* 0 or an exit status. */
static int show(struct top *top, bool screen)
{
	static struct d9__text_out out;
	size_t *order = calloc(top->n + 1, sizeof(*order)), rows = 20, width = SIZE_MAX;
	struct winsize size = { 0 };
	int status;

	if (!order || top->no_memory) {
		free(order);
		return d9__cmd_fail("top", "out of memory");
	}
	for (size_t i = 0; i < top->n; i++)
		order[i] = i;
	sorted = top;
	qsort(order, top->n, sizeof(*order), by_busy);
	if (screen && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row > 4) {
		rows = size.ws_row - 4u;
		width = size.ws_col > FIXED_COLUMNS + 8 ? size.ws_col - FIXED_COLUMNS : 8;
	}
	if (top->options->rows)
		rows = (size_t)top->options->rows;
	d9__text_init(&out, STDOUT_FILENO);
	if (screen)
		d9__text_string(&out, "\033[H");
	if (top->options->json)
		put_json(&out, top, order, rows);
	else
		put_table(&out, top, order, rows, width, screen ? "\033[K" : "");
	if (screen)
		d9__text_string(&out, "\033[J");
	free(order);
	status = d9__text_finish(&out, "top");
	return status;
}

/* ---- the command ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

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
	struct timespec pause = { (time_t)(top->options->interval_ns / SECOND_NS),
				  (long)(top->options->interval_ns % SECOND_NS) };
	uint64_t shown_ns = 0;
	int status = 0, err = look(top);

	if (screen) {
		/* No SA_RESTART: the sleep has to end. */
		sigaction(SIGINT, &(struct sigaction){ .sa_handler = interrupt }, NULL);
		sigaction(SIGTERM, &(struct sigaction){ .sa_handler = interrupt }, NULL);
		if (write(STDOUT_FILENO, "\033[2J", 4) < 0)
			return D9__EXIT_USAGE;
	}
	while (!err && !status && !interrupted) {
		err = d9__live_read(live, top->recorder->look.flight);
		if (err)
			break;
		/* Segments grow once a second: until then the table before holds. */
		if (!screen || top->calls || now_ns() - shown_ns > 2 * SECOND_NS) {
			status = show(top, screen);
			forget_interval(top);
			shown_ns = now_ns();
		}
		if (!screen || status)
			break;
		nanosleep(&pause, NULL);
		err = interrupted ? 0 : look(top);
	}
	if (err == -ESRCH || (err && look(top)))
		return screen ? 0 : (d9__cmd_fail("top", "the process has ended"), D9__EXIT_FINDING);
	return err ? d9__cmd_fail("top", "%s", strerror(-err)) : status;
}

static int run(const struct options *options, pid_t pid)
{
	struct d9__recorders recorders;
	struct top *top = calloc(1, sizeof(*top));
	struct d9__live *live = calloc(1, sizeof(*live));
	int err = top && live ? d9__recorders_find(&recorders, "top", pid, NULL) : -ENOMEM;
	int status = D9__EXIT_FINDING;

	if (!err && recorders.n) {
		/* What is on its way to the segment is a second old. */
		uint64_t back_ns = options->interval_ns + SECOND_NS;

		top->options = options;
		top->recorder = &recorders.list[0];
		if (!options->no_symbols)
			err = d9__symbols_new(&top->symbols);
		d9__live_begin(live, &top->recorder->view, now_ns() - back_ns, see, top);
		if (!err)
			status = loop(top, live);
		d9__live_end(live);
		d9__symbols_free(top->symbols);
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
	struct options options = { .interval_ns = SECOND_NS };
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
	if (options.interval_ns < 10000000 || options.interval_ns > 3600 * SECOND_NS)
		return d9__cmd_fail("top", "--interval wants 10ms to 1h");
	return run(&options, (pid_t)pid);
}
