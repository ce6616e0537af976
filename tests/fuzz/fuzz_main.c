/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a fuzz target over files: those given, or all of tests/fuzz/corpus and the target's own
 * pack there.  Each is also cut short at several lengths, which a fuzzer would try next.
 */
#include "config.h"

#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/pack.h"

#define FILE_CUTS 64
#define PACK_CUTS 3 /* the fuzzer has tried more */

static uint8_t *load(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc((size_t)1 << 20);

	if (!file || !bytes) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(99);
	}
	*len = fread(bytes, 1, (size_t)1 << 20, file);
	fclose(file);
	return bytes;
}

static void replay(const uint8_t *bytes, size_t len, size_t cuts)
{
	for (size_t i = 1; i <= cuts; i++) {
		/* A copy of its own size, so that a sanitizer guards its end. */
		size_t cut = len * i / cuts;
		uint8_t *copy = malloc(cut + 1);

		if (!copy)
			exit(99);
		memcpy(copy, bytes, cut);
		LLVMFuzzerTestOneInput(copy, cut);
		free(copy);
	}
}

static bool has_suffix(const char *path, const char *suffix)
{
	size_t len = strlen(path), n = strlen(suffix);

	return len >= n && !strcmp(path + len - n, suffix);
}

static void replay_path(const char *path)
{
	struct pack_item item = { 0 };
	size_t len, n = 0;
	uint8_t *bytes = load(path, &len);

	printf("%s: %zu bytes\n", path, len);
	fflush(stdout);
	if (!has_suffix(path, ".pack"))
		replay(bytes, len, FILE_CUTS);
	else
		for (; pack_next(bytes, len, &item); n++)
			replay(item.bytes, item.len, PACK_CUTS);
	if (n)
		printf("%zu inputs\n", n);
	free(bytes);
}

/* Packs belong to one target: "decoder.pack" to fuzz_decoder. */
static bool concerns(const char *file, const char *target)
{
	size_t len = strlen(target);

	if (file[0] == '.')
		return false;
	return !has_suffix(file, ".pack") ||
	       (!strncmp(file, target, len) && !strcmp(file + len, ".pack"));
}

static int replay_folder(const char *dir, const char *target)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	char path[4300];
	int n = 0;

	while (stream && (entry = readdir(stream)) != NULL) {
		if (!concerns(entry->d_name, target))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		replay_path(path);
		n++;
	}
	if (stream)
		closedir(stream);
	return n;
}

int main(int argc, char **argv)
{
	const char *top = getenv("top_srcdir"), *target = strrchr(argv[0], '_');
	char dir[4000];

	for (int i = 1; i < argc; i++)
		replay_path(argv[i]);
	if (argc > 1)
		return 0;
	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus", top ? top : ".");
	return replay_folder(dir, target ? target + 1 : "") > 0 ? 0 : 1;
}
