/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbolizer parses a file of kept answers, a JIT map and mangled names by itself: here of any bytes.
 * It reads nothing outside of them, and each name that it finds ends inside.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "symbol/debug_files.h"
#include "symbol/demangle.h"
#include "symbol/jit_map.h"
#include "symbol/symbol_cache.h"
#include "symbol/symbol_rows.h"

static void *copy_of(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	fuzz_require(copy != NULL, "there is memory");
	if (size)
		memcpy(copy, data, size);
	return copy;
}

static void look_up(const struct d9__symbol_cache *cache, uint64_t address)
{
	struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX];
	size_t n;

	for (int role = D9__EXECUTING; role <= D9__ENTRY; role++) {
		if (!d9__symbol_cache_find(cache, address, (enum d9__address_role)role, frames, &n))
			continue;
		fuzz_require(n <= D9__SYMBOL_DEPTH_MAX, "frames have room");
		for (size_t i = 0; i < n; i++) {
			fuzz_require(!frames[i].function || strlen(frames[i].function) < cache->len, "functions end");
			fuzz_require(!frames[i].path || strlen(frames[i].path) < cache->len, "paths end");
		}
	}
}

static void try_cache(const uint8_t *data, size_t size)
{
	struct d9__symbol_cache cache;
	uint64_t address;

	if (!d9__symbol_cache_take(&cache, copy_of(data, size), size))
		return;
	for (size_t at = 32; at + 8 <= size && at < 32 + (size_t)cache.n_answers * 16 && at < 4096; at += 16) {
		memcpy(&address, data + at, sizeof(address));
		look_up(&cache, address);
		look_up(&cache, address + 1);
	}
	d9__symbol_cache_release(&cache);
}

static void try_jit_map(const uint8_t *data, size_t size)
{
	struct d9__jit_map map = { 0 };
	char *text = copy_of(data, size);

	fuzz_require(d9__jit_map_parse(&map, text, size) == 0, "a map can be read");
	for (size_t i = 0; i < map.n && i < 256; i++) {
		const char *name = d9__jit_map_find(&map, map.functions[i].start);

		fuzz_require(name != NULL, "each function is found at its beginning");
		fuzz_require(name >= text && name + strlen(name) <= text + size, "names lie in the map");
	}
	d9__jit_map_release(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = copy_of(data, size);

	text[size] = '\0';
	try_cache(data, size);
	try_jit_map(data, size);
	(void)d9__symbol_rows_is_mere_place(text, size);
	free(d9__demangle(text));
	(void)d9__debug_build_id_is_fit(text);
	free(text);
	return 0;
}
