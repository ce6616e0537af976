/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between a fuzzer's folder of files and a pack of them:
 *
 *	pack_corpus PACK FILE...     make PACK
 *	pack_corpus -x PACK DIR      one file for each input in PACK
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/pack.h"

#define INPUT_MAX ((size_t)16 << 20)

static uint8_t buffer[INPUT_MAX];

static size_t load(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file) {
		perror(path);
		exit(1);
	}
	len = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	return len;
}

static void save(const char *path, const uint8_t *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(bytes, 1, len, file) != len || fclose(file)) {
		perror(path);
		exit(1);
	}
}

static void unpack(const char *pack, const char *dir)
{
	size_t size = load(pack);
	struct pack_item item = { 0 };

	for (unsigned n = 0; pack_next(buffer, size, &item); n++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%05u", dir, n);
		save(path, item.bytes, item.len);
	}
}

static void pack(const char *path, char **files)
{
	FILE *out = fopen(path, "wb");

	if (!out) {
		perror(path);
		exit(1);
	}
	for (; *files; files++) {
		size_t len = load(*files);

		for (unsigned i = 0; i < PACK_HEAD; i++)
			putc((int)(len >> 8 * i & 0xff), out);
		fwrite(buffer, 1, len, out);
	}
	if (fclose(out)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "-x")) {
		unpack(argv[2], argv[3]);
	} else if (argc > 2) {
		pack(argv[1], argv + 2);
	} else {
		fputs("usage: pack_corpus PACK FILE... | pack_corpus -x PACK DIR\n", stderr);
		return 2;
	}
	return 0;
}
