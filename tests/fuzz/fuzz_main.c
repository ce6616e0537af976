/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a fuzz target over files: those given, or all of tests/fuzz/corpus.  Each is also cut
 * short at many lengths, which a fuzzer would try next.
 */
#include "config.h"

#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define CUTS 64

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

static void replay(const char *path)
{
	size_t len;
	uint8_t *bytes = load(path, &len);

	printf("%s: %zu bytes\n", path, len);
	fflush(stdout);
	LLVMFuzzerTestOneInput(bytes, len);
	for (size_t i = 1; i < CUTS; i++) {
		/* A copy of its own size, so that a sanitizer guards its end. */
		size_t cut = len * i / CUTS;
		uint8_t *copy = malloc(cut + 1);

		if (!copy)
			exit(99);
		memcpy(copy, bytes, cut);
		LLVMFuzzerTestOneInput(copy, cut);
		free(copy);
	}
	free(bytes);
}

static int replay_folder(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	char path[4300];
	int n = 0;

	while (stream && (entry = readdir(stream)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		replay(path);
		n++;
	}
	if (stream)
		closedir(stream);
	return n;
}

int main(int argc, char **argv)
{
	const char *top = getenv("top_srcdir");
	char dir[4000];

	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	if (argc > 1)
		return 0;
	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus", top ? top : ".");
	return replay_folder(dir) > 0 ? 0 : 1;
}
