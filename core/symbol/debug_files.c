/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <zlib.h>

#ifdef HAVE_LZMA
#include <lzma.h>
#endif

#include "analyze/budget.h"
#include "symbol/debug_files.h"

#define DEBUG_DIR      "/usr/lib/debug"
#define BUILD_ID_MIN   3
#define BUILD_ID_MAX   128
#define UNPACKED_MAX   ((size_t)32 << 20) /* symbols of the largest programs take a tenth */
#define UNPACKER_BYTES ((uint64_t)64 << 20)
#define VDSO_MAX       ((size_t)1 << 20)

bool d9__debug_build_id_is_fit(const char *build_id)
{
	size_t len = strlen(build_id);

	return len >= BUILD_ID_MIN && len <= BUILD_ID_MAX && !build_id[strspn(build_id, "0123456789abcdef")];
}

/* ---- by build-id ---- */

/* The file |path| if its build-id is |build_id|. */
static struct d9__elf_file *open_if_same(const char *path, const char *build_id)
{
	struct d9__elf_file *file;

	if (d9__elf_file_open(path, &file))
		return NULL;
	if (!strcmp(d9__elf_file_build_id(file), build_id))
		return file;
	d9__elf_file_close(file);
	return NULL;
}

static struct d9__elf_file *find_by_build_id(struct d9__debug_search *search, const char *dir)
{
	static const char *const suffixes[] = { ".debug", "" };
	struct d9__elf_file *file = NULL;
	char path[PATH_MAX];

	for (size_t i = 0; !file && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s%s", dir, search->build_id,
			     search->build_id + 2, suffixes[i]) < (int)sizeof(path))
			file = open_if_same(path, search->build_id);
	/* Without .debug stands the binary itself, which its place below / leads back to. */
	if (file && search->binary && d9__elf_file_same(file, search->binary)) {
		d9__elf_file_close(file);
		return NULL;
	}
	return file;
}

/* ---- by link ---- */

static bool has_checksum(const char *path, GElf_Word wanted)
{
	struct stat st;
	int fd = d9__elf_file_descriptor(path, &st);
	unsigned char buf[1 << 14];
	uLong sum = crc32(0, NULL, 0);
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		sum = crc32(sum, buf, (uInt)n);
	if (fd >= 0)
		close(fd);
	return !n && sum == wanted;
}

/* |path|, which the link names, if it is what the link means. */
static struct d9__elf_file *open_linked(struct d9__debug_search *search, const char *path, GElf_Word checksum)
{
	struct d9__elf_file *file;

	if (d9__elf_file_open(path, &file))
		return NULL;
	if (!d9__elf_file_same(file, search->binary) &&
	    !strcmp(d9__elf_file_build_id(file), search->build_id) &&
	    (*search->build_id || has_checksum(path, checksum)))
		return file;
	if (!d9__elf_file_same(file, search->binary))
		snprintf(search->refused, sizeof(search->refused), "%s", path);
	d9__elf_file_close(file);
	return NULL;
}

/* The file |name| in |dir|, then the directory of the binary, then |between|. */
static struct d9__elf_file *try_link(struct d9__debug_search *search, const char *dir, const char *between,
				     const char *name, GElf_Word checksum)
{
	const char *slash = strrchr(search->path, '/');
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%.*s%s/%s", dir, slash ? (int)(slash - search->path) : 0,
			 search->path, between, name);

	return n > 0 && n < (int)sizeof(path) ? open_linked(search, path, checksum) : NULL;
}

static struct d9__elf_file *find_by_link(struct d9__debug_search *search)
{
	const char *const *dirs = search->places->dirs;
	struct d9__elf_file *file;
	GElf_Word checksum;
	const char *name = NULL;

	if (search->binary && *search->path == '/')
		name = dwelf_elf_gnu_debuglink(d9__elf_file_elf(search->binary), &checksum);
	if (!name || !*name || strchr(name, '/'))
		return NULL;
	file = try_link(search, "", "", name, checksum);
	if (!file)
		file = try_link(search, "", "/.debug", name, checksum);
	for (; !file && dirs && *dirs; dirs++)
		file = try_link(search, *dirs, "", name, checksum);
	return file ? file : try_link(search, DEBUG_DIR, "", name, checksum);
}

/* The file |path| if it is a copy of the recorded one, by whatever is known of that. */
static struct d9__elf_file *open_if_copy(const char *path, const struct d9__debug_search *search)
{
	struct d9__elf_file *file = open_if_same(path, search->build_id);

	if (!file || d9__elf_file_fits(file, search->facts, true))
		return file;
	d9__elf_file_close(file);
	return NULL;
}

/* The recorded file itself, or its debug file, where a user has put a copy into |dir|. */
static struct d9__elf_file *find_by_name(struct d9__debug_search *search, const char *dir)
{
	static const char *const suffixes[] = { "", ".debug" };
	const char *slash = strrchr(search->path, '/');
	const char *name = slash ? slash + 1 : search->path;
	struct d9__elf_file *file = NULL;
	char path[PATH_MAX];

	for (size_t i = 0; *name && !file && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffixes[i]) < (int)sizeof(path))
			file = open_if_copy(path, search);
	return file;
}

/* ---- by servers ---- */

/* Of <elfutils/debuginfod.h>; loaded when it is asked for, because it loads an HTTP library. */
struct client {
	void *library, *handle;
	void *(*begin)(void);
	int (*find)(void *handle, const unsigned char *build_id, int len, char **path);
	void (*end)(void *handle);
};

/* ISO C knows no cast of dlsym()'s result to a function. */
static bool bind(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found != NULL;
}

static bool open_client(struct client *client)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !*urls)
		return false;
	client->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (client->library && bind(client->library, "debuginfod_begin", (void *)&client->begin) &&
	    bind(client->library, "debuginfod_find_debuginfo", (void *)&client->find) &&
	    bind(client->library, "debuginfod_end", (void *)&client->end))
		client->handle = client->begin();
	return client->handle != NULL;
}

/*
 * Ask the servers in $DEBUGINFOD_URLS for the debug file of |build_id|, lower-case hex, by
 * elfutils' own client, which keeps what it gets.  NULL: none is set, the client is not installed,
 * or no server has it.
 */
static struct d9__elf_file *ask_servers(const char *build_id)
{
	static struct client client;
	static bool tried;
	struct d9__elf_file *file = NULL;
	char *path = NULL;
	int fd = -1;

	if (!tried)
		open_client(&client);
	tried = true;
	/* 0: |build_id| is text. */
	if (client.handle)
		fd = client.find(client.handle, (const unsigned char *)build_id, 0, &path);
	if (fd < 0)
		return NULL;
	if (d9__elf_file_open(path, &file) || strcmp(d9__elf_file_build_id(file), build_id) != 0) {
		d9__elf_file_close(file);
		file = NULL;
	}
	close(fd);
	free(path);
	return file;
}

struct d9__elf_file *d9__debug_file_find(struct d9__debug_search *search)
{
	const char *const *dirs = search->places->dirs;
	bool fit = d9__debug_build_id_is_fit(search->build_id), known = fit || search->facts->size;
	struct d9__elf_file *file = NULL;

	for (; known && !file && dirs && *dirs; dirs++) {
		file = fit ? find_by_build_id(search, *dirs) : NULL;
		if (!file && !search->binary)
			file = find_by_name(search, *dirs);
	}
	if (fit && !file)
		file = find_by_build_id(search, DEBUG_DIR);
	if (!file)
		file = find_by_link(search);
	if (fit && !file && search->places->debuginfod)
		file = ask_servers(search->build_id);
	return file;
}

/* ---- in the binary itself ---- */

#ifdef HAVE_LZMA

/* |data| unpacked, in memory of malloc(3); NULL if it is damaged or too large. */
static void *unpack(const Elf_Data *data, size_t *len)
{
	uint64_t memory = UNPACKER_BYTES;
	uint8_t *out = malloc(UNPACKED_MAX);
	size_t in_pos = 0, out_pos = 0;

	if (!out || lzma_stream_buffer_decode(&memory, 0, NULL, data->d_buf, &in_pos, data->d_size, out, &out_pos,
					      UNPACKED_MAX) != LZMA_OK ||
	    !d9__budget_take(D9__KEPT_FILES, out_pos)) {
		free(out);
		return NULL;
	}
	/* The bytes behind |out_pos| were never touched, and take no memory. */
	*len = out_pos;
	return out;
}

#else

static void *unpack(const Elf_Data *data, size_t *len)
{
	(void)data;
	(void)len;
	return NULL;
}

#endif

struct d9__elf_file *d9__debug_data_open(const struct d9__elf_file *binary)
{
	Elf_Scn *section = d9__elf_file_section(binary, ".gnu_debugdata");
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	struct d9__elf_file *file = NULL;
	size_t len;
	void *bytes = data && data->d_buf ? unpack(data, &len) : NULL;

	if (!bytes || d9__elf_file_from_memory(bytes, len, &file))
		return NULL;
	return file;
}

struct d9__elf_file *d9__debug_vdso_open(void)
{
	const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	struct d9__elf_file *file;
	size_t len;
	void *copy;

	if (!head)
		return NULL;
	/* Its sections are told of behind everything else in it. */
	len = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
	copy = len <= VDSO_MAX ? malloc(len) : NULL;
	if (!copy)
		return NULL;
	memcpy(copy, head, len);
	return d9__elf_file_from_memory(copy, len, &file) ? NULL : file;
}
