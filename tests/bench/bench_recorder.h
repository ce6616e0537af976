/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder of a benchmark: it writes nothing, and its clock is calibrated. */

#ifndef D9_BENCH_RECORDER_H
#define D9_BENCH_RECORDER_H

#include <time.h>

#include <dial9/options.h>
#include <dial9/recorder.h>

/* With |options|, which it frees.  0, or the error. */
static inline int bench_start_recorder_with(struct d9_options *options)
{
	const struct timespec settle = { 0, 400000000 };
	int err;

	d9_options_set_writer(options, D9_WRITER_NULL);
	err = d9_recorder_start(options, NULL);
	d9_options_free(options);
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	return err;
}

static inline int bench_start_recorder(void)
{
	struct d9_options *options;
	int err = d9_options_new(&options);

	return err ? err : bench_start_recorder_with(options);
}

#endif /* D9_BENCH_RECORDER_H */
