/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that blocked, in findings: which, from where, and who held the lock. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/advice.h"
#include "findings/check_parts.h"
#include "text/units.h"

#define SITES_TOLD 3

/* ", had it for 25.0 ms, 0.10 ms of them on the CPU": whether it computed, or slept with the lock.
 */
static void describe_meanwhile(const struct d9__blocked_event *held, char *buf, size_t size)
{
	bool known = held->held_cpu_ns != UINT64_MAX;
	bool ready = held->held_ready_ns != UINT64_MAX && 10 * held->held_ready_ns >= held->held_ns;

	buf[0] = '\0';
	if (held->held_ns)
		snprintf(buf, size, ", had it for %.20s%s%.20s%s%s%.20s%s",
			 d9__units_ns(held->held_ns).text, known ? ", " : "",
			 known ? d9__units_ns(held->held_cpu_ns).text : "",
			 known ? " of them on the CPU" : "", ready ? ", " : "",
			 ready ? d9__units_ns(held->held_ready_ns).text : "",
			 ready ? " ready without one" : "");
}

void d9__finding_holder(const struct d9__analysis *a, const struct d9__blocked_site *site, char *buf, size_t size)
{
	const struct d9__blocked_event *held = &site->calls.longest_held;
	const struct d9__worker *worker;
	char where[192], at[256] = "", by[80] = "", who[32], meanwhile[160];

	buf[0] = '\0';
	if (!site->calls.held)
		return;
	worker = d9__samples_worker(&a->samples, held->holder_tid);
	d9__blocked_held_where(site, where, sizeof(where));
	if (where[0])
		snprintf(at, sizeof(at), ", released at %s", where);
	describe_meanwhile(held, meanwhile, sizeof(meanwhile));
	if (held->holder) {
		struct d9__shown_name name = d9__finding_name(held->holder);

		snprintf(by, sizeof(by), "%.*s of ", name.len < 64 ? name.len : 64, name.text);
	}
	if (worker)
		snprintf(who, sizeof(who), "worker %llu", (unsigned long long)worker->id);
	else if (held->holder_name[0])
		snprintf(who, sizeof(who), "thread %s", held->holder_name);
	else
		snprintf(who, sizeof(who), "thread %u", held->holder_tid);
	snprintf(buf, size, "%s%s%s%s", by, who, at, meanwhile);
}

/* "fsync(7) at db_commit (svc.c:53)", "a lock at use_index (svc.c:45)" */
static void describe(const struct d9__blocked_site *site, char *buf, size_t size)
{
	const char *waits_for = d9__blocked_waits_for(site->calls.function);
	char what[64], where[192];

	if (waits_for)
		snprintf(what, sizeof(what), "%s", waits_for);
	else
		d9__blocked_what(&site->calls, what, sizeof(what));
	d9__blocked_where(site, where, sizeof(where));
	snprintf(buf, size, "%s%s%s", what, where[0] ? " at " : "", where);
}

static void put_site(FILE *out, const struct d9__analysis *a, const struct d9__blocked_site *site)
{
	char what[288], holder[400];

	describe(site, what, sizeof(what));
	d9__finding_holder(a, site, holder, sizeof(holder));
	fprintf(out, "%s%s%s, %s time%s, %s in all", what, holder[0] ? ", held by " : "", holder,
		d9__units_count(site->calls.n).text, site->calls.n == 1 ? "" : "s",
		d9__units_ns(site->calls.total_ns).text);
}

/* Whether the calls of |callback| spend enough of their time in |ns| that it is worth telling. */
static bool is_much(const struct d9__callback *callback, uint64_t ns, unsigned part)
{
	return part * ns >= callback->durations.sum;
}

/* |part| of |all| ns, scaled to |ns|, if that is less. */
static uint64_t scaled(uint64_t part, uint64_t all, uint64_t ns)
{
	return ns < all ? (uint64_t)((double)part * (double)ns / (double)all) : part;
}

/*
 * A preempted thread's system call is not what it waited for: of the time that |callback| slept,
 * what waits for locks, disks and the like do not explain is that of its reads and writes, whatever
 * the clock says of these.
 */
static void count_slept(const struct d9__callback *callback, struct d9__blocked_site *sites,
			size_t n)
{
	uint64_t slept_ns = callback->time.blocked_ns, io_ns = 0, sure_ns = 0, left_ns;

	for (size_t i = 0; i < n; i++)
		*(d9__advice_is_io(sites[i].calls.function) ? &io_ns : &sure_ns) +=
			sites[i].calls.total_ns;
	left_ns = slept_ns > sure_ns ? slept_ns - sure_ns : 0;
	for (size_t i = 0; i < n; i++) {
		struct d9__blocked_calls *calls = &sites[i].calls;

		calls->total_ns = d9__advice_is_io(calls->function)
					  ? scaled(calls->total_ns, io_ns, left_ns)
					  : scaled(calls->total_ns, sure_ns, slept_ns);
	}
}

static int compare_slept(const void *left, const void *right)
{
	const struct d9__blocked_calls *a = &((const struct d9__blocked_site *)left)->calls;
	const struct d9__blocked_calls *b = &((const struct d9__blocked_site *)right)->calls;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return a->longest.at_ns < b->longest.at_ns ? -1 : a->longest.at_ns > b->longest.at_ns;
}

/* The sites of |callback|, by the time that it slept there; as d9__blocked_sites() gives them. */
static struct d9__blocked_site *slept_sites(const struct d9__analysis *a,
					    const struct d9__callback *callback, size_t *n)
{
	struct d9__blocked_site *sites = d9__blocked_sites(&a->blocked, callback, n);

	if (!sites)
		return NULL;
	/* Without readings the clock is all there is. */
	if (callback->time.blocked_ns)
		count_slept(callback, sites, *n);
	qsort(sites, *n, sizeof(*sites), compare_slept);
	return sites;
}

char *d9__finding_blocked(const struct d9__analysis *a, const struct d9__callback *callback)
{
	size_t n, size;
	struct d9__blocked_site *sites = slept_sites(a, callback, &n);
	char *text = NULL;
	FILE *out;

	if (!sites || !n || !is_much(callback, sites[0].calls.total_ns, 5) || !(out = open_memstream(&text, &size))) {
		free(sites);
		return NULL;
	}
	for (size_t i = 0; i < n && i < SITES_TOLD && is_much(callback, sites[i].calls.total_ns, 10); i++) {
		fprintf(out, "%s", i ? "; " : "");
		put_site(out, a, &sites[i]);
	}
	if (fclose(out)) {
		free(text);
		text = NULL;
	}
	free(sites);
	return text;
}

bool d9__finding_blocked_most(const struct d9__analysis *a, const struct d9__callback *callback,
			      struct d9__finding_blocked *out)
{
	size_t n;
	struct d9__blocked_site *sites = slept_sites(a, callback, &n), *most;
	uint64_t sum_ns = 0;
	char holder[400];
	const char *waits_for;

	if (!sites)
		return false;
	for (size_t i = 0; i < n; i++)
		sum_ns += sites[i].calls.total_ns;
	/* Where it sleeps in other ways, too, what it was found in says more. */
	if (!n || 2 * sum_ns < callback->blocked.sum) {
		free(sites);
		return false;
	}
	most = &sites[0];
	describe(most, out->place, sizeof(out->place));
	waits_for = d9__blocked_waits_for(most->calls.function);
	d9__finding_holder(a, most, holder, sizeof(holder));
	out->lock = waits_for != NULL;
	out->at_ns = most->calls.longest.at_ns;
	out->ns = most->calls.longest.ns;
	snprintf(out->call, sizeof(out->call), "%.40s", most->calls.function);
	if (waits_for)
		snprintf(out->what, sizeof(out->what), "%s", waits_for);
	else
		d9__blocked_what(&most->calls, out->what, sizeof(out->what));
	snprintf(out->function, sizeof(out->function), "%.40s", most->frame ? most->frame->function : "");
	snprintf(out->holder, sizeof(out->holder), "%s", holder);
	snprintf(out->held_in, sizeof(out->held_in), "%.40s", most->held ? most->held->function : "");
	free(sites);
	return true;
}
