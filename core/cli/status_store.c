/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/status_store.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/artefact.h"
#include "base/dir.h"

long d9__status_store_waiting(const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_header *header = &recorder->view.header;
	char path[PATH_MAX];
	struct d9__dir dir;
	const char *name;
	uint64_t index;
	long n = 0;

	if (header->trace_dir[0] != '/' || !d9__boot_id_valid(header->boot_id))
		return -1;
	snprintf(path, sizeof(path), "%s/%s", header->trace_dir, header->boot_id);
	if (d9__dir_open(&dir, path))
		return -1;
	while ((name = d9__dir_next(&dir)))
		n += d9__artefact_of(name, &index) == D9__ARTEFACT_SEGMENT;
	d9__dir_close(&dir);
	return n;
}

bool d9__status_store(const struct d9__recorder_seen *recorder, char text[D9__STATUS_STORE_LEN])
{
	const struct d9__ring_header *header = &recorder->view.header;
	long waiting = d9__status_store_waiting(recorder);
	int n;

	if (!header->s3_bucket[0])
		return false;
	n = snprintf(text, D9__STATUS_STORE_LEN, "s3://%s%s%s, ", header->s3_bucket, header->s3_prefix[0] ? "/" : "",
		     header->s3_prefix);
	if (waiting > 0)
		snprintf(text + n, D9__STATUS_STORE_LEN - (size_t)n, "waits for a shipper: %ld segment%s; dial9 ship --from-rings",
			 waiting, waiting == 1 ? "" : "s");
	else
		snprintf(text + n, D9__STATUS_STORE_LEN - (size_t)n, "nothing waits for a shipper%s",
			 waiting < 0 ? " that can be seen here" : " now");
	return true;
}
