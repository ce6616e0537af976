/* SPDX-License-Identifier: Apache-2.0 */
/* d9_dump(): ask the flush thread for a dump, and wait for it. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dial9/recorder.h>

#include "base/sandbox.h"
#include "base/time.h"
#include "record/dump_request.h"
#include "record/recorder.h"
#include "ring/clock.h"

static int make_absolute(char out[PATH_MAX], const char *dir)
{
	char cwd[PATH_MAX];
	int n;

	if (dir[0] == '/')
		n = snprintf(out, PATH_MAX, "%s", dir);
	else if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	else
		n = snprintf(out, PATH_MAX, "%s/%s", cwd, dir);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int tell(const struct d9__dump *dump, struct d9_dump_receipt *out, size_t size)
{
	struct d9_dump_receipt receipt = {
		.events = dump->events,
		.bytes = dump->bytes,
		.from_ns = dump->from_ns,
		.to_ns = dump->to_ns,
		.segments = dump->segments,
		.complete = dump->complete,
	};

	if (!out || !size)
		return dump->err;
	if (strlen(dump->path) >= sizeof(receipt.path))
		return -ENAMETOOLONG;
	strcpy(receipt.path, dump->path);
	strcpy(receipt.id, dump->id);
	memset(out, 0, size);
	memcpy(out, &receipt, size < sizeof(receipt) ? size : sizeof(receipt));
	return dump->err;
}

int d9_dump(struct d9_recorder *recorder, uint64_t last_ms, const char *dir, uint32_t deadline_ms,
	    struct d9_dump_receipt *receipt, size_t size)
{
	uint64_t deadline_ns = d9__clock_mono_ns() + deadline_ms * D9__MS_NS;
	struct d9__dump_request *request;
	int saved = errno, err;

	if (!recorder || d9_recorder_running() != recorder || (dir && !*dir) ||
	    last_ms > UINT64_MAX / D9__MS_NS)
		return -EINVAL;
	if (d9__sandbox_is_shut())
		return -EPERM;
	request = d9__dump_request_new();
	err = request ? 0 : -ENOMEM;
	if (!err && dir)
		err = make_absolute(d9__dump_request_dump(request)->dir, dir);
	if (!err) {
		struct d9__dump *dump = d9__dump_request_dump(request);

		dump->last_ns = last_ms * D9__MS_NS;
		dump->by = "d9_dump";
		dump->asked_ns = d9__clock_mono_ns();
		d9__recorder_step_in();
		d9__dump_request_push(request);
		err = d9__dump_request_await(request, deadline_ns);
		if (!err)
			err = tell(dump, receipt, size);
	}
	if (request)
		d9__dump_request_drop(request);
	errno = saved;
	return err;
}
