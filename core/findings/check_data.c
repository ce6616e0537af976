/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the trace itself: they come first, for they limit what all others can say. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* Losing more than this share makes figures unreliable. */
#define LOSS_CRITICAL 0.01

/* ---- sources ---- */

/*
 * Sources of samples, and the key which tells that one was asked for by name: else it is tried
 * wherever it can be had.
 */
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

/* Write the reason for which the recorder could not write: ": no space left on device", or "". */
static void put_reason(const struct d9__analysis *a, char *buf, size_t size)
{
	const char *text = a->write_error > 0 && a->write_error < 4096 ? strerror(a->write_error) : NULL;

	snprintf(buf, size, "%s%s", text ? ": " : "", text ? text : "");
	if (text)
		buf[2] = (char)tolower((unsigned char)buf[2]);
}

/* The recorder paused for so long that its ring could not hold all. */
static void add_unwritten(struct d9__findings *findings, struct d9__finding *finding)
{
	const struct d9__trace_losses *losses = &findings->analysis->losses;
	char reason[128];

	put_reason(findings->analysis, reason, sizeof(reason));
	for (size_t i = 0; i < losses->n_unwritten; i++) {
		const struct d9__left_rings_time *time = &losses->unwritten[i];
		struct d9__evidence evidence = { .at_ns = time->from_ns, .duration_ns = time->to_ns - time->from_ns };

		d9__finding_add_evidence(findings, finding, &evidence,
					 "cause disk: %s events of the %s from here are missing, not written%s",
					 d9__units_count(time->events).text, d9__units_ns(evidence.duration_ns).text,
					 reason);
	}
}

static void add_loss(struct d9__findings *findings, struct d9__finding *finding, const struct d9__trace_loss *loss)
{
	struct d9__evidence evidence = { .at_ns = loss->from_ns };

	if (loss->to_ns > loss->from_ns)
		evidence.duration_ns = loss->to_ns - loss->from_ns;
	d9__finding_add_evidence(findings, finding, &evidence, "cause %s: %s events in %s gap%s",
				 loss->cause[0] ? loss->cause : "unknown", d9__units_count(loss->events).text,
				 d9__units_count(loss->gaps).text, loss->gaps == 1 ? "" : "s");
}

/* ", not written for 4.02 s: no space left on device", or "". */
static void put_unwritten(const struct d9__analysis *a, char *buf, size_t size)
{
	uint64_t ns = 0;
	char reason[128];

	for (size_t i = 0; i < a->losses.n_unwritten; i++)
		ns += a->losses.unwritten[i].to_ns - a->losses.unwritten[i].from_ns;
	put_reason(a, reason, sizeof(reason));
	buf[0] = '\0';
	if (a->losses.n_unwritten)
		snprintf(buf, size, ", not written for %s%s", d9__units_ns(ns).text, reason);
}

static void check_losses(struct d9__findings *findings)
{
	const struct d9__trace_losses *losses = &findings->analysis->losses;
	uint64_t all = findings->analysis->events + losses->events;
	double share = all ? (double)losses->events / (double)all : 0;
	struct d9__finding *finding;
	char unwritten[256];

	if (losses->n == 0)
		return;
	put_unwritten(findings->analysis, unwritten, sizeof(unwritten));
	finding = d9__finding_add(
		findings, share > LOSS_CRITICAL ? D9__CRITICAL : D9__WARNING, losses->events,
		"Give the recorder more memory or a faster disk, or record less. Counts and sums are too small "
		"by what was lost, and a callback that was cut by a gap ends where the gap begins.",
		"%s events were lost (%s of all)%s: figures below are lower bounds.",
		d9__units_count(losses->events).text, d9__units_percent(share).text, unwritten);
	d9__finding_set_brief(findings, finding, "%s events lost (%s)%s", d9__units_count(losses->events).text,
			      d9__units_percent(share).text,
			      unwritten[0] ? unwritten : ": figures are lower bounds");
	for (size_t i = 0; i < losses->n; i++)
		if (strcmp(losses->items[i].cause, "disk") != 0 || !losses->n_unwritten)
			add_loss(findings, finding, &losses->items[i]);
	add_unwritten(findings, finding);
}

/* The number of the segment at |path|, "…/trace.41.bin.zst". */
static bool number_of(const char *path, uint64_t *number)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (strncmp(name, "trace.", 6) != 0 || !isdigit((unsigned char)name[6]))
		return false;
	*number = strtoull(name + 6, NULL, 10);
	return true;
}

/* When the segments |first| to |last| were recorded, by those around them; |from_ns| 0: since the beginning. */
struct evicted_range {
	uint64_t first, last, from_ns, to_ns;
	bool there; /* one of them is in the trace: it was copied before */
};

static void find_neighbours(const struct d9__analysis *a, struct evicted_range *range)
{
	uint64_t before = 0, behind = UINT64_MAX, number;

	for (size_t i = 0; i < a->n_segments; i++) {
		const struct d9__segment_fact *segment = &a->segments[i];

		if (!number_of(segment->path, &number))
			continue;
		range->there |= number >= range->first && number <= range->last;
		if (number < range->first && number >= before) {
			before = number;
			range->from_ns = segment->last_ns;
		}
		if (number > range->last && number < behind) {
			behind = number;
			range->to_ns = segment->first_ns;
		}
	}
}

/* The next of "41-43,45", and where it ends; NULL: none. */
static const char *next_range(const char *text, struct evicted_range *range)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	*range = (struct evicted_range){ .first = strtoull(text, &end, 10) };
	range->last = range->first;
	if (*end == '-' && isdigit((unsigned char)end[1]))
		range->last = strtoull(end + 1, &end, 10);
	return *end == ',' ? end + 1 : end;
}

static void add_evicted(struct d9__findings *findings, struct d9__finding *finding, const struct evicted_range *range)
{
	struct d9__evidence evidence = { .at_ns = range->from_ns ? range->from_ns : range->to_ns };
	char number[64];

	snprintf(number, sizeof(number), range->first == range->last ? "segment %llu" : "segments %llu to %llu",
		 (unsigned long long)range->first, (unsigned long long)range->last);
	if (!range->from_ns || range->to_ns < range->from_ns) {
		d9__finding_add_evidence(findings, finding, &evidence, "%s%s", number,
					 evidence.at_ns ? ": all before this" : "");
		return;
	}
	evidence.duration_ns = range->to_ns - range->from_ns;
	d9__finding_add_evidence(findings, finding, &evidence, "%s: the %s from here", number,
				 d9__units_ns(evidence.duration_ns).text);
}

/* Warn of segments that the recorder evicted because the device was full. */
static void check_evicted(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	const char *text = d9__metadata_value(&a->metadata, "segment.evicted");
	struct d9__finding *finding = NULL;
	struct evicted_range range;

	while (text && (text = next_range(text, &range))) {
		find_neighbours(a, &range);
		if (range.there)
			continue;
		if (!finding)
			finding = d9__finding_add(
				findings, D9__WARNING, 1,
				"Keep room for the trace, on a device of its own if others fill this one, or let it "
				"take less (--max-total): figures are of what is left.",
				"There was more: the recorder deleted its oldest segments because the device was full.");
		d9__finding_set_brief(findings, finding, "oldest segments deleted, because the device was full");
		add_evicted(findings, finding, &range);
	}
}

/* Tell of dumps that made room for younger ones, because else a reader looks for them. */
static void check_evicted_dumps(struct d9__findings *findings)
{
	const char *ids = d9__metadata_value(&findings->analysis->metadata, "dumps.evicted");
	struct d9__finding *finding;
	size_t n = 1;

	for (const char *c = ids; c && *c; c++)
		n += *c == ',';
	if (!ids || !*ids)
		return;
	finding = d9__finding_add(findings, D9__INFO, 0, "Let dumps take more (--max-dumps), or move them away when they are made "
				  "(--on-dump).",
				  "%zu older dump%s of this recorder or of those before it made room for younger ones, %s.", n,
				  n == 1 ? "" : "s", n == 1 ? ids : strrchr(ids, ',') + 1);
	d9__finding_set_brief(findings, finding, "%zu older dump%s deleted, for the budget of dumps was full", n, n == 1 ? "" : "s");
}

#define SAMPLE_LESS "(larger DIAL9_MEMORY_SAMPLE_RATE_BYTES): leaks look larger than they are."

static void check_dropped_samples(struct d9__findings *findings)
{
	const struct d9__trace_losses *losses = &findings->analysis->losses;
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

static void check_damage(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding = NULL;
	size_t damaged = 0;

	for (size_t i = 0; i < a->n_segments; i++)
		damaged += d9__segment_is_damaged(a->segments[i].err);
	if (damaged)
		finding = d9__finding_add(findings, D9__CRITICAL, damaged,
					  "Copy the segment again, if there is another: everything before the "
					  "damage was used, and what follows in that segment is missing from all "
					  "figures.",
					  "Damage in %zu of %zu segments.", damaged, a->n_segments);
	d9__finding_set_brief(findings, finding, "damage in %zu of %zu segments", damaged, a->n_segments);
	for (size_t i = 0; i < a->n_segments; i++) {
		const struct d9__segment_fact *segment = &a->segments[i];

		if (d9__segment_is_damaged(segment->err))
			d9__finding_add_evidence(findings, finding,
						 &(struct d9__evidence){ .at_ns = segment->last_ns },
						 "%s",
						 segment->message ? segment->message
								  : segment->path);
	}
}

/* Segments that a dump's manifest lists, or that went while they were read. */
static void check_missing(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding = NULL;
	size_t missing = 0;

	for (size_t i = 0; i < a->n_segments; i++)
		missing += a->segments[i].err == -ENOENT;
	if (!missing)
		return;
	finding = d9__finding_add(findings, D9__WARNING, missing,
				  "Copy a dump whole, its manifest and all segments that it lists, and give the recorder more room "
				  "(--max-total) if its budget took them: figures are of what is left.",
				  "%zu of %zu segments %s not there.", missing, a->n_segments, missing == 1 ? "is" : "are");
	d9__finding_set_brief(findings, finding, "%zu of %zu segments %s not there", missing, a->n_segments,
			      missing == 1 ? "is" : "are");
	for (size_t i = 0; i < a->n_segments; i++)
		if (a->segments[i].err == -ENOENT)
			d9__finding_add_evidence(findings, finding, &(struct d9__evidence){ .at_ns = 0 }, "%s",
						 a->segments[i].message ? a->segments[i].message : a->segments[i].path);
}

static bool is_unreadable(const struct d9__segment_fact *segment)
{
	return d9__segment_is_unreadable(segment->truncated, segment->active, segment->events);
}

/* Segments that were cut before their first event: not only an end is missing. */
static void check_unreadable(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding;
	size_t n = 0;

	for (size_t i = 0; i < a->n_segments; i++)
		n += is_unreadable(&a->segments[i]);
	if (!n)
		return;
	finding = d9__finding_add(findings, D9__WARNING, n,
				  "Copy the trace again, or free the disk if that was full: "
				  "nothing of what was recorded in "
				  "a segment that was cut so early is in any figure.",
				  "%zu of %zu segments %s cut before the first event.", n,
				  a->n_segments, n == 1 ? "is" : "are");
	d9__finding_set_brief(findings, finding,
			      "%zu of %zu segments %s cut before the first event", n, a->n_segments,
			      n == 1 ? "is" : "are");
	for (size_t i = 0; i < a->n_segments; i++)
		if (is_unreadable(&a->segments[i]))
			d9__finding_add_evidence(
				findings, finding,
				&(struct d9__evidence) { .at_ns = i ? a->segments[i - 1].last_ns
								    : 0 },
				"%s: %s, and nothing in it can be read", a->segments[i].path,
				d9__units_bytes(a->segments[i].stored_bytes).text);
}

static void check_open_ends(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding = NULL;
	size_t cut = 0, active = 0;

	for (size_t i = 0; i < a->n_segments; i++) {
		active += a->segments[i].active;
		cut += a->segments[i].truncated && !a->segments[i].active &&
		       !is_unreadable(&a->segments[i]);
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

		if ((segment->active || segment->truncated) && !is_unreadable(segment))
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

/* Things that the recorder had no room for, or could not follow, as its metadata counts them. */
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

static void check_end(struct d9__findings *findings)
{
	const char *when = d9__metadata_value(&findings->analysis->metadata, "recorder.ended");
	struct d9__finding *finding;

	if (!when)
		return;
	finding = d9__finding_add(findings, D9__WARNING, 0,
				  "Take what is here for the time until then: what the program did later is in no trace; "
				  "dial9-record(1) says which of its steps end a recording.",
				  "Recording ended before the program did, %s.", when);
	d9__finding_set_brief(findings, finding, "recording ended %s", when);
}

/*
 * Tell of triggers that the recorder could not read, because nothing keeps what they were to keep.
 */
static void check_triggers(struct d9__findings *findings)
{
	const struct d9__metadata *metadata = &findings->analysis->metadata;

	for (size_t i = 0; i < metadata->n; i++) {
		struct d9__finding *finding;
		const char *number;
		size_t len;

		if (!d9__metadata_key_is(metadata->items[i].key, "trigger_error.", "", &number, &len))
			continue;
		finding = d9__finding_add(findings, D9__WARNING, 0,
					  "Mend its text where it comes from, DIAL9_TRIGGERS or the program: nothing was "
					  "dumped for it. dial9-trigger(7) has the language.",
					  "Trigger %.*s was not armed, %s.", d9__precision(len), number, metadata->items[i].value);
		d9__finding_set_brief(findings, finding, "trigger %.*s was not armed", d9__precision(len), number);
	}
}

void d9__check_incomplete_data(struct d9__findings *findings)
{
	const char *complete =
		d9__metadata_value(&findings->analysis->metadata, "segment.complete");

	check_missing(findings);
	check_losses(findings);
	check_evicted(findings);
	check_evicted_dumps(findings);
	check_damage(findings);
	check_unreadable(findings);
	check_open_ends(findings);
	check_dropped_samples(findings);
	check_shortages(findings);
	check_unwritten(findings);
	check_end(findings);
	check_triggers(findings);
	if (complete && !strcmp(complete, "false") && findings->analysis->losses.n == 0)
		d9__finding_add(findings, D9__WARNING, 0,
				"Take counts and sums as lower bounds.",
				"The recorder says that a segment is not complete.");
}

/* The parts that a report lacks where hooks do not see all. */
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
		/* Its end names the setting that would permit it. */
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
