/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/known_files.h"

#include <errno.h>

#include "base/hash.h"

int d9__known_files_add(struct d9__table *files, const struct d9__input *input)
{
	uint64_t file[] = { input->dev, input->ino, input->base };
	uint64_t key = d9__hash_bytes(d9__hash_secret(), file, sizeof(file));

	/* No file system numbers a file 0; one that does has it read as often as it is named. */
	if (input->pipe || !input->ino)
		return 1;
	if (d9__table_find(files, key))
		return 0;
	/* The table only tells which keys it has: any pointer but NULL will do. */
	return d9__table_add(files, key, files) ? -ENOMEM : 1;
}
