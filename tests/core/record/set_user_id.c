/* SPDX-License-Identifier: Apache-2.0 */
/* A program that may be set-user-ID and records itself: prints as whom, and where to. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <dial9/recorder.h>

int main(void)
{
	struct d9_recorder *recorder = NULL;
	char dir[PATH_MAX] = "nowhere";
	int err = d9_recorder_start(NULL, &recorder);

	if (!err)
		d9_recorder_dir(recorder, dir, sizeof(dir));
	printf("%u %d %s\n", (unsigned)geteuid(), err, dir);
	d9_recorder_stop(recorder, 1000);
	return 0;
}
