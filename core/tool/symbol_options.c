/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/directory.h"
#include "read/reader_state.h"
#include "tool/symbol_options.h"
#include "tool/user_folder.h"

#define NOT_TRIED -2
#define LACKING_PARTS                                                                              \
	10 /* a tenth without names is worth a word: of a symbolised trace only gaps have none */

/* A descriptor, or below 0. */
static int open_cache(void)
{
	char path[PATH_MAX];

	return d9__user_folder("XDG_CACHE_HOME", ".cache", path) ? d9__directory_open(path, D9__DIRECTORY_MAKE) : -1;
}

struct d9__symbolizer_options d9__symbol_options(void)
{
	static int cache = NOT_TRIED;

	if (cache == NOT_TRIED)
		cache = open_cache();
	return (struct d9__symbolizer_options){ .cache = cache < 0 ? -1 : cache };
}

int d9__symbol_open(struct d9__symbolizer **out)
{
	struct d9__symbolizer_options options = d9__symbol_options();

	return d9__symbolizer_open(&options, out);
}

int d9__symbol_learn_from(struct d9__symbolizer *symbolizer, const struct d9_reader *reader,
			  const struct d9_event *event)
{
	int err = d9__symbolizer_learn(symbolizer, event);

	if (err || !symbolizer || event->kind != D9_EVENT_SEGMENT_METADATA)
		return err;
	return d9__symbolizer_learn_jit(symbolizer, event, d9__reader_path(reader, event->segment));
}

/*
 * True if |symbol| was inlined from a system header, such as one of the C++ library: its caller
 * stands for it.  Without paths in the debug information, the C++ library's functions are told by
 * their names.
 */
static bool is_system(const struct d9__symbol *symbol)
{
	const char *path = symbol->path;

	return (path && (!strncmp(path, "/usr/include/", 13) || !strncmp(path, "/usr/lib/", 9))) ||
	       (symbol->function && d9__function_is_cxx(symbol->function));
}

/* Return the innermost function at an address that is the program's own, else the innermost. */
static const struct d9__symbol *own_function(const struct d9__frames *frames)
{
	for (size_t i = 0; i < frames->n; i++)
		if (!is_system(&frames->items[i]))
			return &frames->items[i];
	return &frames->items[0];
}

/* True if |frames| are of another module than the place is in: what lies at its address now came
 * later. */
static bool is_of_another(const struct d9__frames *frames, const struct d9__place *place)
{
	const char *plus = place->len ? memrchr(place->text, '+', place->len) : NULL,
		   *module = frames->items[0].module;
	size_t len = plus ? (size_t)(plus - place->text) : 0;

	return len && module && (strlen(module) != len || memcmp(module, place->text, len) != 0);
}

static bool name_place(void *context, struct d9__place *place)
{
	static const enum d9__address_role roles[] = { [D9__PLACE_FUNCTION] = D9__ENTRY, [D9__PLACE_CALL] = D9__RETURN,
						       [D9__PLACE_RUNNING] = D9__EXECUTING };
	const struct d9__symbol *function;
	struct d9__frames frames = { 0 };

	bool found = place->len && d9__symbolizer_resolve_name(context, place->text, place->len,
							       roles[place->role], &frames);

	if (!frames.known && place->address)
		d9__symbolizer_resolve(context, place->address, place->ns ? place->ns : D9__NO_TIME,
				       roles[place->role], &frames);
	if (found && is_of_another(&frames, place))
		d9__symbolizer_resolve_name(context, place->text, place->len, roles[place->role],
					    &frames);
	if (!frames.n)
		return false;
	function = place->ns ? own_function(&frames) : d9__frames_one(&frames, roles[place->role]);
	place->function = function->function;
	place->file = function->file;
	place->line = function->line;
	place->module = function->module;
	if (frames.n > 1 && function != &frames.items[frames.n - 1])
		place->outermost = frames.items[frames.n - 1].function;
	return frames.known;
}

/* True if the functions of |binary| that were asked for have no names because of its file. */
static bool is_lacking(const struct d9__binary *binary)
{
	return (binary->fate == D9__BINARY_REFUSED || binary->fate == D9__BINARY_MISSING) &&
	       binary->nameless && LACKING_PARTS * binary->nameless >= binary->answers;
}

static bool find_lacking(void *context, size_t i, struct d9__lacking_file *out)
{
	const struct d9__binaries *binaries = d9__symbolizer_binaries(context);

	for (size_t k = 0; k < d9__binaries_count(binaries); k++) {
		const struct d9__binary *binary = d9__binaries_get(binaries, (uint32_t)k);

		if (!is_lacking(binary) || i--)
			continue;
		out->path = *binary->path ? binary->path : binary->name;
		out->why = binary->fate == D9__BINARY_REFUSED ? d9__binary_refusal(binary)
							      : "is not here";
		out->is_other = binary->fate == D9__BINARY_REFUSED;
		out->places = binary->nameless;
		return true;
	}
	return false;
}

struct d9__namer d9__symbol_namer(struct d9__symbolizer *symbolizer)
{
	return (struct d9__namer) { name_place, symbolizer, find_lacking };
}
