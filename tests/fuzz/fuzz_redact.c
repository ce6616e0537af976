/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes for a segment that is redacted and scrubbed: no crash, and what is written is a whole trace with no more events.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "read/input.h"
#include "stage/frames.h"
#include "stage/redact.h"

#define LARGE ((size_t)64 << 10) /* what unpacks to more is left to the decoder's target */

static int memory_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_require(fd >= 0 && !d9__write_all(fd, (const char *)data, size), "there is memory");
	return fd;
}

/* How many events |fd| holds; -1: it is no whole trace. */
static long events_in(int fd)
{
	struct d9__frames_in in;
	struct d9__frame frame;
	int err = d9__frames_open(&in, fd);
	long n = 0;

	while (!err && (err = d9__frames_next(&in, &frame)) == 1) {
		n += frame.kind == D9__FRAME_EVENT;
		err = 0;
	}
	d9__frames_release(&in);
	return err ? -1 : n;
}

static void redact(struct d9__redact_rules *rules, int from, long before)
{
	int to = memory_of(NULL, 0);
	char why[300];
	int err = d9__redact(rules, from, to, why, sizeof(why));
	long after = err ? -1 : events_in(to);

	fuzz_require(err || before >= 0, "what is not whole is refused");
	fuzz_require(err || after >= 0, "what is written is a whole trace");
	fuzz_require(after <= before || err, "no event is added");
	fuzz_require(!err || *why, "an error has words");
	close(to);
	d9__redact_rules_release(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct d9__redact_rules rules;
	int from;
	long before;

	if (size > LARGE)
		return 0;
	from = memory_of(data, size);
	before = events_in(from);
	if (!d9__redact_rules_parse(&rules, "*Start*,*.spawn_loc,*.entries.s*,*.a"))
		redact(&rules, from, before);
	if (!d9__redact_rules_scrub(&rules))
		redact(&rules, from, before);
	close(from);
	return 0;
}
