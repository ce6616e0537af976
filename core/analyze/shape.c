/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/callbacks.h"
#include "analyze/shape.h"
#include "analyze/stalls.h"
#include "base/array.h"

/* ---- the calls of one callback ---- */

static void halve(struct d9__shape *shape)
{
	for (size_t i = 0; i < D9__SHAPE_POINTS; i++) {
		struct d9__shape_point sum = { .calls = 0 };

		for (size_t j = 2 * i; j < 2 * i + 2 && j < D9__SHAPE_POINTS; j++) {
			sum.calls += shape->points[j].calls;
			sum.ns += shape->points[j].ns;
			if (shape->points[j].max_ns > sum.max_ns)
				sum.max_ns = shape->points[j].max_ns;
		}
		shape->points[i] = sum;
	}
	shape->stride *= 2;
}

int d9__shape_add(struct d9__callback *callback, uint64_t number, uint64_t ns)
{
	struct d9__shape *shape = callback->shape;
	struct d9__shape_point *point;

	if (!shape) {
		shape = callback->shape = calloc(1, sizeof(*shape));
		if (!shape)
			return -ENOMEM;
		shape->stride = 1;
	}
	/* |stride| is a power of two. */
	while (number >> __builtin_ctzll(shape->stride) >= D9__SHAPE_POINTS)
		halve(shape);
	point = &shape->points[number >> __builtin_ctzll(shape->stride)];
	point->calls++;
	point->ns += ns;
	if (ns > point->max_ns)
		point->max_ns = ns;
	if (number >= shape->calls)
		shape->calls = number + 1;
	return 0;
}

/* The points from |from| to before |to| as one. */
static struct d9__shape_point sum_of(const struct d9__shape *shape, size_t from, size_t to)
{
	struct d9__shape_point sum = { .calls = 0 };

	for (size_t i = from; i < to; i++) {
		sum.calls += shape->points[i].calls;
		sum.ns += shape->points[i].ns;
		if (shape->points[i].max_ns > sum.max_ns)
			sum.max_ns = shape->points[i].max_ns;
	}
	return sum;
}

static size_t n_points(const struct d9__shape *shape)
{
	return (size_t)((shape->calls + shape->stride - 1) / shape->stride);
}

static uint64_t mean_of(const struct d9__shape_point *point)
{
	return point->calls ? point->ns / point->calls : 0;
}

/* A first call shorter than this one is no cold start; so many must have followed the first few. */
#define COLD_NS    (5 * D9__MS_NS)
#define COLD_LATER 20

bool d9__shape_is_cold(const struct d9__shape *shape, struct d9__cold *cold)
{
	size_t n = shape ? n_points(shape) : 0;
	struct d9__shape_point first = { .calls = 0 }, later;

	/* The shortest beginning behind which no call is slow; nine tenths of all calls are behind it. */
	for (size_t i = 1; i < n; i++) {
		first = sum_of(shape, 0, i);
		later = sum_of(shape, i, n);
		if (i > 1 && 9 * first.calls > later.calls)
			return false;
		if (later.calls < COLD_LATER || first.max_ns < COLD_NS)
			return false;
		if (4 * later.max_ns > first.max_ns || 10 * mean_of(&later) > first.max_ns)
			continue;
		*cold = (struct d9__cold){ .first_calls = first.calls,
					   .slowest_ns = first.max_ns,
					   .later_calls = later.calls,
					   .later_ns = mean_of(&later),
					   .later_max_ns = later.max_ns };
		return true;
	}
	return false;
}

/* Growth is told from so many calls on, if the last ones take so long, so many times as long as the first. */
#define GROWS_CALLS  8
#define GROWS_NS     D9__MS_NS
#define GROWS_FACTOR 3

#define EIGHTHS 8

bool d9__shape_grows(const struct d9__shape *shape, struct d9__growth *growth)
{
	size_t n = shape ? n_points(shape) : 0;
	uint64_t means[EIGHTHS];
	unsigned rises = 0;

	if (!shape || shape->calls < GROWS_CALLS)
		return false;
	for (size_t i = 0; i < EIGHTHS; i++) {
		struct d9__shape_point part = sum_of(shape, n * i / EIGHTHS, n * (i + 1) / EIGHTHS);

		if (part.calls == 0)
			return false;
		means[i] = mean_of(&part);
		rises += i && means[i] > means[i - 1];
	}
	/* Of many calls one step may go down; from quarter to quarter it is up all the way, and not in one jump. */
	for (size_t i = 2; i < EIGHTHS; i++)
		if (20 * means[i] < 21 * means[i - 2])
			return false;
	if (rises + 2 < EIGHTHS || (rises + 1 < EIGHTHS && shape->calls < 2 * GROWS_CALLS) || means[EIGHTHS - 1] < GROWS_NS ||
	    means[EIGHTHS - 1] < GROWS_FACTOR * means[0])
		return false;
	*growth = (struct d9__growth){ .calls = shape->calls, .from_ns = means[0], .to_ns = means[EIGHTHS - 1] };
	return true;
}

/* ---- rhythms ---- */

/* Shorter calls are no pauses. */
#define PAUSE_NS (5 * D9__MS_NS)

/* Pauses that follow each other within this time, or within their own length, are one. */
#define TOGETHER_NS (20 * D9__MS_NS)

/* A rhythm: from so many times on, a period that is long, and so many times as long as the pause. */
#define TIMES      4
#define PERIOD_NS  (100 * D9__MS_NS)
#define PERIOD_PER 4

/* The times between two pauses may be off by one in so many parts. */
#define LOOSE 8

void d9__pauses_release(struct d9__pauses *pauses)
{
	free(pauses->items);
}

int d9__pauses_add(struct d9__pauses *pauses, const struct d9__stall *stall, uint64_t number)
{
	uint64_t ns = d9__stall_own_ns(stall);

	if (ns < PAUSE_NS)
		return 0;
	if (!pauses->items && !(pauses->items = malloc(D9__PAUSES_MAX * sizeof(*pauses->items))))
		return -ENOMEM;
	pauses->items[pauses->n++ % D9__PAUSES_MAX] = (struct d9__pause){
		.start_ns = stall->start_ns,
		.ns = ns,
		.number = number,
		.worker = stall->worker,
		.task = stall->task,
		.callback = stall->culprit,
	};
	return 0;
}

/* A choice of pauses: all that |worker| had, of |callback| (NULL: all), that stand out if asked. */
struct choice {
	uint64_t worker;
	const struct d9__callback *callback;
	bool standing_out;
};

/* A pause and those right behind it. */
struct episode {
	uint64_t start_ns, end_ns, ns, number;
};

struct search {
	struct d9__pause *pauses; /* in the order of workers and times */
	size_t n;
	struct episode *episodes;
	uint64_t *apart_ns;
	struct d9__rhythm *found;
	size_t n_found;
};

const struct d9__rhythm *d9__rhythm_of(const struct d9__rhythm *rhythms, size_t n,
				       const struct d9__callback *callback)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < rhythms[i].n_callbacks; j++)
			if (rhythms[i].callbacks[j] == callback)
				return &rhythms[i];
	return NULL;
}

static bool is_chosen(const struct search *s, const struct d9__pause *pause, const struct choice *choice)
{
	return pause->worker == choice->worker && (!choice->callback || choice->callback == pause->callback) &&
	       (!choice->standing_out || pause->stands_out) &&
	       !d9__rhythm_of(s->found, s->n_found, pause->callback);
}

static void add_callback(struct d9__rhythm *rhythm, const struct d9__pause *pause)
{
	size_t i = 0;

	while (i < rhythm->n_callbacks && rhythm->callbacks[i] != pause->callback)
		if (++i == D9__RHYTHM_CALLBACKS)
			return;
	if (i == rhythm->n_callbacks)
		rhythm->callbacks[rhythm->n_callbacks++] = pause->callback;
	rhythm->callback_ns[i] += pause->ns;
}

/* Put the chosen pauses together; how many episodes. */
static size_t put_together(const struct search *s, const struct choice *choice, struct d9__rhythm *rhythm)
{
	size_t n = 0;

	*rhythm = (struct d9__rhythm){ .worker = choice->worker, .stands_out = true };
	for (size_t i = 0; i < s->n; i++) {
		const struct d9__pause *pause = &s->pauses[i];
		struct episode *last = n ? &s->episodes[n - 1] : NULL;

		if (!is_chosen(s, pause, choice))
			continue;
		add_callback(rhythm, pause);
		rhythm->stands_out &= pause->stands_out;
		if (pause->ns > rhythm->longest_ns) {
			rhythm->longest_ns = pause->ns;
			rhythm->longest_at_ns = pause->start_ns;
			rhythm->task = pause->task;
		}
		rhythm->pause_ns += pause->ns;
		if (last && pause->start_ns < last->end_ns + (last->ns > TOGETHER_NS ? last->ns : TOGETHER_NS)) {
			last->end_ns = pause->start_ns + pause->ns;
			last->ns += pause->ns;
			continue;
		}
		s->episodes[n++] = (struct episode){ pause->start_ns, pause->start_ns + pause->ns, pause->ns,
						     pause->number };
	}
	rhythm->times = n;
	if (n) {
		rhythm->first_ns = s->episodes[0].start_ns;
		rhythm->pause_ns /= n;
	}
	return n;
}

static int compare_u64(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Whether |ns| is |period_ns|, or a few of them where some did not come. */
static bool fits(uint64_t ns, uint64_t period_ns)
{
	uint64_t times = (ns + period_ns / 2) / period_ns, due_ns = times * period_ns;
	uint64_t off_ns = ns > due_ns ? ns - due_ns : due_ns - ns;

	return times >= 1 && times <= 3 && LOOSE * off_ns <= period_ns;
}

/* After how many calls the pauses come, if after the same number each time; else 0. */
static uint64_t calls_apart(const struct search *s, size_t n)
{
	uint64_t apart = s->episodes[1].number - s->episodes[0].number;

	for (size_t i = 1; i + 1 < n; i++)
		if (s->episodes[i + 1].number - s->episodes[i].number != apart)
			return 0;
	return apart > 1 ? apart : 0;
}

static bool is_rhythm(const struct search *s, const struct choice *choice, struct d9__rhythm *rhythm)
{
	size_t n = put_together(s, choice, rhythm), fit = 0;

	if (n < TIMES)
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		s->apart_ns[i] = s->episodes[i + 1].start_ns - s->episodes[i].start_ns;
	qsort(s->apart_ns, n - 1, sizeof(*s->apart_ns), compare_u64);
	rhythm->period_ns = s->apart_ns[(n - 2) / 2];
	if (rhythm->period_ns < PERIOD_NS || rhythm->period_ns < PERIOD_PER * rhythm->pause_ns)
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		fit += fits(s->apart_ns[i], rhythm->period_ns);
	/* By chance one in four would fit: of few intervals all have to. */
	if (n <= 2 * TIMES ? fit + 1 < n : 10 * fit < 9 * (n - 1))
		return false;
	rhythm->each_calls = rhythm->n_callbacks == 1 ? calls_apart(s, n) : 0;
	return true;
}

static int take(struct search *s, const struct choice *choice)
{
	struct d9__rhythm rhythm;

	if (!is_rhythm(s, choice, &rhythm))
		return 0;
	if (!d9__array_grow(s->found, s->n_found))
		return -ENOMEM;
	s->found[s->n_found++] = rhythm;
	return 0;
}

static int compare_pauses(const void *left, const void *right)
{
	const struct d9__pause *a = left, *b = right;

	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* All pauses of a worker, then those that stand out, then those of each callback. */
static int search_worker(struct search *s, uint64_t worker, size_t from)
{
	int err = take(s, &(struct choice){ .worker = worker });

	if (!err)
		err = take(s, &(struct choice){ .worker = worker, .standing_out = true });
	for (size_t i = from; i < s->n && s->pauses[i].worker == worker && !err; i++) {
		size_t before = from;

		while (s->pauses[before].callback != s->pauses[i].callback)
			before++;
		if (before == i)
			err = take(s, &(struct choice){ .worker = worker, .callback = s->pauses[i].callback });
	}
	return err;
}

struct d9__rhythm *d9__rhythms_find(const struct d9__pauses *pauses, size_t *n)
{
	struct search s = { .n = pauses->n < D9__PAUSES_MAX ? (size_t)pauses->n : D9__PAUSES_MAX };
	int err = 0;

	*n = 0;
	if (s.n < TIMES)
		return NULL;
	s.pauses = malloc(s.n * sizeof(*s.pauses));
	s.episodes = malloc(s.n * sizeof(*s.episodes));
	s.apart_ns = malloc(s.n * sizeof(*s.apart_ns));
	if (!s.pauses || !s.episodes || !s.apart_ns)
		err = -ENOMEM;
	if (!err) {
		memcpy(s.pauses, pauses->items, s.n * sizeof(*s.pauses));
		qsort(s.pauses, s.n, sizeof(*s.pauses), compare_pauses);
		for (size_t i = 0; i < s.n; i++)
			s.pauses[i].stands_out = s.pauses[i].ns >= 4 * d9__histogram_quantile(
								   &s.pauses[i].callback->durations, 0.5);
	}
	for (size_t i = 0; i < s.n && !err; i++)
		if (i == 0 || s.pauses[i].worker != s.pauses[i - 1].worker)
			err = search_worker(&s, s.pauses[i].worker, i);
	free(s.pauses);
	free(s.episodes);
	free(s.apart_ns);
	*n = err ? 1 : s.n_found;
	if (err) {
		free(s.found);
		return NULL;
	}
	return s.found;
}
