/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "base/time.h"
#include "symbol/elf_file.h"

#define BLOCK_BYTES   512 /* of st_blocks */
#define LOADED_FACTOR 4
#define EXCESS_MAX    ((uint64_t)32 << 20) /* some file systems tell late what they have stored */

struct d9__elf_file {
	int fd; /* -1: in memory */
	dev_t dev;
	ino_t ino;
	uint64_t mtime_ns;
	void *bytes; /* owned: what |elf| lies in, or NULL */
	Elf *elf;
	uint64_t size_bytes, stored_bytes; /* a file may have holes */
	char build_id[2 * 64 + 1];
};

static void read_build_id(struct d9__elf_file *file)
{
	static const char digits[] = "0123456789abcdef";
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(file->elf, &id);

	for (ssize_t i = 0; i < len && i < 64; i++) {
		unsigned byte = ((const unsigned char *)id)[i];

		file->build_id[2 * i] = digits[byte >> 4];
		file->build_id[2 * i + 1] = digits[byte & 15];
	}
}

int d9__elf_file_descriptor(const char *path, struct stat *st)
{
	int at = open(path, O_PATH | O_CLOEXEC), fd = -EBADMSG;
	char link[32];

	if (at < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	if (!fstat(at, st) && S_ISREG(st->st_mode)) {
		fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(at);
	return fd;
}

/* Bytes that |section| has in memory once it is read, and unpacked. */
static uint64_t loaded_bytes(Elf_Scn *section)
{
	GElf_Shdr header;
	GElf_Chdr packed;

	if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
		return 0;
	if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &packed) && packed.ch_size > header.sh_size)
		return packed.ch_size;
	return header.sh_size;
}

/*
 * Whether what libelf and libdw may read of |elf| is about as much as the |stored_bytes| of it that are on a
 * disk: files with holes, sections that overlap and what unpacks without end are not.  Debug information is
 * packed to a quarter.
 */
static bool is_bounded(Elf *elf, uint64_t stored_bytes)
{
	uint64_t justified = LOADED_FACTOR * stored_bytes, loaded = 0;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		uint64_t bytes = loaded_bytes(section);

		if (bytes > justified + EXCESS_MAX - loaded)
			return false;
		loaded += bytes;
	}
	return loaded <= justified || d9__budget_take(D9__KEPT_FILES, (size_t)(loaded - justified));
}

bool d9__elf_file_same(const struct d9__elf_file *a, const struct d9__elf_file *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* Begin with |elf|, which |file| owns from now on whatever the result is. */
static int begin(struct d9__elf_file *file, Elf *elf)
{
	file->elf = elf;
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -EBADMSG;
	if (!is_bounded(elf, file->stored_bytes))
		return -EFBIG;
	read_build_id(file);
	return 0;
}

int d9__elf_file_open(const char *path, struct d9__elf_file **out)
{
	struct d9__elf_file *file;
	struct stat st;
	int fd = d9__elf_file_descriptor(path, &st), err;

	if (fd < 0)
		return fd;
	file = calloc(1, sizeof(*file));
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	*file = (struct d9__elf_file){ .fd = fd, .dev = st.st_dev, .ino = st.st_ino };
	file->mtime_ns = d9__timespec_ns(&st.st_mtim);
	file->size_bytes = (uint64_t)st.st_size;
	file->stored_bytes = (uint64_t)st.st_blocks * BLOCK_BYTES;
	elf_version(EV_CURRENT);
	/* Not mapped: a file that is cut while we read it must not be a SIGBUS. */
	err = begin(file, elf_begin(fd, ELF_C_READ, NULL));
	if (err)
		d9__elf_file_close(file);
	else
		*out = file;
	return err;
}

int d9__elf_file_from_memory(void *bytes, size_t len, struct d9__elf_file **out)
{
	struct d9__elf_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file) {
		free(bytes);
		return -ENOMEM;
	}
	*file = (struct d9__elf_file){ .fd = -1, .bytes = bytes, .size_bytes = len, .stored_bytes = len };
	elf_version(EV_CURRENT);
	err = begin(file, elf_memory(bytes, len));
	if (err)
		d9__elf_file_close(file);
	else
		*out = file;
	return err;
}

void d9__elf_file_close(struct d9__elf_file *file)
{
	if (!file)
		return;
	if (file->elf)
		elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->bytes);
	free(file);
}

const char *d9__elf_file_build_id(const struct d9__elf_file *file)
{
	return file->build_id;
}

uint64_t d9__elf_file_bytes(const struct d9__elf_file *file)
{
	return file->size_bytes;
}

bool d9__elf_file_folder(const struct d9__elf_file *file, char *buf, size_t size)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	n = file->fd < 0 ? -1 : readlink(link, buf, size - 1);
	if (n <= 0 || buf[0] != '/')
		return false;
	buf[n] = '\0';
	*strrchr(buf, '/') = '\0';
	return true;
}

bool d9__elf_file_fits(const struct d9__elf_file *file, const struct d9__elf_facts *facts,
		       bool is_copy)
{
	return (!facts->size || facts->size == file->size_bytes) &&
	       (!facts->mtime_ns || facts->mtime_ns == file->mtime_ns) &&
	       (is_copy || !facts->inode || facts->inode == file->ino);
}

Elf *d9__elf_file_elf(const struct d9__elf_file *file)
{
	return file->elf;
}

Elf_Scn *d9__elf_file_section(const struct d9__elf_file *file, const char *name)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return NULL;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *its = gelf_getshdr(section, &header) ? elf_strptr(file->elf, names, header.sh_name) : NULL;

		if (its && header.sh_type != SHT_NOBITS && !strcmp(its, name))
			return section;
	}
	return NULL;
}
