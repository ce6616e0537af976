/* SPDX-License-Identifier: Apache-2.0 */
/* One of many: a callback that is slow for one of its tasks, or on one of its threads, and not for
 * the others. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/check_parts.h"
#include "text/units.h"

/* So many long calls say whose they are, if these are so many parts in ten of their time; of so
 * many tasks or threads. */
#define CALLS	3
#define PARTS	9
#define TASKS	10
#define THREADS 3

/* A brief has so much room. */
#define BRIEF_MAX 70

static bool is_one(const struct d9__callback *callback, const struct d9__vote *vote)
{
	return vote->n >= CALLS && 10 * vote->ns >= PARTS * callback->slow.ns;
}

/* How many tasks may have had the calls. */
static uint64_t tasks_of(const struct d9__callback *callback)
{
	const struct d9__callback *of = callback->slow.of;

	return of && of->peak_alive > 0 ? (uint64_t)of->peak_alive : 0;
}

static uint64_t threads_of(const struct d9__analysis *a, const struct d9__callback *callback)
{
	uint64_t n = 0;

	for (size_t i = 0; i < a->timeline.n; i++)
		n += d9__callback_ran_on(callback, i);
	return n;
}

/* Whether no other loop's thread is called |name|. */
static bool is_only(const struct d9__analysis *a, const char *name)
{
	unsigned n = 0;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const char *other = d9__analysis_worker_name(a, a->timeline.items[i]);

		n += other && !strcmp(other, name);
	}
	return n == 1;
}

/* "shard-2", "worker 3" */
static const char *name_thread(const struct d9__analysis *a, uint64_t id, char *buf, size_t size)
{
	const struct d9__worker *worker = d9__table_find(&a->timeline.by_id, id);
	const char *name = worker ? d9__analysis_worker_name(a, worker) : NULL;

	if (name && is_only(a, name))
		return name;
	snprintf(buf, size, "worker %" PRIu64, id);
	return buf;
}

static void add_to_brief(struct d9__findings *findings, struct d9__finding *finding,
			 const char *text)
{
	char *brief;

	if (!finding->brief || strlen(finding->brief) + strlen(text) > BRIEF_MAX)
		return;
	if (asprintf(&brief, "%s%s", finding->brief, text) < 0) {
		findings->err = -ENOMEM;
		return;
	}
	free(finding->brief);
	finding->brief = brief;
}

static void one_task(struct d9__findings *findings, struct d9__finding *finding)
{
	const struct d9__callback *callback = finding->callback;
	const struct d9__vote *vote = &callback->slow.task;
	char text[160], fd[48] = "";

	finding->task = vote->id;
	if (callback->slow.fd >= 0)
		snprintf(fd, sizeof(fd), ", descriptor %" PRId64, callback->slow.fd);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .task = vote->id, .callback = callback },
		"one task of %s%s: %s of %s long calls are its, %s in all",
		d9__units_count(tasks_of(callback)).text, fd, d9__units_count(vote->n).text,
		d9__units_count(callback->slow.n).text, d9__units_ns(vote->ns).text);
	snprintf(text, sizeof(text), ", 1 task of %s", d9__units_count(tasks_of(callback)).text);
	add_to_brief(findings, finding, text);
}

static void one_thread(struct d9__findings *findings, struct d9__finding *finding, uint64_t threads)
{
	const struct d9__callback *callback = finding->callback;
	const struct d9__vote *vote = &callback->slow.worker;
	char buf[32], text[160];
	const char *name = name_thread(findings->analysis, vote->id, buf, sizeof(buf));

	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) {
			.has_worker = true, .worker = vote->id, .callback = callback },
		"one thread of %s, %s: %s of %s long calls are there, %s in all",
		d9__units_count(threads).text, name, d9__units_count(vote->n).text,
		d9__units_count(callback->slow.n).text, d9__units_ns(vote->ns).text);
	snprintf(text, sizeof(text), " on %s alone", name);
	add_to_brief(findings, finding, text);
}

/* Whether it is of slow calls: the others tell by themselves which loop they are of. */
static bool is_of_calls(const struct d9__finding *finding)
{
	return finding->about == D9__ABOUT_TIME && strcmp(finding->check, "idle-workers") &&
	       strcmp(finding->check, "worker-imbalance");
}

void d9__findings_add_one_of_many(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		struct d9__finding *finding = findings->items[i];
		const struct d9__callback *callback = finding->callback;
		uint64_t threads;

		if (!callback || finding->machine || !is_of_calls(finding) ||
		    (finding->effect && finding->culprit != callback))
			continue;
		threads = threads_of(findings->analysis, callback);
		if (threads >= THREADS && is_one(callback, &callback->slow.worker))
			one_thread(findings, finding, threads);
		else if (tasks_of(callback) >= TASKS && is_one(callback, &callback->slow.task))
			one_task(findings, finding);
	}
}
