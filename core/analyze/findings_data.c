/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the trace itself: they come first, for they limit what all others can say. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/findings.h"
#include "analyze/units.h"
#include "format/utf8.h"

/* Losing more than this share makes figures unreliable. */
#define LOSS_CRITICAL 0.01

/* ---- sources ---- */

/* What can be sampled, and which key tells that it was asked for by name: else it is tried wherever it can be had. */
static const struct {
	const char *key, *what, *asked, *unless;
} sampled[] = {
	{ "source.cpu", "Stacks on the CPU", "cpu.backend", "auto" },
	{ "source.offcpu", "Stacks where threads leave the CPU", "source.offcpu", "" },
	{ "source.kernel_names", "Names of the kernel's functions", "source.kernel_names", "" },
	{ "source.memory", "Allocations", "source.memory", "" },
	{ "source.accept_queues", "Accept queues", "source.accept_queues", "" },
};

/* "off: why", "on; but what is missing". */
static const char *fault_in(const char *state)
{
	if (!strncmp(state, "off: ", 5))
		return state + 5;
	return strstr(state, "but ") ? strstr(state, "but ") + 4 : NULL;
}

/* Whether what |i| tells of could not be had although it was asked for by name. */
static bool is_asked(const struct d9__metadata *metadata, size_t i)
{
	const char *wanted = d9__metadata_value(metadata, sampled[i].asked);

	return wanted && strcmp(wanted, sampled[i].unless) != 0;
}

/* Then that is why there is nothing else. */
static bool samples_were_refused(const struct d9__analysis *a)
{
	const char *state = d9__metadata_value(&a->metadata, "source.cpu");

	return state && fault_in(state) && is_asked(&a->metadata, 0);
}

void d9__check_nothing_recorded(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	if (a->events == 0)
		d9__finding_add(findings, D9__CRITICAL, 0,
				"Check that the program ran with recording on (DIAL9_ENABLED), that it "
				"could write its trace directory, and that this is that directory.",
				"The trace is empty: it holds no event at all.");
	/* A child that a program forked and that runs no loop is nothing to mend. */
	else if (!d9__analysis_has_any(a) && !a->beside && !samples_were_refused(a))
		d9__finding_add(findings, D9__CRITICAL, 0,
				"Check that a loop was attached (d9_event_base_attach()) or that the "
				"program was started by dial9 record, and that its loop library is "
				"one that dial9 knows.",
				"The trace holds no loop activity: %s events, but no callback and no "
				"wait of any loop.",
				d9__units_count(a->events).text);
}

static void check_losses(struct d9__findings *findings)
{
	const struct d9__losses *losses = &findings->analysis->losses;
	uint64_t all = findings->analysis->events + losses->events;
	double share = all ? (double)losses->events / (double)all : 0;
	struct d9__finding *finding;

	if (losses->n == 0)
		return;
	finding = d9__finding_add(
		findings, share > LOSS_CRITICAL ? D9__CRITICAL : D9__WARNING, losses->events,
		"Give the recorder more memory or a faster disk, or record less. Counts and sums are too small "
		"by what was lost, and a callback that was cut by a gap ends where the gap begins.",
		"%s events were lost (%s of all): figures below are lower bounds.",
		d9__units_count(losses->events).text, d9__units_percent(share).text);
	d9__finding_set_brief(findings, finding, "%s events lost (%s): figures are lower bounds",
			      d9__units_count(losses->events).text, d9__units_percent(share).text);
	for (size_t i = 0; i < losses->n; i++) {
		const struct d9__loss *loss = &losses->items[i];
		struct d9__evidence evidence = { .at_ns = loss->from_ns };

		if (loss->to_ns > loss->from_ns)
			evidence.duration_ns = loss->to_ns - loss->from_ns;
		d9__finding_add_evidence(findings, finding, &evidence,
					 "cause %s: %s events in %s gap%s",
					 loss->cause[0] ? loss->cause : "unknown",
					 d9__units_count(loss->events).text,
					 d9__units_count(loss->gaps).text,
					 loss->gaps == 1 ? "" : "s");
	}
}

#define SAMPLE_LESS "(larger DIAL9_MEMORY_SAMPLE_RATE_BYTES): leaks look larger than they are."

static void check_dropped_samples(struct d9__findings *findings)
{
	const struct d9__losses *losses = &findings->analysis->losses;
	uint64_t evicted = findings->analysis->heap.evicted;

	if (losses->dropped_allocs || losses->dropped_frees)
		d9__finding_add(findings, D9__WARNING, 0, "Sample less " SAMPLE_LESS,
				"%s allocation samples and %s free samples were lost.",
				d9__units_count(losses->dropped_allocs).text,
				d9__units_count(losses->dropped_frees).text);
	if (evicted)
		d9__finding_add(findings, D9__INFO, 0, "Sample less " SAMPLE_LESS,
				"%s allocations were followed no further, as too many were live.",
				d9__units_count(evicted).text);
}

static bool is_damaged(const struct d9__segment_fact *segment)
{
	return segment->err != 0 && segment->err != -ENODATA;
}

static void check_damage(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding = NULL;
	size_t damaged = 0;

	for (size_t i = 0; i < a->n_segments; i++)
		damaged += is_damaged(&a->segments[i]);
	if (damaged)
		finding = d9__finding_add(findings, D9__CRITICAL, damaged,
					  "Copy the segment again, if there is another: everything before the "
					  "damage was used, and what follows in that segment is missing from all "
					  "figures.",
					  "Damage in %zu of %zu segments.", damaged, a->n_segments);
	d9__finding_set_brief(findings, finding, "damage in %zu of %zu segments", damaged, a->n_segments);
	for (size_t i = 0; i < a->n_segments; i++) {
		const struct d9__segment_fact *segment = &a->segments[i];

		if (is_damaged(segment))
			d9__finding_add_evidence(findings, finding,
						 &(struct d9__evidence){ .at_ns = segment->last_ns },
						 "%s",
						 segment->message ? segment->message
								  : segment->path);
	}
}

static void check_open_ends(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding = NULL;
	size_t cut = 0, active = 0;

	for (size_t i = 0; i < a->n_segments; i++) {
		active += a->segments[i].active;
		cut += a->segments[i].truncated && !a->segments[i].active;
	}
	if (active + cut == 0)
		return;
	finding = d9__finding_add(
		findings, cut ? D9__WARNING : D9__INFO, cut,
		cut ? "Copy the trace again when the program has ended, or free the disk if that was full: the end "
		      "of a segment is missing. Times before the cut are right."
		    : "Stop the program to have its last events, if it still runs; of a killed one, dial9 recover "
		      "saves them from its ring where it ran, and without the ring they are lost.",
		"The end is missing in %zu of %zu segments: %s.", cut ? cut : active, a->n_segments,
		cut ? "cut in the middle of a frame" : "never sealed (.active)");
	d9__finding_set_brief(findings, finding, "the end is missing in %zu of %zu segments", cut ? cut : active,
			      a->n_segments);
	for (size_t i = 0; i < a->n_segments; i++) {
		const struct d9__segment_fact *segment = &a->segments[i];

		if (segment->active || segment->truncated)
			d9__finding_add_evidence(findings, finding,
						 &(struct d9__evidence){ .at_ns = segment->last_ns },
						 "%s%s: %s events, then it ends", segment->path,
						 segment->truncated ? " (cut in a frame)" : "",
						 d9__units_count(segment->events).text);
	}
}

/* Killed before the first write, or as another user, who may not write here; or the disk was full. */
static void check_unwritten(struct d9__findings *findings)
{
	static const char advice[] =
		"Ask dial9 status for them: it names them, and why they have not written what is in their rings; "
		"dial9 recover saves it of those that were killed or have ended.";
	size_t n = findings->analysis->unwritten, ends = findings->analysis->unwritten_ends;

	if (n)
		d9__finding_add(findings, D9__WARNING, n, advice,
				"%zu more process%s of this directory %s not in the trace.", n, n == 1 ? "" : "es",
				n == 1 ? "is" : "are");
	if (ends)
		d9__finding_add(findings, D9__WARNING, ends, advice,
				"The latest of %zu process%s of this directory is not in the trace.", ends,
				ends == 1 ? "" : "es");
}

/* What the recorder had no room for, or could not follow, as its metadata counts it. */
static const struct {
	const char *key, *what, *consequence; /* |what| behind their number */
} shortages[] = {
	{ "callsites.unknown", "registrations had no memory left to note what they call, and from where.",
	  "Look for their callbacks under \"(unknown)\", where they are together." },
	{ "names.other", "texts had no room in the recorder's table of 65 536.",
	  "Make up no names with numbers in them at run time, which fill the table: what had no room is together "
	  "as \"(other)\"." },
	{ "tasks.forgotten", "tasks stand as ended, because more lived than the recorder keeps.",
	  "End tasks that are done: those that are made and never ended fill the table, and what had no room looks "
	  "shorter than it is." },
	{ "processes.cloned", "copies of the process, made without fork handlers, are in no trace.",
	  "Make children by fork(), which are recorded: clone() and _Fork() cannot tell the recorder, and what "
	  "loops did there is missing." },
};

static void check_shortages(struct d9__findings *findings)
{
	for (size_t i = 0; i < sizeof(shortages) / sizeof(shortages[0]); i++) {
		const char *value = d9__metadata_value(&findings->analysis->metadata, shortages[i].key);
		uint64_t n = value ? strtoull(value, NULL, 10) : 0;

		if (!n)
			continue;
		d9__finding_add(findings, D9__WARNING, n, shortages[i].consequence, "%s %s",
				d9__units_count(n).text, shortages[i].what);
	}
}

void d9__check_incomplete_data(struct d9__findings *findings)
{
	const char *complete =
		d9__metadata_value(&findings->analysis->metadata, "segment.complete");

	check_losses(findings);
	check_damage(findings);
	check_open_ends(findings);
	check_dropped_samples(findings);
	check_shortages(findings);
	check_unwritten(findings);
	if (complete && !strcmp(complete, "false") && findings->analysis->losses.n == 0)
		d9__finding_add(findings, D9__WARNING, 0,
				"Take counts and sums as lower bounds.",
				"The recorder says that a segment is not complete.");
}

/* What a report lacks where hooks do not see all. */
static const struct {
	const char *key, *consequence;
} consequences[] = {
	{ "poll", "some callbacks are missing from all figures" },
	{ "park", "waits are missing: no utilisation, no CPU ratio" },
	{ "wake", "wake-to-poll delays are missing or incomplete" },
	{ "spawn", "where tasks were registered is unknown" },
	{ "depth", "the number of ready callbacks is unknown" },
	{ "lateness", "timer lateness is not measured" },
	{ "task", "tasks with the same callback are not told apart" },
};

static void add_reasons(struct d9__findings *findings, struct d9__finding *finding,
			const char *reasons)
{
	bool several = strchr(reasons, ';') != NULL;

	/* A single one is in the message. */
	while (*reasons && several) {
		size_t len = strcspn(reasons, ";");

		if (len)
			d9__finding_add_evidence(findings, finding, NULL, "%.*s", d9__precision(len), reasons);
		reasons += len + (reasons[len] == ';');
		reasons += strspn(reasons, " ");
	}
}

static void degraded_loop(struct d9__findings *findings, const char *loop, size_t len,
			  const char *reasons)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding = d9__finding_add(
		findings, D9__WARNING, 0,
		"See dial9 info for what the hooks see, and the man page of the adapter for how to get the "
		"rest. Conclusions that need what is missing are not drawn.",
		"Hooks of %.*s are degraded: %s.", d9__precision(len), loop, reasons);

	d9__finding_set_name(findings, finding, loop, len);
	d9__finding_set_brief(findings, finding, "hooks incomplete: %s", reasons);
	add_reasons(findings, finding, reasons);
	for (size_t i = 0; i < sizeof(consequences) / sizeof(consequences[0]); i++)
		if (d9__metadata_coverage(&a->metadata, consequences[i].key) != D9__COVERAGE_FULL)
			d9__finding_add_evidence(findings, finding, NULL, "%s: %s",
						 consequences[i].key, consequences[i].consequence);
}

static void refused_loop(struct d9__findings *findings, const char *loop, size_t len,
			 const char *reason)
{
	struct d9__finding *finding = d9__finding_add(
		findings, D9__CRITICAL, 0,
		"Try dial9 doctor -- COMMAND, which tries the libraries that a command uses and tells how to mend "
		"what is wrong: what runs on its loops is missing from all figures.",
		"Nothing of %.*s is recorded: %s.", d9__precision(len), loop, reason);

	d9__finding_set_name(findings, finding, loop, len);
}

static void full_stubs(struct d9__findings *findings, const char *loop, size_t len,
		       const char *count)
{
	struct d9__finding *finding = d9__finding_add(
		findings, D9__WARNING, 0,
		"Take figures as lower bounds: the program uses more different callbacks than can be told apart, "
		"and calls of the rest are not in the trace.",
		"%s callbacks of %.*s could not be hooked.", count, d9__precision(len), loop);

	d9__finding_set_name(findings, finding, loop, len);
}

static void dropped_loops(struct d9__findings *findings, const char *loop, size_t len, const char *times)
{
	struct d9__finding *finding = d9__finding_add(
		findings, D9__WARNING, 0,
		"Make fewer loops at once, or leave more memory and threads to the program: what runs on these is "
		"missing from all figures, as when they were made there was none for it, or there were more at "
		"once than the table of loops takes.",
		"Loops of %.*s are not in the trace: attaching one failed (%s x).", d9__precision(len), loop, times);

	d9__finding_set_name(findings, finding, loop, len);
}

void d9__check_degraded_hooks(struct d9__findings *findings)
{
	const struct d9__metadata *metadata = &findings->analysis->metadata;
	const char *loop;
	size_t len;

	for (size_t i = 0; i < metadata->n; i++) {
		const struct d9__metadata_entry *entry = &metadata->items[i];

		if (d9__metadata_key_is(entry->key, "loop.", ".degraded", &loop, &len) &&
		    entry->value[0])
			degraded_loop(findings, loop, len, entry->value);
		if (d9__metadata_key_is(entry->key, "loop.", ".refused", &loop, &len))
			refused_loop(findings, loop, len, entry->value);
		if (d9__metadata_key_is(entry->key, "loop.", ".loops_dropped", &loop, &len))
			dropped_loops(findings, loop, len, entry->value);
		if (d9__metadata_key_is(entry->key, "loop.", ".stubs_full", &loop, &len) &&
		    strcmp(entry->value, "0"))
			full_stubs(findings, loop, len, entry->value);
	}
}

static void check_sources(struct d9__findings *findings, bool asked)
{
	const struct d9__metadata *metadata = &findings->analysis->metadata;

	for (size_t i = 0; i < sizeof(sampled) / sizeof(sampled[0]); i++) {
		const char *state = d9__metadata_value(metadata, sampled[i].key);
		const char *fault = state ? fault_in(state) : NULL;
		struct d9__finding *finding;

		if (!fault || is_asked(metadata, i) != asked)
			continue;
		finding = d9__finding_add(findings, asked ? D9__WARNING : D9__INFO, 0,
				"Change what stands in the way, or do without: nothing was taken in its place. dial9 doctor tells "
				"what this machine permits.",
				"%s%s %s: %s.", sampled[i].what, asked ? ", which were asked for," : "",
				state[1] == 'f' ? "are missing" : "are incomplete", fault);
		/* What would permit it stands at its end. */
		d9__finding_set_brief(findings, finding, "%s: %s", sampled[i].what, fault);
	}
}

void d9__check_refused_source(struct d9__findings *findings)
{
	check_sources(findings, true);
}

void d9__check_missing_source(struct d9__findings *findings)
{
	check_sources(findings, false);
}
