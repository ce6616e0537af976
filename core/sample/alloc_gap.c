/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "sample/alloc_gap.h"

#define GAP_MAX  4e18 /* fits 63 bits */
#define LN_2	 0.69314718055994530942
#define SQRT_2	 1.41421356237309504880
#define EXPONENT 52

/*
 * The natural logarithm of |x|, which is normal and positive, to 1e-11: of the parts mantissa and exponent.  libm is not
 * brought into the program for this.  With t = (m - 1) / (m + 1): ln(m) = 2 (t + t^3 / 3 + t^5 / 5 ...), |t| < 0.172.
 */
static double logarithm(double x)
{
	uint64_t bits;
	double m, t, square, sum = 0;
	int exponent;

	memcpy(&bits, &x, sizeof(bits));
	exponent = (int)(bits >> EXPONENT) - 1023;
	bits = (bits & ((UINT64_C(1) << EXPONENT) - 1)) | UINT64_C(1023) << EXPONENT;
	memcpy(&m, &bits, sizeof(m));
	if (m > SQRT_2) {
		m /= 2;
		exponent++;
	}
	t = (m - 1) / (m + 1);
	square = t * t;
	for (int k = 13; k > 0; k -= 2)
		sum = sum * square + 2.0 / k;
	return sum * t + exponent * LN_2;
}

uint64_t d9__alloc_gap(uint64_t *state, uint64_t rate)
{
	/* In (0, 1], in steps of 2^-53. */
	double uniform = (double)((d9__alloc_random(state) >> 11) + 1) * 0x1p-53;
	double gap = -logarithm(uniform) * (double)rate;
	uint64_t whole = gap < GAP_MAX ? (uint64_t)gap : (uint64_t)GAP_MAX;

	if (rate == 1)
		return 0;
	return whole + ((double)whole < gap || !whole);
}
