/* SPDX-License-Identifier: Apache-2.0 */
/* Artefacts: the names of what recorders and shippers write into a trace directory. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define D9__SEGMENT_NAME_MAX 48 /* with its end */

/* A boot id names a process and its directory: four letters, a hyphen, the process id. */
#define D9__BOOT_ID_MAX 32

/* Write "abcd-PID", with letters from |clock| (any clock). */
void d9__boot_id_make(char *out, uint64_t clock, long pid);

/* True if |name| is ^[a-z]{4}-[0-9]+$. */
bool d9__boot_id_valid(const char *name);

/*
 * A file of a trace directory: a shipper (ship/hold.h) locks it while it sends segments, and
 * touches it each minute.
 */
#define D9__SHIP_FILE ".ship"

/* The kinds of files in the directory of a process. */
enum d9__artefact {
	D9__ARTEFACT_UNKNOWN,
	D9__ARTEFACT_LOCK,
	D9__ARTEFACT_SEGMENT, /* sealed */
	D9__ARTEFACT_ACTIVE,
	D9__ARTEFACT_RING,
	D9__ARTEFACT_JIT_MAP,  /* jit_copy.h; useless without segments */
	D9__ARTEFACT_MANIFEST, /* of a dump; likewise */
	D9__ARTEFACT_SHIPPED,  /* of `dial9 ship`: its list, stored manifests, hours; likewise */
};

/* Return the kind of the file |name|; |index| is set for segments. */
enum d9__artefact d9__artefact_of(const char *name, uint64_t *index);
