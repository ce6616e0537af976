/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "analyze/place_text.h"
#include "symbol/symbolizer.h"
#include "text/text.h"
#include "watch/live.h"
#include "watch/open_calls_now.h"
#include "watch/recover_child.h"

/* Since the latest tick its thread may have gone on. */
static bool has_gone_on(const struct d9__recorder_seen *recorder, const struct d9__ring_open *call)
{
	for (uint32_t i = 0; i < recorder->look.n_workers; i++) {
		const struct d9__ring_worker *worker = &recorder->look.workers[i];

		if (worker->id == call->worker && worker->tid == call->tid)
			return call->outside ? worker->last_ns > call->since_ns : worker->state != D9__WORKER_POLLING;
	}
	return false;
}

static void name_it(struct d9__symbolizer *symbols, const char *text, char *out, size_t size)
{
	const char *function = d9__symbolizer_function(symbols, text, strlen(text), D9__ENTRY);

	snprintf(out, size, "%s", function ? function : text[0] ? text : "(unknown)");
}

unsigned d9__open_calls_now(const struct d9__recorder_seen *recorder, struct d9__symbolizer *symbols, uint64_t least_ns,
			 struct d9__open_calls_now out[D9__RING_OPEN_MAX])
{
	const struct d9__ring_health *health = &recorder->look.health;
	bool dead = recorder->owner == D9__OWNER_DEAD;
	uint64_t until_ns = dead ? health->tick_ns : recorder->look.mono_ns;
	unsigned n = 0;

	for (uint32_t i = 0; i < health->n_open && i < D9__RING_OPEN_MAX; i++) {
		const struct d9__ring_open *call = &health->open[i];
		struct d9__open_calls_now *running = &out[n];

		if (call->since_ns > until_ns || until_ns - call->since_ns < least_ns ||
		    (!dead && !call->around && has_gone_on(recorder, call)))
			continue;
		*running = (struct d9__open_calls_now){ .call = call, .for_ns = until_ns - call->since_ns };
		name_it(symbols, call->span[0] ? call->span : call->loc, running->name, sizeof(running->name));
		if (call->outside && !call->span[0])
			snprintf(running->name, sizeof(running->name), "the loop of worker %u", call->worker);
		if (call->span[0] && !call->outside)
			name_it(symbols, call->loc, running->inside, sizeof(running->inside));
		n++;
	}
	return n;
}

void d9__open_calls_now_text(const struct d9__open_calls_now *running, char buf[D9__RUNNING_LEN])
{
	char where[D9__WHEREABOUTS_LEN] = "", age[D9__DURATION_LEN];
	const struct d9__ring_open *call = running->call;

	if (call->around)
		snprintf(where, sizeof(where), " in a loop that it runs");
	else if (call->known)
		d9__place_text(call->syscall, call->running, call->wchan, where, sizeof(where));
	snprintf(buf, D9__RUNNING_LEN, "%s %s%s%s%s%s", running->name, d9__duration_text(running->for_ns, age), where,
		 running->inside[0]	? " (inside " :
		 running->call->outside ? " (outside of callbacks" :
					  "",
		 running->inside, running->inside[0] || running->call->outside ? ")" : "");
}

static void learn(void *symbols, const struct d9_event *event)
{
	if (event->kind == D9_EVENT_MODULE)
		d9__symbolizer_learn(symbols, event);
}

static struct d9__symbolizer *read_symbols(const struct d9__recorder_seen *recorder)
{
	struct d9__symbolizer *symbols = NULL;
	struct d9__live *live = calloc(1, sizeof(*live));

	if (!live || d9__symbolizer_open(NULL, &symbols)) {
		free(live);
		return NULL;
	}
	d9__budget_start(0);
	d9__live_begin(live, &recorder->view, UINT64_MAX, learn, symbols);
	if (d9__live_read_description(live)) {
		d9__symbolizer_close(symbols);
		symbols = NULL;
	}
	d9__live_end(live);
	free(live);
	return symbols;
}

static void name_all(void *arg, void *answer)
{
	const struct d9__recorder_seen *recorder = arg;
	struct d9__symbolizer *symbols = read_symbols(recorder);

	d9__open_calls_now(recorder, symbols, D9__RUNNING_LONG_NS, answer);
	d9__symbolizer_close(symbols);
}

/* False: there are no names. */
static bool ask_for_names(const struct d9__recorder_seen *recorder, struct d9__open_calls_now *named, size_t size)
{
	struct d9__child_user user = d9__recover_child_user_of(&recorder->view);
	void *arg = (void *)(uintptr_t)recorder;

	if (user.uid == geteuid() && (user.uid || recorder->owner != D9__OWNER_DEAD)) {
		name_all(arg, named);
		return true;
	}
	return !geteuid() && d9__recover_child_ask(&user, recorder->view.fd, name_all, arg, named, size);
}

unsigned d9__open_calls_now_named(const struct d9__recorder_seen *recorder, struct d9__open_calls_now out[D9__RING_OPEN_MAX])
{
	struct d9__open_calls_now named[D9__RING_OPEN_MAX] = { { 0 } };
	unsigned n = d9__open_calls_now(recorder, NULL, D9__RUNNING_LONG_NS, out);

	if (!n || !ask_for_names(recorder, named, sizeof(named)))
		return n;
	for (unsigned i = 0; i < n; i++) {
		snprintf(out[i].name, sizeof(out[i].name), "%.*s", (int)sizeof(named[i].name) - 1, named[i].name);
		snprintf(out[i].inside, sizeof(out[i].inside), "%.*s", (int)sizeof(named[i].inside) - 1, named[i].inside);
	}
	return n;
}
