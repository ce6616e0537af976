/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spelling.h"
#include "export/profile.h"
#include "export/profile_select.h"
#include "text/fail.h"

/* ---- which ---- */

/*
 * True if |name| is |wanted| or matches it as a pattern.  Compare as plain text first, because
 * names have brackets of their own ("[gio] D-Bus read").
 */
static bool matches(const char *name, const char *wanted)
{
	return !strcmp(name, wanted) || !fnmatch(wanted, name, 0);
}

static bool is_called(const struct d9__callback *callback, const char *wanted)
{
	char way[1024], own[1024];
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	snprintf(own, sizeof(own), "%.*s", (int)(len < sizeof(own) ? len : sizeof(own) - 1), name);
	return matches(own, wanted) || matches(d9__callback_way(callback, way, sizeof(way)), wanted);
}

static bool is_of_loop(const struct d9__profile *profile, const uint64_t *worker, const char *wanted)
{
	const char *loop = worker ? d9__metadata_group(&profile->analysis.metadata, *worker) : NULL;

	return loop && !strcmp(loop, wanted);
}

bool d9__profile_selects(const struct d9__profile *profile, const struct d9__callback *callback, const uint64_t *worker)
{
	const struct d9__profile_filter *wanted = &profile->wanted;

	if (wanted->callback && !(callback && is_called(callback, wanted->callback)))
		return false;
	return !wanted->loop || is_of_loop(profile, worker, wanted->loop);
}

/* True if |stack| has samples, and is of the callback and loop that are wanted. */
static bool is_wanted(const struct d9__profile *profile, const struct d9__profile_stack *stack)
{
	/* Its samples turned out to be of another stratum. */
	if (profile->wanted.kind == D9__PROFILE_KIND_CPU && !stack->taken && !stack->lonely)
		return false;
	return d9__profile_selects(profile, stack->callback,
				   stack->worker ? &stack->worker->id : NULL);
}

static void leave_wanted(struct d9__profile *profile)
{
	size_t kept = 0;

	for (size_t i = 0; i < profile->n; i++) {
		struct d9__profile_stack *stack = profile->stacks[i];

		if (is_wanted(profile, stack)) {
			profile->stacks[kept++] = stack;
			continue;
		}
		profile->samples -= stack->samples;
		free(stack);
	}
	profile->n = kept;
}

/* ---- what there is ---- */

/*
 * Print that there is no |what| of that name, with the nearest one or the command that lists them.
 */
static int refuse(const char *command, const char *what, const struct d9__spelling *nearest, const char *where)
{
	if (nearest->name)
		return d9__cmd_fail(command, "no %s '%s' in this trace; is %s meant?", what, nearest->word,
				    nearest->name);
	return d9__cmd_fail(command, "no %s '%s' in this trace; dial9 %s lists them", what, nearest->word, where);
}

static int check_callback(const struct d9__profile *profile, const char *command, const char *name)
{
	const struct d9__callbacks *callbacks = &profile->analysis.callbacks;
	struct d9__spelling nearest = { .word = name };

	for (size_t i = 0; i < callbacks->n; i++) {
		if (is_called(callbacks->items[i], name))
			return 0;
		if (callbacks->items[i]->function)
			d9__spelling_try(&nearest, callbacks->items[i]->function);
	}
	return refuse(command, "callback", &nearest, "report --section callbacks");
}

static int check_span(const struct d9__profile *profile, const char *command, const char *name)
{
	const struct d9__texts *names = &profile->spans.names;
	struct d9__spelling nearest = { .word = name };
	uint32_t number;

	if (d9__texts_find(names, name, strlen(name), &number))
		return 0;
	for (size_t i = 0; i < names->n; i++)
		d9__spelling_try(&nearest, names->items[i]);
	return refuse(command, "span", &nearest, "report --section spans");
}

static int check_loop(const struct d9__profile *profile, const char *command, const char *name)
{
	const struct d9__timeline *timeline = &profile->analysis.timeline;
	struct d9__spelling nearest = { .word = name };

	for (size_t i = 0; i < timeline->n; i++) {
		const char *loop = d9__metadata_group(&profile->analysis.metadata, timeline->items[i]->id);

		if (loop && !strcmp(loop, name))
			return 0;
		if (loop)
			d9__spelling_try(&nearest, loop);
	}
	return refuse(command, "loop", &nearest, "info");
}

static int check_wanted(const struct d9__profile *profile, const char *command)
{
	const struct d9__profile_filter *wanted = &profile->wanted;
	int status = wanted->callback ? check_callback(profile, command, wanted->callback) : 0;

	if (!status && wanted->span)
		status = check_span(profile, command, wanted->span);
	if (!status && wanted->loop)
		status = check_loop(profile, command, wanted->loop);
	return status;
}

/* Whether anything is left, with a line if not: 0 or an exit status. */
static int check_found(const struct d9__profile *profile, const char *command)
{
	const char *samples = profile->facts->samples;
	bool is_live = profile->wanted.kind == D9__PROFILE_KIND_LIVE;

	if (profile->samples || (profile->calls && profile->calls->n && profile->wanted.kind == D9__PROFILE_KIND_CPU))
		return 0;
	if (!profile->found)
		return d9__cmd_fail(command, "this trace has no %s", samples);
	if (is_live && !profile->heap.followed)
		return d9__cmd_fail(command, "this trace does not tell what was freed (DIAL9_MEMORY_TRACK_LIVESET)");
	return d9__cmd_fail(command, "none of the %" PRIu64 " %s of this trace is of that worker, loop, callback, span "
			    "and time%s%s", profile->found, samples, is_live ? ", and live" : "",
			    profile->wanted.min_ns ? ", in a call that took so long" : "");
}

/* ---- what they count ---- */

/* Count every stack by |of| instead of the unit of its kind. */
static void weigh(struct d9__profile *profile, uint64_t (*of)(const struct d9__profile *, const struct d9__profile_stack *))
{
	profile->samples = 0;
	for (size_t i = 0; i < profile->n; i++) {
		profile->stacks[i]->samples = of(profile, profile->stacks[i]);
		profile->samples += profile->stacks[i]->samples;
	}
}

static uint64_t cpu_ns(const struct d9__profile *profile, const struct d9__profile_stack *stack)
{
	(void)profile;
	return stack->cpu_ns;
}

/* Give each stack the CPU time that its samples stand for. */
static void set_cpu_ns(struct d9__profile *profile)
{
	for (size_t i = 0; i < profile->n; i++) {
		struct d9__profile_stack *stack = profile->stacks[i];

		stack->cpu_ns = stack->lonely ? stack->weight->cpu_ns
					      : d9__weight_ns(stack->weight, stack->taken,
							      profile->period_ns);
	}
}

static uint64_t off_ns(const struct d9__profile *profile, const struct d9__profile_stack *stack)
{
	(void)profile;
	return stack->off_ns;
}

/*
 * Give each stack the time that its samples off the CPU stand for: calls that blocked are all told,
 * switches in a part of the time.  Returns whether any time is known.
 */
static bool set_off_ns(struct d9__profile *profile)
{
	double share = d9__analysis_switch_share(&profile->analysis);
	bool any = false;

	for (size_t i = 0; i < profile->n; i++) {
		struct d9__profile_stack *stack = profile->stacks[i];

		stack->off_ns = d9__off_time_ns(&stack->off_time, share);
		any = any || stack->off_ns;
	}
	return any;
}

static uint64_t idle_ns(const struct d9__profile *profile, const struct d9__profile_stack *stack)
{
	(void)profile;
	return 1000 * stack->samples;
}

static void count_ns(struct d9__profile *profile, const struct d9__profile_kind_facts *facts)
{
	profile->weighed = *facts;
	profile->weighed.unit = D9__PROFILE_NANOSECONDS;
	profile->facts = &profile->weighed;
}

static int weigh_by_ns(struct d9__profile *profile, bool is_timed, const char *command)
{
	switch (profile->wanted.kind) {
	case D9__PROFILE_KIND_CPU:
		if (!profile->period_ns)
			return d9__cmd_fail(command, "this trace does not tell how much CPU time a sample stands for: "
					    "leave out --weight ns");
		profile->facts = &d9__profile_timed;
		weigh(profile, cpu_ns);
		return 0;
	case D9__PROFILE_KIND_OFF_CPU:
		if (!profile->off_timed)
			return d9__cmd_fail(
				command, "it is not known how long the threads were off the CPU: "
					 "leave out --weight ns");
		profile->facts = is_timed ? &d9__profile_blocking : &d9__profile_away;
		weigh(profile, off_ns);
		return 0;
	case D9__PROFILE_KIND_IDLE:
		count_ns(profile, profile->facts);
		weigh(profile, idle_ns);
		return 0;
	default:
		return d9__cmd_fail(command, "allocations are counted in bytes, not with --weight ns");
	}
}

/* By time where the trace tells it. */
static int weigh_as_wanted(struct d9__profile *profile, const char *command)
{
	bool is_timed = profile->samples && profile->timed == profile->samples;
	bool is_counted = profile->facts->unit == D9__PROFILE_SAMPLES;

	if (profile->wanted.kind == D9__PROFILE_KIND_CPU)
		set_cpu_ns(profile);
	profile->off_timed =
		profile->wanted.kind == D9__PROFILE_KIND_OFF_CPU && set_off_ns(profile);
	switch (profile->wanted.weight) {
	case D9__PROFILE_WEIGHT_OF_KIND:
		if (profile->wanted.kind == D9__PROFILE_KIND_CPU && profile->period_ns)
			return weigh_by_ns(profile, is_timed, command);
		if (profile->wanted.kind == D9__PROFILE_KIND_OFF_CPU && profile->off_timed)
			return weigh_by_ns(profile, is_timed, command);
		return 0;
	case D9__PROFILE_WEIGHT_SAMPLES:
		return is_counted ? 0 : d9__cmd_fail(command, "--kind %s is not counted in samples",
						     profile->facts->word);
	case D9__PROFILE_WEIGHT_NS:
		return weigh_by_ns(profile, is_timed, command);
	default:
		return profile->facts->unit == D9__PROFILE_BYTES ? 0 :
			d9__cmd_fail(command, "--weight bytes is for --kind heap and live");
	}
}

int d9__profile_select(struct d9__profile *profile, const char *command)
{
	int status = check_wanted(profile, command);

	if (!status)
		status = weigh_as_wanted(profile, command);
	if (status)
		return status;
	leave_wanted(profile);
	return profile->whole ? 0 : check_found(profile, command);
}
