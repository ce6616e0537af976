/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "text/parse.h"

#include <stddef.h>
#include <string.h>

#include "base/time.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit durations[] = {
	{ "", D9__SECOND_NS },  { "ns", 1 },
	{ "us", D9__US_NS },    { "ms", D9__MS_NS },
	{ "s", D9__SECOND_NS }, { "m", 60 * D9__SECOND_NS },
	{ "h", 3600 * D9__SECOND_NS }, { NULL, 0 },
};

static const struct unit sizes[] = {
	{ "", 1 },
	{ "K", 1 << 10 },
	{ "M", 1 << 20 },
	{ "G", 1 << 30 },
	{ "KiB", 1 << 10 },
	{ "MiB", 1 << 20 },
	{ "GiB", 1 << 30 },
	{ NULL, 0 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at |text| as a number.  Returns what follows them; NULL if there are none or too many. */
static const char *parse_digits(const char *text, uint64_t *out)
{
	uint64_t n = 0;

	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(n, UINT64_C(10), &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return NULL;
	*out = n;
	return text;
}

static uint64_t find_factor(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units->factor;
	return 0;
}

/* "1.5s": integers only, so that 0.1s is exactly 100000000 ns. */
static bool parse_with_unit(const char *text, const struct unit *units, uint64_t *out)
{
	uint64_t whole, factor, fraction = 0, digit;
	const char *decimals = NULL, *end = parse_digits(text, &whole);

	if (end && *end == '.') {
		decimals = end + 1;
		end = parse_digits(decimals, &fraction);
	}
	if (!end)
		return false;
	factor = find_factor(units, end);
	if (!factor || __builtin_mul_overflow(whole, factor, out))
		return false;
	for (digit = factor; decimals && decimals < end; decimals++) {
		uint64_t share = digit * (uint64_t)(*decimals - '0') / 10;

		if (__builtin_add_overflow(*out, share, out))
			return false;
		digit /= 10;
	}
	return true;
}

bool d9__parse_u64(const char *text, uint64_t *out)
{
	const char *end = parse_digits(text, out);

	return end && !*end;
}

bool d9__parse_duration_ns(const char *text, uint64_t *out_ns)
{
	return parse_with_unit(text, durations, out_ns);
}

bool d9__parse_bytes(const char *text, uint64_t *out_bytes)
{
	return parse_with_unit(text, sizes, out_bytes);
}
