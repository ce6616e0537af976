/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts: whose the time of each loop was, a line a loop on the first screen, and all of it in
 * JSON.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/before.h"
#include "findings/owners.h"
#include "report/report.h"
#include "report/report_parts.h"
#include "text/json.h"
#include "text/page.h"
#include "text/units.h"

/* Loops that have a line, and owners in it. */
#define LOOPS_MAX  3
#define OWNERS_MAX 3

/* Time ready without a CPU is told from this part of the time awake on, one in so many. */
#define TAKEN_PART 20

/* The time before a loop's first round is told if it is so long, and one in so many parts of all.
 */
#define BEFORE_NS   (100 * D9__MS_NS)
#define BEFORE_PART 10

/* Reads of so little are told with how much they read. */
#define SMALL_BYTES 16

/* A loop that moves data with fewer of its calls, one in so many, is at no limit of that. */
#define FEW_PART 10

struct account {
	const struct d9__analysis *a;
	const struct d9__worker *worker;
	const struct d9__owners *owners;
};

/* Loops that were awake most come first, by the time that the machine left them. */
static int compare(const void *left, const void *right)
{
	const struct account *a = left, *b = right;
	double of_a = d9__owners_share(a->owners, a->owners->awake_ns);
	double of_b = d9__owners_share(b->owners, b->owners->awake_ns);

	if (of_a != of_b)
		return of_a < of_b ? 1 : -1;
	return (a->worker->id > b->worker->id) - (a->worker->id < b->worker->id);
}

/* All loops with any time, in new memory: |*n| of them.  NULL: out of memory. */
static struct account *make_accounts(const struct d9__report_all *all, size_t *n)
{
	struct account *accounts;
	size_t workers = 0;

	for (size_t i = 0; i < all->n; i++)
		workers += all->reports[i].analysis->timeline.n;
	*n = 0;
	accounts = calloc(workers + 1, sizeof(*accounts));
	for (size_t i = 0; i < all->n && accounts; i++) {
		const struct d9__analysis *a = all->reports[i].analysis;

		for (size_t j = 0; j < a->timeline.n; j++) {
			struct account *account = &accounts[*n];

			account->a = a;
			account->worker = a->timeline.items[j];
			account->owners = &all->reports[i].findings->owners[j];
			*n += account->owners->left_ns > 0;
		}
	}
	if (accounts)
		qsort(accounts, *n, sizeof(*accounts), compare);
	return accounts;
}

bool d9__report_has_loops(const struct d9__report_all *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->reports[i].analysis->timeline.n)
			return true;
	return false;
}

/* Whether |worker| is the first thread, and nothing but the program has given it a name. */
static bool is_main(const struct d9__analysis *a, const struct d9__worker *worker, const char *name)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", worker->tid);
	return !strcmp(tid, d9__report_pid(a)) &&
	       (!name || !strcmp(name, worker->thread_name) ||
		!strncmp(name, d9__report_program(a), strlen(name)));
}

void d9__report_loop_name(const struct d9__analysis *a, const struct d9__worker *worker, char *buf,
			  size_t size)
{
	const char *name = d9__analysis_worker_name(a, worker);

	if (is_main(a, worker, name))
		name = "main";
	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "worker %llu", (unsigned long long)worker->id);
}

/* A share that is not 0 is not told as "0 %". */
static void put_percent(FILE *out, double share)
{
	if (share > 0 && share < 0.005)
		fputs("under 1 %", out);
	else
		fprintf(out, "%.0f %%", 100 * share);
}

void d9__report_put_awake(FILE *out, const struct d9__analysis *a, const struct d9__owners *owners,
			  bool cpu)
{
	char text[1024];

	d9__owners_text(a, owners, OWNERS_MAX, text, sizeof(text));
	put_percent(out, d9__owners_share(owners, owners->awake_ns));
	fputs(" awake", out);
	if (cpu) {
		fputs(", ", out);
		put_percent(out, d9__owners_share(owners, owners->cpu_ns));
		fputs(" CPU", out);
	}
	fprintf(out, "%s%s", text[0] ? ": " : "", text);
}

void d9__report_put_taken(FILE *out, const struct d9__owners *owners)
{
	/* Of a loop that hardly ever woke it is no matter. */
	if (100 * owners->taken_ns < owners->taken_ns + owners->left_ns ||
	    TAKEN_PART * owners->taken_ns < owners->awake_ns + owners->taken_ns)
		return;
	fputs("; without a CPU for another ", out);
	put_percent(out, (double)owners->taken_ns / (double)(owners->taken_ns + owners->left_ns));
	fputs(" of the time", out);
}

/* Calls of the largest owners. */
static uint64_t calls_of(const struct d9__owners *owners)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < owners->n; i++)
		calls += owners->items[i].calls;
	return calls;
}

/* "; at its limit: 240,000 reads with data a second": of a loop that is busy with something, what
 * it does most. */
static void put_limit(FILE *out, const struct account *account)
{
	const struct d9__io *io = &account->owners->io;
	uint64_t useful = d9__io_useful(io),
		 total_ns = d9__loop_time_total_ns(&account->worker->loop_time);
	bool accepts = io->accepts > io->reads + io->writes, reads = io->reads >= io->writes;
	uint64_t most = accepts ? io->accepts : reads ? io->reads : io->writes;

	if (!d9__owners_saturated(account->worker, account->owners) ||
	    !d9__owners_move_data(account->owners) || 2 * useful < d9__io_calls(io) || !useful ||
	    FEW_PART * useful < calls_of(account->owners))
		return;
	/* It is reads above all that bring nothing. */
	if (reads && !accepts)
		most = useful > io->writes + io->accepts ? useful - io->writes - io->accepts : 0;
	if (!most)
		return;
	fprintf(out, "; at its limit: %s %s a second",
		d9__units_count(d9__finding_rate(most, total_ns)).text,
		accepts ? "connections accepted"
		: reads ? "reads with data"
			: "writes");
	if (reads && !accepts && io->read_bytes <= SMALL_BYTES * most)
		fprintf(out, ", %s each", d9__units_bytes(io->read_bytes / most).text);
}

/* "; began 2.31 s after the recording, 62 % in load_config (svc.c:30)": before its first round. */
static void put_before(FILE *out, const struct account *account)
{
	uint64_t ns = d9__before_ns(account->a, account->worker);
	uint64_t all_ns = ns + d9__loop_time_total_ns(&account->worker->loop_time);
	char *place;

	if (ns < BEFORE_NS || BEFORE_PART * ns < all_ns)
		return;
	place = d9__before_describe(account->a, account->worker);
	fprintf(out, "; began %s after the recording%s%s", d9__units_ns(ns).text, place ? ", " : "",
		place ? place : "");
	free(place);
}

static void put_line(const struct d9__report_all *all, const struct account *account)
{
	char loop[128], name[192], *line = NULL;
	struct d9__page *page = all->page;
	size_t size;
	FILE *out = open_memstream(&line, &size);

	if (!out) {
		page->err = -ENOMEM;
		return;
	}
	d9__report_loop_name(account->a, account->worker, loop, sizeof(loop));
	snprintf(name, sizeof(name), "%s%s%s", all->n > 1 ? d9__report_pid(account->a) : "",
		 all->n > 1 ? " " : "", loop);
	d9__report_put_awake(out, account->a, account->owners, false);
	put_limit(out, account);
	d9__report_put_taken(out, account->owners);
	put_before(out, account);
	if (fclose(out)) {
		page->err = -ENOMEM;
	} else {
		d9__page_put(page, D9__BOLD, name);
		d9__page_put(page, D9__PLAIN, "  ");
		d9__page_wrap(page, line, (unsigned)d9__page_columns(page, name) + 2, 2);
	}
	free(line);
}

/* Whether a finding that is graver than "at its limit" accuses the largest owner of |account|. */
static bool is_accused(const struct account *account, const struct d9__report_finding *findings,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct d9__finding *finding = findings[i].finding;

		if (findings[i].report->analysis == account->a && finding->severity < D9__INFO &&
		    finding->callback && !finding->machine &&
		    d9__finding_same_name(finding->callback, account->owners->items[0].callback))
			return true;
	}
	return false;
}

/* The place is the callback's, on whatever loop: it is told once. */
static bool is_told_before(const struct account *accounts, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (d9__owners_saturated(accounts[j].worker, accounts[j].owners) &&
		    accounts[j].owners->items[0].callback == accounts[i].owners->items[0].callback)
			return true;
	return false;
}

static void put_place(struct d9__page *page, const struct account *account)
{
	char *place = d9__owners_place(account->worker, account->owners);

	if (place)
		d9__report_put_labelled(page, "  at: ", place, false);
	free(place);
}

void d9__report_accounts(const struct d9__report_all *all,
			 const struct d9__report_finding *findings, size_t n_findings, bool places)
{
	size_t n;
	struct account *accounts = make_accounts(all, &n);

	if (!accounts) {
		all->page->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n && i < LOOPS_MAX; i++) {
		put_line(all, &accounts[i]);
		if (places && accounts[i].owners->items[0].callback &&
		    !is_told_before(accounts, i) && !is_accused(&accounts[i], findings, n_findings))
			put_place(all->page, &accounts[i]);
	}
	if (n > LOOPS_MAX)
		d9__page_line(all->page, "and %zu more loop%s, awake for %.0f %% at most",
			      n - LOOPS_MAX, n - LOOPS_MAX == 1 ? "" : "s",
			      100 * d9__owners_share(accounts[LOOPS_MAX].owners,
						     accounts[LOOPS_MAX].owners->awake_ns));
	free(accounts);
}

/* ---- JSON ---- */

static void put_owner(struct d9__json *json, const struct d9__owners *owners,
		      const struct d9__owner *owner)
{
	static const char *const kinds[] = {
		[D9__OWNER_CALLBACK] = "callback", [D9__OWNER_PREPARE] = "prepare",
		[D9__OWNER_CHECK] = "check",	   [D9__OWNER_LIBRARY] = "library",
		[D9__OWNER_WAIT] = "wait",	   [D9__OWNER_BETWEEN] = "between",
	};
	char name[256];

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "kind", kinds[owner->kind]);
	d9__json_string(json, "name", d9__owner_name(owner, name, sizeof(name)));
	d9__json_u64(json, "ns", owner->ns);
	d9__json_u64(json, "blocked_ns", owner->blocked_ns);
	d9__json_u64(json, "calls", owner->calls);
	d9__json_double(json, "share", d9__owners_share(owners, owner->ns));
	d9__json_close(json, '}');
}

void d9__report_json_owners(struct d9__json *json, const struct d9__owners *owners)
{
	d9__json_u64(json, "left_ns", owners->left_ns);
	d9__json_u64(json, "awake_ns", owners->awake_ns);
	d9__json_u64(json, "taken_ns", owners->taken_ns);
	d9__json_double(json, "awake", d9__owners_share(owners, owners->awake_ns));
	d9__json_double(json, "cpu", d9__owners_share(owners, owners->cpu_ns));
	d9__json_double(json, "inside_library", d9__owners_share(owners, owners->library_ns));
	d9__json_open(json, "owners", '[');
	for (size_t i = 0; i < owners->n; i++)
		put_owner(json, owners, &owners->items[i]);
	d9__json_close(json, ']');
	d9__json_u64(json, "others_ns", owners->others_ns);
}

void d9__report_json_account(struct d9__json *json, const struct d9__analysis *a,
			     const struct d9__worker *worker, const struct d9__owners *owners)
{
	const struct d9__loop_time *time = &worker->loop_time;
	char *place = d9__owners_place(worker, owners), *before = d9__before_describe(a, worker);

	d9__json_open(json, "account", '{');
	d9__json_u64(json, "before_ns", d9__before_ns(a, worker));
	d9__json_string(json, "before", before);
	d9__json_u64(json, "total_ns", d9__loop_time_total_ns(time));
	d9__json_u64(json, "asleep_ns", time->asleep_ns);
	d9__json_u64(json, "wait_cpu_ns", time->wait_cpu_ns);
	d9__json_u64(json, "wait_ready_ns", time->wait_ready_ns);
	d9__json_u64(json, "callback_ns", time->callback_ns);
	d9__json_u64(json, "round_ns", time->round_ns);
	d9__json_u64(json, "between_ns", time->outside_ns);
	d9__json_u64(json, "between_asleep_ns", time->outside_asleep_ns);
	d9__json_u64(json, "between_ready_ns", time->outside_ready_ns);
	d9__json_u64(json, "between_held_ns", time->outside_held_ns);
	d9__json_u64(json, "stopped_ns", time->stopped_ns);
	d9__json_u64(json, "not_recorded_ns", time->lost_ns);
	d9__json_u64(json, "busy_ns", time->busy.ns);
	d9__json_u64(json, "busy_longest_ns", time->busy.longest_ns);
	d9__report_json_owners(json, owners);
	d9__json_string(json, "on_cpu", place);
	d9__json_close(json, '}');
	free(place);
	free(before);
}
