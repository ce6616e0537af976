/* SPDX-License-Identifier: Apache-2.0 */
/* LTTng-UST tracepoints with the fields of our polls. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER d9_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/lttng_provider.h"

#if !defined(D9_LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define D9_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(d9_bench, poll_start,
	LTTNG_UST_TP_ARGS(uint16_t, worker, uint8_t, queue, uint64_t, task, uint32_t, place),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint16_t, worker_id, worker)
				    lttng_ust_field_integer(uint8_t, local_queue, queue)
					    lttng_ust_field_integer(uint64_t, task_id, task)
						    lttng_ust_field_integer(uint32_t, spawn_loc,
									    place)))

LTTNG_UST_TRACEPOINT_EVENT(d9_bench, poll_end, LTTNG_UST_TP_ARGS(uint16_t, worker),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint16_t, worker_id, worker)))

#endif

#include <lttng/tracepoint-event.h>
