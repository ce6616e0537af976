/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash: spreads keys by a secret, because the author of a trace chooses them and no choice may be a
 * bad one.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A secret of this process; the same whenever it is asked for. */
uint64_t d9__hash_secret(void);

/*
 * The upper bits count.  A multiplication by the golden ratio spreads numbers that count up as
 * evenly as can be; by a secret near to it, also numbers that the author of a trace chose to
 * collide, because which numbers collide depends on the secret.
 */
static inline uint64_t d9__hash_u64(uint64_t secret, uint64_t key)
{
	return key * (UINT64_C(0x9e3779b900000001) | (uint32_t)secret);
}

/* SipHash-1-3 of |len| bytes: all bits are good. */
uint64_t d9__hash_bytes(uint64_t secret, const void *bytes, size_t len);

/* The hash of |text| by this process's secret: a key for d9__table. */
static inline uint64_t d9__hash_text(const char *text)
{
	return d9__hash_bytes(d9__hash_secret(), text, strlen(text));
}
