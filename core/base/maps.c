/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/maps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int next_byte(struct d9__maps *maps)
{
	if (maps->at == maps->n) {
		ssize_t n = read(maps->fd, maps->bytes, sizeof(maps->bytes));

		maps->at = 0;
		maps->n = n > 0 ? (size_t)n : 0;
	}
	return maps->at < maps->n ? (unsigned char)maps->bytes[maps->at++] : -1;
}

/* Read a hexadecimal number.  Returns the byte behind it. */
static int next_number(struct d9__maps *maps, uintptr_t *out)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	int byte;

	*out = 0;
	while ((byte = next_byte(maps)) > 0 && (digit = strchr(digits, byte)))
		*out = *out << 4 | (uintptr_t)(digit - digits);
	return byte;
}

/*
 * Read the rest of a line: `offset device inode`, spaces, and the path, in which the kernel writes
 * a line's end as "\012".
 */
static void next_path(struct d9__maps *maps)
{
	unsigned fields = 0;
	size_t len = 0;
	int byte = ' ', before;

	do {
		before = byte;
		byte = next_byte(maps);
		fields += before == ' ' && byte != ' ';
		if (fields > 3 && byte >= 0 && byte != '\n' && len + 1 < maps->path_size)
			maps->path[len++] = (char)byte;
	} while (byte >= 0 && byte != '\n');
	if (maps->path_size)
		maps->path[len] = '\0';
}

/* A line is `low-high rwxp offset device inode path`. */
bool d9__maps_next(struct d9__maps *maps, struct d9__mapping *out)
{

	if (next_number(maps, &out->low) != '-' || next_number(maps, &out->high) != ' ')
		return false;
	out->prot = next_byte(maps) == 'r' ? PROT_READ : 0;
	out->prot |= next_byte(maps) == 'w' ? PROT_WRITE : 0;
	out->prot |= next_byte(maps) == 'x' ? PROT_EXEC : 0;
	/* Shared or private. */
	next_byte(maps);
	next_path(maps);
	return true;
}

bool d9__maps_open(struct d9__maps *maps)
{
	maps->at = maps->n = maps->path_size = 0;
	/* The process's own are empty once its main thread has ended. */
	maps->fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	return maps->fd >= 0;
}

void d9__maps_close(struct d9__maps *maps)
{
	close(maps->fd);
}
