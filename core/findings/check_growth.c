/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of memory and descriptors that only grow. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "findings/check_parts.h"
#include "text/units.h"

/* Less growth is none. */
#define MEMORY_BYTES (UINT64_C(4) << 20)
#define DESCRIPTORS  20

/* Memory: and one in so many parts of what was held. */
#define MEMORY_PART 20

/* The callback whose tasks only grow, if that is told: what a task holds grows with it. */
static const struct d9__callback *leaking(const struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		if (!strcmp(findings->items[i]->check, "task-leak") && findings->items[i]->severity <= D9__WARNING)
			return findings->items[i]->callback;
	return NULL;
}

/* "; it goes with calls of on_request, 28 KiB each", or nothing. */
static void describe_calls(const struct d9__callback *with, uint64_t calls, uint64_t grown, enum d9__held what,
			   char *buf, size_t size)
{
	struct d9__shown_name name = d9__finding_name(with);

	buf[0] = '\0';
	if (!with || calls == 0)
		return;
	if (what == D9__HELD_MEMORY)
		snprintf(buf, size, ", with the calls of %.*s (%s, %s each)", name.len, name.text,
			 d9__units_count(calls).text, d9__units_bytes(grown / calls).text);
	else
		snprintf(buf, size, ", with the calls of %.*s (%s, %.1f each)", name.len, name.text,
			 d9__units_count(calls).text, (double)grown / (double)calls);
}

static struct d9__units held_text(enum d9__held what, uint64_t value)
{
	return what == D9__HELD_MEMORY ? d9__units_bytes(value) : d9__units_count(value);
}

static void growth(struct d9__findings *findings, enum d9__held what, const char *thing, const char *advice)
{
	const struct d9__analysis *a = findings->analysis;
	const struct d9__growth_state *state = &a->growth;
	uint64_t grown = state->last[what] - state->first[what], calls = 0;
	uint64_t ns = state->last_ns - state->first_ns;
	const struct d9__callback *with = d9__growth_goes_with(state, &a->callbacks, what, &calls);
	const struct d9__callback *leak = leaking(findings);
	struct d9__finding *finding;
	char going[512];

	describe_calls(with, calls, grown, what, going, sizeof(going));
	finding = d9__finding_add(findings, leak ? D9__INFO : D9__WARNING, grown, advice,
				  "%s all through the trace, from %s to %s in %s%s.", thing,
				  held_text(what, state->first[what]).text, held_text(what, state->last[what]).text,
				  d9__units_ns(ns).text, going);
	if (with)
		d9__finding_set_callback(findings, finding, with);
	if (with && what == D9__HELD_MEMORY)
		d9__finding_set_brief(findings, finding, "memory grows with its calls, %s each",
				      d9__units_bytes(calls ? grown / calls : 0).text);
	else
		d9__finding_set_brief(findings, finding, "%s %s, %s to %s",
				      what == D9__HELD_MEMORY ? "memory grows" : "descriptors grow",
				      with ? "with its calls" : "all the time",
				      held_text(what, state->first[what]).text, held_text(what, state->last[what]).text);
	if (leak)
		d9__finding_set_effect(findings, finding, leak, "%s %s to %s",
				       what == D9__HELD_MEMORY ? "memory" : "descriptors",
				       held_text(what, state->first[what]).text, held_text(what, state->last[what]).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = state->first_ns, .duration_ns = ns, .callback = with },
				 "%s samples; each third of the time has a sixth of the growth at least%s",
				 d9__units_count(state->samples).text,
				 with ? ", and it is this callback's calls that it follows best" : "");
}

void d9__check_memory_growth(struct d9__findings *findings)
{
	const struct d9__growth_state *state = &findings->analysis->growth;
	uint64_t grown = state->last[D9__HELD_MEMORY] - state->first[D9__HELD_MEMORY];

	if (d9__growth_is_steady(state, D9__HELD_MEMORY) && grown >= MEMORY_BYTES &&
	    MEMORY_PART * grown >= state->last[D9__HELD_MEMORY])
		growth(findings, D9__HELD_MEMORY, "Resident memory grows",
		       "Look for what these calls add to a list, a table, a cache or a buffer and never take out, "
		       "or do not free; heaptrack or valgrind --leak-check tell the place.");
}

void d9__check_descriptor_growth(struct d9__findings *findings)
{
	const struct d9__growth_state *state = &findings->analysis->growth;

	if (d9__growth_is_steady(state, D9__HELD_DESCRIPTORS) &&
	    state->last[D9__HELD_DESCRIPTORS] - state->first[D9__HELD_DESCRIPTORS] >= DESCRIPTORS)
		growth(findings, D9__HELD_DESCRIPTORS, "The number of open descriptors grows",
		       "Close descriptors on each way out, errors and time-outs too: they are opened and not "
		       "closed, until there are none left (EMFILE); ls -l /proc/PID/fd tells what they are.");
}
