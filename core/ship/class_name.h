/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "ship/bucket.h"

/* For the caller's texts: "done", "there", "retry", "unusable", "refused", "absent". */
const char *d9__bucket_class_name(enum d9__bucket_class class);
