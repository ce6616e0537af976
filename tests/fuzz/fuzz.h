/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for all fuzz targets. */

#ifndef D9_FUZZ_H
#define D9_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An invariant: end the program with its name if it does not hold. */
static inline void fuzz_require(int holds, const char *invariant)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", invariant);
	abort();
}

#endif /* D9_FUZZ_H */
