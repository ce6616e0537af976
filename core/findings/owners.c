/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot.h"
#include "base/u64.h"
#include "base/utf8.h"
#include "findings/advice.h"
#include "findings/check_parts.h"
#include "findings/owners.h"

/* Of the loop's time, what is worth a word. */
#define TOLD_SHARE 0.01

/* A loop is at its limit if it was busy for so long without a break, or for so large a part of the
 * trace. */
#define BUSY_NS	  (3 * D9__SECOND_NS)
#define BUSY_PART 5

/* So it is if it slept for no more than one part in so many of what the machine left it; and it may
 * be where that was the smaller part, as more may only seem to be sleep. */
#define LIMIT_PART     10
#define MAY_LIMIT_PART 3

/* Where the largest owner was found is told from this share of the loop's time on. */
#define PLACE_SHARE 0.2

/* A loop that is awake for no more than this share of its time has room. */
#define ROOM_SHARE 0.5

/* CPU time outside of accounts, as a part of all, and what is none worth a word. */
#define REST_PART 20
#define REST_NS	  (100 * D9__MS_NS)

/* Of less time no share is judged, nor where the machine left less of it to the loop. */
#define LEAST_NS D9__SECOND_NS
#define LEFT_NS	 (100 * D9__MS_NS)

/* In less it is not asked whether a loop has room: it may have begun just then. */
#define LEAST_ROOM_NS (500 * D9__MS_NS)

/* Time inside the library is told as that from this part of the time on, one in so many. */
#define INSIDE_PART 10

/* A sleep is told beside the owner's share from this part of it on. */
#define ASLEEP_PART 4

/* In short calls what no reading explains was sleep from one part in so many on, and from so much a
 * call: less is what readings leave over. */
#define UNTOLD_PART 5
#define UNTOLD_NS   (20 * D9__US_NS)

/* Of |ns| in calls, what no reading explains: neither on the CPU, nor asleep, nor ready. */
static uint64_t unknown_ns(const struct d9__account *time, uint64_t ns)
{
	return d9__u64_minus(ns, time->on_cpu_ns + time->ready_ns + time->blocked_ns);
}

/* Of the time that a loop was awake, what no reading explains. */
static uint64_t loop_unknown_ns(const struct d9__loop_sums *loop)
{
	const struct d9__loop_time *time = &loop->time;

	if (!loop->cpu_seen)
		return 0;
	return d9__u64_minus(unknown_ns(&loop->account,
					time->callback_ns + time->round_ns + time->outside_ns +
						time->outside_asleep_ns + time->outside_ready_ns +
						time->wait_cpu_ns + time->wait_ready_ns),
			     loop->looked_ns);
}

/*
 * The machine's parts, 0 to 1: of time awake that no reading explains, and of waits.  The process's
 * threads were ready for so long beyond what loops tell, those that run loops by their part of the
 * CPU time; where that is more than the former can hold, loops were put aside in the middle of
 * waits that were over.
 */
struct machine {
	double of_unknown, of_asleep;
};

/* The part of the CPU time that is the loops', 0 to 1; |unknown| where it is not told. */
static double loops_part(const struct d9__sums *sums, uint64_t loops_ns, double unknown)
{
	if (!sums->cpu_ns)
		return unknown;
	return loops_ns < sums->cpu_ns ? (double)loops_ns / (double)sums->cpu_ns : 1;
}

static struct machine machine_of(const struct d9__sums *sums)
{
	uint64_t unknown = 0, asleep = 0, cpu = 0, untold, awake;
	struct machine out = { 0, 0 };
	double rest;

	if (!sums->runqueue_known)
		return out;
	for (size_t i = 0; i < sums->n_loops; i++) {
		unknown += loop_unknown_ns(&sums->loops[i]);
		asleep += sums->loops[i].time.asleep_ns;
		cpu += sums->loops[i].cpu_ns;
	}
	untold = d9__u64_minus(sums->runqueue_ns, sums->ready_ns);
	awake = (uint64_t)((double)untold * loops_part(sums, cpu, 1));
	if (unknown)
		out.of_unknown = awake < unknown ? (double)awake / (double)unknown : 1;
	rest = (double)d9__u64_minus(untold, unknown) * loops_part(sums, cpu, 0);
	if (asleep)
		out.of_asleep = rest < (double)asleep ? rest / (double)asleep : 1;
	return out;
}

/* ---- who has it ---- */

/* Callbacks of one name are one owner: a function may be registered at several places. */
static const struct d9__owner *find(const struct d9__owners *owners, const struct d9__owner *owner)
{
	for (size_t i = 0; i < owners->n; i++) {
		const struct d9__owner *item = &owners->items[i];

		if (item->kind == owner->kind && item->callback && owner->callback &&
		    d9__finding_same_name(item->callback, owner->callback))
			return item;
	}
	return NULL;
}

/* One that had an item may be larger now than those before it. */
static void move_up(struct d9__owners *owners, struct d9__owner *item)
{
	for (; item > owners->items && item->ns > item[-1].ns; item--) {
		struct d9__owner swap = item[-1];

		item[-1] = *item;
		*item = swap;
	}
}

static void add(struct d9__owners *owners, const struct d9__owner *owner)
{
	const struct d9__owner *found = owner->ns ? find(owners, owner) : NULL;
	struct d9__owner *item = found ? &owners->items[found - owners->items] : NULL;

	owners->awake_ns += owner->ns;
	if (item) {
		item->ns += owner->ns;
		item->blocked_ns += owner->blocked_ns;
		item->calls += owner->calls;
		for (unsigned i = 0; i < owner->told.n; i++)
			d9__time_told_add(&item->told, owner->told.in[i].function,
					  owner->told.in[i].ns);
		d9__io_add(&item->io, &owner->io);
	} else if (owner->ns && owners->n < D9__OWNERS_MAX) {
		item = &owners->items[owners->n++];
		*item = *owner;
	} else if (owner->ns) {
		item = &owners->items[D9__OWNERS_MAX - 1];
		owners->others_ns += d9__u64_min(item->ns, owner->ns);
		if (item->ns < owner->ns)
			*item = *owner;
	}
	if (item)
		move_up(owners, item);
}

uint64_t d9__owners_slept_ns(const struct d9__owners *owners, const struct d9__callback_on *on)
{
	uint64_t slept_ns =
		(uint64_t)((1 - owners->machine_part) * (double)unknown_ns(&on->time, on->ns));

	/* A thread that does not go to sleep in each second call was stopped by the host. */
	if (2 * owners->sleeps < on->calls || UNTOLD_PART * slept_ns < on->ns ||
	    slept_ns < UNTOLD_NS * on->calls)
		slept_ns = 0;
	return d9__u64_min(on->time.blocked_ns + slept_ns, on->ns);
}

/* The calls of one callback on |loop|, without what the machine took of them. */
static void add_callback(const struct d9__loop_sums *loop, struct d9__owners *owners,
			 const struct d9__call_sums *calls)
{
	const struct d9__callback_on *on = &calls->on;
	uint64_t unknown = loop->cpu_seen ? unknown_ns(&on->time, on->ns) : 0;
	uint64_t taken = on->time.ready_ns + (uint64_t)(owners->machine_part * (double)unknown);

	owners->calls_unknown_ns += unknown;
	owners->taken_ns += d9__u64_min(taken, on->ns);
	add(owners, &(struct d9__owner) { .kind = D9__OWNER_CALLBACK,
					  .callback = calls->callback,
					  .ns = d9__u64_minus(on->ns, taken),
					  .blocked_ns = d9__owners_slept_ns(owners, on),
					  .calls = on->calls,
					  .told = on->time.told,
					  .io = on->io });
	d9__io_add(&owners->io, &on->io);
}

/* The prepare() or check() of one callback's sources lies in rounds. */
static void add_source(struct d9__owners *owners, const struct d9__source_sums *source)
{
	uint64_t ns = d9__u64_min(source->ns, owners->round_ns), taken;

	if (!ns)
		return;
	taken = (uint64_t)((double)owners->round_taken_ns * (double)ns / (double)owners->round_ns);
	owners->round_ns -= ns;
	owners->round_taken_ns -= taken;
	add(owners, &(struct d9__owner) { .kind = source->phase == D9__IN_CHECK ? D9__OWNER_CHECK
										: D9__OWNER_PREPARE,
					  .callback = source->callback,
					  .ns = ns - taken,
					  .calls = source->calls });
}

/* Return how much of a loop's rounds the machine took, from sources in them as from the library. */
static uint64_t round_taken_ns(const struct d9__loop_sums *loop, const struct d9__owners *owners)
{
	const struct d9__loop_time *time = &loop->time;
	uint64_t unknown = d9__u64_minus(loop_unknown_ns(loop),
					 owners->calls_unknown_ns + time->outside_asleep_ns);

	return d9__u64_min(time->round_ready_ns +
				   (uint64_t)(owners->machine_part * (double)unknown),
			   owners->round_ns);
}

/* The loop itself, without what the machine took of its rounds. */
static void add_loop(const struct d9__loop_sums *loop, struct d9__owners *owners)
{
	const struct d9__loop_time *time = &loop->time;
	uint64_t outside_taken = (uint64_t)(owners->machine_part * (double)time->outside_asleep_ns);
	uint64_t wait_taken = (uint64_t)(owners->asleep_part * (double)time->asleep_ns);
	uint64_t outside_asleep = time->outside_asleep_ns - outside_taken;
	uint64_t held = loop->held_outside ? d9__u64_min(time->outside_held_ns, outside_asleep) : 0;

	owners->taken_ns +=
		outside_taken + time->outside_ready_ns + wait_taken + time->wait_ready_ns;
	add(owners, &(struct d9__owner) { .kind = D9__OWNER_LIBRARY,
					  .ns = owners->round_ns - owners->round_taken_ns });
	add(owners, &(struct d9__owner) { .kind = D9__OWNER_WAIT, .ns = time->wait_cpu_ns });
	add(owners, &(struct d9__owner) { .kind = D9__OWNER_BETWEEN,
					  .ns = time->outside_ns + held,
					  .blocked_ns = held,
					  .calls = time->outside_n,
					  .told = loop->outside });
	owners->asleep_ns = time->asleep_ns - wait_taken + outside_asleep - held;
	owners->left_ns = owners->awake_ns + owners->asleep_ns;
	owners->cpu_ns = d9__u64_min(loop->cpu_ns, owners->left_ns);
	if (INSIDE_PART * loop->library_ns >= owners->left_ns)
		owners->library_ns = d9__u64_min(loop->library_ns, owners->awake_ns);
}

struct d9__owners *d9__owners_make(const struct d9__sums *sums)
{
	struct d9__owners *all = calloc(sums->n_loops + 1, sizeof(*all));
	struct machine machine = machine_of(sums);

	for (size_t i = 0; all && i < sums->n_loops; i++) {
		all[i].machine_part = machine.of_unknown;
		all[i].asleep_part = machine.of_asleep;
		all[i].round_ns = sums->loops[i].time.round_ns;
		if (sums->runqueue_known && sums->loops[i].cpu_seen)
			all[i].sleeps = sums->sleeps;
	}
	for (size_t i = 0; all && i < sums->n_calls; i++) {
		const struct d9__call_sums *calls = &sums->calls[i];

		if (d9__loop_time_total_ns(&sums->loops[calls->worker].time))
			add_callback(&sums->loops[calls->worker], &all[calls->worker], calls);
	}
	for (size_t i = 0; all && i < sums->n_loops; i++) {
		all[i].round_taken_ns = round_taken_ns(&sums->loops[i], &all[i]);
		all[i].taken_ns += all[i].round_taken_ns;
	}
	for (size_t i = 0; all && i < sums->n_sources; i++)
		add_source(&all[sums->sources[i].worker], &sums->sources[i]);
	for (size_t i = 0; all && i < sums->n_loops; i++)
		add_loop(&sums->loops[i], &all[i]);
	return all;
}

const struct d9__owner *d9__owners_find(const struct d9__owners *owners, enum d9__owner_kind kind)
{
	for (size_t i = 0; i < owners->n; i++)
		if (owners->items[i].kind == kind)
			return &owners->items[i];
	return NULL;
}

double d9__owners_share(const struct d9__owners *owners, uint64_t ns)
{
	return owners->left_ns ? (double)ns / (double)owners->left_ns : 0;
}

bool d9__owners_tell(const struct d9__owners *owners)
{
	return owners->left_ns + owners->taken_ns >= LEAST_NS && owners->left_ns >= LEFT_NS;
}

double d9__owners_share_of(const struct d9__analysis *a, const struct d9__owners *owners,
			   const struct d9__callback *callback)
{
	const struct d9__owner of = { .kind = D9__OWNER_CALLBACK, .callback = callback };
	double most = 0;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__owner *owner = find(&owners[i], &of);
		double share = owner ? d9__owners_share(&owners[i], owner->ns) : 0;

		if (d9__owners_tell(&owners[i]) && share > most)
			most = share;
	}
	return most;
}

double d9__owners_open_share(const struct d9__analysis *a, const struct d9__owners *owners,
			     const struct d9__callback *callback)
{
	uint64_t open_ns = callback->durations.sum + callback->nested.ns, all_ns = 0;

	for (size_t i = 0; i < callback->n_on && i < a->timeline.n; i++)
		if (callback->on[i] && callback->on[i]->calls)
			all_ns += owners[i].left_ns + owners[i].taken_ns;
	/* Calls inside each other are open at once. */
	if (all_ns < LEAST_NS || callback->nested.depth > 1 || open_ns > all_ns)
		return 0;
	return (double)open_ns / (double)all_ns;
}

bool d9__owners_saturated(const struct d9__worker *worker, const struct d9__owners *owners)
{
	const struct d9__loop_time *time = &worker->loop_time;

	return owners->n && d9__owners_tell(owners) &&
	       (LIMIT_PART * owners->asleep_ns <= owners->left_ns ||
		time->busy.longest_ns >= BUSY_NS ||
		(time->busy.ns >= LEAST_NS &&
		 BUSY_PART * time->busy.ns >= d9__loop_time_total_ns(time)));
}

bool d9__owners_may_be_saturated(const struct d9__worker *worker, const struct d9__owners *owners)
{
	return d9__owners_saturated(worker, owners) ||
	       (owners->n && d9__owners_tell(owners) && owners->taken_ns > 2 * owners->left_ns &&
		MAY_LIMIT_PART * owners->asleep_ns <= owners->left_ns);
}

char *d9__owners_place(const struct d9__worker *worker, const struct d9__owners *owners)
{
	const struct d9__owner *most = &owners->items[0];

	if ((!d9__owners_saturated(worker, owners) &&
	     d9__owners_share(owners, most->ns) < PLACE_SHARE) ||
	    most->kind != D9__OWNER_CALLBACK || 2 * most->blocked_ns > most->ns)
		return NULL;
	return d9__hot_describe(most->callback, false);
}

bool d9__owners_move_data(const struct d9__owners *owners)
{
	uint64_t io_ns = 0, all_ns = 0;

	for (size_t i = 0; i < owners->n; i++) {
		const struct d9__owner *owner = &owners->items[i];

		if (owner->kind == D9__OWNER_CALLBACK)
			all_ns += owner->ns;
		if (d9__io_useful(&owner->io) && owner->ns > owner->blocked_ns)
			io_ns += owner->ns - owner->blocked_ns;
	}
	return 2 * io_ns >= all_ns;
}

/* Whether the accounts of loops hold so much of the process's CPU time that no more than a rest
 * lies elsewhere. */
static bool is_accounted(const struct d9__analysis *a)
{
	struct d9__cpu_shares cpu = d9__analysis_cpu(a);

	return cpu.elsewhere_ns < REST_NS || REST_PART * cpu.elsewhere_ns <= cpu.all_ns;
}

bool d9__owners_have_room(const struct d9__analysis *a, const struct d9__owners *owners)
{
	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__piece *piece = &a->timeline.items[i]->piece;

		/* A call that goes on for so long still may be right or not. */
		if (piece->open && a->last_ns >= piece->start_ns + D9__HUNG_NS)
			return false;
		if (owners[i].left_ns + owners[i].taken_ns >= LEAST_ROOM_NS &&
		    (d9__owners_share(&owners[i], owners[i].awake_ns) >= ROOM_SHARE ||
		     d9__worker_was_missed(a->timeline.items[i])))
			return false;
	}
	return a->latency.woken_over_5ms == 0 && is_accounted(a);
}

/* ---- words ---- */

const char *d9__owner_name(const struct d9__owner *owner, char *buf, size_t size)
{
	static const char *const words[] = {
		[D9__OWNER_LIBRARY] = "library",
		[D9__OWNER_WAIT] = "CPU time inside waits",
		[D9__OWNER_BETWEEN] = "between rounds",
	};
	struct d9__shown_name name;

	if (!owner->callback) {
		snprintf(buf, size, "%s", words[owner->kind]);
		return buf;
	}
	name = d9__finding_name(owner->callback);
	snprintf(buf, size, "%s%.*s",
		 owner->kind == D9__OWNER_CHECK	    ? "check() of "
		 : owner->kind == D9__OWNER_PREPARE ? "prepare() of "
						    : "",
		 name.len, name.text);
	return buf;
}

/* Where |owner| sleeps: by what was told of most of that, or else by where it was found. */
static void describe_place(const struct d9__analysis *a, const struct d9__owner *owner, char *buf,
			   size_t size)
{
	const struct d9__callback *callback = owner->callback;
	struct d9__finding_blocked blocked;
	uint64_t told_ns = owner->told.n ? owner->told.in[0].ns : 0;

	buf[0] = '\0';
	if (callback && d9__finding_blocked_most(a, callback, &blocked))
		snprintf(buf, size, "%s %s", blocked.lock ? "for" : "in", blocked.what);
	else if (callback && callback->n_asleep && 2 * told_ns < owner->blocked_ns)
		d9__finding_asleep(callback->asleep[0].place, buf, size);
	else if (told_ns)
		snprintf(buf, size, "in %s()", owner->told.in[0].function);
}

/* " (76 % asleep in read(3))" */
static void describe_asleep(const struct d9__analysis *a, const struct d9__owners *owners,
			    const struct d9__owner *owner, char *buf, size_t size)
{
	double share = d9__owners_share(owners, owner->blocked_ns);
	char place[96];

	buf[0] = '\0';
	if (share < TOLD_SHARE || ASLEEP_PART * owner->blocked_ns < owner->ns)
		return;
	describe_place(a, owner, place, sizeof(place));
	snprintf(buf, size, " (%.0f %% asleep%s%s)", 100 * share, place[0] ? " " : "", place);
}

void d9__owners_inside(const struct d9__analysis *a, char *buf, size_t size)
{
	static const char *const libraries[][2] = { { "libevent", "libevent" },
						    { "libev", "libev" },
						    { "glib", "GLib" } };
	const char *name = "its library";

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (d9__metadata_is_only(&a->metadata, libraries[i][0]))
			name = libraries[i][1];
	snprintf(buf, size, "inside %s", name);
}

/* Whether |owner|'s time is what the recorder saw burning in the library without a callback. */
static bool is_inside(const struct d9__owners *owners, const struct d9__owner *owner)
{
	return (owner->kind == D9__OWNER_LIBRARY || owner->kind == D9__OWNER_WAIT) &&
	       owners->library_ns && 2 * owners->library_ns >= owner->ns &&
	       INSIDE_PART * owner->ns >= owners->left_ns;
}

void d9__owners_text(const struct d9__analysis *a, const struct d9__owners *owners, size_t max,
		     char *buf, size_t size)
{
	uint64_t others_ns = owners->others_ns;
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < owners->n; i++) {
		const struct d9__owner *owner = &owners->items[i];
		double share = d9__owners_share(owners, owner->ns);
		char name[128], asleep[128] = "";

		if (i >= max || share < TOLD_SHARE) {
			others_ns += owner->ns;
			continue;
		}
		describe_asleep(a, owners, owner, asleep, sizeof(asleep));
		d9__owner_name(owner, name, sizeof(name));
		if (is_inside(owners, owner))
			d9__owners_inside(a, name, sizeof(name));
		snprintf(buf + used, size - used, "%s%s %.0f %%%s", used ? ", " : "", name,
			 100 * share, asleep);
		used += strlen(buf + used);
	}
	if (d9__owners_share(owners, others_ns) >= TOLD_SHARE)
		snprintf(buf + used, size - used, "%sothers %.0f %%", used ? ", " : "",
			 100 * d9__owners_share(owners, others_ns));
}
