/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breaker: when a store that failed is asked again.  1 s doubling to 5 min, of which a random part is waited, because all
 * hosts come back at once; then one request, and any that succeeds closes it.  No clock of its own.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zero is closed. */
struct d9__breaker {
	unsigned failures;   /* since the latest success */
	uint64_t until_ns;     /* until then nothing is asked */
};

/*
 * Note a failure at |now_ns|; |retry_after_s| is the store's Retry-After, 0: none; |random| is any
 * number.
 */
void d9__breaker_fail(struct d9__breaker *breaker, uint64_t now_ns, unsigned retry_after_s, uint64_t random);

void d9__breaker_succeed(struct d9__breaker *breaker);

/* How many requests may be under way at |now_ns|: 0, 1, or |all|. */
unsigned d9__breaker_allows(const struct d9__breaker *breaker, uint64_t now_ns, unsigned all);
