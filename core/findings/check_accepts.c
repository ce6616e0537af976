/* SPDX-License-Identifier: Apache-2.0 */
/* The check for connections that wait to be accepted, as a callback holds the loop. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "findings/check_parts.h"
#include "text/units.h"

/* A loop that is held for less comes to its listeners soon enough. */
#define HELD_NS (100 * D9__MS_NS)

static const char *const advice =
	"Keep callbacks of the loop that accepts short, or accept on a loop of its own: connections wait for as long as "
	"the longest callback runs. When the queue is full the kernel drops further ones, which try again after a "
	"second; a longer queue, listen(2) and net.core.somaxconn, helps over short holds only.";

static void tell(struct d9__findings *findings, const struct d9__accept_queue *queue)
{
	const struct d9__callback *callback = queue->worst.held_ns >= HELD_NS ? queue->worst.callback : NULL;
	struct d9__shown_name name = d9__finding_name(callback);
	const char *full = queue->full ? ", and its queue was full" : "";
	struct d9__evidence at = { .at_ns = queue->worst.ns,
				   .duration_ns = callback ? queue->worst.held_ns : 0,
				   .has_worker = queue->worst.has_worker,
				   .worker = queue->worst.worker,
				   .callback = callback };
	enum d9__severity severity = queue->full ? D9__CRITICAL : D9__WARNING;
	struct d9__finding *finding;
	char pending[D9__UNITS_MAX + 16];

	snprintf(pending, sizeof(pending), "%s connection%s", d9__units_count(queue->worst.pending).text,
		 queue->worst.pending == 1 ? "" : "s");
	if (callback)
		finding = d9__finding_add(findings, severity, queue->worst.pending, advice,
					  "%s waited at %s while %.*s held the loop%s.", pending, queue->name, name.len,
					  name.text, full);
	else
		finding = d9__finding_add(findings, severity, queue->worst.pending, advice,
					  "%s waited at %s%s, though no callback held the loop for long.", pending,
					  queue->name, full);
	if (!finding)
		return;
	d9__finding_set_name(findings, finding, queue->name, strlen(queue->name));
	d9__finding_set_brief(findings, finding, "%s waited%s", pending, queue->full ? "; its queue was full" : "");
	d9__finding_set_effect(findings, finding, callback, "%s waited at %s%s", pending, queue->name, full);
	d9__finding_add_evidence(findings, finding, &at, "%s, of %s that may; some waited in %s of %s looks, and in %s as many as may",
				 pending, d9__units_count(queue->worst.limit).text, d9__units_count(queue->waiting).text,
				 d9__units_count(queue->samples).text, d9__units_count(queue->full).text);
}

static bool is_worth_telling(const struct d9__accept_queue *queue)
{
	return queue->full || (queue->worst.pending && queue->worst.held_ns >= HELD_NS);
}

/* Queues are sampled: one that is seen is long, or stands for others. */
void d9__check_accept_queue(struct d9__findings *findings)
{
	const struct d9__accepts *accepts = &findings->analysis->accepts;
	void *item;

	for (uint64_t number = 1; number <= accepts->queues.n; number++) {
		for (size_t place = 0; (place = d9__table_next(&accepts->queues, place, &item));) {
			const struct d9__accept_queue *queue = item;

			if (queue->number == number && is_worth_telling(queue))
				tell(findings, queue);
		}
	}
}
