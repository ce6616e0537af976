/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot.h"
#include "findings/findings.h"
#include "format/utf8.h"
#include "text/units.h"

/* A unit ends where none of these follows. */
#define UNIT_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/*
 * In order of rank: what limits the other figures, then causes before their consequences, then the
 * machine: what is said of the program counts none of what the kernel took.
 */
static const struct {
	const char *name;
	enum d9__about about;
	void (*run)(struct d9__findings *findings);
} checks[] = {
	{ "nothing-recorded", D9__ABOUT_DATA, d9__check_nothing_recorded },
	{ "incomplete-data", D9__ABOUT_DATA, d9__check_incomplete_data },
	{ "degraded-hooks", D9__ABOUT_DATA, d9__check_degraded_hooks },
	{ "refused-source", D9__ABOUT_DATA, d9__check_refused_source },
	{ "stuck-callback", D9__ABOUT_TIME, d9__check_stuck_callback },
	{ "accept-storm", D9__ABOUT_TIME, d9__check_accept_storm },
	{ "spin", D9__ABOUT_TIME, d9__check_spin },
	{ "wake-storm", D9__ABOUT_WAKES, d9__check_wake_storm },
	{ "empty-wakes", D9__ABOUT_WAKES, d9__check_empty_wakes },
	{ "lost-wake", D9__ABOUT_WAKES, d9__check_lost_wake },
	{ "source-time", D9__ABOUT_TIME, d9__check_source_time },
	{ "busy-wait", D9__ABOUT_TIME, d9__check_busy_wait },
	{ "nested-loop", D9__ABOUT_TIME, d9__check_nested_loop },
	{ "growing-calls", D9__ABOUT_TIME, d9__check_growing_calls },
	{ "periodic-pause", D9__ABOUT_TIME, d9__check_periodic_pause },
	{ "cold-start", D9__ABOUT_TIME, d9__check_cold_start },
	{ "page-faults", D9__ABOUT_TIME, d9__check_page_faults },
	{ "blocked-callback", D9__ABOUT_TIME, d9__check_blocked_callback },
	{ "stale-clock", D9__ABOUT_TIME, d9__check_stale_clock },
	{ "timer-overrun", D9__ABOUT_TIME, d9__check_timer_overrun },
	{ "long-callback", D9__ABOUT_TIME, d9__check_long_callback },
	{ "running-at-end", D9__ABOUT_TIME, d9__check_running_at_end },
	{ "blocking", D9__ABOUT_TIME, d9__check_blocking },
	{ "helper-queue", D9__ABOUT_TIME, d9__check_helper_queue },
	{ "idle-workers", D9__ABOUT_TIME, d9__check_idle_workers },
	{ "unfair", D9__ABOUT_TIME, d9__check_unfair },
	{ "backlog", D9__ABOUT_TIME, d9__check_backlog },
	{ "long-round", D9__ABOUT_TIME, d9__check_long_round },
	{ "wake-delay", D9__ABOUT_TIME, d9__check_wake_delay },
	{ "timer-late", D9__ABOUT_TIME, d9__check_timer_late },
	{ "idle-wakes", D9__ABOUT_WAKES, d9__check_idle_wakes },
	{ "many-wakes", D9__ABOUT_WAKES, d9__check_many_wakes },
	{ "accept-queue", D9__ABOUT_TIME, d9__check_accept_queue },
	{ "queue-depth", D9__ABOUT_TIME, d9__check_queue_depth },
	{ "task-leak", D9__ABOUT_KEPT, d9__check_task_leak },
	{ "short-of-cpu", D9__ABOUT_REST, d9__check_short_of_cpu },
	{ "descriptor-growth", D9__ABOUT_KEPT, d9__check_descriptor_growth },
	{ "leak-by-site", D9__ABOUT_KEPT, d9__check_leak_by_site },
	{ "memory-growth", D9__ABOUT_KEPT, d9__check_memory_growth },
	{ "loop-overhead", D9__ABOUT_REST, d9__check_loop_overhead },
	{ "cpu-contention", D9__ABOUT_REST, d9__check_cpu_contention },
	{ "worker-imbalance", D9__ABOUT_TIME, d9__check_worker_imbalance },
	{ "many-spans", D9__ABOUT_REST, d9__check_many_spans },
	{ "span-outlier", D9__ABOUT_REST, d9__check_span_outlier },
	{ "unmatched-spans", D9__ABOUT_REST, d9__check_unmatched_spans },
	{ "misused-spans", D9__ABOUT_REST, d9__check_misused_spans },
	{ "no-wakes", D9__ABOUT_REST, d9__check_no_wakes },
	{ "sample-setup", D9__ABOUT_REST, d9__check_sample_setup },
	{ "missing-source", D9__ABOUT_REST, d9__check_missing_source },
};

const char *d9__severity_name(enum d9__severity severity)
{
	static const char *const names[D9__SEVERITIES] = { "critical", "warning", "info" };

	return names[severity];
}

uint64_t d9__long_call_ns(const struct d9__worker *worker)
{
	uint64_t ns = 3 * d9__histogram_quantile(&worker->calls, 0.99);

	if (ns < D9__STALL_NS)
		return D9__STALL_NS;
	return ns < D9__LONG_ALWAYS_NS ? ns : D9__LONG_ALWAYS_NS;
}

static struct d9__finding *append(struct d9__findings *findings)
{
	struct d9__finding **items =
		realloc(findings->items, (findings->n + 1) * sizeof(*items));
	struct d9__finding *finding = items ? calloc(1, sizeof(*finding)) : NULL;

	if (items)
		findings->items = items;
	if (!finding) {
		findings->err = -ENOMEM;
		return NULL;
	}
	findings->items[findings->n++] = finding;
	return finding;
}

struct d9__finding *d9__finding_add(struct d9__findings *findings, enum d9__severity severity,
				    uint64_t impact, const char *advice, const char *format, ...)
{
	struct d9__finding *finding = append(findings);
	va_list args;

	if (!finding)
		return NULL;
	finding->check = findings->check;
	finding->rank = findings->rank;
	finding->about = findings->about;
	finding->severity = severity;
	finding->impact = impact;
	finding->advice = advice;
	findings->by_severity[severity]++;
	va_start(args, format);
	if (vasprintf(&finding->message, format, args) < 0) {
		finding->message = NULL;
		findings->err = -ENOMEM;
	}
	va_end(args);
	return finding;
}

void d9__finding_set_name(struct d9__findings *findings, struct d9__finding *finding,
			  const char *name, size_t len)
{
	if (!finding)
		return;
	finding->name = strndup(name, len);
	if (!finding->name)
		findings->err = -ENOMEM;
}

struct d9__name d9__finding_name(const struct d9__callback *callback)
{
	const char *text = "nothing";
	size_t len = strlen(text);

	if (callback && callback->inner) {
		text = callback->inner->function;
		len = strlen(text);
	} else if (callback) {
		text = d9__callback_name(callback, &len);
	}
	return (struct d9__name){ text, d9__precision(len) };
}

void d9__finding_set_callback(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback)
{
	struct d9__name name = d9__finding_name(callback);

	if (!finding)
		return;
	d9__finding_set_name(findings, finding, name.text, (size_t)name.len);
	finding->callback = callback;
	finding->source = !callback ? NULL : callback->inner ? callback->inner_source : callback->source;
}

static __attribute__((format(printf, 3, 0))) void set_text(struct d9__findings *findings, char **text,
							   const char *format, va_list args)
{
	free(*text);
	if (vasprintf(text, format, args) < 0) {
		*text = NULL;
		findings->err = -ENOMEM;
	}
}

void d9__finding_set_brief(struct d9__findings *findings, struct d9__finding *finding, const char *format, ...)
{
	va_list args;

	if (!finding)
		return;
	va_start(args, format);
	set_text(findings, &finding->brief, format, args);
	va_end(args);
}

void d9__finding_set_machine(struct d9__findings *findings, struct d9__finding *finding, const char *format, ...)
{
	va_list args;

	if (!finding)
		return;
	finding->machine = true;
	va_start(args, format);
	set_text(findings, &finding->brief, format, args);
	va_end(args);
}

void d9__finding_set_effect(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *culprit, const char *format, ...)
{
	va_list args;

	if (!finding)
		return;
	finding->culprit = culprit;
	va_start(args, format);
	set_text(findings, &finding->effect, format, args);
	va_end(args);
}

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

uint64_t d9__finding_rate(uint64_t n, uint64_t ns)
{
	uint64_t rate = ns ? (uint64_t)((double)n * 1e9 / (double)ns) : 0, unit = 1;

	while (rate / unit >= 100)
		unit *= 10;
	return (rate + unit / 2) / unit * unit;
}

void d9__finding_taken(uint64_t taken_ns, char *buf, size_t size)
{
	buf[0] = '\0';
	if (taken_ns >= D9__MS(1))
		snprintf(buf, size, " (%s preempted)", d9__units_ns(taken_ns).text);
}

void d9__finding_add_evidence(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__evidence *evidence, const char *format, ...)
{
	struct d9__evidence *place;
	va_list args;

	if (!finding || finding->n_evidence == D9__EVIDENCE_MAX)
		return;
	place = &finding->evidence[finding->n_evidence++];
	*place = evidence ? *evidence : (struct d9__evidence){ 0 };
	if (!finding->task)
		finding->task = place->task;
	va_start(args, format);
	if (vasprintf(&place->text, format, args) < 0) {
		place->text = NULL;
		findings->err = -ENOMEM;
	}
	va_end(args);
}

void d9__finding_explain(struct d9__findings *findings, struct d9__finding *finding,
			 const struct d9__callback *callback)
{
	struct d9__explained *items = realloc(findings->explained, (findings->n_explained + 1) * sizeof(*items));

	if (!items) {
		findings->err = -ENOMEM;
		return;
	}
	findings->explained = items;
	findings->explained[findings->n_explained++] = (struct d9__explained){ callback, finding };
}

bool d9__finding_is_explained(const struct d9__findings *findings, const struct d9__callback *callback)
{
	for (size_t i = 0; i < findings->n_explained; i++)
		if (findings->explained[i].callback == callback)
			return true;
	return false;
}

bool d9__finding_told(const struct d9__findings *findings, const char *check)
{
	for (size_t i = 0; i < findings->n; i++)
		if (!strcmp(findings->items[i]->check, check))
			return true;
	return false;
}

static bool is_about_data(const struct d9__finding *finding)
{
	return finding->about == D9__ABOUT_DATA;
}

/*
 * Callbacks that compute stand among those that sleep, as neither is the consequence of the other: the longer first.
 * What they did to clocks and timers comes behind both.
 */
static unsigned place_of(const struct d9__finding *finding)
{
	unsigned i = 0;

	if (strcmp(finding->check, "long-callback") != 0)
		return finding->rank;
	while (strcmp(checks[i].name, "blocked-callback") != 0)
		i++;
	return i;
}

int d9__findings_compare(const struct d9__finding *a, const struct d9__finding *b)
{
	if (is_about_data(a) != is_about_data(b))
		return is_about_data(a) ? -1 : 1;
	if (a->severity != b->severity)
		return a->severity < b->severity ? -1 : 1;
	if (a->machine != b->machine)
		return a->machine ? 1 : -1;
	if (place_of(a) != place_of(b))
		return place_of(a) < place_of(b) ? -1 : 1;
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
	struct d9__name left = d9__finding_name(a), right = d9__finding_name(b);

	return a == b || (left.len == right.len && !memcmp(left.text, right.text, (size_t)left.len));
}

/* Whether |finding| tells what its callback did, and not what happened to it. */
static bool is_cause(const struct d9__finding *finding)
{
	return finding->callback && (!finding->effect || finding->culprit == finding->callback);
}

/* What is nobody's doing is the machine's, if that is known to have been busy. */
static struct d9__finding *machine_of(const struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		if (findings->items[i]->machine)
			return findings->items[i];
	return NULL;
}

/*
 * Whether |effect| may stand under |cause|: what is only worth a note does not explain what is worth a warning, and
 * a loop that is woken for little keeps nobody waiting.
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

static void release(struct d9__finding *finding)
{
	for (size_t i = 0; i < finding->n_effects; i++)
		release(finding->effects[i]);
	for (size_t i = 0; i < finding->n_evidence; i++)
		free(finding->evidence[i].text);
	free(finding->message);
	free(finding->name);
	free(finding->brief);
	free(finding->figure);
	free(finding->hot);
	free(finding->time);
	free(finding->blocked);
	free(finding->effect);
	free(finding);
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

	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .callback = other->callback, .task = other->task },
				 "as registered at %s, it %s", site ? site : "another place",
				 other->brief ? other->brief : "does the same");
	for (size_t i = 0; i < findings->n_explained; i++)
		if (findings->explained[i].finding == other)
			findings->explained[i].finding = finding;
	take_out(findings, other);
	release(other);
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

/* Where the time of its longest calls went; nothing, if nothing is known of it. */
static void add_time(struct d9__findings *findings, struct d9__finding *finding)
{
	const struct d9__callback *callback = finding->callback;
	struct d9__account sum = { .on_cpu_ns = 0 };
	uint64_t total_ns = 0;
	struct d9__parts parts;
	char text[512];

	if (!has_long_calls(callback))
		return;
	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		d9__account_add(&sum, &stall->time);
		total_ns += stall->total_ns;
	}
	if (total_ns == 0)
		return;
	parts = d9__parts_of(&sum, total_ns, 0, findings->analysis->samples.period_ns);
	if (parts.unknown_ns == total_ns && !parts.few_samples)
		return;
	finding->time = strdup(d9__parts_text(&parts, &sum, text, sizeof(text)));
	if (!finding->time)
		findings->err = -ENOMEM;
}

/* What would be without it, unless it is only what happened to its callback. */
static void add_gain(struct d9__findings *findings, struct d9__finding *finding)
{
	char text[160];
	int known = is_cause(finding) ? d9__replay_gain(findings->analysis, finding->callback, &finding->gain) : 0;

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

int d9__findings_make(struct d9__findings *findings, const struct d9__analysis *analysis)
{
	findings->analysis = analysis;
	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		findings->rank = i;
		findings->check = checks[i].name;
		findings->about = checks[i].about;
		checks[i].run(findings);
	}
	sort(findings);
	fold_sites(findings);
	attach_effects(findings);
	sort(findings);
	add_hot(findings);
	add_times(findings);
	add_figures(findings);
	return findings->err;
}

void d9__findings_release(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		release(findings->items[i]);
	free(findings->items);
	free(findings->explained);
	free(findings->rhythms);
	*findings = (struct d9__findings){ 0 };
}
