/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "text/units.h"

/* Three digits that count. */
static struct d9__units scaled(double value, const char *unit)
{
	struct d9__units out;
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(out.text, sizeof(out.text), "%.*f %s", decimals, value, unit);
	return out;
}

struct d9__units d9__units_ns(uint64_t ns)
{
	struct d9__units out;
	double value = (double)ns;

	if (ns < 1000) {
		snprintf(out.text, sizeof(out.text), "%" PRIu64 " ns", ns);
		return out;
	}
	if (value < 999.5e3)
		return scaled(value / 1e3, "us");
	if (value < 999.5e6)
		return scaled(value / 1e6, "ms");
	return scaled(value / 1e9, "s");
}

struct d9__units d9__units_count(uint64_t n)
{
	struct d9__units out;
	char digits[32];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out.text[at++] = ',';
		out.text[at++] = digits[i];
	}
	out.text[at] = '\0';
	return out;
}

struct d9__units d9__units_bytes(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	struct d9__units out;
	double value = (double)bytes;
	size_t i = 0;

	for (; value >= 999.5 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		value /= 1024;
	if (i)
		return scaled(value, units[i]);
	snprintf(out.text, sizeof(out.text), "%" PRIu64 " B", bytes);
	return out;
}

struct d9__units d9__units_percent(double share)
{
	struct d9__units out;

	snprintf(out.text, sizeof(out.text), "%.1f %%", 100 * share);
	return out;
}

struct d9__units d9__units_offset(uint64_t start_ns, uint64_t ns)
{
	struct d9__units out;
	uint64_t diff = ns >= start_ns ? ns - start_ns : start_ns - ns;

	snprintf(out.text, sizeof(out.text), "%c%" PRIu64 ".%06" PRIu64 " s",
		 ns >= start_ns ? '+' : '-', diff / D9__SECOND_NS,
		 diff % D9__SECOND_NS / D9__US_NS);
	return out;
}

/* "2026-05-15", |between|, "17:55:10"; empty for 0. */
static struct d9__units seconds_of(uint64_t wall_ns, char between)
{
	struct d9__units out = { "" };
	time_t seconds = (time_t)(wall_ns / D9__SECOND_NS);
	struct tm tm;

	if (wall_ns && gmtime_r(&seconds, &tm))
		snprintf(out.text, sizeof(out.text), "%04d-%02d-%02d%c%02d:%02d:%02d",
			 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, between, tm.tm_hour,
			 tm.tm_min, tm.tm_sec);
	return out;
}

struct d9__units d9__units_wall(uint64_t wall_ns)
{
	struct d9__units out = seconds_of(wall_ns, 'T');
	size_t len = strlen(out.text);

	if (len)
		snprintf(out.text + len, sizeof(out.text) - len, ".%09" PRIu64 "Z",
			 wall_ns % D9__SECOND_NS);
	return out;
}

struct d9__units d9__units_wall_short(uint64_t wall_ns)
{
	struct d9__units out = seconds_of(wall_ns, ' ');
	size_t len = strlen(out.text);

	if (len)
		snprintf(out.text + len, sizeof(out.text) - len, ".%03" PRIu64 " UTC",
			 wall_ns % D9__SECOND_NS / D9__MS_NS);
	return out;
}

struct d9__units d9__units_wall_clock(uint64_t wall_ns)
{
	struct d9__units out = seconds_of(wall_ns, ' ');
	const char *clock = strchr(out.text, ' ');

	if (clock) {
		char text[16];

		snprintf(text, sizeof(text), "%.8s", clock + 1);
		snprintf(out.text, sizeof(out.text), "%s.%03" PRIu64, text,
			 wall_ns % D9__SECOND_NS / D9__MS_NS);
	}
	return out;
}
