/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/growth_curve.h"
#include "base/time.h"

static void halve(struct d9__growth_curve *curve)
{
	for (unsigned i = 0; i < D9__CURVE_POINTS / 2; i++)
		curve->points[i] = curve->points[2 * i + 1];
	curve->n = D9__CURVE_POINTS / 2;
	curve->step_ns *= 2;
}

void d9__growth_curve_set(struct d9__growth_curve *curve, uint64_t ns, int64_t value)
{
	uint64_t step;

	if (curve->n == 0) {
		curve->start_ns = ns;
		curve->step_ns = D9__MS_NS;
		curve->points[curve->n++] = value;
	}
	while ((step = (ns - curve->start_ns) / curve->step_ns) >= D9__CURVE_POINTS) {
		while (curve->n < D9__CURVE_POINTS) {
			curve->points[curve->n] = curve->points[curve->n - 1];
			curve->n++;
		}
		halve(curve);
	}
	while (curve->n <= step) {
		curve->points[curve->n] = curve->points[curve->n - 1];
		curve->n++;
	}
	curve->points[step] = value;
}

static int64_t value_at(const struct d9__growth_curve *curve, uint64_t ns)
{
	uint64_t step = (ns - curve->start_ns) / curve->step_ns;

	return curve->points[step < curve->n ? step : curve->n - 1];
}

bool d9__growth_curve_grows(const struct d9__growth_curve *curve, uint64_t end_ns, int64_t factor)
{
	uint64_t quarter_ns;
	int64_t first, last, peak = 0;

	if (curve->n < 8 || end_ns <= curve->start_ns)
		return false;
	quarter_ns = (end_ns - curve->start_ns) / 4;
	first = value_at(curve, curve->start_ns + quarter_ns);
	last = value_at(curve, end_ns);
	for (unsigned i = 0; i < curve->n; i++) {
		if (curve->points[i] > peak)
			peak = curve->points[i];
		if (curve->points[i] < peak - peak / 10 - 1)
			return false;
	}
	for (unsigned i = 1; i < 4; i++)
		if (value_at(curve, curve->start_ns + (i + 1) * quarter_ns) <=
		    value_at(curve, curve->start_ns + i * quarter_ns))
			return false;
	return last > factor * first;
}
