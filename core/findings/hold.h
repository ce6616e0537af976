/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold: a stretch in which a loop could run nothing else.  A callback, a loop inside of one, a
 * round and a time between rounds are judged alike, by what they took themselves.
 */

#pragma once

#include "findings/finding.h"

/* Stretches from here on are told whatever is usual for the loop. */
#define D9__HOLD_ALWAYS_NS (100 * D9__MS_NS)

struct d9__hold {
	const struct d9__worker *worker; /* NULL: not known */
	uint64_t ns;			 /* of the longest, without what the machine took */
	uint64_t n;			 /* how many were long */
	uint64_t behind_ns; /* that callbacks waited behind all of them, 5 ms and more each */
	bool waited;	    /* one did so for long */
};

/*
 * Whether |hold| is worth telling: it is no usual stretch of its loop, it is one of a tenth of a
 * second, or callbacks wait behind it for too long in all.
 */
bool d9__hold_is_long(const struct d9__findings *findings, const struct d9__hold *hold);

/*
 * Calls of |callback| on |worker| are long from here on: d9__long_call_ns(), or less where others
 * wait behind them for too long in all, however usual they are.
 */
uint64_t d9__hold_limit_ns(const struct d9__findings *findings, const struct d9__worker *worker,
			   const struct d9__callback *callback);

/* Information if it is not. */
enum d9__severity d9__hold_severity(const struct d9__findings *findings,
				    const struct d9__hold *hold);
