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

/* Along a line, in a minute and more, less is enough. */
#define LINE_BYTES	 (UINT64_C(1) << 20)
#define LINE_DESCRIPTORS 10

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

/* ", 28 KiB for each of the tasks, 1,000 to 5,000", if it goes with the number of connections that
 * loops have; or nothing. */
static bool describe_tasks(const struct d9__growth_state *state, enum d9__held what, char *buf,
			   size_t size)
{
	double each;

	buf[0] = '\0';
	if (!d9__growth_follows(state, what, D9__HELD_TASKS, &each))
		return false;
	if (what == D9__HELD_MEMORY)
		snprintf(buf, size, ", %s for each more", d9__units_bytes((uint64_t)each).text);
	return true;
}

/* ", 1.2 MiB a minute", where a line tells; or nothing. */
static void describe_rate(enum d9__held what, const struct d9__trend *line, char *buf, size_t size)
{
	buf[0] = '\0';
	if (line && what == D9__HELD_MEMORY)
		snprintf(buf, size, ", %s a second",
			 d9__units_bytes((uint64_t)(line->per_s + 0.5)).text);
	else if (line)
		snprintf(buf, size, ", %.2g a second", line->per_s);
}

/* It goes with what loops have: more of them is no leak of its own. */
static void with_tasks(struct d9__findings *findings, enum d9__held what, const char *thing,
		       const char *each, const char *rate)
{
	const struct d9__growth_state *state = &findings->analysis->growth;
	uint64_t grown = state->last[what] - state->first[what];
	struct d9__finding *finding =
		d9__finding_add(findings, D9__INFO, grown,
				"Look at why the number of connections grows: if clients are meant "
				"to stay, this is what they cost; if not, "
				"close those that are idle.",
				"%s with the number of tasks of its loops, connections for the "
				"most part: from %s to %s with %s to %s of "
				"them%s%s.",
				thing, held_text(what, state->first[what]).text,
				held_text(what, state->last[what]).text,
				d9__units_count(state->first[D9__HELD_TASKS]).text,
				d9__units_count(state->last[D9__HELD_TASKS]).text, each, rate);

	d9__finding_set_brief(findings, finding, "%s with the number of connections%s",
			      what == D9__HELD_MEMORY ? "memory grows" : "descriptors grow", each);
}

static void growth(struct d9__findings *findings, enum d9__held what, const struct d9__trend *line,
		   const char *thing, const char *advice)
{
	const struct d9__analysis *a = findings->analysis;
	const struct d9__growth_state *state = &a->growth;
	uint64_t grown = state->last[what] - state->first[what], calls = 0;
	uint64_t ns = state->last_ns - state->first_ns;
	const struct d9__callback *with = d9__growth_goes_with(state, &a->callbacks, what, &calls);
	const struct d9__callback *leak = leaking(findings);
	struct d9__finding *finding;
	char going[512], rate[160], each[160];

	describe_rate(what, line, rate, sizeof(rate));
	if (!leak && describe_tasks(state, what, each, sizeof(each))) {
		with_tasks(findings, what, thing, each, rate);
		return;
	}
	describe_calls(with, calls, grown, what, going, sizeof(going));
	finding = d9__finding_add(findings, leak ? D9__INFO : D9__WARNING, grown, advice,
				  "%s all through the trace, from %s to %s in %s%s%s.", thing,
				  held_text(what, state->first[what]).text,
				  held_text(what, state->last[what]).text, d9__units_ns(ns).text,
				  rate, going);
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
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) {
			.at_ns = state->first_ns, .duration_ns = ns, .callback = with },
		"%s samples; %s%s", d9__units_count(state->samples).text,
		line ? "they lie on a line that goes on in the second half"
		     : "each third of the time has a sixth of the growth at least",
		with ? ", and it is this callback's calls that it follows best" : "");
}

/* Whether |what| only grows, by |min| at least; by |line_min| where it does along |*line|. */
static bool grows(const struct d9__growth_state *state, enum d9__held what, uint64_t min,
		  uint64_t line_min, struct d9__trend *line, bool *is_line)
{
	uint64_t grown =
		state->last[what] > state->first[what] ? state->last[what] - state->first[what] : 0;

	*is_line = d9__growth_is_linear(state, what, line) && line->grown >= line_min &&
		   grown >= line_min;
	return *is_line || (d9__growth_is_steady(state, what) && grown >= min);
}

void d9__check_memory_growth(struct d9__findings *findings)
{
	const struct d9__growth_state *state = &findings->analysis->growth;
	struct d9__trend line;
	bool is_line;

	if (!grows(state, D9__HELD_MEMORY, MEMORY_BYTES, LINE_BYTES, &line, &is_line))
		return;
	if (is_line ||
	    MEMORY_PART * (state->last[D9__HELD_MEMORY] - state->first[D9__HELD_MEMORY]) >=
		    state->last[D9__HELD_MEMORY])
		growth(findings, D9__HELD_MEMORY, is_line ? &line : NULL, "Resident memory grows",
		       "Look for what these calls add to a list, a table, a cache or a buffer and "
		       "never take out, "
		       "or do not free; heaptrack or valgrind --leak-check tell the place.");
}

void d9__check_descriptor_growth(struct d9__findings *findings)
{
	const struct d9__growth_state *state = &findings->analysis->growth;
	struct d9__trend line;
	bool is_line;

	if (grows(state, D9__HELD_DESCRIPTORS, DESCRIPTORS, LINE_DESCRIPTORS, &line, &is_line))
		growth(findings, D9__HELD_DESCRIPTORS, is_line ? &line : NULL,
		       "The number of open descriptors grows",
		       "Close descriptors on each way out, errors and time-outs too: they are "
		       "opened and not "
		       "closed, until there are none left (EMFILE); ls -l /proc/PID/fd tells what "
		       "they are.");
}
