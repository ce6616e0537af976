/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "format/hash.h"
#include "read/known_files.h"

#define CAPACITY_FIRST 64

/* Where |file| is, or would be. */
static struct d9__known_file *place_of(const struct d9__known_files *files, const struct d9__known_file *file)
{
	size_t at = (size_t)d9__hash_bytes(files->secret, file, sizeof(*file));

	for (;; at++) {
		struct d9__known_file *place = &files->places[at & (files->capacity - 1)];

		if (!place->ino ||
		    (place->ino == file->ino && place->dev == file->dev && place->base == file->base))
			return place;
	}
}

static bool grow(struct d9__known_files *files)
{
	struct d9__known_files grown = {
		.n = files->n,
		.capacity = files->capacity ? 2 * files->capacity : CAPACITY_FIRST,
		.secret = d9__hash_secret(),
	};

	grown.places = calloc(grown.capacity, sizeof(*grown.places));
	if (!grown.places)
		return false;
	for (size_t i = 0; i < files->capacity; i++)
		if (files->places[i].ino)
			*place_of(&grown, &files->places[i]) = files->places[i];
	free(files->places);
	*files = grown;
	return true;
}

int d9__known_files_add(struct d9__known_files *files, const struct d9__input *input)
{
	struct d9__known_file file = { input->dev, input->ino, input->base }, *place;

	/* No file system numbers a file 0; one that does has it read as often as it is named. */
	if (input->pipe || !file.ino)
		return 1;
	if (2 * files->n >= files->capacity && !grow(files))
		return -ENOMEM;
	place = place_of(files, &file);
	if (place->ino)
		return 0;
	*place = file;
	files->n++;
	return 1;
}

void d9__known_files_release(struct d9__known_files *files)
{
	free(files->places);
	*files = (struct d9__known_files){ 0 };
}
