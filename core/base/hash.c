/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/hash.h"

#include <endian.h>
#include <string.h>
#include <sys/auxv.h>

uint64_t d9__hash_secret(void)
{
	/* The kernel's 16 random bytes: libc's canary is made of the first half. */
	unsigned long at = getauxval(AT_RANDOM);
	const char *random = (const char *)at; /* NOLINT(performance-no-int-to-ptr) */
	uint64_t secret = 0;

	if (random)
		memcpy(&secret, random + sizeof(secret), sizeof(secret));
	return secret;
}

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(struct sip *sip)
{
	sip->a += sip->b;
	sip->b = rotate(sip->b, 13) ^ sip->a;
	sip->a = rotate(sip->a, 32);
	sip->c += sip->d;
	sip->d = rotate(sip->d, 16) ^ sip->c;
	sip->a += sip->d;
	sip->d = rotate(sip->d, 21) ^ sip->a;
	sip->c += sip->b;
	sip->b = rotate(sip->b, 17) ^ sip->c;
	sip->c = rotate(sip->c, 32);
}

static void take(struct sip *sip, uint64_t word)
{
	sip->d ^= word;
	mix(sip);
	sip->a ^= word;
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return le64toh(word);
}

uint64_t d9__hash_bytes(uint64_t secret, const void *bytes, size_t len)
{
	uint64_t other = d9__hash_u64(secret, secret), last = 0;
	struct sip sip = {
		secret ^ UINT64_C(0x736f6d6570736575),
		other ^ UINT64_C(0x646f72616e646f6d),
		secret ^ UINT64_C(0x6c7967656e657261),
		other ^ UINT64_C(0x7465646279746573),
	};
	const uint8_t *p = bytes;
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8)
		take(&sip, word_at(p));
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)p[i] << (8 * i);
	take(&sip, last | (uint64_t)len << 56);
	sip.c ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix(&sip);
	return sip.a ^ sip.b ^ sip.c ^ sip.d;
}
