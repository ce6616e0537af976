/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and entries: the thread that arms a trigger takes an entry of |armed|, fills it in and
 * publishes it; then it stays as it is until no thread looks at it any more.  A thread that removes
 * one marks it; the flush thread, when no thread is among the entries and nothing waits that fired,
 * makes it free again.  A thread that fires one takes an entry of |fires| and fills it in; all else
 * belongs to the flush thread.
 *
 * Each trigger is armed again when `every` has passed: where every callback takes too long, all but the first find that
 * with one load.
 */
#include "config.h"

#include "record/triggers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <dial9/error.h>
#include <dial9/trigger.h>

#include "base/descriptors.h"
#include "base/heap.h"
#include "base/sandbox.h"
#include "base/time.h"
#include "base/trigger_file.h"
#include "base/trigger_text.h"
#include "drain/health.h"
#include "drain/rates.h"
#include "record/flush.h"
#include "record/levels.h"
#include "record/trigger_dump.h"
#include "ring/clock.h"
#include "ring/names.h"
#include "ring/note.h"
#include "ring/ring_file.h"
#include "segment/metadata.h"

#define FIRES	  64u /* a power of two */
#define LEVEL_NS  UINT64_C(100000000) /* while a level holds */
#define SITE	  " @ "

_Atomic(uint64_t) d9__triggers_poll_ns = UINT64_MAX, d9__long_poll_ns = D9__LONG_POLL_NS;
_Atomic(uint64_t) d9__triggers_late_ns = D9__NEVER_LATE;

/* ---- what has fired ---- */

struct fire {
	_Atomic(uint32_t) number; /* release: of this firing, from 1; the rest is filled in */
	uint32_t trigger, loc;
	uint64_t ns, value, task;
};

static struct fire fires[FIRES];
static _Atomic(uint32_t) n_fires; /* begun */
static _Atomic(uint32_t) n_taken; /* by the flush thread */
static _Atomic(uint32_t) n_missed; /* there was no entry for them */

/* The oldest that was not taken; NULL: there is none. */
static const struct fire *next_fire(void)
{
	uint32_t n = atomic_load_explicit(&n_taken, memory_order_relaxed);
	const struct fire *fire = &fires[n % FIRES];

	/* acquire: what was filled in before */
	return atomic_load_explicit(&fire->number, memory_order_acquire) == n + 1 ? fire : NULL;
}

static void take_fire(void)
{
	/* release: it was read */
	atomic_fetch_add_explicit(&n_taken, 1, memory_order_release);
}

/*
 * Drop firings that came too late for the recorder before this one, because its triggers were
 * others.
 */
static void forget_fires(void)
{
	while (next_fire())
		take_fire();
}

/* ---- what is armed ---- */

enum { FREE, TAKEN, ARMED, REMOVED };

struct armed {
	_Atomic(uint32_t) state; /* release: the rest is complete */
	struct d9__trigger trigger;
	char text[D9__TRIGGER_TEXT + 1];
	_Atomic(uint64_t) again_ns; /* it does not fire before; UINT64_MAX: never again */

	/* Flush thread. */
	bool known; /* it is in the metadata, and the words that polls are compared with heed it */
	uint64_t lost;		 /* when it fired last, or was armed */
	struct d9__level level;
	_Atomic(uint64_t) fired; /* others read */
};

static struct armed armed[D9__TRIGGERS_MAX];
static _Atomic(uint32_t) n_armed;   /* entries that were ever in use */
static _Atomic(uint32_t) n_looking; /* threads that read entries: none is made free meanwhile */
static _Atomic(bool) is_on;	    /* a recorder is there */
static _Atomic(bool) has_changed;   /* the flush thread has to see to it */
static uint64_t blocked_ns; /* the least of what `blocked` triggers ask for; UINT64_MAX: there is none */
static bool level_holds;    /* one does, if not for long enough */

static void (*loop_name_of)(uint32_t worker, char *out, size_t size);
static uint64_t (*callback_of)(uint32_t loc);

void d9__triggers_provide(void (*loop_name)(uint32_t worker, char *out, size_t size), uint64_t (*callback)(uint32_t loc))
{
	loop_name_of = loop_name;
	callback_of = callback;
}

/* The order of these three and of the entries' states is one for all threads: see make_free(). */
static void begin_to_look(void)
{
	atomic_fetch_add(&n_looking, 1);
}

static void end_to_look(void)
{
	atomic_fetch_sub(&n_looking, 1);
}

static bool is_armed(const struct armed *it)
{
	return atomic_load(&it->state) == ARMED;
}

/* The least threshold of the triggers of |kind|. */
static uint64_t least(enum d9__trigger_kind kind)
{
	uint64_t found = UINT64_MAX;

	for (uint32_t i = 0; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++)
		if (is_armed(&armed[i]) && armed[i].trigger.kind == kind && armed[i].trigger.threshold < found)
			found = armed[i].trigger.threshold;
	return found;
}

/* A list of triggers. */
struct list {
	const char *text, *file; /* NULL: it stands in no file */
	unsigned number;	 /* of the one that is being armed */
};

static void refuse(const struct list *list, const char *one, uint32_t column, const char *why)
{
	char key[32], value[2 * PATH_MAX];
	unsigned number = list->number;
	uint32_t line, before;

	if (list->file) {
		line = d9__trigger_line(list->text, one, &before);
		snprintf(value, sizeof(value), "%s, line %u, column %u: %s", list->file, line, before + column, why);
	} else {
		snprintf(value, sizeof(value), "column %u: %s", column, why);
	}
	snprintf(key, sizeof(key), "trigger_error.%u", number);
	d9__metadata_set(key, value);
	d9__note(D9_LOG_ERROR, "trigger %u, %s", number, value);
}

/* An entry of the caller's alone; NULL: there is none left. */
static struct armed *take_free(void)
{
	for (uint32_t i = 0; i < D9__TRIGGERS_MAX; i++) {
		uint32_t state = FREE, n = atomic_load_explicit(&n_armed, memory_order_relaxed);

		if (!atomic_compare_exchange_strong(&armed[i].state, &state, TAKEN))
			continue;
		while (n <= i && !atomic_compare_exchange_weak_explicit(&n_armed, &n, i + 1, memory_order_relaxed,
									memory_order_relaxed))
			;
		return &armed[i];
	}
	return NULL;
}

static void take_away(struct armed *it)
{
	uint32_t state = ARMED;

	if (!atomic_compare_exchange_strong(&it->state, &state, REMOVED))
		return;
	atomic_store(&it->again_ns, UINT64_MAX);
	atomic_store_explicit(&has_changed, true, memory_order_release);
}

/* All of |name| but |but|.  How many that were. */
static unsigned take_away_named(const char *name, const struct armed *but)
{
	unsigned n = 0;

	begin_to_look();
	for (uint32_t i = 0; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++) {
		if (&armed[i] == but || !is_armed(&armed[i]) || strcmp(armed[i].trigger.name, name))
			continue;
		take_away(&armed[i]);
		n++;
	}
	end_to_look();
	return n;
}

/* |it| is none's but the caller's, who parsed its trigger. */
static void publish(struct armed *it, const char *text, size_t len)
{
	d9__trigger_plain(&it->trigger, text, len, it->text, sizeof(it->text));
	atomic_store_explicit(&it->again_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&it->fired, 0, memory_order_relaxed);
	atomic_store(&it->state, ARMED);
	atomic_store_explicit(&has_changed, true, memory_order_release);
}

/* 0, -EINVAL with |fault|, or -ENOSPC.  One of the same name is removed with |instead|. */
static int arm(const char *text, size_t len, bool instead, struct d9__trigger_fault *fault)
{
	struct armed *it = take_free();

	if (!it)
		return -ENOSPC;
	if (!d9__trigger_parse(text, len, &it->trigger, fault)) {
		atomic_store(&it->state, FREE);
		return -EINVAL;
	}
	publish(it, text, len);
	if (instead)
		take_away_named(it->trigger.name, it);
	return 0;
}

/* Remove the triggers that the recorder before this one had armed. */
static void disarm(void)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++)
		take_away(&armed[i]);
	d9__metadata_forget("trigger.");
	d9__metadata_forget("trigger_error.");
	d9__rates_switch(false);
	level_holds = false;
}

/* Readers of the trace take from the text what the numbers of a trigger that fired are: it stays when it is removed. */
static void get_to_know(struct armed *it)
{
	char key[sizeof("trigger.") + D9__TRIGGER_NAME];

	snprintf(key, sizeof(key), "trigger.%s", it->trigger.name);
	d9__metadata_set(key, it->text);
	it->lost = d9__health_lost();
	it->level = (struct d9__level){ 0 };
	it->known = true;
}

/* A thread that looks from now on finds that it is removed; one that looks already is counted. */
static void make_free(struct armed *it)
{
	if (atomic_load(&n_looking) || next_fire())
		return;
	it->known = false;
	atomic_store(&it->state, FREE);
}

/*
 * Heed triggers that were armed or removed since the last time; removed ones that may still be read
 * come next time.
 */
static void heed_changes(void)
{
	uint64_t poll_ns, late_ns;

	if (!atomic_exchange_explicit(&has_changed, false, memory_order_acquire))
		return;
	for (uint32_t i = 0; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++) {
		uint32_t state = atomic_load(&armed[i].state);

		if (state == ARMED && !armed[i].known)
			get_to_know(&armed[i]);
		if (state == REMOVED)
			make_free(&armed[i]);
		if (atomic_load(&armed[i].state) == REMOVED)
			atomic_store_explicit(&has_changed, true, memory_order_relaxed);
	}
	blocked_ns = least(D9__TRIGGER_BLOCKED);
	poll_ns = least(D9__TRIGGER_POLL);
	d9__rates_switch(least(D9__TRIGGER_WAKES) != UINT64_MAX || least(D9__TRIGGER_POLLS) != UINT64_MAX);
	late_ns = least(D9__TRIGGER_LATENESS);
	atomic_store_explicit(&d9__triggers_late_ns, late_ns < D9__NEVER_LATE ? late_ns : D9__NEVER_LATE, memory_order_relaxed);
	atomic_store_explicit(&d9__triggers_poll_ns, poll_ns, memory_order_relaxed);
	atomic_store_explicit(&d9__long_poll_ns, poll_ns < D9__LONG_POLL_NS ? poll_ns : D9__LONG_POLL_NS, memory_order_relaxed);
}

static void arm_one(const struct list *list, const char *one, size_t len)
{
	struct d9__trigger_fault fault;
	int err = arm(one, len, false, &fault);

	if (err)
		refuse(list, one, err == -EINVAL ? fault.column : 1, err == -EINVAL ? fault.text : "there are too many");
}

/* A file names no files: there @FILE is a mistake. */
static void arm_file(struct list *list, const char *one, const char *path)
{
	struct list inner = { .file = path, .number = list->number };
	char *text, why[PATH_MAX + 64];
	const char *at;
	size_t len;
	int err = d9__trigger_file_read(path, &text);

	if (err) {
		snprintf(why, sizeof(why), "%s: %s", path, d9__trigger_file_fault(err));
		refuse(list, one, 1, why);
		return;
	}
	inner.text = at = text;
	for (; d9__trigger_next(&at, &one, &len); inner.number++)
		arm_one(&inner, one, len);
	d9__free(text);
	list->number = inner.number - 1;
}

static void arm_all(const char *texts)
{
	struct list list = { .text = texts };
	char path[PATH_MAX];
	const char *one;
	size_t len;
	int is_file;

	while (d9__trigger_next(&texts, &one, &len)) {
		list.number++;
		is_file = d9__trigger_file_name(one, len, path);
		if (is_file < 0)
			refuse(&list, one, 1, d9_strerror(is_file));
		else if (is_file)
			arm_file(&list, one, path);
		else
			arm_one(&list, one, len);
	}
}

void d9__triggers_arm(const char *texts)
{
	disarm();
	forget_fires();
	atomic_store_explicit(&has_changed, true, memory_order_relaxed);
	heed_changes();
	if (texts)
		arm_all(texts);
	heed_changes();
	atomic_store_explicit(&is_on, true, memory_order_release);
}

/* ---- where ---- */

static void thread_name(uint32_t tid, char name[17])
{
	char path[48];
	ssize_t n = 0;
	int fd;

	name[0] = '\0';
	if (!tid) {
		if (!d9__sandbox_is_shut())
			prctl(PR_GET_NAME, name);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = d9__descriptor_place(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return;
	n = read(fd, name, 16);
	close(fd);
	name[n > 0 ? n - 1 : 0] = '\0'; /* its end of line */
}

static bool is_callback(const struct d9__trigger *trigger, const struct d9__trigger_match *match, uint32_t loc)
{
	const struct d9__name *name = d9__name_text(loc);
	const char *site = memmem(name->text, name->len, SITE, strlen(SITE));
	size_t len = site ? (size_t)(site - name->text) : name->len;

	return match->resolved ? d9__trigger_stands_for(trigger->resolved + match->resolved, name->text, len) :
				 d9__trigger_glob(match->glob, name->text, len);
}

static bool is_where(const struct d9__trigger *trigger, const struct d9__trigger_match *match,
		     const struct d9__trigger_place *place)
{
	char text[128] = "";

	if (match->subject == D9__TRIGGER_CALLBACK)
		return is_callback(trigger, match, place->loc);
	if (match->subject == D9__TRIGGER_THREAD)
		thread_name(place->tid, text);
	else if (loop_name_of)
		loop_name_of(place->worker, text, sizeof(text));
	return d9__trigger_glob(match->glob, text, strlen(text));
}

static bool is_there(const struct d9__trigger *trigger, const struct d9__trigger_place *place)
{
	for (unsigned i = 0; i < trigger->n_matches; i++)
		if (!is_where(trigger, &trigger->matches[i], place))
			return false;
	return true;
}

/* ---- firing ---- */

/* An entry, and its number; 0: none is free. */
static uint32_t take_entry(void)
{
	uint32_t n = atomic_load_explicit(&n_fires, memory_order_relaxed);

	do {
		/* acquire: the flush thread has read what stood there */
		if (n - atomic_load_explicit(&n_taken, memory_order_acquire) >= FIRES) {
			atomic_fetch_add_explicit(&n_missed, 1, memory_order_relaxed);
			return 0;
		}
	} while (!atomic_compare_exchange_weak_explicit(&n_fires, &n, n + 1, memory_order_relaxed, memory_order_relaxed));
	return n + 1;
}

static void leave_word(uint32_t trigger, uint64_t ns, uint64_t value, const struct d9__trigger_place *place)
{
	uint32_t number = take_entry();
	struct fire *fire = &fires[(number - 1) % FIRES];

	if (!number)
		return;
	fire->trigger = trigger;
	fire->ns = ns;
	fire->value = value;
	fire->task = place->task;
	fire->loc = place->loc;
	atomic_store_explicit(&fire->number, number, memory_order_release);
	/* Else the next tick finds it. */
	if (!d9__sandbox_is_shut())
		d9__flush_wake();
}

/* It has not fired for `every`, and does now. */
static bool may_fire(struct armed *it, uint64_t ns)
{
	uint64_t again_ns = atomic_load_explicit(&it->again_ns, memory_order_relaxed);

	return ns >= again_ns && atomic_compare_exchange_strong_explicit(&it->again_ns, &again_ns, ns + it->trigger.every_ns,
									 memory_order_relaxed, memory_order_relaxed);
}

/* Where all take too long, all but the first find with one load each that it is not time again. */
static void fire_where(enum d9__trigger_kind kind, uint64_t ns, uint64_t value, const struct d9__trigger_place *place)
{
	uint32_t n = atomic_load_explicit(&n_armed, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		struct armed *it = &armed[i];

		if (ns < atomic_load_explicit(&it->again_ns, memory_order_relaxed))
			continue;
		begin_to_look();
		if (is_armed(it) && it->trigger.kind == kind && value > it->trigger.threshold &&
		    is_there(&it->trigger, place) && may_fire(it, ns))
			leave_word(i, ns, value, place);
		end_to_look();
	}
}

void d9__triggers_poll(uint64_t ns, uint64_t took_ns, const struct d9__trigger_place *place)
{
	int saved = errno;

	fire_where(D9__TRIGGER_POLL, ns, took_ns, place);
	errno = saved;
}

void d9__triggers_late(uint64_t ns, uint64_t late_ns, const struct d9__trigger_place *place)
{
	int saved = errno;

	fire_where(D9__TRIGGER_LATENESS, ns, late_ns, place);
	errno = saved;
}

int d9_trigger_fire(const char *name)
{
	const struct d9__trigger_place nowhere = { .loc = D9__NAME_EMPTY };
	bool barred = d9__slot_is_barred(d9__self.slot); /* it may not ask for the time */
	int saved = errno, result = -ENOENT;
	uint64_t ns = barred ? 0 : d9__clock_mono_ns();

	if (!name)
		return -EINVAL;
	begin_to_look();
	for (uint32_t i = 0; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++) {
		if (!is_armed(&armed[i]) || strcmp(armed[i].trigger.name, name))
			continue;
		result = 0;
		if (!barred && may_fire(&armed[i], ns))
			leave_word(i, ns, 0, &nowhere);
	}
	end_to_look();
	errno = saved;
	return result;
}

/* Complete text of what is wrong, for people. */
static void explain(const struct d9__trigger_fault *fault, char *out, size_t size)
{
	snprintf(out, size, "column %u: %s", fault->column, fault->text);
}

/* Of one text.  0, -ENOSPC, or -EINVAL; then |why| tells what is the matter. */
static int add(const char *text, char *why, size_t size)
{
	struct d9__trigger_fault fault;
	const char *list = text, *one, *other;
	size_t one_len, other_len;
	int err;

	if (!d9__trigger_next(&list, &one, &one_len)) {
		one = text;
		one_len = strlen(text);
	} else if (d9__trigger_next(&list, &other, &other_len)) {
		fault = (struct d9__trigger_fault){ .column = (uint32_t)(other - text) + 1,
						     .text = "a second trigger" };
		explain(&fault, why, size);
		return -EINVAL;
	}
	err = arm(one, one_len, true, &fault);
	if (err == -EINVAL)
		explain(&fault, why, size);
	else if (err)
		snprintf(why, size, "there are %u already", D9__TRIGGERS_MAX);
	return err;
}

int d9_trigger_add(const char *text, char *why, size_t size)
{
	char none[1];
	int saved = errno, err;

	if (!why || !size) {
		why = none;
		size = sizeof(none);
	}
	*why = '\0';
	if (!text)
		return -EINVAL;
	if (!atomic_load_explicit(&is_on, memory_order_acquire))
		return -ESHUTDOWN;
	err = add(text, why, size);
	d9__flush_wake();
	errno = saved;
	return err;
}

int d9_trigger_remove(const char *name)
{
	int saved = errno;
	unsigned n;

	if (!name)
		return -EINVAL;
	n = take_away_named(name, NULL);
	d9__flush_wake();
	errno = saved;
	return n ? 0 : -ENOENT;
}

/* The first that is armed from |*number| on.  0 or -ENOENT. */
static int show(uint32_t *number, uint64_t *fired, char *answer, size_t size)
{
	for (uint32_t i = *number; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++) {
		if (!is_armed(&armed[i]))
			continue;
		*number = i;
		*fired = atomic_load_explicit(&armed[i].fired, memory_order_relaxed);
		snprintf(answer, size, "%s", armed[i].text);
		return 0;
	}
	return -ENOENT;
}

int d9__triggers_request(uint32_t what, const char *text, uint32_t *number, uint64_t *fired, char *answer, size_t size)
{
	int err = -ENOTSUP;

	if (!atomic_load_explicit(&is_on, memory_order_acquire))
		return -ESHUTDOWN;
	if (what == D9__TRIGGER_SET)
		err = add(text, answer, size);
	else if (what == D9__TRIGGER_REMOVE)
		err = take_away_named(text, NULL) ? 0 : -ENOENT;
	else if (what == D9__TRIGGER_FIRE)
		err = d9_trigger_fire(text);
	else if (what == D9__TRIGGER_SHOW)
		err = show(number, fired, answer, size);
	if (what != D9__TRIGGER_SHOW)
		d9__note(err ? D9_LOG_WARNING : D9_LOG_INFO, "asked by dial9 trigger to %s a trigger: %s",
			 what == D9__TRIGGER_SET ? "set" : what == D9__TRIGGER_REMOVE ? "remove" : "fire",
			 err ? d9_strerror(err) : "done");
	return err;
}

/* ---- looking: flush thread ---- */

static uint64_t lost; /* events, when that was looked at last */

static void hand_over(const struct fire *fire, const struct d9__dump_maker *maker)
{
	struct armed *it = &armed[fire->trigger];
	const struct d9__trigger_firing firing = {
		.trigger = &it->trigger,
		.ns = fire->ns,
		.value = fire->value,
		.task = fire->task,
		.callback = callback_of ? callback_of(fire->loc) : 0,
	};

	atomic_fetch_add_explicit(&it->fired, 1, memory_order_relaxed);
	d9__trigger_dump_fired(&firing, maker);
}

static void take_fires(const struct d9__dump_maker *maker)
{
	uint32_t missed = atomic_exchange_explicit(&n_missed, 0, memory_order_relaxed);
	const struct fire *fire;

	for (; (fire = next_fire()); take_fire())
		hand_over(fire, maker);
	if (missed)
		d9__note(D9_LOG_WARNING, "triggers fired %u more times than there was room for", missed);
}

/* A callback that has not returned fires while it hangs. */
static void look_at_open_calls(const struct d9__open_calls *open, uint64_t now_ns)
{
	for (size_t i = 0; i < open->n; i++) {
		const struct d9__open_call *call = &open->items[i];
		const struct d9__trigger_place place = { call->task, call->loc, call->worker, call->tid };
		uint64_t for_ns = now_ns > call->since_ns ? now_ns - call->since_ns : 0;

		if (for_ns > blocked_ns && !call->around && !call->outside)
			fire_where(D9__TRIGGER_BLOCKED, now_ns, for_ns, &place);
	}
}

/* A `loss` trigger fires when more events were lost, since it was armed or fired last, than it says. */
static void look_at_losses(uint64_t now_ns)
{
	const struct d9__trigger_place nowhere = { .loc = D9__NAME_EMPTY };
	uint64_t lost_now = d9__health_lost();

	if (lost_now != lost)
		d9__trigger_dump_lost(now_ns);
	lost = lost_now;
	for (uint32_t i = 0; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++) {
		struct armed *it = &armed[i];

		if (!is_armed(it) || !it->known || it->trigger.kind != D9__TRIGGER_LOSS ||
		    lost - it->lost <= it->trigger.threshold || !may_fire(it, now_ns))
			continue;
		leave_word(i, now_ns, lost - it->lost, &nowhere);
		it->lost = lost;
	}
}

/* Look at conditions of levels: events that wait for loops, and how many happen in a second. */
static void look_at_levels(uint64_t now_ns)
{
	const struct d9__trigger_place nowhere = { .loc = D9__NAME_EMPTY };
	uint64_t value;

	d9__rates_look(now_ns);
	level_holds = false;
	for (uint32_t i = 0; i < atomic_load_explicit(&n_armed, memory_order_relaxed); i++) {
		struct armed *it = &armed[i];

		if (!is_armed(it) || !it->known || !d9__level_is(it->trigger.kind))
			continue;
		if (d9__level_look(&it->level, &it->trigger, now_ns, &value) && may_fire(it, now_ns))
			leave_word(i, now_ns, value, &nowhere);
		level_holds |= it->level.since_ns != 0;
	}
}

void d9__triggers_look(const struct d9__open_calls *open, const struct d9__dump_maker *maker, uint64_t now_ns)
{
	if (!atomic_load_explicit(&n_armed, memory_order_relaxed))
		return;
	heed_changes();
	look_at_open_calls(open, now_ns);
	look_at_losses(now_ns);
	look_at_levels(now_ns);
	take_fires(maker);
	d9__trigger_dump_go_on(maker, now_ns);
}

uint64_t d9__triggers_period_ns(const struct d9__open_calls *open, bool active)
{
	uint64_t dump_ns = d9__trigger_dump_period_ns();

	if (dump_ns != UINT64_MAX)
		return dump_ns;
	if (blocked_ns == UINT64_MAX || (open->youngest_ns == UINT64_MAX && !active))
		return level_holds ? LEVEL_NS : UINT64_MAX;
	return blocked_ns / 2 > D9__TRIGGER_WHILE_NS ? blocked_ns / 2 : D9__TRIGGER_WHILE_NS;
}

void d9__triggers_settle(const struct d9__dump_maker *maker)
{
	if (atomic_load_explicit(&n_armed, memory_order_relaxed))
		take_fires(maker);
}

void d9__triggers_disarm(void)
{
	atomic_store_explicit(&is_on, false, memory_order_relaxed);
	disarm();
}

void d9__triggers_end(const struct d9__dump_maker *maker, uint64_t now_ns)
{
	d9__trigger_dump_end(maker, now_ns);
	d9__triggers_disarm();
}

void d9__triggers_fork_child(void)
{
	d9__rates_switch(false);
	d9__trigger_dump_fork_child();
	lost = 0;
	memset(fires, 0, sizeof(fires));
	atomic_store_explicit(&n_fires, 0, memory_order_relaxed);
	atomic_store_explicit(&n_taken, 0, memory_order_relaxed);
	atomic_store(&n_looking, 0);
	for (uint32_t i = 0; i < D9__TRIGGERS_MAX; i++) {
		uint32_t state = atomic_load(&armed[i].state);

		/* Another thread had taken it. */
		if (state == TAKEN)
			atomic_store(&armed[i].state, FREE);
		if (state == ARMED)
			atomic_store(&armed[i].again_ns, 0);
	}
}
