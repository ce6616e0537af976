/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of shares: loops at their limit, and who has most of their time. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/hot.h"
#include "findings/advice.h"
#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* One that works for nothing is told from this share of its loop's time on. */
#define NOTHING_SHARE 0.1

/* Owners that are told. */
#define OWNERS_TOLD 3

bool d9__finding_is_io_recorded(const struct d9__analysis *a)
{
	const char *io = d9__metadata_value(&a->metadata, "source.io");

	return io && !strcmp(io, "on");
}

/* Whether most calls of |owner| read or wrote, and nothing came of it. */
static bool works_for_nothing(const struct d9__owner *owner)
{
	return owner->kind == D9__OWNER_CALLBACK && 2 * d9__io_calls(&owner->io) >= owner->calls &&
	       2 * d9__io_useful(&owner->io) < owner->calls;
}

/* Whether an earlier check says of |callback| that it has the loop. */
static bool is_accused(const struct d9__findings *findings, const struct d9__callback *callback)
{
	for (size_t i = 0; i < findings->n; i++) {
		const struct d9__finding *finding = findings->items[i];

		if (finding->callback == callback && finding->severity < D9__INFO &&
		    (finding->about == D9__ABOUT_TIME || finding->about == D9__ABOUT_WAKES))
			return true;
	}
	return d9__finding_is_explained(findings, callback);
}

static void saturated(struct d9__findings *findings, const struct d9__worker *worker,
		      const struct d9__owners *owners)
{
	const struct d9__owner *most = &owners->items[0];
	char who[512], name[128];
	struct d9__finding *finding;
	double share = d9__owners_share(owners, owners->awake_ns);

	d9__owners_text(findings->analysis, owners, OWNERS_TOLD, who, sizeof(who));
	finding = d9__finding_add(
		findings, D9__INFO, owners->awake_ns,
		"Look at the largest owner first: with more to do this loop falls behind, and all "
		"that it serves waits. "
		"Give part of it to another thread or process, or let each call do less.",
		"Worker %" PRIu64 " is at its limit: awake for %.0f %% of the time that the "
		"machine left it, busy for "
		"%s without a break (%s)%s.",
		worker->id, 100 * share, d9__units_ns(worker->loop_time.busy.longest_ns).text, who,
		d9__finding_is_io_recorded(findings->analysis)
			? ""
			: "; what its reads and writes brought is not recorded");
	if (most->callback)
		d9__finding_set_callback(findings, finding, most->callback);
	d9__finding_set_brief(findings, finding,
			      "%sworker %" PRIu64 " is awake for %.0f %% of the time",
			      most->callback ? "has most of it: " : "", worker->id, 100 * share);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .at_ns = worker->loop_time.busy.longest_from_ns,
					 .duration_ns = worker->loop_time.busy.longest_ns,
					 .has_worker = true,
					 .worker = worker->id },
		"the longest stretch; %s has most, %s calls in %s",
		d9__owner_name(most, name, sizeof(name)), d9__units_count(most->calls).text,
		d9__units_ns(most->ns).text);
}

/* ---- works for nothing ---- */

/* "EMFILE", or "errno 131" of a rare one. */
static const char *name_errno(uint64_t number, char *buf, size_t size)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ EBADF, "EBADF" },
		{ ECONNABORTED, "ECONNABORTED" },
		{ ECONNREFUSED, "ECONNREFUSED" },
		{ ECONNRESET, "ECONNRESET" },
		{ EINTR, "EINTR" },
		{ EINVAL, "EINVAL" },
		{ EIO, "EIO" },
		{ EMFILE, "EMFILE" },
		{ EMSGSIZE, "EMSGSIZE" },
		{ ENFILE, "ENFILE" },
		{ ENOBUFS, "ENOBUFS" },
		{ ENOSPC, "ENOSPC" },
		{ ENOTCONN, "ENOTCONN" },
		{ EPIPE, "EPIPE" },
		{ ETIMEDOUT, "ETIMEDOUT" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((uint64_t)names[i].number == number)
			return names[i].name;
	snprintf(buf, size, "errno %" PRIu64, number);
	return buf;
}

/* Whether most calls were reads that ended well and took nothing: with MSG_PEEK. */
static bool only_looks(const struct d9__io *io)
{
	return 2 * (d9__io_useful(io) + io->again + io->eof + io->errors) < d9__io_calls(io);
}

/* "read(7) returns 0", "accept(3) fails with EMFILE", "there is nothing to read or write (EAGAIN)":
 * the most frequent. */
void d9__finding_nothing(const struct d9__io *io, char *buf, size_t size)
{
	const char *call = io->accepts > io->reads + io->writes ? "accept"
			   : io->reads >= io->writes		? "read"
								: "write";
	char fd[32] = "", number[32];

	if (io->fd >= 0)
		snprintf(fd, sizeof(fd), "%" PRId64, io->fd);
	if (only_looks(io))
		snprintf(buf, size, "read(%s) takes nothing (MSG_PEEK)", fd);
	else if (io->eof >= io->again && io->eof >= io->errors)
		snprintf(buf, size, "read(%s) returns 0", fd);
	else if (io->errors >= io->again)
		snprintf(buf, size, "%s(%s) fails with %s", call, fd,
			 name_errno(io->last_errno, number, sizeof(number)));
	else
		snprintf(buf, size, "%s(%s) has to wait (EAGAIN)", call, fd);
}

const char *d9__finding_nothing_advice(const struct d9__io *io)
{
	if (only_looks(io))
		return "Take what there is and keep it until the message is whole: a look "
		       "(MSG_PEEK) leaves it there, and the descriptor stays ready.";
	if (io->eof >= io->again && io->eof >= io->errors)
		return "Close the descriptor and free its event when read() returns 0: the peer "
		       "has hung up, and the "
		       "descriptor stays readable for ever.";
	if (io->errors >= io->again && io->accepts)
		return "Stop to listen until a descriptor is free, or raise the limit "
		       "(RLIMIT_NOFILE): the connection stays in "
		       "the queue, and the listener stays ready.";
	if (io->errors >= io->again)
		return "Close the descriptor and free its event when a call fails like that: it "
		       "stays ready for ever.";
	return "Wait for the event that the call needs: remove the one for writing while there is "
	       "nothing to write, and "
	       "read where the loop says that there is something to read.";
}

static void for_nothing(struct d9__findings *findings, const struct d9__worker *worker,
			const struct d9__owners *owners, const struct d9__owner *owner)
{
	uint64_t total_ns = d9__loop_time_total_ns(&worker->loop_time);
	uint64_t useless = owner->io.again + owner->io.eof + owner->io.errors;
	struct d9__shown_name name = d9__finding_name(owner->callback);
	double share = d9__owners_share(owners, owner->ns);
	struct d9__finding *finding;
	char nothing[96];

	d9__finding_nothing(&owner->io, nothing, sizeof(nothing));
	finding = d9__finding_add(
		findings, D9__CRITICAL, owner->ns, d9__finding_nothing_advice(&owner->io),
		"%.*s works for nothing, %.0f %% of worker %" PRIu64
		"'s time: it is called %s times a second, and %s.",
		name.len, name.text, 100 * share, worker->id,
		d9__units_count(d9__finding_rate(owner->calls, total_ns)).text, nothing);
	d9__finding_set_callback(findings, finding, owner->callback);
	d9__finding_set_brief(findings, finding, "works for nothing, %.0f %% of the time: %s",
			      100 * share, nothing);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .at_ns = worker->loop_time.busy.longest_from_ns,
					 .duration_ns = worker->loop_time.busy.longest_ns,
					 .has_worker = true,
					 .worker = worker->id,
					 .callback = owner->callback },
		"the loop was busy; of %s reads, writes and accepts in %s calls %s brought "
		"nothing: %s "
		"EAGAIN, %s with 0 bytes, %s errors",
		d9__units_count(d9__io_calls(&owner->io)).text, d9__units_count(owner->calls).text,
		d9__units_count(useless).text, d9__units_count(owner->io.again).text,
		d9__units_count(owner->io.eof).text, d9__units_count(owner->io.errors).text);
}

/* Whether it is told already that |callback| goes round for nothing. */
static bool is_spin(const struct d9__findings *findings, const struct d9__callback *callback)
{
	for (size_t i = 0; i < findings->n; i++)
		if (findings->items[i]->callback == callback &&
		    (!strcmp(findings->items[i]->check, "spin") ||
		     !strcmp(findings->items[i]->check, "accept-storm")))
			return true;
	return false;
}

/* ---- is called again at once ---- */

/* Calls that take longer do a piece of work, and let the loop look after each: nothing is wrong. */
#define AGAIN_NS (75 * D9__US_NS)

/* Told from so many a second on, of so few timers or descriptors. */
#define AGAIN_RATE  2000
#define AGAIN_TASKS 4

/* Where fewer calls than one in so many read or wrote, that is not what they are for. */
#define AGAIN_IO_PART 10

enum again { NOT_AGAIN, AGAIN_BY_ITSELF, AGAIN_BY_DESCRIPTOR };

/*
 * Why |owner|'s loop calls it again and again, for calls that are short and neither read nor write:
 * by a timer that is due at once, an idle watcher or a wake of its own; or a descriptor stays
 * ready.
 */
static enum again asks_again(const struct d9__analysis *a, const struct d9__owners *owners,
			     const struct d9__owner *owner)
{
	const struct d9__callback *callback = owner->callback;
	uint64_t by_timer = 0, by_self = 0;
	char kinds[64];

	if (owner->kind != D9__OWNER_CALLBACK || !d9__finding_is_io_recorded(a) ||
	    a->losses.events || AGAIN_IO_PART * d9__io_calls(&owner->io) > owner->calls ||
	    4 * owner->blocked_ns > owner->ns || owner->ns > AGAIN_NS * owner->calls ||
	    d9__finding_rate(owner->calls, owners->left_ns) < AGAIN_RATE)
		return NOT_AGAIN;
	for (size_t i = 0; i < callback->n_on; i++) {
		by_timer += callback->on[i] ? callback->on[i]->by_timer : 0;
		by_self += callback->on[i] ? callback->on[i]->by_self : 0;
	}
	d9__callback_kinds(&a->callbacks, callback, kinds, sizeof(kinds));
	if (10 * by_self >= 9 * callback->calls || !strcmp(kinds, "idle"))
		return AGAIN_BY_ITSELF;
	if (callback->peak_alive > AGAIN_TASKS)
		return NOT_AGAIN;
	if (10 * by_timer >= 9 * callback->calls)
		return AGAIN_BY_ITSELF;
	return strcmp(kinds, "io") ? NOT_AGAIN : AGAIN_BY_DESCRIPTOR;
}

/* " for descriptor 7", of the latest call. */
static void describe_descriptor(const struct d9__analysis *a, const struct d9__worker *worker,
				const struct d9__callback *callback, char *buf, size_t size)
{
	const struct d9__callback_on *on =
		worker->number < callback->n_on ? callback->on[worker->number] : NULL;
	const struct d9__traced_task *task =
		on ? d9__table_find(&a->tasks.table, on->latest_task) : NULL;

	buf[0] = '\0';
	if (task && task->fd >= 0)
		snprintf(buf, size, " for descriptor %" PRId64, task->fd);
}

static const char by_itself[] =
	"Wait for what it looks for (a descriptor, a wake of another thread), or give the timer a "
	"period: the loop calls it again at once, and never sleeps. If it goes through something "
	"in pieces, make each a millisecond long.";

static const char by_descriptor[] =
	"Read until EAGAIN, or remove the event while what it waits for is of no use: the "
	"descriptor stays ready, and nothing is read from it or written to it. If it is read in a "
	"way that is not counted (inside libc, as eventfd_read() does), the loop has that much to "
	"do.";

static void again(struct d9__findings *findings, const struct d9__worker *worker,
		  const struct d9__owners *owners, const struct d9__owner *owner, enum again why)
{
	uint64_t rate = d9__finding_rate(owner->calls, owners->left_ns);
	struct d9__shown_name name = d9__finding_name(owner->callback);
	double share = d9__owners_share(owners, owner->ns);
	struct d9__finding *finding;
	char descriptor[48] = "";

	if (why == AGAIN_BY_DESCRIPTOR)
		describe_descriptor(findings->analysis, worker, owner->callback, descriptor,
				    sizeof(descriptor));
	finding = d9__finding_add(
		findings, why == AGAIN_BY_DESCRIPTOR ? D9__WARNING : D9__CRITICAL, owner->ns,
		why == AGAIN_BY_DESCRIPTOR ? by_descriptor : by_itself,
		"%.*s is called again at once%s, %s times a second for %.0f %% of worker %" PRIu64
		"'s time, and its calls neither read nor write.",
		name.len, name.text, descriptor, d9__units_count(rate).text, 100 * share,
		worker->id);
	d9__finding_set_callback(findings, finding, owner->callback);
	d9__finding_set_brief(findings, finding,
			      "is called again at once%s, %s times a second, %.0f %% of the time",
			      descriptor, d9__units_count(rate).text, 100 * share);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .at_ns = worker->loop_time.busy.longest_from_ns,
					 .duration_ns = worker->loop_time.busy.longest_ns,
					 .has_worker = true,
					 .worker = worker->id,
					 .callback = owner->callback },
		"the loop was busy; told of calls under %s each, by an idle source, a wake of its "
		"own, or up to %u timers or descriptors",
		d9__units_ns(AGAIN_NS).text, AGAIN_TASKS);
}

void d9__check_works_for_nothing(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__owners *owners = &findings->owners[i];

		if (!d9__owners_may_be_saturated(worker, owners))
			continue;
		for (size_t j = 0; j < owners->n && j < OWNERS_TOLD; j++) {
			const struct d9__owner *owner = &owners->items[j];
			enum again why;

			if (d9__owners_share(owners, owner->ns) < NOTHING_SHARE ||
			    is_spin(findings, owner->callback))
				continue;
			if (works_for_nothing(owner))
				for_nothing(findings, worker, owners, owner);
			else if ((why = asks_again(a, owners, owner)) != NOT_AGAIN)
				again(findings, worker, owners, owner, why);
		}
	}
}

/* ---- at its limit ---- */

void d9__check_saturated(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__owners *owners = &findings->owners[i];
		const struct d9__owner *most = &owners->items[0];

		if (!d9__owners_saturated(worker, owners) ||
		    (most->callback && is_accused(findings, most->callback)))
			continue;
		/* One that has so much to do has an account, and nothing is wrong with it. */
		if (!d9__io_useful(&most->io))
			saturated(findings, worker, owners);
	}
}

/* ---- short calls that add up ---- */

/* A function is told from this share of its loop's time on; fewer samples are chance. */
#define SUM_SHARE   0.1
#define SUM_SAMPLES 10

/* Functions that are told apart, and callbacks that are named. */
#define FUNCTIONS_MAX 32
#define CALLERS_TOLD  3

struct sum {
	const struct d9__frame_name *frame;
	uint64_t samples, calls;
	uint64_t ns; /* of CPU time, that the samples stand for */
	const struct d9__callback *callers[CALLERS_TOLD];
	size_t n_callers; /* of all */
	bool accused;
};

/* |callback| was found in |spot|'s function. */
static void add_spot(struct d9__findings *findings, struct sum *sums, size_t *n,
		     const struct d9__callback *callback, const struct d9__spot *spot)
{
	const struct d9__frame_name *frame = &spot->stack->names[spot->frame];
	size_t i = 0;

	while (i < *n &&
	       (sums[i].frame->function != frame->function || sums[i].frame->file != frame->file))
		i++;
	if (i == FUNCTIONS_MAX || !d9__frame_is_program(frame) || !frame->known)
		return;
	if (i == *n)
		sums[(*n)++] = (struct sum) { .frame = frame };
	sums[i].samples += spot->n;
	sums[i].ns += d9__weight_ns(&callback->weight, spot->n,
				    findings->analysis->samples.period_ns);
	sums[i].calls += callback->calls;
	sums[i].accused |= is_accused(findings, callback);
	if (sums[i].n_callers < CALLERS_TOLD)
		sums[i].callers[sums[i].n_callers] = callback;
	sums[i].n_callers++;
}

static void adds_up(struct d9__findings *findings, const struct sum *sum, double share)
{
	const char *remedy = d9__advice_computes(findings, sum->callers[0]);
	struct d9__finding *finding;
	char place[160] = "";

	if (sum->frame->file)
		snprintf(place, sizeof(place), " (%.120s:%u)", sum->frame->file, sum->frame->line);
	/* One that asks for a lock again and again waits for another thread, and does no work. */
	finding = d9__finding_add(
		findings, d9__advice_asks_again(sum->callers[0]) ? D9__WARNING : D9__INFO, sum->ns,
		remedy ? remedy
		       : "Do it in a thread, or less often, or keep what comes again in "
			 "a cache, if others wait too long: no call is long, and "
			 "together they have that much of the loop.",
		"%s%s has %.0f %% of the loops' time in short calls, %s in all, "
		"in %s calls of %zu callback%s.",
		sum->frame->function, place, 100 * share, d9__units_ns(sum->ns).text,
		d9__units_count(sum->calls).text, sum->n_callers, sum->n_callers == 1 ? "" : "s");
	d9__finding_set_name(findings, finding, sum->frame->function, strlen(sum->frame->function));
	d9__finding_set_brief(findings, finding, "has %.0f %% of the time in %s short calls",
			      100 * share, d9__units_count(sum->calls).text);
	for (size_t i = 0; i < sum->n_callers && i < CALLERS_TOLD; i++) {
		struct d9__shown_name name = d9__finding_name(sum->callers[i]);

		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence) { .callback = sum->callers[i] },
					 "called by %.*s, %s calls, at most %s each", name.len,
					 name.text, d9__units_count(sum->callers[i]->calls).text,
					 d9__units_ns(sum->callers[i]->durations.max).text);
	}
}

void d9__check_adds_up(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct sum sums[FUNCTIONS_MAX];
	uint64_t left_ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < a->timeline.n; i++)
		if (findings->owners[i].awake_ns)
			left_ns += findings->owners[i].left_ns;
	if (left_ns < D9__SECOND_NS || d9__finding_told(findings, "saturated") ||
	    !a->samples.period_ns)
		return;
	for (size_t i = 0; i < a->callbacks.n; i++) {
		struct d9__spot spots[CALLERS_TOLD];
		size_t found = d9__hot_spots(a->callbacks.items[i], false, spots, CALLERS_TOLD);

		for (size_t j = 0; j < found; j++)
			add_spot(findings, sums, &n, a->callbacks.items[i], &spots[j]);
	}
	for (size_t i = 0; i < n; i++) {
		double share = (double)sums[i].ns / (double)left_ns;

		if (sums[i].samples >= SUM_SAMPLES && share >= SUM_SHARE && !sums[i].accused)
			adds_up(findings, &sums[i], share);
	}
}
