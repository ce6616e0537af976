/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampler: stacks of threads, by what d9__sampling asks for: timers or perf events on the CPU, perf events where
 * threads leave it.
 *
 * One that was asked for by name and cannot be had is not replaced by another.  How each does is in the metadata:
 * source.cpu, source.offcpu, source.kernel_names; "on", or "off: " and why.
 */

#pragma once

#include <dial9/export.h>

/* From now on recorders sample as d9__sampling says.  Idempotent. */
D9_API void d9__sampler_start(void);
