/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/growth.h"
#include "base/time.h"

/* Callbacks that are compared with growth: work for each sample, so not as many as a trace may name. */
#define CALLBACKS_MAX 256

/* So many samples tell of growth. */
#define SAMPLES 4

/* Each third of the time has one in so many parts of the growth at least. */
#define PART 6

void d9__growth_release(struct d9__growth_state *state)
{
	free(state->with);
}

static void halve(struct d9__growth_state *state)
{
	for (size_t i = 0; i < D9__STATE_POINTS / 2; i++)
		state->points[i] = state->points[2 * i];
	state->n_points = D9__STATE_POINTS / 2;
	state->stride *= 2;
}

static int compare_with(struct d9__growth_state *state, const struct d9__callbacks *callbacks,
			const double grown[D9__HELD])
{
	size_t n = callbacks->n < CALLBACKS_MAX ? callbacks->n : CALLBACKS_MAX;

	if (!state->with && !(state->with = calloc(CALLBACKS_MAX, sizeof(*state->with))))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct d9__goes_with *with = &state->with[i];
		double calls = (double)(callbacks->items[i]->calls - with->calls);

		if (i >= state->n_with || state->samples == 0)
			with->first_calls = state->samples ? 0 : callbacks->items[i]->calls;
		with->calls = callbacks->items[i]->calls;
		if (state->samples == 0)
			continue;
		with->square += calls * calls;
		for (size_t j = 0; j < D9__HELD; j++)
			with->product[j] += calls * grown[j];
	}
	state->n_with = n;
	return 0;
}

int d9__growth_add(struct d9__growth_state *state, const struct d9__callbacks *callbacks, uint64_t ns,
		   const uint64_t held[D9__HELD])
{
	double grown[D9__HELD] = { 0 };

	for (size_t i = 0; i < D9__HELD && state->samples; i++) {
		grown[i] = (double)held[i] - (double)state->last[i];
		state->square[i] += grown[i] * grown[i];
	}
	if (compare_with(state, callbacks, grown))
		return -ENOMEM;
	if (state->samples == 0) {
		memcpy(state->first, held, sizeof(state->first));
		state->first_ns = ns;
		state->stride = 1;
	}
	memcpy(state->last, held, sizeof(state->last));
	for (size_t i = 0; i < D9__HELD; i++)
		if (held[i] > state->most[i])
			state->most[i] = held[i];
	state->last_ns = ns;
	if (state->n_points == D9__STATE_POINTS)
		halve(state);
	if (state->samples++ % state->stride)
		return 0;
	state->points[state->n_points].ns = ns;
	memcpy(state->points[state->n_points++].held, held, sizeof(state->points[0].held));
	return 0;
}

/* Return how much of |what| was held at |ns|, between two points in proportion. */
static double held_at(const struct d9__growth_state *state, enum d9__held what, uint64_t ns)
{
	const struct d9__state_point *points = state->points;
	size_t i = 1;

	while (i + 1 < state->n_points && points[i].ns < ns)
		i++;
	if (points[i].ns <= points[i - 1].ns || ns > points[i].ns)
		return (double)points[i].held[what];
	return (double)points[i - 1].held[what] +
	       ((double)points[i].held[what] - (double)points[i - 1].held[what]) *
		       (double)(ns - points[i - 1].ns) / (double)(points[i].ns - points[i - 1].ns);
}

bool d9__growth_is_steady(const struct d9__growth_state *state, enum d9__held what)
{
	uint64_t from_ns, length_ns;
	double before, all;

	if (state->samples < SAMPLES || state->n_points < 2 || state->last[what] <= state->first[what])
		return false;
	/* A program that begins makes much: that is no growth. */
	from_ns = state->points[state->samples > SAMPLES ? 1 : 0].ns;
	length_ns = state->points[state->n_points - 1].ns - from_ns;
	before = held_at(state, what, from_ns);
	all = held_at(state, what, from_ns + length_ns) - before;
	if (all <= 0 || 10 * (state->most[what] - state->last[what]) > state->last[what] - state->first[what])
		return false;
	for (unsigned i = 1; i <= 3; i++) {
		double now = held_at(state, what, from_ns + length_ns * i / 3);

		if (PART * (now - before) < all)
			return false;
		before = now;
	}
	return true;
}

/* ---- lines ---- */

/* A line needs so many points, in so long a time, and this much of all that happened lies on it. */
#define LINE_POINTS 20
#define LINE_NS	    (60 * D9__SECOND_NS)
#define LINE_R2	    0.8

/* In its second half it rises by one in so many parts of what it does in all. */
#define LATER_PART 4

/* Sums of pairs of numbers, around the first. */
struct fit {
	double n, x, y, xx, xy, yy;
};

static void add_pair(struct fit *fit, double x, double y)
{
	fit->n++;
	fit->x += x;
	fit->y += y;
	fit->xx += x * x;
	fit->xy += x * y;
	fit->yy += y * y;
}

/* How much |y| grows with |x|, and how well that holds; false: they do not differ. */
static bool solve(const struct fit *fit, double *slope, double *r2)
{
	double xx = fit->n * fit->xx - fit->x * fit->x, yy = fit->n * fit->yy - fit->y * fit->y;
	double xy = fit->n * fit->xy - fit->x * fit->y;

	if (fit->n < 2 || xx <= 0 || yy <= 0)
		return false;
	*slope = xy / xx;
	*r2 = xy / xx * xy / yy;
	return true;
}

static double at_point(const struct d9__growth_state *state, size_t i, enum d9__held what)
{
	return (double)state->points[i].held[what] - (double)state->points[0].held[what];
}

bool d9__growth_is_linear(const struct d9__growth_state *state, enum d9__held what,
			  struct d9__trend *out)
{
	struct fit all = { .n = 0 }, later = { .n = 0 };
	double slope, r2, later_slope, later_r2, s = 0;

	if (state->n_points < LINE_POINTS || state->last_ns - state->first_ns < LINE_NS)
		return false;
	for (size_t i = 0; i < state->n_points; i++) {
		s = (double)(state->points[i].ns - state->points[0].ns) / (double)D9__SECOND_NS;
		add_pair(&all, s, at_point(state, i, what));
		if (2 * i >= state->n_points)
			add_pair(&later, s, at_point(state, i, what));
	}
	if (!solve(&all, &slope, &r2) || !solve(&later, &later_slope, &later_r2) || slope <= 0 ||
	    r2 < LINE_R2 || LATER_PART * later_slope < slope)
		return false;
	*out = (struct d9__trend) { .per_s = slope, .r2 = r2, .grown = (uint64_t)(slope * s) };
	return true;
}

bool d9__growth_follows(const struct d9__growth_state *state, enum d9__held what,
			enum d9__held other, double *each)
{
	struct fit fit = { .n = 0 };
	struct d9__trend trend;
	double r2;

	if (!d9__growth_is_linear(state, other, &trend))
		return false;
	for (size_t i = 0; i < state->n_points; i++)
		add_pair(&fit, at_point(state, i, other), at_point(state, i, what));
	return solve(&fit, each, &r2) && *each > 0 && r2 >= LINE_R2;
}

/* How much of the growth |with|'s calls leave unexplained, 0 to 1. */
static double rest_of(const struct d9__growth_state *state, const struct d9__goes_with *with, enum d9__held what)
{
	if (with->square <= 0 || with->product[what] <= 0 || state->square[what] <= 0)
		return 1;
	return 1 - with->product[what] / with->square * with->product[what] / state->square[what];
}

/* By how much calls and descriptors differ: one that is left open for each call is most likely. */
static double unlike(const struct d9__growth_state *state, const struct d9__goes_with *with)
{
	double grown = (double)(state->last[D9__HELD_DESCRIPTORS] - state->first[D9__HELD_DESCRIPTORS]);
	double calls = (double)(with->calls - with->first_calls);

	return calls > grown ? calls / grown : grown / (calls > 0 ? calls : 1);
}

const struct d9__callback *d9__growth_goes_with(const struct d9__growth_state *state,
						const struct d9__callbacks *callbacks, enum d9__held what,
						uint64_t *calls)
{
	const struct d9__callback *found = NULL;
	size_t at = 0;
	double best = 1;

	for (size_t i = 0; i < state->n_with; i++)
		if (!callbacks->items[i]->internal && rest_of(state, &state->with[i], what) < best)
			best = rest_of(state, &state->with[i], what);
	if (best > 0.5)
		return NULL;
	/* Where several go as well with it: the one that does most, or as often as descriptors are made. */
	for (size_t i = 0; i < state->n_with; i++) {
		const struct d9__callback *callback = callbacks->items[i];

		if (callback->internal || rest_of(state, &state->with[i], what) > 2 * best + 0.05)
			continue;
		if (found && (what == D9__HELD_MEMORY
				      ? callback->durations.sum <= found->durations.sum
				      : unlike(state, &state->with[i]) >= unlike(state, &state->with[at])))
			continue;
		found = callback;
		at = i;
	}
	if (found)
		*calls = state->with[at].calls - state->with[at].first_calls;
	return found;
}
