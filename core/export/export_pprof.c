/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's Profile (github.com/google/pprof, proto/profile.proto).  Samples come first, with locations and functions as
 * they are met; mappings and texts, which they refer to by number, at the end.  Each address is a location, whose lines
 * are the functions that were inlined there, the innermost first.
 */
#include "config.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "base/hash.h"
#include "export/profile_export.h"
#include "export/profile_view.h"
#include "export/protobuf.h"
#include "text/shown.h"

/* Fields of the messages. */
enum { SAMPLE_TYPE = 1, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING, TIME = 9, DURATION, PERIOD_TYPE, PERIOD, COMMENT,
       DEFAULT_TYPE };
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD_ID, MAPPING_NAMED,
       MAPPING_WITH_FILES, MAPPING_WITH_LINES, MAPPING_WITH_INLINED };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

/* A module with samples. */
struct mapping {
	const struct d9__stay *stay;
	const struct d9__binary *binary;
};

struct pprof {
	struct d9__profile *profile;
	FILE *out;
	struct d9__texts texts;
	struct d9__table locations, functions, mapped; /* numbers as pointers: by hash; by stay */
	struct mapping *mappings;
	struct d9__protobuf message, inner, numbers;
	bool counts; /* there are two values: how many, and how long */
	bool failed; /* no memory */
};

/* The bytes of a location or a function: its places in a table that is half empty. */
#define ENTRY_BYTES (3 * sizeof(struct d9__table_entry))

static uint64_t text(struct pprof *p, const char *text)
{
	uint32_t number = 0;

	if (text && d9__texts_number(&p->texts, text, strlen(text), &number))
		p->failed = true;
	return number;
}

/* The number under |key| of |table|; |*is_new|: it was given now.  0: beyond the budget, or no memory. */
static uint64_t number_of(struct pprof *p, struct d9__table *table, uint64_t key, bool *is_new)
{
	uint64_t number = (uint64_t)(uintptr_t)d9__table_find(table, key);

	*is_new = !number && d9__budget_take(D9__KEPT_SYMBOLS, ENTRY_BYTES);
	if (!*is_new)
		return number;
	number = table->n + 1;
	if (!d9__table_add(table, key, (void *)(uintptr_t)number))
		return number;
	p->failed = true;
	*is_new = false;
	return 0;
}

/* ---- where ---- */

static uint64_t function_of(struct pprof *p, const char *name, const char *file)
{
	uint64_t texts[2] = { text(p, name), text(p, file) }, number;
	bool is_new;

	number = number_of(p, &p->functions, texts[0] << 32 | texts[1], &is_new);
	if (!is_new)
		return number;
	d9__protobuf_number(&p->message, FUNCTION_ID, number);
	d9__protobuf_number(&p->message, FUNCTION_NAME, texts[0]);
	d9__protobuf_number(&p->message, FUNCTION_SYSTEM_NAME, texts[0]);
	d9__protobuf_number(&p->message, FUNCTION_FILE, texts[1]);
	d9__protobuf_write(p->out, FUNCTION, &p->message);
	return number;
}

static uint64_t mapping_of(struct pprof *p, uint64_t address, uint64_t ns)
{
	const struct d9__binary *binary;
	const struct d9__stay *stay =
		d9__symbolizer_stay(p->profile->symbolizer, address, ns, &binary);
	uint64_t number;
	bool is_new;

	if (!stay)
		return 0;
	number = number_of(p, &p->mapped, (uint64_t)(uintptr_t)stay, &is_new);
	if (!is_new)
		return number;
	if (p->failed || !d9__array_grow(p->mappings, number - 1)) {
		p->failed = true;
		return 0;
	}
	p->mappings[number - 1] = (struct mapping){ stay, binary };
	return number;
}

/* Return a location without an address, which names something that is missing. */
static uint64_t note(struct pprof *p, const char *words)
{
	uint64_t function = function_of(p, words, NULL), number;
	bool is_new;

	number = number_of(p, &p->locations,
			   d9__hash_bytes(d9__hash_secret(), words, strlen(words)), &is_new);
	if (!is_new)
		return number;
	d9__protobuf_number(&p->inner, LINE_FUNCTION, function);
	d9__protobuf_number(&p->message, LOCATION_ID, number);
	d9__protobuf_put(&p->message, LOCATION_LINE, &p->inner);
	d9__protobuf_write(p->out, LOCATION, &p->message);
	return number;
}

static void put_location(struct pprof *p, uint64_t number, uint64_t mapping, uint64_t address,
			 const struct d9__frames *frames)
{
	uint64_t functions[D9__SYMBOL_DEPTH_MAX];
	size_t n = frames->n < D9__SYMBOL_DEPTH_MAX ? frames->n : D9__SYMBOL_DEPTH_MAX;

	/* Write new functions first, because each is a message of its own before this one. */
	for (size_t i = 0; i < n; i++)
		functions[i] = function_of(p, frames->items[i].function ? frames->items[i].function : "[unknown]",
					   frames->items[i].path ? frames->items[i].path : frames->items[i].file);
	d9__protobuf_number(&p->message, LOCATION_ID, number);
	d9__protobuf_number(&p->message, LOCATION_MAPPING, mapping);
	d9__protobuf_number(&p->message, LOCATION_ADDRESS, address);
	for (size_t i = 0; i < n; i++) {
		d9__protobuf_number(&p->inner, LINE_FUNCTION, functions[i]);
		d9__protobuf_number(&p->inner, LINE_LINE, frames->items[i].line);
		d9__protobuf_put(&p->message, LOCATION_LINE, &p->inner);
	}
	d9__protobuf_write(p->out, LOCATION, &p->message);
}

/* Frame |i| of |stack|: for callers the call itself, which ends at the address before the one it returns to. */
static uint64_t location_of(struct pprof *p, const struct d9__profile_stack *stack, size_t i)
{
	bool is_call = i || p->profile->facts->unit == D9__PROFILE_BYTES;
	uint64_t address = stack->addresses[i] - (is_call && stack->addresses[i] ? 1 : 0), number;
	uint64_t place[3] = { address, mapping_of(p, address, stack->ns), 0 };
	struct d9__frames frames;
	bool is_new;

	d9__profile_frames(p->profile, stack, i, &frames);
	if (p->profile->raw)
		frames.n = 0;
	else
		place[2] = text(p, frames.items[0].function);
	number = number_of(p, &p->locations, d9__hash_bytes(d9__hash_secret(), place, sizeof(place)), &is_new);
	if (is_new)
		put_location(p, number, place[1], address, &frames);
	return number;
}

/* ---- samples ---- */

static void put_label(struct pprof *p, const char *key, uint64_t words, uint64_t number)
{
	if (!words && !number)
		return;
	d9__protobuf_number(&p->inner, LABEL_KEY, text(p, key));
	d9__protobuf_number(&p->inner, LABEL_TEXT, words);
	d9__protobuf_number(&p->inner, LABEL_NUMBER, number);
	d9__protobuf_put(&p->message, SAMPLE_LABEL, &p->inner);
}

static void put_labels(struct pprof *p, const struct d9__profile_stack *stack)
{
	const struct d9__worker *worker = stack->worker;
	const char *thread = stack->thread ? stack->thread : worker ? worker->thread_name : NULL;
	char id[24], way[1024];

	put_label(p, "thread", text(p, thread), 0);
	put_label(p, "tid", 0, stack->tid ? stack->tid : worker ? worker->tid : 0);
	if (stack->callback)
		put_label(p, "callback", text(p, d9__callback_way(stack->callback, way, sizeof(way))), 0);
	if (stack->span)
		put_label(p, "span", text(p, stack->span), 0);
	if (!worker)
		return;
	snprintf(id, sizeof(id), "%llu", (unsigned long long)worker->id);
	put_label(p, "worker", text(p, id), 0);
	put_label(p, "loop", text(p, d9__metadata_group(&p->profile->analysis.metadata, worker->id)), 0);
}

/* Without the locations that are left out: a number that no location has makes readers refuse the file. */
static void put_number(struct pprof *p, uint64_t location)
{
	if (location)
		d9__protobuf_varint(&p->numbers, location);
}

static void put_values(struct pprof *p, const struct d9__profile_stack *stack)
{
	if (p->profile->facts->unit == D9__PROFILE_BYTES) {
		d9__protobuf_varint(&p->numbers, stack->heap.alloc_objects);
		d9__protobuf_varint(&p->numbers, stack->heap.alloc_bytes);
		d9__protobuf_varint(&p->numbers, stack->heap.live_objects);
		d9__protobuf_varint(&p->numbers, stack->heap.live_bytes);
	} else if (p->counts) {
		d9__protobuf_varint(&p->numbers, stack->taken);
		d9__protobuf_varint(&p->numbers, p->profile->wanted.kind == D9__PROFILE_KIND_CPU
							 ? stack->cpu_ns
							 : stack->off_ns);
	} else {
		d9__protobuf_varint(&p->numbers, stack->samples);
	}
	d9__protobuf_put(&p->message, SAMPLE_VALUES, &p->numbers);
}

static void put_sample(struct pprof *p, const struct d9__profile_stack *stack)
{
	struct d9__profile_view view;
	char way[1024];

	d9__profile_view(p->profile, stack, &view);
	for (size_t i = 0; i < view.n; i++)
		if (!view.hidden[i])
			put_number(p, location_of(p, stack, i));
	if (!stack->n)
		put_number(p, note(p, "[no stack]"));
	if (stack->lonely)
		put_number(p, note(p, d9__profile_lonely(stack, way, sizeof(way))));
	else if (view.rooted && !view.named)
		put_number(p, note(p, d9__callback_way(stack->callback, way, sizeof(way))));
	else if (stack->truncated && !view.rooted)
		put_number(p, note(p, "[cut stack]"));
	d9__protobuf_put(&p->message, SAMPLE_LOCATIONS, &p->numbers);
	put_values(p, stack);
	put_labels(p, stack);
	d9__protobuf_write(p->out, SAMPLE, &p->message);
}

/* ---- the rest ---- */

/* The part of |elf| with its code; whether it has one. */
static bool find_code(Elf *elf, GElf_Phdr *code)
{
	size_t n = 0;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, code) && code->p_type == PT_LOAD && (code->p_flags & PF_X))
			return true;
	return false;
}

/*
 * Write the place of a module in memory and in its file.  If pprof is to name functions itself,
 * write the code's mapping alone, because pprof takes the distance between addresses and the file
 * from the last part.
 */
static void put_place(struct pprof *p, const struct mapping *mapping)
{
	const struct d9__stay *stay = mapping->stay;
	const struct d9__elf_file *file = mapping->binary->file;
	uint64_t start = stay->start, limit = stay->end, offset = 0;
	GElf_Phdr code;

	if (p->profile->raw && file && find_code(d9__elf_file_elf(file), &code)) {
		start = (stay->base + code.p_vaddr) & ~UINT64_C(4095);
		limit = stay->base + code.p_vaddr + code.p_memsz;
		offset = code.p_offset & ~UINT64_C(4095);
	}
	d9__protobuf_number(&p->message, MAPPING_START, start);
	d9__protobuf_number(&p->message, MAPPING_LIMIT, limit);
	d9__protobuf_number(&p->message, MAPPING_OFFSET, offset);
}

static void put_mapping(struct pprof *p, size_t i)
{
	const struct mapping *mapping = &p->mappings[i];

	d9__protobuf_number(&p->message, MAPPING_ID, i + 1);
	put_place(p, mapping);
	d9__protobuf_number(&p->message, MAPPING_FILE, text(p, mapping->binary->path));
	d9__protobuf_number(&p->message, MAPPING_BUILD_ID, text(p, mapping->binary->build_id));
	/* Or pprof would look for names itself. */
	for (unsigned field = MAPPING_NAMED; field <= MAPPING_WITH_INLINED && !p->profile->raw; field++)
		d9__protobuf_number(&p->message, field, 1);
	d9__protobuf_write(p->out, MAPPING, &p->message);
}

/* Write the program's own mapping first, because readers name the profile after it. */
static void put_mappings(struct pprof *p)
{
	const char *program = d9__metadata_value(&p->profile->analysis.metadata, "program");
	size_t own = 0;

	for (size_t i = 0; program && i < p->mapped.n; i++)
		if (!strcmp(p->mappings[i].binary->path, program))
			own = i;
	if (p->mapped.n)
		put_mapping(p, own);
	for (size_t i = 0; i < p->mapped.n; i++)
		if (i != own)
			put_mapping(p, i);
}

static void put_texts(struct pprof *p)
{
	for (size_t i = 0; i < p->texts.n && !p->failed; i++) {
		size_t len;
		char *shown = NULL;
		FILE *out = open_memstream(&shown, &len);

		if (out)
			d9__shown_write(out, p->texts.items[i], p->texts.lens[i]);
		if (!out || fclose(out)) {
			p->failed = true;
		} else {
			d9__protobuf_bytes(&p->message, STRING, shown, len);
			fwrite(p->message.bytes, 1, p->message.len, p->out);
			p->message.len = 0;
		}
		free(shown);
	}
}

static void put_type(struct pprof *p, unsigned field, const char *type, const char *unit)
{
	d9__protobuf_number(&p->inner, TYPE_TYPE, text(p, type));
	d9__protobuf_number(&p->inner, TYPE_UNIT, text(p, unit));
	d9__protobuf_put(&p->message, field, &p->inner);
}

/* As the heap profiles of Go and tcmalloc have them. */
static void put_heap_types(struct pprof *p)
{
	put_type(p, SAMPLE_TYPE, "alloc_objects", "count");
	put_type(p, SAMPLE_TYPE, "alloc_space", "bytes");
	put_type(p, SAMPLE_TYPE, "inuse_objects", "count");
	put_type(p, SAMPLE_TYPE, "inuse_space", "bytes");
	put_type(p, PERIOD_TYPE, "space", "bytes");
	d9__protobuf_number(&p->message, PERIOD, p->profile->heap.rate);
}

/*
 * Write the types of samples with a time: their number, and the time of each, on the CPU or in
 * blocking calls.
 */
static void put_timed_types(struct pprof *p)
{
	bool is_cpu = p->profile->wanted.kind == D9__PROFILE_KIND_CPU;

	put_type(p, SAMPLE_TYPE, is_cpu ? "samples" : "contentions", "count");
	put_type(p, SAMPLE_TYPE, is_cpu ? "cpu" : "blocked", "nanoseconds");
	put_type(p, PERIOD_TYPE, is_cpu ? "cpu" : "contentions", is_cpu ? "nanoseconds" : "count");
	d9__protobuf_number(&p->message, PERIOD, is_cpu ? p->profile->period_ns : 1);
	d9__protobuf_number(&p->message, DEFAULT_TYPE, text(p, is_cpu ? "cpu" : "blocked"));
}

/*
 * Write the single type of other samples.  If their times are known only in part, write the sum of
 * those.
 */
static void put_plain_type(struct pprof *p)
{
	const struct d9__profile_kind_facts *facts = p->profile->facts;

	put_type(p, SAMPLE_TYPE, facts->pprof_type,
		 facts->unit == D9__PROFILE_MICROSECONDS ? "microseconds" : "count");
}

/* Fields of the profile itself. */
static void put_head(struct pprof *p)
{
	const struct d9__analysis *analysis = &p->profile->analysis;
	const struct d9__profile_kind_facts *facts = p->profile->facts;

	p->counts = p->profile->off_timed ||
		    (p->profile->wanted.kind == D9__PROFILE_KIND_CPU && p->profile->period_ns);
	if (facts->unit == D9__PROFILE_BYTES)
		put_heap_types(p);
	else if (p->counts)
		put_timed_types(p);
	else
		put_plain_type(p);
	d9__protobuf_number(&p->message, TIME, d9__analysis_wall_ns(analysis, p->profile->origin_ns));
	d9__protobuf_number(&p->message, DURATION, analysis->last_ns - p->profile->origin_ns);
	if (!p->counts)
		d9__protobuf_number(&p->message, DEFAULT_TYPE, text(p, facts->pprof_type));
	fwrite(p->message.bytes, 1, p->message.len, p->out);
	p->message.len = 0;
}

/* Write what the profile lacks, as `go tool pprof -comments` shows it. */
static void put_comments(struct pprof *p)
{
	const struct d9__trace_losses *losses = &p->profile->analysis.losses;
	char line[128];

	for (size_t i = 0; i < losses->n; i++) {
		snprintf(line, sizeof(line), "%.40s events lost: %s", d9__units_count(losses->items[i].events).text,
			 losses->items[i].cause);
		d9__protobuf_number(&p->message, COMMENT, text(p, line));
	}
	fwrite(p->message.bytes, 1, p->message.len, p->out);
	p->message.len = 0;
}

int d9__export_pprof(struct d9__profile *profile, FILE *out)
{
	struct pprof p = { .profile = profile, .out = out };
	bool failed;

	/* Text 0 is the empty one. */
	text(&p, "");
	put_head(&p);
	for (size_t i = 0; i < profile->n && !p.failed; i++)
		put_sample(&p, profile->stacks[i]);
	put_mappings(&p);
	put_comments(&p);
	put_texts(&p);
	failed = p.failed || p.message.failed || p.inner.failed || p.numbers.failed;
	d9__protobuf_release(&p.message);
	d9__protobuf_release(&p.inner);
	d9__protobuf_release(&p.numbers);
	d9__table_release(&p.locations);
	d9__table_release(&p.functions);
	d9__table_release(&p.mapped);
	d9__texts_release(&p.texts);
	free(p.mappings);
	return failed ? -ENOMEM : 0;
}
