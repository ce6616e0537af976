/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 status`: the backlog of a recorder whose trace goes to a store. */

#pragma once

#include <stdbool.h>

#include "watch/recorders.h"

#define D9__STATUS_STORE_LEN 512

/* Sealed segments of it that are still here; -1: its directory is not to be seen. */
long d9__status_store_waiting(const struct d9__recorder_seen *recorder);

/*
 * Write "s3://BUCKET/PREFIX; 3 segments wait for a shipper: ...".  False: the recorder names no
 * store.
 */
bool d9__status_store(const struct d9__recorder_seen *recorder, char text[D9__STATUS_STORE_LEN]);
