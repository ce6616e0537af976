/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/bucket.h"
#include "ship/class_name.h"

const char *d9__bucket_class_name(enum d9__bucket_class class)
{
	static const char *const names[] = {
		[D9__BUCKET_DONE] = "done",         [D9__BUCKET_THERE] = "there",
		[D9__BUCKET_RETRY] = "retry",       [D9__BUCKET_UNUSABLE] = "unusable",
		[D9__BUCKET_REFUSED] = "refused",   [D9__BUCKET_ABSENT] = "absent",
	};

	return names[class];
}
