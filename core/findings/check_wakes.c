/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of wakes from one thread to another. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "analyze/lost.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* Told from so many on, if at least every second wake that found the loop asleep was lost. */
#define LOST_MIN 3

void d9__finding_waker(const struct d9__findings *findings, uint64_t waker, uint64_t waker_worker,
		       char *buf, size_t size)
{
	const struct d9__traced_task *task = d9__table_find(&findings->analysis->tasks.table, waker);
	struct d9__shown_name name;

	if (waker && task && task->callback) {
		name = d9__finding_name(task->callback);
		snprintf(buf, size, "%.*s", name.len, name.text);
	} else if (waker_worker < 254) {
		snprintf(buf, size, "worker %" PRIu64, waker_worker);
	} else {
		snprintf(buf, size, "a thread without a loop");
	}
}

static void lost_wake(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__lost_wakes *lost = callback->lost;
	struct d9__finding *finding;
	char sender[256];
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	d9__finding_waker(findings, lost->waker, lost->waker_worker, sender, sizeof(sender));
	finding = d9__finding_add(
		findings, lost->slept_ns / lost->lost > 50 * D9__MS_NS ? D9__CRITICAL : D9__WARNING,
		lost->slept_ns,
		"Wake the loop as well (libev: ev_async_send() behind all else, and of the right loop; libevent: "
		"evthread_use_pthreads() before the first base; GLib: g_main_context_wakeup()): what makes a "
		"callback ready does not wake a loop that another thread runs.",
		"%s makes %.*s ready and does not wake its loop: it slept on for %s on average, %s of "
		"%s times, until something else came.",
		sender, name.len, name.text, d9__units_ns(lost->slept_ns / lost->lost).text,
		d9__units_count(lost->lost).text, d9__units_count(lost->asleep).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "is ready and its loop sleeps on, %s of %s times",
			      d9__units_count(lost->lost).text, d9__units_count(lost->asleep).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = lost->at_ns,
							 .duration_ns = lost->longest_ns,
							 .has_worker = true,
							 .worker = lost->worker,
							 .task = lost->task,
							 .callback = callback },
				 "ready, while its worker slept on");
	d9__finding_add_evidence(findings, finding, NULL,
				 "lost: by another thread, to a loop that slept, and it slept on for %s, "
				 "without a wait for a CPU; told from %d and every second on",
				 d9__units_ns(D9__LOST_NS).text, LOST_MIN);
}

void d9__check_lost_wake(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	/* GLib wakes a loop whenever another thread makes a source of it ready: what comes late waited for a CPU. */
	if (d9__metadata_is_only(&findings->analysis->metadata, "glib"))
		return;
	for (size_t i = 0; i < callbacks->n; i++) {
		const struct d9__lost_wakes *lost = callbacks->items[i]->lost;

		if (lost && lost->lost >= LOST_MIN && 2 * lost->lost >= lost->asleep)
			lost_wake(findings, callbacks->items[i]);
	}
}
