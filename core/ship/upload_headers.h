/* SPDX-License-Identifier: Apache-2.0 */
/* Upload headers: type, metadata and encryption of an object that a job uploads, in one request or
 * in parts. */

#pragma once

#include "ship/job.h"

/* Put the headers besides the sums at |headers|.  Returns their number. */
size_t d9__upload_headers(struct d9__session *session, struct d9__job *job,
			  struct d9__sigv4_pair *headers);
