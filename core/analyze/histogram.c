/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analyze/budget.h"
#include "analyze/histogram.h"

/* Where a value is counted. */
struct place {
	unsigned octave, sub;
};

static struct place place_of(uint64_t value)
{
	unsigned shift;

	if (value < D9__HISTOGRAM_SUBS)
		return (struct place){ 0, (unsigned)value };
	shift = 63u - (unsigned)__builtin_clzll(value) - D9__HISTOGRAM_SUB_BITS;
	return (struct place){ shift + 1, (unsigned)(value >> shift) - D9__HISTOGRAM_SUBS };
}

static uint64_t middle_of(struct place place)
{
	uint64_t width;

	if (place.octave == 0)
		return place.sub;
	width = UINT64_C(1) << (place.octave - 1);
	return (D9__HISTOGRAM_SUBS + place.sub) * width + (width - 1) / 2;
}

#define OCTAVE_BYTES (D9__HISTOGRAM_SUBS * sizeof(uint64_t))

/* The octave next to |octave| that is there; D9__HISTOGRAM_OCTAVES if none is. */
static unsigned nearest_octave(const struct d9__histogram *h, unsigned octave)
{
	for (unsigned i = 1; i < D9__HISTOGRAM_OCTAVES; i++) {
		if (i <= octave && h->octaves[octave - i])
			return octave - i;
		if (octave + i < D9__HISTOGRAM_OCTAVES && h->octaves[octave + i])
			return octave + i;
	}
	return D9__HISTOGRAM_OCTAVES;
}

/* The bucket of |place|, whose octave is not there. */
static __attribute__((cold)) uint64_t *new_bucket(struct d9__histogram *h, struct place place)
{
	unsigned octave = place.octave, near = nearest_octave(h, octave);

	if (near == D9__HISTOGRAM_OCTAVES || d9__budget_take(D9__KEPT_CLASSES, OCTAVE_BYTES))
		h->octaves[octave] = calloc(D9__HISTOGRAM_SUBS, sizeof(**h->octaves));
	else
		return &h->octaves[near][near < octave ? D9__HISTOGRAM_SUBS - 1 : 0];
	return h->octaves[octave] ? &h->octaves[octave][place.sub] : NULL;
}

/* The bucket of |place|; beyond the budget the nearest there is.  The first octave is paid by the
 * histogram's owner. */
static inline uint64_t *bucket_of(struct d9__histogram *h, struct place place)
{
	uint64_t *octave = h->octaves[place.octave];

	return __builtin_expect(octave != NULL, 1) ? &octave[place.sub] : new_bucket(h, place);
}

void d9__histogram_release(struct d9__histogram *h)
{
	size_t n = 0;

	for (unsigned i = 0; i < D9__HISTOGRAM_OCTAVES; i++) {
		n += h->octaves[i] != NULL;
		free(h->octaves[i]);
	}
	d9__budget_give(n ? (n - 1) * OCTAVE_BYTES : 0);
	*h = (struct d9__histogram){ 0 };
}

int d9__histogram_add(struct d9__histogram *h, uint64_t value)
{
	uint64_t *bucket = bucket_of(h, place_of(value));

	if (!bucket)
		return -ENOMEM;
	++*bucket;
	if (h->count == 0 || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->sum += value;
	return 0;
}

int d9__histogram_merge(struct d9__histogram *h, const struct d9__histogram *from)
{
	for (unsigned i = 0; i < D9__HISTOGRAM_OCTAVES; i++) {
		if (!from->octaves[i])
			continue;
		for (unsigned sub = 0; sub < D9__HISTOGRAM_SUBS; sub++) {
			uint64_t n = from->octaves[i][sub];
			uint64_t *bucket = n ? bucket_of(h, (struct place){ i, sub }) : NULL;

			if (n && !bucket)
				return -ENOMEM;
			if (n)
				*bucket += n;
		}
	}
	if (from->count && (h->count == 0 || from->min < h->min))
		h->min = from->min;
	if (from->max > h->max)
		h->max = from->max;
	h->count += from->count;
	h->sum += from->sum;
	return 0;
}

/* Of the first and last bucket with a value. */
static void find_ends(struct d9__histogram *h)
{
	uint64_t first = 0, last = 0;
	bool any = false;

	for (unsigned i = 0; i < D9__HISTOGRAM_OCTAVES; i++)
		for (unsigned sub = 0; h->octaves[i] && sub < D9__HISTOGRAM_SUBS; sub++) {
			if (!h->octaves[i][sub])
				continue;
			last = middle_of((struct place){ i, sub });
			first = any ? first : last;
			any = true;
		}
	/* The ends themselves are still there if their buckets are. */
	if (place_of(first).octave != place_of(h->min).octave || place_of(first).sub != place_of(h->min).sub)
		h->min = first;
	if (place_of(last).octave != place_of(h->max).octave || place_of(last).sub != place_of(h->max).sub)
		h->max = last;
}

void d9__histogram_subtract(struct d9__histogram *h, const struct d9__histogram *from)
{
	for (unsigned i = 0; i < D9__HISTOGRAM_OCTAVES; i++)
		for (unsigned sub = 0; from->octaves[i] && sub < D9__HISTOGRAM_SUBS; sub++) {
			uint64_t n = from->octaves[i][sub];
			uint64_t *bucket = n ? bucket_of(h, (struct place){ i, sub }) : NULL;

			/* Beyond the budget another bucket may have had some of them. */
			if (bucket)
				*bucket -= n < *bucket ? n : *bucket;
		}
	h->count -= from->count < h->count ? from->count : h->count;
	h->sum -= from->sum < h->sum ? from->sum : h->sum;
	find_ends(h);
}

/* The bucket that holds the value of |rank|, counted from 1. */
static struct place place_of_rank(const struct d9__histogram *h, uint64_t rank)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < D9__HISTOGRAM_OCTAVES; i++) {
		if (!h->octaves[i])
			continue;
		for (unsigned sub = 0; sub < D9__HISTOGRAM_SUBS; sub++) {
			seen += h->octaves[i][sub];
			if (seen >= rank)
				return (struct place){ i, sub };
		}
	}
	return place_of(h->max);
}

uint64_t d9__histogram_quantile(const struct d9__histogram *h, double q)
{
	uint64_t rank = (uint64_t)ceil(q * (double)h->count), value;

	if (h->count == 0)
		return 0;
	if (rank <= 1)
		return h->min;
	if (rank >= h->count)
		return h->max;
	value = middle_of(place_of_rank(h, rank));
	if (value < h->min)
		return h->min;
	return value > h->max ? h->max : value;
}

/* The number of values above |limit|, and their sum, as far as buckets tell. */
static uint64_t add_above(const struct d9__histogram *h, uint64_t limit, uint64_t *sum)
{
	struct place place = place_of(limit);
	uint64_t above = 0;

	for (unsigned i = place.octave; i < D9__HISTOGRAM_OCTAVES; i++) {
		if (!h->octaves[i])
			continue;
		for (unsigned sub = i == place.octave ? place.sub + 1 : 0; sub < D9__HISTOGRAM_SUBS;
		     sub++) {
			above += h->octaves[i][sub];
			*sum += h->octaves[i][sub] * middle_of((struct place) { i, sub });
		}
	}
	return above;
}

uint64_t d9__histogram_above(const struct d9__histogram *h, uint64_t limit)
{
	uint64_t sum = 0;

	return add_above(h, limit, &sum);
}

uint64_t d9__histogram_sum_above(const struct d9__histogram *h, uint64_t limit)
{
	uint64_t sum = 0;

	add_above(h, limit, &sum);
	return sum < h->sum ? sum : h->sum;
}
