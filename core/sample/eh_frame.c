/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section is a row of entries, each with a length: a CIE says what several functions have in common, an
 * FDE names its CIE and describes one function.  (Linux Standard Base, "Exception Frames".)
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/sort.h"
#include "format/cursor.h"
#include "sample/cfi.h"
#include "sample/eh_frame.h"

/* How pointers are written: the low four bits say what, the next three relative to what. */
enum {
	PTR_ABSOLUTE = 0x00,
	PTR_U16 = 0x02,
	PTR_U32 = 0x03,
	PTR_U64 = 0x04,
	PTR_S16 = 0x0a,
	PTR_S32 = 0x0b,
	PTR_S64 = 0x0c,
	PTR_FORMAT = 0x0f,
	PTR_RELATIVE = 0x10, /* to the place where it is written */
	PTR_BASE = 0x70,
	PTR_OMITTED = 0xff,
};

#define LENGTH_64   0xffffffffu /* what follows is a length of 64 bits: in no .eh_frame that unwinders read */
#define X86_64_RA   16
#define NO_ENTRY    SIZE_MAX

/* An entry; offsets are from the start of the section. */
struct entry {
	struct d9__cursor in; /* what follows the id */
	size_t id_at;
	uint32_t id;          /* 0: a CIE; else how far before |id_at| the CIE of this FDE begins */
};

/* A CIE that was read. */
struct common {
	size_t at; /* where it begins; NO_ENTRY: none was read yet */
	bool understood;
	bool has_augmentation_data;
	uint8_t encoding; /* of pointers in its FDEs */
	struct d9__cfi_common cfi;
};

/* A function: its rows are [first, first + n) of the list. */
struct function {
	uint32_t start, end;
	size_t first, n;
};

struct compiler {
	const struct d9__eh_frame *section;
	struct common common;
	struct d9__unwind_rows rows;
	struct function *functions;
	size_t n_functions, capacity;
	bool unordered;
};

static uint64_t address_of(const struct d9__eh_frame *section, const struct d9__cursor *in)
{
	return section->address + (uint64_t)(in->p - section->bytes);
}

/* ---- pointers ---- */

static bool read_number(struct d9__cursor *in, uint8_t format, uint64_t *out)
{
	uint16_t two;
	uint32_t four;

	switch (format) {
	case PTR_U16:
	case PTR_S16:
		if (!d9__cursor_u16(in, &two))
			return false;
		*out = format == PTR_S16 ? (uint64_t)(int64_t)(int16_t)two : two;
		return true;
	case PTR_U32:
	case PTR_S32:
		if (!d9__cursor_u32(in, &four))
			return false;
		*out = format == PTR_S32 ? (uint64_t)(int64_t)(int32_t)four : four;
		return true;
	case PTR_ABSOLUTE:
	case PTR_U64:
	case PTR_S64:
		return d9__cursor_u64(in, out);
	default:
		return false;
	}
}

/* A pointer that is written at |address|. */
static bool read_pointer(struct d9__cursor *in, uint8_t encoding, uint64_t address, uint64_t *out)
{
	if (!read_number(in, encoding & PTR_FORMAT, out))
		return false;
	if ((encoding & PTR_BASE) == PTR_RELATIVE)
		*out += address;
	/* Pointers to pointers, and to what only compilers of other systems know, are not read. */
	return (encoding & (PTR_BASE & ~PTR_RELATIVE)) == 0 && !(encoding & 0x80);
}

/* ---- entries ---- */

/* 1 and |*entry|; 0 at the end of the section, or where it makes no sense any more. */
static int next_entry(const struct d9__eh_frame *section, struct d9__cursor *in, struct entry *entry)
{
	const uint8_t *p;
	uint32_t len;

	if (!d9__cursor_u32(in, &len) || len == 0 || len == LENGTH_64 ||
	    !d9__cursor_take(in, len, &p))
		return 0;
	entry->in = (struct d9__cursor){ p, p + len, 0 };
	entry->id_at = (size_t)(p - section->bytes);
	return d9__cursor_u32(&entry->in, &entry->id);
}

static bool read_letters(struct common *common, struct d9__cursor data, const uint8_t *letter,
			 const uint8_t *end)
{
	uint64_t ignored;
	uint8_t encoding;

	for (; letter < end; letter++) {
		switch (*letter) {
		case 'R':
			if (!d9__cursor_u8(&data, &common->encoding))
				return false;
			break;
		case 'P': /* the personality: only its length matters */
			if (!d9__cursor_u8(&data, &encoding) ||
			    !read_number(&data, encoding & PTR_FORMAT, &ignored))
				return false;
			break;
		case 'L':
			if (!d9__cursor_skip(&data, 1))
				return false;
			break;
		case 'S':
			common->cfi.is_signal_frame = true;
			break;
		default:
			return false;
		}
	}
	return true;
}

/* The augmentation is a string of letters, each with data of its own. */
static bool read_augmentation(struct common *common, struct d9__cursor *in, const uint8_t *letters,
			      size_t n)
{
	const uint8_t *p;
	uint64_t len;

	common->encoding = PTR_ABSOLUTE;
	common->has_augmentation_data = n != 0;
	if (n == 0)
		return true;
	if (letters[0] != 'z' || !d9__cfi_uleb(in, &len) || !d9__cursor_take(in, len, &p))
		return false;
	return read_letters(common, (struct d9__cursor){ p, p + len, 0 }, letters + 1, letters + n);
}

static bool read_return_register(struct d9__cursor *in, uint8_t version, uint64_t *reg)
{
	uint8_t byte;

	if (version != 1)
		return d9__cfi_uleb(in, reg);
	if (!d9__cursor_u8(in, &byte))
		return false;
	*reg = byte;
	return true;
}

static bool read_common(struct common *common, struct d9__cursor in)
{
	const uint8_t *letters, *nul;
	uint64_t reg;
	uint8_t version;

	if (!d9__cursor_u8(&in, &version) || (version != 1 && version != 3))
		return false;
	letters = in.p;
	nul = memchr(letters, 0, d9__cursor_left(&in));
	if (!nul || !d9__cursor_skip(&in, (uint64_t)(nul - letters) + 1) ||
	    !d9__cfi_uleb(&in, &common->cfi.code_align) ||
	    !d9__cfi_sleb(&in, &common->cfi.data_align) ||
	    !read_return_register(&in, version, &reg) || reg != X86_64_RA)
		return false;
	return read_augmentation(common, &in, letters, (size_t)(nul - letters)) &&
	       d9__cfi_run_initial(&common->cfi, in);
}

/* The CIE of |fde|.  Neighbours mostly have the same one: the last is kept. */
static const struct common *common_of(struct compiler *compiler, const struct entry *fde)
{
	const struct d9__eh_frame *section = compiler->section;
	struct common *common = &compiler->common;
	struct d9__cursor in = { section->bytes, section->bytes + section->len, 0 };
	struct entry entry;

	if (fde->id > fde->id_at)
		return NULL;
	if (common->at == fde->id_at - fde->id)
		return common;
	*common = (struct common){ .at = fde->id_at - fde->id };
	common->understood = d9__cursor_skip(&in, common->at) &&
			     next_entry(section, &in, &entry) && entry.id == 0 &&
			     read_common(common, entry.in);
	return common;
}

/* ---- functions ---- */

static int add_function(struct compiler *compiler, const struct function *function)
{
	size_t n = compiler->n_functions;

	if (n == compiler->capacity) {
		size_t more = n ? n * 2 : 64;
		struct function *grown = d9__reallocarray(compiler->functions, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		compiler->functions = grown;
		compiler->capacity = more;
	}
	if (n && function->start < compiler->functions[n - 1].start)
		compiler->unordered = true;
	compiler->functions[compiler->n_functions++] = *function;
	return 0;
}

/* The range of code that |fde| is about, as offsets.  False if it is not inside the module. */
static bool read_range(const struct compiler *compiler, const struct common *common,
		       struct d9__cursor *in, struct function *function)
{
	const struct d9__eh_frame *section = compiler->section;
	uint64_t start, len, address = address_of(section, in);

	if (!read_pointer(in, common->encoding, address, &start) ||
	    !read_number(in, common->encoding & PTR_FORMAT & ~0x08, &len))
		return false;
	if (start < section->low || start >= section->high || len == 0 ||
	    len > section->high - start || start - section->low + len > UINT32_MAX)
		return false;
	function->start = (uint32_t)(start - section->low);
	function->end = (uint32_t)(function->start + len);
	return true;
}

static int compile_function(struct compiler *compiler, struct entry *fde)
{
	const struct common *common = common_of(compiler, fde);
	struct function function = { .first = compiler->rows.n };
	uint64_t len = 0;
	int err;

	/* Without its CIE nothing is known of an FDE, not even where its function is. */
	if (!common || !common->understood || !read_range(compiler, common, &fde->in, &function))
		return 0;
	if (common->has_augmentation_data &&
	    (!d9__cfi_uleb(&fde->in, &len) || !d9__cursor_skip(&fde->in, len)))
		return 0;
	err = d9__cfi_run(&common->cfi, fde->in, function.start, function.end, &compiler->rows);
	function.n = compiler->rows.n - function.first;
	return err ? err : add_function(compiler, &function);
}

static int compile_functions(struct compiler *compiler)
{
	const struct d9__eh_frame *section = compiler->section;
	struct d9__cursor in = { section->bytes, section->bytes + section->len, 0 };
	struct entry entry;
	int err = 0;

	while (!err && next_entry(section, &in, &entry))
		if (entry.id != 0)
			err = compile_function(compiler, &entry);
	return err;
}

/* ---- in order ---- */

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* Append a row unless the last one says the same already. */
static int append(struct d9__unwind_rows *out, const struct d9__unwind_row *row)
{
	const struct d9__unwind_row *last = out->n ? &out->row[out->n - 1] : NULL;

	if (last && last->cfa == row->cfa && last->rbp == row->rbp &&
	    last->rbp_offset == row->rbp_offset && last->cfa_offset == row->cfa_offset)
		return 0;
	return d9__unwind_rows_add(out, row);
}

/* The rows of |function| that lie before |limit|, and one without a rule if a gap follows. */
static int append_function(const struct compiler *compiler, const struct function *function,
			   uint32_t limit, struct d9__unwind_rows *out)
{
	const struct d9__unwind_row *row = &compiler->rows.row[function->first];
	struct d9__unwind_row gap = { .pc = function->end };
	int err = 0;

	for (size_t i = 0; !err && i < function->n && row[i].pc < limit; i++)
		err = append(out, &row[i]);
	return !err && function->end < limit ? append(out, &gap) : err;
}

static int put_in_order(struct compiler *compiler, struct d9__unwind_rows *out)
{
	struct function *functions = compiler->functions;
	int err = 0;

	if (compiler->unordered)
		d9__sort(functions, compiler->n_functions, sizeof(*functions), by_start);
	for (size_t i = 0; !err && i < compiler->n_functions; i++) {
		bool is_last = i + 1 == compiler->n_functions;
		uint32_t limit = is_last ? UINT32_MAX : functions[i + 1].start;

		err = append_function(compiler, &functions[i], limit, out);
	}
	return err;
}

/* Shrink an array that grew by doubling to its length. */
static void take_rows(struct d9__unwind_rows *rows, struct d9__eh_frame_rows *out)
{
	struct d9__unwind_row *exact =
		rows->n ? d9__reallocarray(rows->row, rows->n, sizeof(*exact)) : NULL;

	if (exact)
		rows->row = exact;
	*out = (struct d9__eh_frame_rows){ rows->row, rows->n };
	rows->row = NULL;
}

int d9__eh_frame_compile(const struct d9__eh_frame *section, size_t max,
			 struct d9__eh_frame_rows *out)
{
	struct compiler compiler = { .section = section, .common.at = NO_ENTRY,
				     .rows.max = max };
	struct d9__unwind_rows ordered = { .max = max };
	int err = compile_functions(&compiler);

	if (!err)
		err = put_in_order(&compiler, &ordered);
	if (!err)
		take_rows(&ordered, out);
	d9__free(ordered.row);
	d9__free(compiler.rows.row);
	d9__free(compiler.functions);
	return err;
}

size_t d9__eh_frame_length(const uint8_t *bytes, size_t len)
{
	struct d9__eh_frame section = { .bytes = bytes };
	struct d9__cursor in = { bytes, bytes + len, 0 };
	struct entry entry;

	while (next_entry(&section, &in, &entry))
		section.len = (size_t)(in.p - bytes);
	return section.len;
}

/* Four bytes, then the pointer: version, its encoding, and two encodings of what is searched by others. */
uint64_t d9__eh_frame_find(const uint8_t *header, size_t len, uint64_t address)
{
	struct d9__cursor in = { header, header + len, 0 };
	const uint8_t *head;
	uint64_t found;

	if (!d9__cursor_take(&in, 4, &head) || head[0] != 1 || head[1] == PTR_OMITTED ||
	    !read_pointer(&in, head[1], address + 4, &found))
		return 0;
	return found;
}
