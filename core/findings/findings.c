/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot.h"
#include "base/utf8.h"
#include "findings/check_calls.h"
#include "findings/check_parts.h"
#include "findings/findings.h"
#include "findings/owners.h"
#include "text/units.h"

/* A unit ends where none of these follows. */
#define UNIT_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* |finding| is no longer one of |findings|. */
static void take_out(struct d9__findings *findings, const struct d9__finding *finding)
{
	size_t at = 0;

	while (findings->items[at] != finding)
		at++;
	findings->n--;
	memmove(&findings->items[at], &findings->items[at + 1], (findings->n - at) * sizeof(*findings->items));
	findings->by_severity[finding->severity]--;
}

static void attach(struct d9__findings *findings, struct d9__finding *effect, struct d9__finding *cause)
{
	take_out(findings, effect);
	cause->effects[cause->n_effects++] = effect;
	if (effect->severity >= cause->severity)
		return;
	findings->by_severity[cause->severity]--;
	cause->severity = effect->severity;
	findings->by_severity[cause->severity]++;
}

static bool is_about_data(const struct d9__finding *finding)
{
	return finding->about == D9__ABOUT_DATA;
}

static bool is_about_recording(const struct d9__finding *finding)
{
	return finding->about == D9__ABOUT_RECORDING;
}

int d9__findings_compare(const struct d9__finding *a, const struct d9__finding *b)
{
	if (is_about_data(a) != is_about_data(b))
		return is_about_data(a) ? -1 : 1;
	if (is_about_recording(a) != is_about_recording(b))
		return is_about_recording(a) ? 1 : -1;
	if (a->severity != b->severity)
		return a->severity < b->severity ? -1 : 1;
	if (a->machine != b->machine)
		return a->machine ? 1 : -1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->impact != b->impact)
		return a->impact > b->impact ? -1 : 1;
	return strcmp(a->message ? a->message : "", b->message ? b->message : "");
}

static int compare(const void *left, const void *right)
{
	return d9__findings_compare(*(struct d9__finding *const *)left,
				    *(struct d9__finding *const *)right);
}

/* Whether calls of both are calls of the same function. */
static bool is_same(const struct d9__callback *a, const struct d9__callback *b)
{
	struct d9__shown_name left = d9__finding_name(a), right = d9__finding_name(b);

	return a == b || (left.len == right.len && !memcmp(left.text, right.text, (size_t)left.len));
}

/* Whether |finding| tells what its callback did, and not what happened to it. */
static bool is_cause(const struct d9__finding *finding)
{
	return finding->callback && (!finding->effect || finding->culprit == finding->callback);
}

/*
 * The finding about the machine, if that is known to have been busy: faults without a culprit stand
 * under it.
 */
static struct d9__finding *machine_of(const struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		if (findings->items[i]->machine)
			return findings->items[i];
	return NULL;
}

/*
 * Whether |effect| may stand under |cause|: what is only worth a note does not explain what is worth a warning, and
 * a loop that is woken for little lets no task wait.
 */
static bool explains(const struct d9__finding *cause, const struct d9__finding *effect)
{
	return cause->rank < effect->rank && cause->about == effect->about &&
	       (cause->severity <= D9__WARNING || cause->severity <= effect->severity);
}

/* The worst finding about |effect|'s culprit. */
static struct d9__finding *cause_of(const struct d9__findings *findings, const struct d9__finding *effect)
{
	if (!effect->culprit)
		return effect->severity == D9__INFO ? machine_of(findings) : NULL;
	for (size_t i = 0; i < findings->n; i++) {
		struct d9__finding *cause = findings->items[i];

		if (explains(cause, effect) && is_cause(cause) && is_same(cause->callback, effect->culprit))
			return cause;
	}
	for (size_t i = 0; i < findings->n_explained; i++) {
		struct d9__finding *cause = findings->explained[i].finding;

		if (cause && explains(cause, effect) && is_same(findings->explained[i].callback, effect->culprit))
			return cause;
	}
	return NULL;
}

/*
 * Whether both tell of the same function: by where it lies, as the program may have several of one name.  What the
 * loop library calls itself is another thing at each site.
 */
static bool is_function_of(const struct d9__callback *a, const struct d9__callback *b)
{
	const char *end_a = strstr(a->location, " @ "), *end_b = strstr(b->location, " @ ");

	/* Nor are two callbacks of a library's that call the same function of the program. */
	if (a != b && a->inner && b->inner)
		return a->inner->function == b->inner->function && a->inner->file == b->inner->file;
	return a != b && end_a && end_b && !a->internal && !b->internal &&
	       end_a - a->location == end_b - b->location &&
	       !memcmp(a->location, b->location, (size_t)(end_a - a->location));
}

/* |other| says of one more place that registers the function what |finding| says. */
static void fold(struct d9__findings *findings, struct d9__finding *finding, struct d9__finding *other)
{
	const char *site = d9__callback_site(other->callback);
	char *hot =
		other->about == D9__ABOUT_TIME ? d9__hot_describe(other->callback, false) : NULL;

	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .callback = other->callback, .task = other->task },
		"as registered at %s, it %s%s%s", site ? site : "another place",
		other->brief ? other->brief : "does the same", hot ? ", " : "", hot ? hot : "");
	free(hot);
	for (size_t i = 0; i < findings->n_explained; i++)
		if (findings->explained[i].finding == other)
			findings->explained[i].finding = finding;
	take_out(findings, other);
	d9__finding_release(other);
}

/* One function is one cause, at however many places it is registered.  The findings are in order. */
static void fold_sites(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		struct d9__finding *finding = findings->items[i];

		for (size_t j = i + 1; j < findings->n;) {
			struct d9__finding *other = findings->items[j];

			if (other->rank == finding->rank && other->callback && finding->callback &&
			    is_function_of(finding->callback, other->callback))
				fold(findings, finding, other);
			else
				j++;
		}
	}
}

/* Whether the texts say the same of other workers: they differ in figures and units alone. */
static bool is_alike(const char *a, const char *b)
{
	static const char figures[] = "0123456789., unmskMGiB%";

	if (!a || !b)
		return a == b;
	for (;;) {
		a += strspn(a, figures);
		b += strspn(b, figures);
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

/* Whether both tell of one thing on two loops: by what they name, or without a name by what they
 * say. */
static bool is_same_on_another(const struct d9__finding *a, const struct d9__finding *b)
{
	if (a->rank != b->rank || a->callback != b->callback || !a->n_evidence || !b->n_evidence ||
	    !a->evidence[0].has_worker || !b->evidence[0].has_worker ||
	    a->evidence[0].worker == b->evidence[0].worker)
		return false;
	return a->name && b->name ? !strcmp(a->name, b->name)
				  : !a->name && !b->name && is_alike(a->brief, b->brief);
}

/* Whether both wait for one lock, as far as is known who held it. */
static bool is_same_lock(const struct d9__finding *a, const struct d9__finding *b)
{
	return a->rank == b->rank && a->held_in[0] && !strcmp(a->held_in, b->held_in);
}

/* |other| is told by |finding|, as is what it explains. */
static void merge(struct d9__findings *findings, struct d9__finding *finding,
		  struct d9__finding *other)
{
	for (size_t i = 0; i < findings->n_explained; i++)
		if (findings->explained[i].finding == other)
			findings->explained[i].finding = finding;
	take_out(findings, other);
	d9__finding_release(other);
}

/* Equal findings of several loops are one, and a lock in which several loops stand is one: the
 * worst tells of all. */
static void fold_loops(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		struct d9__finding *finding = findings->items[i];
		char others[160] = "", waiters[160] = "";
		size_t n_others = 0, n_waiters = 0;

		for (size_t j = i + 1; j < findings->n;) {
			struct d9__finding *other = findings->items[j];

			if (is_same_on_another(finding, other)) {
				size_t used = strlen(others);

				snprintf(others + used, sizeof(others) - used, "%s%" PRIu64,
					 n_others++ ? ", " : "", other->evidence[0].worker);
				merge(findings, finding, other);
			} else if (is_same_lock(finding, other)) {
				struct d9__shown_name waiter = d9__finding_name(other->callback);
				size_t used = strlen(waiters);

				snprintf(waiters + used, sizeof(waiters) - used, "%s%.*s",
					 n_waiters++ ? ", " : "", waiter.len, waiter.text);
				merge(findings, finding, other);
			} else {
				j++;
			}
		}
		if (n_others)
			d9__finding_append(findings, finding, "So it is on %zu other worker%s: %s.",
					   n_others, n_others == 1 ? "" : "s", others);
		if (n_waiters)
			d9__finding_append(findings, finding, "%s wait%s for the same lock.",
					   waiters, n_waiters == 1 ? "s" : "");
	}
}

/* Put consequences under their causes.  The findings are in order. */
static void attach_effects(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n;) {
		struct d9__finding *effect = findings->items[i], *cause = NULL;

		if (effect->effect)
			cause = cause_of(findings, effect);
		if (cause && cause->n_effects < D9__EFFECTS_MAX)
			attach(findings, effect, cause);
		else
			i++;
	}
}

static void sort(struct d9__findings *findings)
{
	if (findings->n)
		qsort(findings->items, findings->n, sizeof(*findings->items), compare);
}

/* Whether its longest call took long itself: where others were long, the machine was busy, or a loop inside waited. */
static bool has_long_calls(const struct d9__callback *callback)
{
	return callback->n_stalls && callback->stalls[0].ns >= D9__STALL_NS;
}

/* Where the callbacks that are accused were found on the CPU, and what they block in. */
static void add_hot(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		struct d9__finding *finding = findings->items[i];

		if (!finding->callback || finding->machine)
			continue;
		finding->hot = d9__hot_describe(finding->callback, false);
		if (has_long_calls(finding->callback))
			finding->blocked = d9__finding_blocked(findings->analysis, finding->callback);
	}
}

/* Whether |finding| tells of many short calls together, and of none of the longest ones. */
static bool is_of_short_calls(const struct d9__finding *finding)
{
	static const char *const checks[] = { "spin",	     "works-for-nothing", "long-round",
					      "wake-storm",  "empty-wakes",	  "accept-storm",
					      "idle-wakes",  "many-wakes",	  "saturated" };

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(finding->check, checks[i]))
			return true;
	return false;
}

/* Where the time of its longest calls went; nothing, if nothing is known of it. */
static void add_time(struct d9__findings *findings, struct d9__finding *finding)
{
	const struct d9__callback *callback = finding->callback;
	struct d9__account sum = { .on_cpu_ns = 0 };
	uint64_t total_ns = 0;
	struct d9__parts parts;
	char text[512];

	if (!has_long_calls(callback) || is_of_short_calls(finding))
		return;
	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		d9__time_account_add(&sum, &stall->time);
		total_ns += stall->total_ns;
	}
	if (total_ns == 0)
		return;
	parts = d9__time_parts_of(&sum, total_ns, 0, findings->analysis->samples.period_ns);
	if (parts.unknown_ns == total_ns && !parts.few_samples)
		return;
	finding->time = strdup(d9__time_parts_text(&parts, &sum, text, sizeof(text)));
	if (!finding->time)
		findings->err = -ENOMEM;
}

/*
 * Whether a replay of single calls tells what would be without |callback|.  Where others had the
 * CPU for a tenth of the loop's time, that decides what callbacks wait for, and a loop with less to
 * do would be put aside less.  And calls on several loops keep CPUs from each other.
 */
static bool is_replayable(const struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__analysis *a = findings->analysis;
	uint64_t awake_ns = 0, taken_ns = 0, loops = 0;

	for (size_t i = 0; i < callback->n_on && i < a->timeline.n; i++) {
		const struct d9__owners *owners = &findings->owners[i];
		uint64_t all_ns = owners->left_ns + owners->taken_ns;

		if (!callback->on[i] || !callback->on[i]->calls)
			continue;
		if (10 * owners->taken_ns >= all_ns)
			return false;
		awake_ns += owners->awake_ns;
		taken_ns += owners->taken_ns;
		loops++;
	}
	return loops <= 1 || 10 * taken_ns < awake_ns;
}

/*
 * Whether |finding| is about long calls which have less than half of their callback's time: the
 * replay is of all its calls, and tells more than these would gain.
 */
static bool is_of_few_calls(const struct d9__findings *findings, const struct d9__finding *finding)
{
	const struct d9__callback *callback = finding->callback;
	uint64_t limit, calls, ns = 0;

	if (strcmp(finding->check, "long-callback") != 0 || !callback->n_stalls)
		return false;
	limit = d9__call_limit_ns(findings, callback, callback->stalls[0].stall);
	calls = d9__histogram_above(&callback->own, limit);
	for (size_t i = 0; i < callback->n_stalls; i++)
		ns += callback->stalls[i].ns;
	if (calls > callback->n_stalls)
		ns += (calls - callback->n_stalls) * limit;
	return 2 * ns < callback->durations.sum - callback->taken_ns;
}

/* Add what would be without it, unless it only tells what happened to its callback. */
static void add_gain(struct d9__findings *findings, struct d9__finding *finding)
{
	char text[160];
	bool told = is_cause(finding) && is_replayable(findings, finding->callback) &&
		    !is_of_few_calls(findings, finding);
	int known = 0;

	/* A call that sleeps need not: what it computes beside that remains. */
	if (told && !strcmp(finding->check, "blocked-callback"))
		known = d9__replay_gain(findings->analysis, finding->callback, true,
					&finding->gain);
	if (told && !known)
		known = d9__replay_gain(findings->analysis, finding->callback, false,
					&finding->gain);
	if (known < 0)
		findings->err = known;
	finding->has_gain = known > 0 && *d9__gain_text(&finding->gain, text, sizeof(text));
}

static void add_times(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		struct d9__finding *finding = findings->items[i];

		if (!finding->callback || finding->machine || finding->about != D9__ABOUT_TIME)
			continue;
		add_time(findings, finding);
		add_gain(findings, finding);
	}
}

/* The figure of |text| at |at|, with its unit; 0: there is none. */
static size_t figure_at(const char *text, const char *at)
{
	static const char *const units[] = { "ns", "us", "ms", "s", "%", "B", "KiB", "MiB", "GiB", "TiB", "times a second" };
	size_t digits = strspn(at, "0123456789.,");

	if (!digits || at[digits] != ' ' || (at > text && at[-1] != ' ' && at[-1] != '('))
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i]);

		if (!strncmp(at + digits + 1, units[i], len) && !strspn(at + digits + 1 + len, UNIT_LETTERS))
			return digits + 1 + len;
	}
	return 0;
}

/* The one figure that stands for |finding| everywhere: the first with a unit in its brief, so that no surface chooses. */
static void add_figure(struct d9__findings *findings, struct d9__finding *finding)
{
	const char *at = finding->brief;
	size_t len = 0;

	while (at && *at && !(len = figure_at(finding->brief, at)))
		at++;
	if (!len)
		return;
	finding->figure = strndup(at, len);
	if (!finding->figure)
		findings->err = -ENOMEM;
}

static void add_figures(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		add_figure(findings, findings->items[i]);
}

int d9__findings_finish(struct d9__findings *findings)
{
	sort(findings);
	fold_sites(findings);
	fold_loops(findings);
	attach_effects(findings);
	sort(findings);
	add_hot(findings);
	add_times(findings);
	d9__findings_add_one_of_many(findings);
	add_figures(findings);
	return findings->err;
}

void d9__findings_release(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		d9__finding_release(findings->items[i]);
	free(findings->items);
	free(findings->explained);
	free(findings->rhythms);
	free(findings->owners);
	*findings = (struct d9__findings){ 0 };
}
