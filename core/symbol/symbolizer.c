/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/texts.h"
#include "base/array.h"
#include "base/table.h"
#include "read/known_text.h"
#include "read/stack_role.h"
#include "symbol/answers.h"
#include "symbol/demangle.h"
#include "symbol/jit_map.h"
#include "symbol/module_map.h"
#include "symbol/symbol_cache.h"
#include "symbol/symbol_rows.h"
#include "symbol/symbolizer.h"

#define PID_DIGITS_MAX 10

/* The answers of earlier runs for one binary. */
struct kept {
	struct d9__symbol_cache cache;
	bool loaded;
	bool has_news; /* to be kept for later ones */
};

struct d9__symbolizer {
	struct d9__binaries *binaries;
	int cache; /* a directory, or -1 */
	struct kept *kept; /* by binary; those that are not there yet are not loaded */
	size_t n_kept;
	struct d9__module_map modules; /* of |binaries| by number */
	struct d9__table bases; /* by number of a binary: one more than where it was loaded first */
	struct d9__symbol_rows rows;
	struct d9__jit_map jit;
	bool jit_sought;
	struct d9__answers answers;
	/* The latest answer, if it is not kept. */
	struct d9__symbol frames[D9__SYMBOL_DEPTH_MAX];
	char place[D9__TEXT_MAX + 32];
};

int d9__symbolizer_open(const struct d9__symbolizer_options *options, struct d9__symbolizer **out)
{
	struct d9__symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return -ENOMEM;
	if (d9__binaries_new(options ? &options->places : NULL, &symbolizer->binaries)) {
		free(symbolizer);
		return -ENOMEM;
	}
	symbolizer->cache = options ? options->cache : -1;
	*out = symbolizer;
	return 0;
}

/* Keep for later runs what this one found. */
static void save_news(struct d9__symbolizer *symbolizer)
{
	bool saved = false;

	for (size_t i = 0; i < symbolizer->n_kept; i++) {
		const struct kept *kept = &symbolizer->kept[i];
		const struct d9__binary *binary = d9__binaries_get(symbolizer->binaries, (uint32_t)i);

		if (kept->has_news && binary->fate == D9__BINARY_FOUND)
			saved |= !d9__symbol_cache_save(&kept->cache, symbolizer->cache, binary->build_id,
							d9__binaries_stamp(symbolizer->binaries, (uint32_t)i),
							&symbolizer->answers, (uint32_t)i);
	}
	if (saved)
		d9__symbol_cache_trim(symbolizer->cache, D9__CACHE_BYTES_MAX);
}

void d9__symbolizer_close(struct d9__symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	save_news(symbolizer);
	for (size_t i = 0; i < symbolizer->n_kept; i++)
		d9__symbol_cache_release(&symbolizer->kept[i].cache);
	free(symbolizer->kept);
	d9__module_map_release(&symbolizer->modules);
	d9__table_release(&symbolizer->bases);
	d9__symbol_rows_release(&symbolizer->rows);
	d9__jit_map_release(&symbolizer->jit);
	d9__answers_release(&symbolizer->answers);
	d9__binaries_free(symbolizer->binaries);
	free(symbolizer);
}

/* ---- what the trace tells ---- */

static int learn_module(struct d9__symbolizer *symbolizer, const struct d9_event *event)
{
	struct d9_text path = d9__known_text(event, D9_MODULE_PATH);
	struct d9_text build_id = d9__known_text(event, D9_MODULE_BUILD_ID);
	struct d9__stay stay = { .base = d9_event_known_u64(event, D9_MODULE_BASE, 0),
				 .start = d9_event_known_u64(event, D9_MODULE_START, 0),
				 .from_ns = event->has_timestamp ? event->timestamp_ns : 0 };
	const struct d9_value *unloaded = d9_event_known(event, D9_MODULE_UNLOADED);
	struct d9__elf_facts facts = { d9_event_known_u64(event, D9_MODULE_FILE_SIZE, 0),
				       d9_event_known_u64(event, D9_MODULE_FILE_MTIME_NS, 0),
				       d9_event_known_u64(event, D9_MODULE_FILE_INODE, 0) };
	int err;

	if (__builtin_add_overflow(stay.start, d9_event_known_u64(event, D9_MODULE_SIZE, 0), &stay.end))
		stay.end = UINT64_MAX;
	err = d9__binaries_number(symbolizer->binaries, &path, &build_id, &facts, &stay.binary);
	/* Code at the end of all addresses is none. */
	if (!err && stay.base != UINT64_MAX && !d9__table_find(&symbolizer->bases, stay.binary))
		err = d9__table_add(&symbolizer->bases, stay.binary, (void *)(uintptr_t)(stay.base + 1));
	return err ? err : d9__module_map_learn(&symbolizer->modules, &stay, unloaded && unloaded->u.boolean);
}

int d9__symbolizer_learn(struct d9__symbolizer *symbolizer, const struct d9_event *event)
{
	if (symbolizer && event->kind == D9_EVENT_MODULE)
		return learn_module(symbolizer, event);
	if (symbolizer && event->kind == D9_EVENT_SYMBOL)
		return d9__symbol_rows_learn(&symbolizer->rows, &symbolizer->answers, event);
	return 0;
}

/* The pid that the metadata |event| tells, as text; an empty one if it tells none. */
static struct d9_text find_pid(const struct d9_event *event)
{
	const struct d9_value *entries = d9_event_known(event, D9_SEGMENT_METADATA_ENTRIES);

	for (size_t i = 0; entries && i < entries->u.string_map.n; i++) {
		const struct d9_text *pair = &entries->u.string_map.pairs[2 * i];

		if (pair[0].len == 3 && !memcmp(pair[0].data, "pid", 3) && pair[1].len <= PID_DIGITS_MAX)
			return pair[1];
	}
	return (struct d9_text){ "", 0 };
}

int d9__symbolizer_learn_jit(struct d9__symbolizer *symbolizer, const struct d9_event *event, const char *path)
{
	const char *slash = strrchr(path, '/');
	char digits[PID_DIGITS_MAX + 1] = "", *map;
	struct d9_text pid = { "", 0 };
	int err;

	if (event->kind == D9_EVENT_SEGMENT_METADATA && !symbolizer->jit_sought)
		pid = find_pid(event);
	if (!pid.len)
		return 0;
	memcpy(digits, pid.data, pid.len);
	if (digits[strspn(digits, "0123456789")])
		return 0;
	symbolizer->jit_sought = true;
	if (asprintf(&map, "%.*sperf-%s.map", slash ? (int)(slash + 1 - path) : 0, path, digits) < 0)
		return -ENOMEM;
	err = d9__jit_map_read(&symbolizer->jit, map);
	free(map);
	return err == -ENOMEM ? err : 0;
}

/* ---- answers ---- */

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

/* |frame| with texts that are kept, and its name readable. */
static struct d9__symbol keep_frame(struct d9__symbolizer *symbolizer, const struct d9__dwarf_frame *frame)
{
	struct d9__answers *answers = &symbolizer->answers;
	char *plain = frame->function ? d9__demangle(frame->function) : NULL;
	const char *function = plain ? plain : frame->function;
	struct d9__symbol symbol = { .line = frame->line };

	symbol.function = function ? d9__answers_text(answers, function, strlen(function)) : NULL;
	symbol.path = frame->path ? d9__answers_text(answers, frame->path, strlen(frame->path)) : NULL;
	symbol.file = base_name(symbol.path);
	free(plain);
	return symbol;
}

/* The answers of earlier runs for |binary|; NULL: none are kept. */
static struct kept *kept_of(struct d9__symbolizer *symbolizer, uint32_t binary)
{
	const char *build_id = d9__binaries_get(symbolizer->binaries, binary)->build_id;
	struct kept *kept;

	if (symbolizer->cache < 0 || !d9__debug_build_id_is_fit(build_id))
		return NULL;
	if (!d9__array_reach(symbolizer->kept, &symbolizer->n_kept, binary))
		return NULL;
	kept = &symbolizer->kept[binary];
	if (!kept->loaded)
		d9__symbol_cache_load(&kept->cache, symbolizer->cache, build_id,
				      d9__binaries_stamp(symbolizer->binaries, binary));
	kept->loaded = true;
	return kept;
}

/* Name an address between functions: it has the line of the code before it, and no name. */
static void name_gap(struct d9__symbolizer *symbolizer, struct d9__symbol *frame)
{
	int len = snprintf(symbolizer->place, sizeof(symbolizer->place), "%.*s+0x%" PRIx64, D9__TEXT_MAX / 2, frame->module,
			   frame->offset);

	frame->function = d9__answers_text(&symbolizer->answers, symbolizer->place, (size_t)len);
}

/* Ask the cache, then the binary's files; the answer is in |frames| and, if there is room, among the answers. */
static size_t ask_binary(struct d9__symbolizer *symbolizer, const struct d9__question *question)
{
	const char *module = d9__binaries_get(symbolizer->binaries, question->space)->name;
	struct kept *kept = kept_of(symbolizer, question->space);
	struct d9__dwarf_frame found[D9__DWARF_DEPTH_MAX];
	size_t n;

	if (!kept || !d9__symbol_cache_find(&kept->cache, question->address, question->role, found, &n)) {
		n = d9__binaries_frames(symbolizer->binaries, question->space, question->address, question->role, found);
		if (kept)
			kept->has_news = true;
	}

	for (size_t i = 0; i < n; i++) {
		symbolizer->frames[i] = keep_frame(symbolizer, &found[i]);
		symbolizer->frames[i].module = module;
		symbolizer->frames[i].offset = question->address;
	}
	if (n && !symbolizer->frames[n - 1].function)
		name_gap(symbolizer, &symbolizer->frames[n - 1]);
	d9__answers_add(&symbolizer->answers, question, symbolizer->frames, n);
	return n;
}

/* The frames at |address| of |binary|, as they were found before or now; false: nothing is known. */
static bool find_in_binary(struct d9__symbolizer *symbolizer, uint32_t binary, uint64_t address,
			   enum d9__address_role role, struct d9__frames *out)
{
	struct d9__question question = { address, binary, role };
	const struct d9__answer *answer = d9__answers_find(&symbolizer->answers, &question);

	if (answer)
		*out = (struct d9__frames){ symbolizer->answers.frames + answer->first, answer->n, true };
	else
		*out = (struct d9__frames){ symbolizer->frames, ask_binary(symbolizer, &question), true };
	return out->n != 0;
}

static bool find_in_jit(struct d9__symbolizer *symbolizer, uint64_t address, struct d9__frames *out)
{
	const char *name = d9__jit_map_find(&symbolizer->jit, address);

	symbolizer->frames[0] = (struct d9__symbol){ .function = name };
	*out = (struct d9__frames){ symbolizer->frames, 1, true };
	return name != NULL;
}

/* Say where the address lies, since nothing else is known: |offset| of |module|, if there is one. */
static void tell_place(struct d9__symbolizer *symbolizer, const char *module, uint64_t offset, uint64_t address,
		       struct d9__frames *out)
{
	struct d9__symbol *frame = &symbolizer->frames[0];

	*frame = (struct d9__symbol){ .function = symbolizer->place, .module = module, .offset = module ? offset : 0 };
	if (module)
		snprintf(symbolizer->place, sizeof(symbolizer->place), "%.*s+0x%" PRIx64, D9__TEXT_MAX, module, offset);
	else
		snprintf(symbolizer->place, sizeof(symbolizer->place), "%s0x%" PRIx64,
			 d9__address_is_kernel(address) ? "[kernel] " : "", address);
	*out = (struct d9__frames){ frame, 1, false };
}

/* Find |address| in the rows of the trace. */
static bool find_in_rows(struct d9__symbolizer *symbolizer, uint64_t address, struct d9__frames *out)
{
	bool placed;
	size_t n = address ? d9__symbol_rows_find(&symbolizer->rows, address, symbolizer->frames, &placed) : 0;

	*out = (struct d9__frames){ symbolizer->frames, n, n != 0 };
	return n != 0;
}

void d9__symbolizer_resolve(struct d9__symbolizer *symbolizer, uint64_t address, uint64_t ns,
			    enum d9__address_role role, struct d9__frames *out)
{
	struct d9__symbol rows[D9__SYMBOL_DEPTH_MAX];
	const struct d9__stay *stay;
	const char *module = NULL;
	uint64_t offset = 0;
	bool placed, found;
	size_t n = d9__symbol_rows_find(&symbolizer->rows, address, rows, &placed);

	stay = d9__module_map_find(&symbolizer->modules, address, ns);
	if (stay) {
		module = d9__binaries_get(symbolizer->binaries, stay->binary)->name;
		offset = address - stay->base;
		found = !placed && find_in_binary(symbolizer, stay->binary, offset, role, out);
		d9__binaries_note_answer(symbolizer->binaries, stay->binary, found || n);
		if (found)
			return;
	}
	if (n) {
		memcpy(symbolizer->frames, rows, n * sizeof(*rows));
		for (size_t i = 0; i < n; i++)
			symbolizer->frames[i].module = module;
		*out = (struct d9__frames){ symbolizer->frames, n, true };
	} else if (stay || !find_in_jit(symbolizer, address, out)) {
		tell_place(symbolizer, module, offset, address, out);
	}
}

static bool parse_offset(const char *text, const char *end, uint64_t *out)
{
	uint64_t n = 0;

	if (text == end || end - text > 16)
		return false;
	for (; text < end; text++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, *text);

		if (!*text || !digit)
			return false;
		n = n << 4 | (uint64_t)(digit - digits);
	}
	*out = n;
	return true;
}

/* The binary that |text| names, and the |*offset| in it; D9__NO_BINARY: it names none. */
static uint32_t parse_place(const struct d9__symbolizer *symbolizer, const char *text, size_t len, uint64_t *offset)
{
	const char *plus = len ? memrchr(text, '+', len) : NULL;

	if (!plus || len - (size_t)(plus - text) < 4 || plus[1] != '0' || plus[2] != 'x' ||
	    !parse_offset(plus + 3, text + len, offset))
		return D9__NO_BINARY;
	return d9__binaries_find(symbolizer->binaries, text, (size_t)(plus - text));
}

/* Where |offset| of |binary| lay in the process; 0: it was in none. */
static uint64_t address_in(const struct d9__symbolizer *symbolizer, uint32_t binary, uint64_t offset)
{
	uintptr_t base = (uintptr_t)d9__table_find(&symbolizer->bases, binary);

	return base ? base - 1 + offset : 0;
}

uint64_t d9__symbolizer_address(const struct d9__symbolizer *symbolizer, const char *text, size_t len)
{
	uint64_t offset;
	uint32_t binary = parse_place(symbolizer, text, len, &offset);

	return binary == D9__NO_BINARY ? 0 : address_in(symbolizer, binary, offset);
}

bool d9__symbolizer_resolve_name(struct d9__symbolizer *symbolizer, const char *text, size_t len,
				 enum d9__address_role role, struct d9__frames *out)
{
	uint64_t offset;
	uint32_t binary = parse_place(symbolizer, text, len, &offset);
	bool found;

	*out = (struct d9__frames){ 0 };
	if (binary == D9__NO_BINARY)
		return false;
	found = find_in_binary(symbolizer, binary, offset, role, out) ||
		find_in_rows(symbolizer, address_in(symbolizer, binary, offset), out);
	d9__binaries_note_answer(symbolizer->binaries, binary, found);
	if (!found)
		tell_place(symbolizer, d9__binaries_get(symbolizer->binaries, binary)->name, offset, 0, out);
	return true;
}

const char *d9__symbolizer_function(struct d9__symbolizer *symbolizer, const char *text, size_t len,
				    enum d9__address_role role)
{
	struct d9__frames frames;

	if (!symbolizer || !d9__symbolizer_resolve_name(symbolizer, text, len, role, &frames) || !frames.known)
		return NULL;
	return frames.items[frames.n - 1].function;
}

const char *d9__symbolizer_problem(const struct d9__symbolizer *symbolizer, size_t i)
{
	return d9__binaries_problem(symbolizer->binaries, i);
}

const struct d9__stay *d9__symbolizer_stay(struct d9__symbolizer *symbolizer, uint64_t address, uint64_t ns,
					   const struct d9__binary **binary)
{
	const struct d9__stay *stay = d9__module_map_find(&symbolizer->modules, address, ns);

	if (stay)
		*binary = d9__binaries_get(symbolizer->binaries, stay->binary);
	return stay;
}

const struct d9__binaries *d9__symbolizer_binaries(const struct d9__symbolizer *symbolizer)
{
	return symbolizer->binaries;
}
