/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "cli/time_bins.h"

#define FIRST_WIDTH_NS (UINT64_C(1) << 20)

/* Each two become one. */
static void fold(struct d9__time_bins *bins)
{
	struct d9__time_bins wider = { .width_ns = 2 * bins->width_ns, .first = bins->first / 2 };

	for (size_t i = 0; i < bins->n; i++) {
		size_t at = (size_t)((bins->first + i) / 2 - wider.first);
		struct d9__time_bin *bin = &wider.items[at];

		if (bins->items[i].longest_ns > bin->longest_ns)
			bin->longest_ns = bins->items[i].longest_ns;
		bin->busy_ns += bins->items[i].busy_ns;
		wider.n = at + 1;
	}
	*bins = wider;
}

/* Widen the bins until those from |start_ns| to |end_ns| are among them. */
static void cover(struct d9__time_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t from, to;

	if (!bins->n) {
		*bins = (struct d9__time_bins) { .width_ns = FIRST_WIDTH_NS,
						 .first = start_ns / FIRST_WIDTH_NS,
						 .n = 1 };
	}
	for (;; fold(bins)) {
		from = start_ns / bins->width_ns;
		to = end_ns / bins->width_ns;
		from = from < bins->first ? from : bins->first;
		to = to > bins->first + bins->n - 1 ? to : bins->first + bins->n - 1;
		if (to - from < D9__TIME_BINS)
			break;
	}
	if (from < bins->first) {
		size_t by = (size_t)(bins->first - from);

		memmove(bins->items + by, bins->items, bins->n * sizeof(bins->items[0]));
		memset(bins->items, 0, by * sizeof(bins->items[0]));
		bins->first = from;
	}
	bins->n = (size_t)(to - from) + 1;
}

void d9__time_bins_add(struct d9__time_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns < start_ns)
		return;
	cover(bins, start_ns, end_ns);
	for (uint64_t at = start_ns / bins->width_ns; at <= end_ns / bins->width_ns; at++) {
		struct d9__time_bin *bin = &bins->items[at - bins->first];
		uint64_t from = at * bins->width_ns, to = end_ns;

		/* The last bin that there can be ends where no number is left. */
		if (end_ns - from > bins->width_ns)
			to = from + bins->width_ns;
		if (end_ns - start_ns > bin->longest_ns)
			bin->longest_ns = end_ns - start_ns;
		bin->busy_ns += to - (start_ns > from ? start_ns : from);
	}
}
