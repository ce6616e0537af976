/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <stdio.h>

#include "analyze/analysis.h"
#include "base/directory.h"
#include "tool/symbol_options.h"
#include "tool/user_folder.h"

#define NOT_TRIED -2

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

int d9__symbol_learn(struct d9__symbolizer *symbolizer, const struct d9_reader *reader, const struct d9_event *event)
{
	struct d9_segment_info info;
	int err = d9__symbolizer_learn(symbolizer, event);

	if (err || !symbolizer || event->kind != D9_EVENT_SEGMENT_METADATA ||
	    d9_reader_segment(reader, event->segment, &info))
		return err;
	return d9__symbolizer_learn_jit(symbolizer, event, info.path);
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

bool d9__symbol_name(void *context, struct d9__place *place)
{
	static const enum d9__address_role roles[] = { [D9__PLACE_FUNCTION] = D9__ENTRY, [D9__PLACE_CALL] = D9__RETURN,
						       [D9__PLACE_RUNNING] = D9__EXECUTING };
	const struct d9__symbol *function;
	struct d9__frames frames = { 0 };

	if (place->len)
		d9__symbolizer_resolve_name(context, place->text, place->len, roles[place->role], &frames);
	if (!frames.known && place->address)
		d9__symbolizer_resolve(context, place->address, place->ns ? place->ns : D9__NO_TIME,
				       roles[place->role], &frames);
	if (!frames.n)
		return false;
	function = place->ns ? own_function(&frames) : d9__frames_one(&frames, roles[place->role]);
	place->function = function->function;
	place->file = function->file;
	place->line = function->line;
	place->module = function->module;
	return frames.known;
}
