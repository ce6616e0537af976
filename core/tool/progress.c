/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "tool/progress.h"

#define FIRST_NS  D9__SECOND_NS
#define PERIOD_NS UINT64_C(200000000)

void d9__progress_init(struct d9__progress *progress)
{
	*progress = (struct d9__progress){ .on = isatty(STDERR_FILENO) == 1 };
	progress->next_ns = d9__mono_ns() + FIRST_NS;
}

void d9__progress_draw(struct d9__progress *progress, uint64_t done, uint64_t total)
{
	uint64_t now = d9__mono_ns();

	if (!progress->on || now < progress->next_ns)
		return;
	progress->next_ns = now + PERIOD_NS;
	progress->shown = true;
	if (total)
		fprintf(stderr, "\rreading %3.0f %% ", (double)done * 100 / (double)total);
	else
		fputs("\rreading ... ", stderr);
	fflush(stderr);
}

void d9__progress_clear(struct d9__progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
