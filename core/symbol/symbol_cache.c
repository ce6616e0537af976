/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "format/wire.h"
#include "symbol/symbol_cache.h"

#define MAGIC	   "D9SYMBOL"
#define FILE_VERSION	   2
#define HEAD_LEN   32
#define ANSWER_LEN 16
#define FRAME_LEN  12
#define SUFFIX	   ".symbols"
#define NAME_MAX_LEN 160

/* ---- reading ---- */

bool d9__symbol_cache_take(struct d9__symbol_cache *cache, uint8_t *bytes, size_t len)
{
	uint64_t wanted;

	*cache = (struct d9__symbol_cache){ .bytes = bytes, .len = len };
	if (len >= HEAD_LEN && !memcmp(bytes, MAGIC, 8) && d9__wire_get_u32(bytes + 8) == FILE_VERSION) {
		cache->n_answers = d9__wire_get_u32(bytes + 12);
		cache->stamp = d9__wire_get_u64(bytes + 16);
		cache->n_frames = d9__wire_get_u32(bytes + 24);
		cache->n_text = d9__wire_get_u32(bytes + 28);
		wanted = HEAD_LEN + (uint64_t)cache->n_answers * ANSWER_LEN + (uint64_t)cache->n_frames * FRAME_LEN +
			 cache->n_text;
		if (wanted == len && (!cache->n_text || !bytes[len - 1]))
			return true;
	}
	d9__symbol_cache_release(cache);
	return false;
}

static bool name_file(const char *build_id, const char *suffix, char name[NAME_MAX_LEN])
{
	return snprintf(name, NAME_MAX_LEN, "%s%s", build_id, suffix) < NAME_MAX_LEN;
}

/* All of the file |fd|, in memory of malloc(3); NULL if it is not this user's own, or too large. */
static uint8_t *read_own(int fd, size_t *len)
{
	struct stat st;
	uint8_t *bytes;
	ssize_t n = 1;
	size_t have = 0;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) ||
	    (uint64_t)st.st_size > D9__CACHE_FILE_MAX || !d9__budget_take(D9__KEPT_FILES, (size_t)st.st_size))
		return NULL;
	bytes = malloc((size_t)st.st_size + 1);
	while (bytes && have < (size_t)st.st_size && (n = read(fd, bytes + have, (size_t)st.st_size - have)) > 0)
		have += (size_t)n;
	*len = have;
	return bytes;
}

void d9__symbol_cache_load(struct d9__symbol_cache *cache, int dir, const char *build_id, uint64_t stamp)
{
	char name[NAME_MAX_LEN];
	uint8_t *bytes;
	size_t len;
	int fd;

	*cache = (struct d9__symbol_cache){ 0 };
	fd = name_file(build_id, SUFFIX, name) ? openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	bytes = read_own(fd, &len);
	close(fd);
	if (bytes && d9__symbol_cache_take(cache, bytes, len) && stamp && cache->stamp != stamp)
		d9__symbol_cache_release(cache);
}

static const uint8_t *answer_at(const struct d9__symbol_cache *cache, size_t i)
{
	return cache->bytes + HEAD_LEN + i * ANSWER_LEN;
}

static int compare_keys(uint64_t a, unsigned a_role, uint64_t b, unsigned b_role)
{
	if (a != b)
		return a < b ? -1 : 1;
	return (a_role > b_role) - (a_role < b_role);
}

/* The text number |text| of a frame, or NULL. */
static const char *text_at(const struct d9__symbol_cache *cache, uint32_t text)
{
	const uint8_t *texts = cache->bytes + cache->len - cache->n_text;

	return text && text <= cache->n_text ? (const char *)texts + text - 1 : NULL;
}

/* The frames that |answer| names; false if the file does not have them. */
static bool read_frames(const struct d9__symbol_cache *cache, const uint8_t *answer,
			struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX], size_t *n)
{
	uint32_t first = d9__wire_get_u32(answer + 8);
	const uint8_t *p;

	*n = d9__wire_get_u16(answer + 12);
	if (*n > D9__SYMBOL_DEPTH_MAX || first > cache->n_frames || *n > cache->n_frames - first)
		return false;
	p = answer_at(cache, cache->n_answers) + (size_t)first * FRAME_LEN;
	for (size_t i = 0; i < *n; i++, p += FRAME_LEN)
		frames[i] = (struct d9__dwarf_frame){ text_at(cache, d9__wire_get_u32(p)),
						      text_at(cache, d9__wire_get_u32(p + 4)),
						      d9__wire_get_u32(p + 8) };
	return true;
}

bool d9__symbol_cache_find(const struct d9__symbol_cache *cache, uint64_t address, enum d9__address_role role,
			   struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX], size_t *n)
{
	size_t low = 0, high = cache->n_answers;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const uint8_t *answer = answer_at(cache, middle);
		int order = compare_keys(address, role, d9__wire_get_u64(answer), d9__wire_get_u16(answer + 14));

		if (!order)
			return read_frames(cache, answer, frames, n);
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

void d9__symbol_cache_release(struct d9__symbol_cache *cache)
{
	if (cache->bytes)
		d9__budget_give(cache->len);
	free(cache->bytes);
	*cache = (struct d9__symbol_cache){ 0 };
}

/* ---- writing ---- */

/* A file on its way. */
struct writing {
	struct d9__texts texts;
	uint32_t *offsets; /* + 1, of texts by number */
	size_t n_text;
	uint8_t *answers, *frames;
	uint32_t n_answers, n_frames;
	size_t frames_bytes; /* allocated */
};

static int put_text(struct writing *writing, const char *text, uint32_t *out)
{
	uint32_t number;

	*out = 0;
	if (!text)
		return 0;
	writing->texts.kind = D9__KEPT_SYMBOLS;
	if (d9__texts_number(&writing->texts, text, strlen(text), &number))
		return -ENOMEM;
	if (!d9__array_reach(writing->offsets, &writing->n_text, number))
		return -ENOMEM;
	*out = number + 1;
	return 0;
}

/* Append an answer; texts are numbers + 1 until the end.  The caller made room for it. */
static int put_answer(struct writing *writing, uint64_t address, unsigned role, const struct d9__dwarf_frame *frames,
		      size_t n)
{
	uint8_t *p = writing->answers + (size_t)writing->n_answers++ * ANSWER_LEN;
	uint32_t function, path;
	size_t len = (size_t)writing->n_frames * FRAME_LEN;
	bool room = d9__array_reserve(writing->frames, &writing->frames_bytes, len, n * FRAME_LEN);
	int err = room ? 0 : -ENOMEM;

	p = d9__wire_put_u32(d9__wire_put_u64(p, address), writing->n_frames);
	d9__wire_put_u16(d9__wire_put_u16(p, (uint16_t)n), (uint16_t)role);
	for (size_t i = 0; !err && i < n; i++) {
		err = put_text(writing, frames[i].function, &function);
		if (!err)
			err = put_text(writing, frames[i].path, &path);
		if (err)
			break;
		p = writing->frames + (size_t)writing->n_frames++ * FRAME_LEN;
		d9__wire_put_u32(d9__wire_put_u32(d9__wire_put_u32(p, function), path), frames[i].line);
	}
	return err;
}

static int compare_answers(const void *left, const void *right)
{
	const struct d9__answer *const *a = left, *const *b = right;

	return compare_keys((*a)->question.address, (*a)->question.role, (*b)->question.address, (*b)->question.role);
}

/* The answers of |space| by address and role, in new memory; NULL if out of memory. */
static const struct d9__answer **sort_answers(const struct d9__answers *answers, uint32_t space, size_t *n)
{
	const struct d9__answer **sorted = calloc(answers->n + 1, sizeof(*sorted));

	*n = 0;
	for (size_t i = 0; sorted && i < answers->n; i++)
		if (answers->items[i].used && answers->items[i].question.space == space)
			sorted[(*n)++] = &answers->items[i];
	if (sorted)
		qsort(sorted, *n, sizeof(*sorted), compare_answers);
	return sorted;
}

static int put_new(struct writing *writing, const struct d9__answers *answers, const struct d9__answer *answer)
{
	struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX];

	for (size_t i = 0; i < answer->n; i++) {
		const struct d9__symbol *symbol = &answers->frames[answer->first + i];

		frames[i] = (struct d9__dwarf_frame){ symbol->function, symbol->path, symbol->line };
	}
	return put_answer(writing, answer->question.address, answer->question.role, frames, answer->n);
}

static int put_old(struct writing *writing, const struct d9__symbol_cache *cache, const uint8_t *answer)
{
	struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX];
	size_t n;

	if (!read_frames(cache, answer, frames, &n))
		return 0;
	return put_answer(writing, d9__wire_get_u64(answer), d9__wire_get_u16(answer + 14), frames, n);
}

/* Both kinds of answers in one order; one that is in both is taken from the new ones. */
static int merge(struct writing *writing, const struct d9__symbol_cache *cache, const struct d9__answers *answers,
		 uint32_t space)
{
	const struct d9__answer **sorted;
	size_t n, i = 0, k = 0;
	int err = 0, order;

	sorted = sort_answers(answers, space, &n);
	writing->answers = calloc(n + cache->n_answers + 1, ANSWER_LEN);
	if (!sorted || !writing->answers)
		err = -ENOMEM;
	while (!err && (i < n || k < cache->n_answers)) {
		const uint8_t *old = k < cache->n_answers ? answer_at(cache, k) : NULL;

		order = i == n ? 1 : !old ? -1 :
			compare_keys(sorted[i]->question.address, sorted[i]->question.role, d9__wire_get_u64(old),
				     d9__wire_get_u16(old + 14));
		err = order <= 0 ? put_new(writing, answers, sorted[i]) : put_old(writing, cache, old);
		i += order <= 0;
		k += order >= 0;
	}
	free(sorted);
	return err;
}

static size_t place_texts(struct writing *writing)
{
	size_t at = 0;

	for (size_t i = 0; i < writing->n_text; i++) {
		writing->offsets[i] = (uint32_t)at + 1;
		at += writing->texts.lens[i] + 1;
	}
	for (uint32_t i = 0; i < 2 * writing->n_frames; i++) {
		uint8_t *p = writing->frames + (size_t)(i / 2) * FRAME_LEN + (i % 2) * 4;
		uint32_t number = d9__wire_get_u32(p);

		d9__wire_put_u32(p, number ? writing->offsets[number - 1] : 0);
	}
	return at;
}

static void put_head(const struct writing *writing, uint64_t stamp, size_t n_text, uint8_t head[HEAD_LEN])
{
	uint8_t *p = head;

	memcpy(p, MAGIC, 8);
	p = d9__wire_put_u32(d9__wire_put_u32(p + 8, FILE_VERSION), writing->n_answers);
	p = d9__wire_put_u64(p, stamp);
	d9__wire_put_u32(d9__wire_put_u32(p, writing->n_frames), (uint32_t)n_text);
}

static int write_stream(struct writing *writing, uint64_t stamp, FILE *out)
{
	size_t n_text = place_texts(writing);
	uint8_t head[HEAD_LEN];

	if (HEAD_LEN + (uint64_t)writing->n_answers * ANSWER_LEN + (uint64_t)writing->n_frames * FRAME_LEN + n_text >
	    D9__CACHE_FILE_MAX)
		return -EFBIG;
	put_head(writing, stamp, n_text, head);
	fwrite(head, 1, sizeof(head), out);
	fwrite(writing->answers, ANSWER_LEN, writing->n_answers, out);
	if (writing->n_frames)
		fwrite(writing->frames, FRAME_LEN, writing->n_frames, out);
	for (uint32_t i = 0; i < writing->n_text; i++)
		fwrite(writing->texts.items[i], 1, writing->texts.lens[i] + 1, out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static int write_file(struct writing *writing, uint64_t stamp, int dir, const char *name)
{
	char temporary[NAME_MAX_LEN + 32];
	FILE *out;
	int fd, err;

	snprintf(temporary, sizeof(temporary), ".%s.%ld", name, (long)getpid());
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	out = fdopen(fd, "w");
	err = out ? write_stream(writing, stamp, out) : -ENOMEM;
	if (out)
		fclose(out);
	else
		close(fd);
	if (!err && renameat(dir, temporary, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, temporary, 0);
	return err;
}

int d9__symbol_cache_save(const struct d9__symbol_cache *cache, int dir, const char *build_id, uint64_t stamp,
			  const struct d9__answers *answers, uint32_t space)
{
	struct writing writing = { 0 };
	char name[NAME_MAX_LEN];
	int err = name_file(build_id, SUFFIX, name) ? merge(&writing, cache, answers, space) : -ENAMETOOLONG;

	/* Names that stand for others that there was no room for are no answers. */
	if (!err && (answers->texts.full || writing.texts.full))
		err = -EFBIG;
	if (!err)
		err = write_file(&writing, stamp, dir, name);
	free(writing.answers);
	free(writing.frames);
	free(writing.offsets);
	d9__texts_release(&writing.texts);
	return err;
}

/* ---- what is too much ---- */

struct kept_file {
	char name[NAME_MAX_LEN];
	uint64_t bytes;
	struct timespec written;
};

struct kept_files {
	struct kept_file *items;
	size_t n;
	uint64_t bytes;
};

static int compare_files(const void *left, const void *right)
{
	const struct kept_file *a = left, *b = right;

	if (a->written.tv_sec != b->written.tv_sec)
		return a->written.tv_sec < b->written.tv_sec ? -1 : 1;
	return (a->written.tv_nsec > b->written.tv_nsec) - (a->written.tv_nsec < b->written.tv_nsec);
}

/* Ours, and what a process that was killed left of one. */
static bool is_ours(const char *name)
{
	return strlen(name) < NAME_MAX_LEN && strstr(name, SUFFIX);
}

static void take_file(struct kept_files *files, int dir, const char *name)
{
	struct stat st;

	if (!is_ours(name) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (!d9__array_grow(files->items, files->n))
		return;
	files->items[files->n] =
		(struct kept_file){ .bytes = (uint64_t)st.st_size, .written = st.st_mtim };
	snprintf(files->items[files->n++].name, NAME_MAX_LEN, "%.*s", NAME_MAX_LEN - 1, name);
	files->bytes += (uint64_t)st.st_size;
}

void d9__symbol_cache_trim(int dir, uint64_t max_bytes)
{
	struct kept_files files = { 0 };
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	while (list && (entry = readdir(list)))
		take_file(&files, dir, entry->d_name);
	if (files.n)
		qsort(files.items, files.n, sizeof(*files.items), compare_files);
	for (size_t i = 0; i < files.n && files.bytes > max_bytes; i++) {
		unlinkat(dir, files.items[i].name, 0);
		files.bytes -= files.items[i].bytes;
	}
	free(files.items);
	if (list)
		closedir(list);
	else if (copy >= 0)
		close(copy);
}
