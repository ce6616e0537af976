/* SPDX-License-Identifier: Apache-2.0 */
/* Fired: the triggers that made the recorder keep what is in this trace. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/metadata.h"
#include "base/trigger_text.h"
#include "text/units.h"

struct d9__callback;
struct d9__callbacks;
struct d9__worker;

#define D9__FIRED_MAX 100u /* of more, the first; all are counted */

/* One DumpTriggerEvent. */
struct d9__fire {
	char *trigger, *dump_id;
	uint64_t ns, value, threshold, task; /* |task| 0: none */
	uint64_t address; /* of the callback, in the recorded process; 0: not told */
	const struct d9__callback *callback; /* NULL: none, or not known */
	const struct d9__worker *worker;     /* that ran the task then; NULL: none, or not known */
};

/* All zero at first. */
struct d9__fired {
	struct d9__fire items[D9__FIRED_MAX];
	size_t n; /* how often; the first D9__FIRED_MAX are in |items| */
};

void d9__fired_release(struct d9__fired *fired);

/* |callback| and |worker| may be NULL.  0 or -ENOMEM. */
int d9__fired_add(struct d9__fired *fired, const struct d9_event *event,
		  const struct d9__callback *callback, const struct d9__worker *worker);

/* At the end: take the callbacks from the addresses, where tasks told others, or none. */
void d9__fired_name(struct d9__fired *fired, const struct d9__callbacks *callbacks);

/* Move the triggers that made or joined the dump |id| to the front, in the order of their times: a report on it begins with them. */
void d9__fired_put_first(struct d9__fired *fired, const char *id);

/* The trigger's text, by which its numbers have a unit; NULL: the trace does not tell. */
const char *d9__fired_text(const struct d9__fire *fire, const struct d9__metadata *metadata);

/* A value or threshold: "40.2 ms", "57", "2000/s". */
struct d9__units d9__fired_number(enum d9__trigger_unit unit, uint64_t n);

/* "40.2 ms, over 30.0 ms", "" of one without a condition. */
void d9__fired_measure(const struct d9__fire *fire, const struct d9__metadata *metadata, char *out, size_t size);
