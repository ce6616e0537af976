/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/reader_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMIT_BASE_BYTES ((uint64_t)64 << 20)
#define LIMIT_FACTOR     64

int d9__reader_fail(struct d9_reader *reader, int err, const char *format, ...)
{
	va_list args;

	free(reader->message);
	va_start(args, format);
	if (vasprintf(&reader->message, format, args) < 0)
		reader->message = NULL;
	va_end(args);
	return err;
}

int d9__reader_out_of_memory(struct d9_reader *reader)
{
	return d9__reader_fail(reader, -ENOMEM, "out of memory");
}

void d9__reader_bound(struct d9_reader *reader, uint64_t memory_bytes, uint64_t unpacked_bytes)
{
	reader->bounded = true;
	reader->limit_bytes = memory_bytes;
	reader->unpacked_left = unpacked_bytes;
}

void d9__reader_unpacked(struct d9_reader *reader, uint64_t bytes)
{
	/* The last byte stays: 0 would be no limit. */
	if (reader->unpacked_left)
		reader->unpacked_left =
			bytes < reader->unpacked_left ? reader->unpacked_left - bytes : 1;
}

uint64_t d9__reader_limit(const struct d9_reader *reader, const struct d9__input *input)
{
	uint64_t size = input->size_bytes;

	if (reader->limit_bytes)
		return reader->limit_bytes;
	/* A pipe's size is not known: what 1 GiB would justify. */
	if (input->pipe)
		size = (uint64_t)1 << 30;
	return size > UINT64_MAX / LIMIT_FACTOR - LIMIT_BASE_BYTES
		       ? UINT64_MAX
		       : size * LIMIT_FACTOR + LIMIT_BASE_BYTES;
}

bool d9__reader_lacks_mandatory(const struct d9_reader *reader, const struct d9_schema *schema)
{
	for (unsigned k = 0; k < D9__DEFINITION_KNOWN_MAX; k++)
		if (schema->must & UINT32_C(1) << k &&
		    !reader->values.items[schema->known[k]].present)
			return true;
	return false;
}
