/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: one request of dial9 to the store, from its message to its answer.  It takes one transfer,
 * or several: in parts, or again after a correction.
 */

#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "ship/bucket.h"
#include "ship/session.h"
#include "ship/sum.h"
#include "ship/transfer.h"

enum d9__operation { D9__PUT, D9__GET, D9__HEAD, D9__LIST, D9__PRESIGN };

/* Of an upload: in one, or in the parts of several requests. */
enum d9__step { D9__STEP_ONE, D9__STEP_INITIATE, D9__STEP_PART, D9__STEP_COMPLETE, D9__STEP_ABORT };

struct d9__job {
	struct d9__job *next;
	struct json_object *message; /* owned; texts are its */
	enum d9__operation operation;
	const char *key;
	uint64_t token, size, first;
	int fd; /* owned; -1 */
	bool only_new, started;
	unsigned tried; /* bits of d9__next */
	unsigned sent;  /* bits of d9__optional_header */
	char region[64]; /* that the transfer is signed for */
	const char *note;
	struct d9__sum sum; /* of the body of the transfer that runs */
	struct d9__transfer transfer;

	enum d9__step step;
	char upload[1024]; /* id */
	unsigned part, parts;
	unsigned char *part_sums; /* owned: MD5 of each */
	char *list;               /* owned: body of the last request of several */
	struct json_object *answer; /* owned: kept until the parts are removed */
};

/* Takes |message| and |fd| in any case.  NULL: out of memory. */
struct d9__job *d9__job_new(struct json_object *message, int fd);

/*
 * Decide the job's next step, at first or after a transfer that ended with |code| (CURLcode).
 * Returns an answer, owned, when the job is finished, else NULL.
 */
struct json_object *d9__job_start(struct d9__session *session, struct d9__job *job);
struct json_object *d9__job_advance(struct d9__session *session, struct d9__job *job, int code);

/* An answer without a transfer. */
struct json_object *d9__job_answer(const struct d9__session *session, const struct d9__job *job,
				   enum d9__bucket_class class, const char *code, const char *message);

void d9__job_free(struct d9__session *session, struct d9__job *job);
