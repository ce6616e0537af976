/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "analyze/place_text.h"

#define FUTEX "futex: "

void d9__place_text(const char *syscall, bool running, const char *wchan, char *buf, size_t size)
{
	buf[0] = '\0';
	if (!strncmp(syscall, FUTEX, strlen(FUTEX)))
		snprintf(buf, size, " waiting for %s", syscall + strlen(FUTEX));
	else if (syscall[0])
		snprintf(buf, size, " in %s", syscall);
	else if (running)
		snprintf(buf, size, " computing");
	else if (wchan[0])
		snprintf(buf, size, " asleep in the kernel's %s", wchan);
}
