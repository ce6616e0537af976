/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/breaker.h"

#include "base/time.h"

#define FIRST	    D9__SECOND_NS
#define LONGEST	    (300 * D9__SECOND_NS)
#define DOUBLINGS   9  /* from FIRST to beyond LONGEST */
#define RETRY_AFTER 300 /* seconds that a store may ask for */

void d9__breaker_fail(struct d9__breaker *breaker, uint64_t now_ns, unsigned retry_after_s, uint64_t random)
{
	unsigned doublings = breaker->failures < DOUBLINGS ? breaker->failures : DOUBLINGS;
	uint64_t longest = FIRST << doublings, until_ns;

	if (longest > LONGEST)
		longest = LONGEST;
	if (retry_after_s > RETRY_AFTER)
		retry_after_s = RETRY_AFTER;
	until_ns =
		now_ns + (retry_after_s ? retry_after_s * D9__SECOND_NS : random % (longest + 1));
	breaker->failures++;
	if (until_ns > breaker->until_ns)
		breaker->until_ns = until_ns;
}

void d9__breaker_succeed(struct d9__breaker *breaker)
{
	*breaker = (struct d9__breaker) { 0 };
}

unsigned d9__breaker_allows(const struct d9__breaker *breaker, uint64_t now_ns, unsigned all)
{
	if (!breaker->failures)
		return all;
	return now_ns < breaker->until_ns ? 0 : 1;
}
