/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds a trace against the counters that the recorded program kept itself.
 *
 *	compare_counts TRACE COUNTERS [--library NAME] [--wakes] [--partial] [--has KEY=TEXT]...
 *		[--except CALLBACK]... [--truth FILE] [--no-parks] [--others] [--seen]
 *
 * Every callback must have as many polls, or spans, as the program counted; polls of the program
 * that it did not count are an error too.  --wakes: each poll was announced by one wake, save the
 * further calls of one signal.  --partial: libevent's own polls are missing, and with them spans.
 * --has: a capability that the trace must name, of libevent or the library NAME.  --except: not to
 * be found in the trace.  --no-parks: there is none.  --truth: what a libevent with counters of its
 * own counted, all polls and parks.  --others: callbacks that the program did not count
 * may have polls.  --seen: the loop library ran nothing that the adapter did not see.
 */

#include "config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#define MAX_CALLBACKS 256

struct callback {
	char kind[16]; /* see counters.h */
	char name[64];
	uint64_t address, offset;
	unsigned long want, is;
	uint64_t late_us;
};

struct task {
	uint64_t callback, site, due_ns;
	bool internal, signal, idle;
	unsigned long polls, wakes, ends;
	uint64_t resumed_ns;
	const struct callback *spanned; /* whose span lay in its polls */
};

static struct callback callbacks[MAX_CALLBACKS];
static size_t n_callbacks;
static struct task *tasks;
static size_t n_tasks;
static const char *library = "libevent";
static char capabilities[1024];
static unsigned long stubs_full, zero_dispatches, unseen;
static uint64_t last_park_ns;
/* Parks that come 100 ms after another may stand for a loop that spins. */
static unsigned long late_parks;
static bool others_may_run;
static int failures;
static struct task *polling; /* the latest */
static unsigned long polls, internal_polls, resumptions, parks, spans, losses;

static void fail(const char *what, const char *which, unsigned long want, unsigned long is)
{
	printf("%s %s: want %lu, is %lu\n", what, which, want, is);
	failures++;
}

/* Other lines are the program's log. */
static bool is_kind(const char *text)
{
	static const char *const kinds[] = { "poll",  "span",	   "tasks",    "ended",
					     "late",  "least",	   "elsewhere", "closures", "reason",
					     "waker", "depth",	   "site",     "span_tasks", "internal_site" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(text, kinds[i]))
			return true;
	}
	return false;
}

static void read_counters(const char *path)
{
	FILE *in = fopen(path, "r");
	char line[1024];

	if (!in)
		exit(99);
	while (fgets(line, sizeof(line), in) && n_callbacks < MAX_CALLBACKS) {
		struct callback *callback = &callbacks[n_callbacks];

		if (sscanf(line, "%15s %63s %" SCNx64 " %" SCNx64 " %lu", callback->kind,
			   callback->name, &callback->address, &callback->offset,
			   &callback->want) == 5 &&
		    is_kind(callback->kind))
			n_callbacks++;
	}
	fclose(in);
}

static struct callback *callback_at(const char *kind, uint64_t address, uint64_t offset)
{
	for (size_t i = 0; i < n_callbacks; i++) {
		if (!strcmp(callbacks[i].kind, kind) &&
		    (address ? callbacks[i].address == address : callbacks[i].offset == offset))
			return &callbacks[i];
	}
	return NULL;
}

/* Task ids are (number << 2) | library, numbers count from 1. */
static struct task *task_of(uint64_t id)
{
	size_t number = (size_t)(id >> 2);

	if (number >= n_tasks) {
		size_t n = number * 2 + 64;

		tasks = realloc(tasks, n * sizeof(*tasks));
		if (!tasks)
			exit(99);
		memset(tasks + n_tasks, 0, (n - n_tasks) * sizeof(*tasks));
		n_tasks = n;
	}
	return &tasks[number];
}

static bool text_is(const struct d9_event *event, const char *field, const char *text)
{
	const struct d9_value *value = d9_event_field(event, field);

	return value && value->u.text.len == strlen(text) &&
	       !memcmp(value->u.text.data, text, strlen(text));
}

static void on_spawn(const struct d9_event *event)
{
	struct task *task = task_of(d9_event_u64(event, "task_id", 0));

	task->callback = d9_event_u64(event, "callback", 0);
	task->site = d9_event_u64(event, "spawn_addr", 0);
	task->internal = text_is(event, "kind", "internal") || text_is(event, "kind", "listener");
	task->signal = text_is(event, "kind", "signal");
	task->idle = text_is(event, "kind", "idle");
}

static void count_wake(uint64_t waker, uint64_t woken, size_t reason)
{
	static const char *const reasons[] = { "unknown", "fd",		  "timer",    "signal",
					       "active",  "cross_thread", "deferred", "internal" };
	struct callback *callback = callback_at("reason", task_of(woken)->callback, 0);

	if (callback && reason < sizeof(reasons) / sizeof(reasons[0]) &&
	    !strcmp(callback->name, reasons[reason]))
		callback->is++;
	else if (callback)
		fail("a wake for another reason than", callback->name, 0, reason);
	callback = waker ? callback_at("waker", task_of(waker)->callback, 0) : NULL;
	if (callback)
		callback->is++;
}

static void on_wake(const struct d9_event *event)
{
	uint64_t woken = d9_event_u64(event, "woken_task_id", 0);

	if (d9_event_u64(event, "reason", 0) != 8)
		count_wake(d9_event_u64(event, "waker_task_id", 0), woken,
			   d9_event_u64(event, "reason", 0));
	if (d9_event_u64(event, "reason", 0) == 8) {
		task_of(woken)->resumed_ns = event->timestamp_ns;
		resumptions++;
		return;
	}
	task_of(woken)->wakes++;
	if (d9_event_u64(event, "reason", 0) == 2)
		task_of(woken)->due_ns = event->timestamp_ns;
}

static void add_lateness(struct callback *late, uint64_t ns)
{
	if (late) {
		late->late_us += ns / 1000;
		late->is++;
	}
}

static void count_lateness(struct task *task, uint64_t now_ns)
{
	if (task->due_ns) {
		add_lateness(callback_at("late", task->callback, 0), now_ns - task->due_ns);
		add_lateness(callback_at("least", task->callback, 0), now_ns - task->due_ns);
	}
	task->due_ns = 0;
}

/* A closure lies behind the address that the program named; elsewhere is anywhere. */
static bool count_unnamed(const struct task *task)
{
	for (size_t i = 0; i < n_callbacks; i++) {
		if ((!strcmp(callbacks[i].kind, "elsewhere") && !task->internal) ||
		    (!strcmp(callbacks[i].kind, "closures") &&
		     task->callback - callbacks[i].address < 16 * callbacks[i].want)) {
			callbacks[i].is++;
			return true;
		}
	}
	return false;
}

static void on_poll(const struct d9_event *event)
{
	struct task *task = task_of(d9_event_u64(event, "task_id", 0));
	struct callback *callback;

	if (task->ends)
		fail("polls behind the end of task number", "", 0,
		     (unsigned long)d9_event_u64(event, "task_id", 0) >> 2);
	if (task->resumed_ns == event->timestamp_ns) {
		task->resumed_ns = 0;
		return;
	}
	task->polls++;
	polls++;
	polling = task;
	count_lateness(task, event->timestamp_ns);
	callback = callback_at("depth", task->callback, 0);
	if (callback)
		callback->is += d9_event_u64(event, "local_queue", 0);
	callback = callback_at("poll", task->callback, 0);
	if (callback)
		callback->is++;
	else if (count_unnamed(task))
		return;
	else if (task->internal || others_may_run)
		internal_polls++;
	else
		fail("a poll of a callback that was not counted, of a task number", "", 0,
		     (unsigned long)d9_event_u64(event, "task_id", 0) >> 2);
}

static void count_span_task(struct callback *callback)
{
	if (!callback || !polling || polling->spanned == callback)
		return;
	polling->spanned = callback;
	callback->is++;
}

/* "MODULE+0xOFFSET @ MODULE+0xOFFSET" */
static void on_span(const struct d9_event *event)
{
	const struct d9_value *name = d9_event_field(event, "span_name");
	struct callback *callback;
	char text[256] = "";
	const char *plus;

	if (!name)
		return;
	memcpy(text, name->u.text.data, name->u.text.len < 255 ? name->u.text.len : 255);
	plus = strstr(text, "+0x");
	callback = plus ? callback_at("span", 0, strtoull(plus + 1, NULL, 16)) : NULL;
	spans++;
	count_span_task(plus ? callback_at("span_tasks", 0, strtoull(plus + 1, NULL, 16)) : NULL);
	if (callback)
		callback->is++;
	else if (!callback_at("poll", 0, plus ? strtoull(plus + 1, NULL, 16) : 0))
		fail("a span that was not counted:", text, 0, 1);
}

/* Is it loop.LIBRARY.KEY? */
static bool is_key(const struct d9_text *text, const char *key)
{
	char name[128];
	int len = snprintf(name, sizeof(name), "loop.%s.%s", library, key);

	return text->len == (size_t)len && !memcmp(text->data, name, text->len);
}

static void on_metadata(const struct d9_event *event)
{
	const struct d9_value *entries = d9_event_field(event, "entries");

	for (size_t i = 0; entries && i < entries->u.string_map.n; i++) {
		const struct d9_text *pair = &entries->u.string_map.pairs[2 * i];

		if (is_key(pair, "capabilities"))
			snprintf(capabilities, sizeof(capabilities), "%.*s", (int)pair[1].len,
				 pair[1].data);
		if (is_key(pair, "stubs_full"))
			stubs_full = strtoul(pair[1].data, NULL, 10);
		if (is_key(pair, "zero_dispatches"))
			zero_dispatches = strtoul(pair[1].data, NULL, 10);
		if (is_key(pair, "unseen"))
			unseen = strtoul(pair[1].data, NULL, 10);
	}
}

static void on_park(const struct d9_event *event)
{
	parks++;
	if (event->timestamp_ns - last_park_ns >= 100000000)
		late_parks++;
	last_park_ns = event->timestamp_ns;
}

static void on_event(const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_TASK_SPAWN:
		on_spawn(event);
		break;
	case D9_EVENT_TASK_TERMINATE:
		task_of(d9_event_u64(event, "task_id", 0))->ends++;
		break;
	case D9_EVENT_WAKE:
		on_wake(event);
		break;
	case D9_EVENT_POLL_START:
		on_poll(event);
		break;
	case D9_EVENT_WORKER_PARK:
		on_park(event);
		break;
	case D9_EVENT_SPAN_ENTER:
		on_span(event);
		break;
	case D9_EVENT_SEGMENT_METADATA:
		on_metadata(event);
		break;
	case D9_EVENT_RECORDER_LOSS:
		losses++;
		break;
	default:
		break;
	}
}

static void read_trace(const char *path, void (*handle)(const struct d9_event *event))
{
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	int err = d9_reader_new(&reader);

	if (!err)
		err = d9_reader_add(reader, path);
	while (!err && (err = d9_reader_next(reader, &event)) == 1) {
		handle(event);
		err = 0;
	}
	if (err < 0) {
		printf("%s\n", d9_reader_message(reader));
		failures++;
	}
	d9_reader_free(reader);
}

/* Spawns first: a wake or poll may stand before its task's spawn in time. */
static void take_spawn(const struct d9_event *event)
{
	if (event->kind == D9_EVENT_TASK_SPAWN)
		on_spawn(event);
}

static void take_all_else(const struct d9_event *event)
{
	if (event->kind != D9_EVENT_TASK_SPAWN)
		on_event(event);
}

static void count_tasks(void)
{
	for (size_t i = 0; i < n_tasks; i++) {
		struct callback *callback = callback_at("tasks", tasks[i].callback, 0);

		if (callback && tasks[i].callback)
			callback->is++;
		callback = callback_at("ended", tasks[i].callback, 0);
		if (callback && tasks[i].callback)
			callback->is += tasks[i].ends;
	}
}

/* A site is a return address in the function that the counter names; none is longer than this. */
#define LONGEST_FUNCTION 1024

static void check_site(struct callback *callback, bool internal)
{
	unsigned long elsewhere = 0, found = 0;

	for (size_t i = 0; i < n_tasks; i++) {
		const struct task *task = &tasks[i];

		if (!task->polls ||
		    (internal ? !task->internal : task->callback != callback->address))
			continue;
		found++;
		if (task->site - callback->want > LONGEST_FUNCTION)
			elsewhere++;
	}
	if (elsewhere || !found)
		fail("tasks not set up where they were:", callback->name, 0, elsewhere);
	callback->is = callback->want;
}

/* libevent rounds to clock ticks of 4 ms; the program takes its own stamps before and behind, between which it may not run. */
static void check_lateness(struct callback *callback)
{
	unsigned long mean_us = callback->is ? callback->late_us / callback->is : 0;
	unsigned long tolerance_us = 8000;
	bool least = !strcmp(callback->kind, "least");

	if (!callback->is || (least ? mean_us + tolerance_us < callback->want : mean_us > callback->want + tolerance_us))
		fail(least ? "at least so late in us," : "at most so late in us,", callback->name, callback->want, mean_us);
	callback->is = callback->want;
}

static void expect_none(const char *name)
{
	for (size_t i = 0; i < n_callbacks; i++) {
		if (!strcmp(callbacks[i].name, name))
			callbacks[i].want = 0;
	}
}

static void check_counts(bool partial)
{
	count_tasks();
	for (size_t i = 0; i < n_callbacks; i++) {
		struct callback *callback = &callbacks[i];

		if (!strcmp(callback->kind, "late") || !strcmp(callback->kind, "least"))
			check_lateness(callback);
		if (!strcmp(callback->kind, "site") || !strcmp(callback->kind, "internal_site"))
			check_site(callback, callback->kind[0] == 'i');
		if (!strcmp(callback->kind, "closures"))
			callback->is += stubs_full;
		if (partial && !strcmp(callback->kind, "span"))
			continue;
		if (callback->is != callback->want)
			fail(callback->kind, callback->name, callback->want, callback->is);
	}
}

static void check_wakes(void)
{
	for (size_t i = 0; i < n_tasks; i++) {
		const struct task *task = &tasks[i];

		/* One that stays ready is announced by the end of its poll. */
		if (task->polls && !task->signal && task->wakes != task->polls &&
		    !(task->idle && task->wakes == task->polls + 1))
			fail("wakes of a task whose callback is", task->internal ? "internal" : "",
			     task->polls, task->wakes);
		if (task->signal && task->wakes > task->polls)
			fail("wakes of a", "signal", task->polls, task->wakes);
	}
}

/* The adapter's calibration runs three callbacks, in one round that does not wait. */
static void check_truth(const char *path)
{
	unsigned long n_callbacks_run = 0, waits = 0, zeroes = 0;
	FILE *in = fopen(path, "r");

	if (!in ||
	    fscanf(in, "callbacks %lu waits %lu zero %lu", &n_callbacks_run, &waits, &zeroes) != 3)
		exit(99);
	fclose(in);
	if (polls != n_callbacks_run - 3)
		fail("polls,", "by libevent's own count", n_callbacks_run - 3, polls);
	if (parks < waits || parks - late_parks > waits)
		fail("parks,", "by libevent's own count", waits, parks);
	if (zero_dispatches != zeroes - 1)
		fail("dispatches without a wait,", "by libevent's own count", zeroes - 1,
		     zero_dispatches);
}

int main(int argc, char **argv)
{
	const char *truth = NULL;
	bool wakes = false, partial = false, no_parks = false, seen = false;

	if (argc < 3)
		return 2;
	for (int i = 3; i < argc - 1; i++) {
		if (!strcmp(argv[i], "--library"))
			library = argv[i + 1];
	}
	for (int i = 3; i < argc; i++)
		others_may_run |= !strcmp(argv[i], "--others");
	read_counters(argv[2]);
	read_trace(argv[1], take_spawn);
	read_trace(argv[1], take_all_else);
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "--wakes"))
			wakes = true;
		else if (!strcmp(argv[i], "--partial"))
			partial = true;
		else if (!strcmp(argv[i], "--no-parks"))
			no_parks = true;
		else if (!strcmp(argv[i], "--except") && i + 1 < argc)
			expect_none(argv[++i]);
		else if (!strcmp(argv[i], "--truth") && i + 1 < argc)
			truth = argv[++i];
		else if (!strcmp(argv[i], "--seen"))
			seen = true;
		else if (!strcmp(argv[i], "--has") && i + 1 < argc &&
			 !strstr(capabilities, argv[++i]))
			fail("capability", argv[i], 1, 0);
	}
	check_counts(partial);
	if (wakes)
		check_wakes();
	if (truth)
		check_truth(truth);
	if (parks && no_parks)
		fail("parks", "of a base whose parks are not seen", 0, parks);
	if (seen && unseen)
		fail("dispatches that were not seen", "", 0, unseen);
	if (losses)
		fail("losses", "", 0, losses);
	printf("internal polls %lu, resumptions %lu, parks %lu, spans %lu, capabilities %s\n",
	       internal_polls, resumptions, parks, spans, capabilities);
	return failures > 0;
}
