/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/dump_receipt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "cli/cmd.h"
#include "cli/text.h"
#include "record/directory.h"
#include "record/retention.h"
#include "ship/shipped.h"

#define PAUSE_NS 200000000L /* between two looks */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int print_key(const char *key)
{
	static struct d9__text_out out;

	d9__text_init(&out, STDOUT_FILENO);
	d9__text_escaped(&out, key, strlen(key));
	d9__text_char(&out, '\n');
	return d9__text_finish(&out, "dump");
}

/* An exit status, or -EAGAIN: it is not there yet. */
static int look(const char *folder, uint64_t index)
{
	struct d9__shipped shipped = { 0 };
	int fd = d9__directory_open(folder, D9__DIRECTORY_ANY), err = fd < 0 ? fd : d9__shipped_read(&shipped, fd), status = -EAGAIN;
	const char *key = err ? NULL : d9__shipped_key(&shipped, index);

	if (key)
		status = print_key(key);
	else if (err)
		status = d9__cmd_fail("dump", "%s: %s", folder, d9_strerror(err));
	d9__shipped_release(&shipped);
	if (fd >= 0)
		close(fd);
	return status;
}

int d9__dump_receipt(const char *path, uint64_t timeout_ns)
{
	const char *slash = strrchr(path, '/');
	uint64_t index, until_ns = now_ns() + timeout_ns;
	char *folder;
	int status;

	if (!slash || d9__artefact_of(slash + 1, &index) != D9__ARTEFACT_SEGMENT) {
		d9__cmd_fail("dump", "%s: --shipped waits for a dump of flight mode; these segments stay", path);
		return D9__EXIT_FINDING;
	}
	folder = strndup(path, (size_t)(slash - path));
	if (!folder)
		return d9__cmd_fail("dump", "out of memory");
	while ((status = look(folder, index)) == -EAGAIN && now_ns() < until_ns)
		nanosleep(&(struct timespec) { .tv_nsec = PAUSE_NS }, NULL);
	free(folder);
	if (status != -EAGAIN)
		return status;
	d9__cmd_fail("dump", "%s: no shipper has stored it in that time; it stays; see dial9 help ship", path);
	return D9__EXIT_FINDING;
}
