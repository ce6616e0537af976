/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "analyze/before.h"
#include "analyze/hot.h"
#include "analyze/hot_threads.h"

uint64_t d9__before_ns(const struct d9__analysis *a, const struct d9__worker *worker)
{
	const char *pid = d9__metadata_value(&a->metadata, "pid");
	uint64_t first_ns = worker->loop_time.first_ns;

	if (!a->from_start || !pid || strtoul(pid, NULL, 10) != worker->tid ||
	    first_ns <= a->first_ns)
		return 0;
	return first_ns - a->first_ns;
}

char *d9__before_describe(const struct d9__analysis *a, const struct d9__worker *worker)
{
	struct d9__callback place = { .location = "" };
	char *text = NULL;

	if (!d9__hot_threads_without_loop(&a->samples.threads, worker->tid, &place))
		text = d9__hot_describe(&place, false);
	d9__hot_free(place.hot);
	return text;
}
