/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles .eh_frame of files and compares each row with what libdw says of the same addresses.
 *
 *	compare_tables FILE...
 *
 * Prints a line for each file with a difference, and the sums.  Exit status 1 if a row has a rule and libdw has
 * another one, or none.  Rules of libdw that no row can hold are counted only.
 */
#include "config.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sample/eh_frame.h"

#define RBP            6
#define RETURN_ADDRESS 16
#define GAP_STEP       16 /* bytes, where neither knows anything */
#define SHOWN          5  /* differences of a file */
#define ROWS_MAX       ((size_t)64 << 20)

struct sums {
	uint64_t files, sections, rows, none, section_bytes, compared, equal, held_by_no_row, different;
	double compile_ms;
};

struct file {
	const char *path;
	Elf *elf;
	Dwarf_CFI *cfi;
	struct d9__eh_frame section;
	struct d9__eh_frame_rows rows;
	struct sums *sums;
	int shown;
};

/* ---- what libdw says, as a row ---- */

/* A register and an offset, in either form. */
static bool register_of(const Dwarf_Op *op, uint64_t *reg, int64_t *offset)
{
	bool is_short = op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;

	*reg = is_short ? (uint64_t)(op->atom - DW_OP_breg0) : op->number;
	*offset = (int64_t)(is_short ? op->number : op->number2);
	return is_short || op->atom == DW_OP_bregx;
}

static bool cfa_of(Dwarf_Frame *frame, bool is_signal, struct d9__unwind_row *row)
{
	Dwarf_Op *op;
	uint64_t reg;
	int64_t offset;
	size_t n;

	if (dwarf_frame_cfa(frame, &op, &n) != 0 || n == 0)
		return false;
	if (!register_of(&op[0], &reg, &offset))
		return false;
	row->cfa_offset = (int32_t)offset;
	if (n == 1) {
		row->cfa = reg == 7 ? D9__CFA_RSP :
			   reg == 6 ? D9__CFA_RBP : (uint8_t)(D9__CFA_REGISTER + reg);
		return reg < 16;
	}
	if (n == 9 && reg == 7 && op[5].atom == DW_OP_ge) {
		row->cfa = D9__CFA_PLT;
		row->cfa_offset = (int32_t)op[4].atom - DW_OP_lit0;
		return true;
	}
	if (op[1].atom != DW_OP_deref || n > 3 ||
	    (n == 3 && (op[2].atom != DW_OP_plus_uconst || op[2].number != 8)))
		return false;
	row->cfa = reg == 6 ? (n == 3 ? D9__CFA_AT_RBP_8 : D9__CFA_AT_RBP) :
		   reg != 7 ? D9__CFA_NONE :
		   n == 3   ? D9__CFA_AT_RSP_8 :
		   is_signal ? D9__CFA_SIGNAL : D9__CFA_NONE;
	if (row->cfa == D9__CFA_SIGNAL)
		row->cfa_offset = 0;
	return row->cfa != D9__CFA_NONE;
}

/* The offset from the CFA at which a register is saved. */
static bool saved_at_cfa(const Dwarf_Op *op, size_t n, int64_t *offset)
{
	*offset = n == 2 ? (int64_t)op[1].number : 0;
	return op && n >= 1 && n <= 2 && op[0].atom == DW_OP_call_frame_cfa &&
	       (n == 1 || op[1].atom == DW_OP_plus_uconst);
}

static bool rbp_of(Dwarf_Frame *frame, struct d9__unwind_row *row)
{
	Dwarf_Op mem[3], *op;
	int64_t offset;
	size_t n;

	if (dwarf_frame_register(frame, RBP, mem, &op, &n) != 0)
		return false;
	if (n == 0)
		return op == NULL; /* same value; else undefined */
	if (saved_at_cfa(op, n, &offset)) {
		row->rbp = D9__RBP_AT_CFA;
	} else {
		/* An expression is evaluated behind a push of the CFA. */
		size_t at = op[0].atom == DW_OP_call_frame_cfa;

		if (n != at + 1 || op[at].atom != DW_OP_breg6)
			return false;
		row->rbp = D9__RBP_AT_RBP;
		offset = (int64_t)op[at].number;
	}
	row->rbp_offset = (int16_t)offset;
	return offset == (int16_t)offset;
}

static bool return_address_of(Dwarf_Frame *frame, bool *undefined)
{
	Dwarf_Op mem[3], *op;
	int64_t offset;
	size_t n;

	*undefined = false;
	if (dwarf_frame_register(frame, RETURN_ADDRESS, mem, &op, &n) != 0)
		return false;
	*undefined = n == 0 && op == mem;
	return saved_at_cfa(op, n, &offset) && offset == -8;
}

/* False: no row can hold it. */
static bool row_of(Dwarf_Frame *frame, bool is_signal, struct d9__unwind_row *row)
{
	bool undefined, below_cfa = return_address_of(frame, &undefined);

	if (undefined) {
		row->cfa = D9__CFA_END;
		return true;
	}
	if (!cfa_of(frame, is_signal, row))
		return false;
	return row->cfa == D9__CFA_SIGNAL || (below_cfa && rbp_of(frame, row));
}

/* ---- comparison ---- */

static void show(struct file *file, uint64_t pc, const char *what, const struct d9__unwind_row *ours,
		 const struct d9__unwind_row *theirs)
{
	file->sums->different++;
	if (file->shown++ >= SHOWN)
		return;
	printf("%s: at %lx %s: ours %d%+d rbp %d%+d, libdw %d%+d rbp %d%+d\n", file->path,
	       (unsigned long)pc, what, ours->cfa, ours->cfa_offset, ours->rbp, ours->rbp_offset,
	       theirs->cfa, theirs->cfa_offset, theirs->rbp, theirs->rbp_offset);
}

/* What libdw says at |pc| against |row|.  Returns up to where that holds. */
static uint64_t compare_at(struct file *file, uint64_t pc, const struct d9__unwind_row *row)
{
	struct d9__unwind_row theirs = { 0 };
	Dwarf_Addr start, end = pc + GAP_STEP;
	Dwarf_Frame *frame;
	bool is_signal, held;

	file->sums->compared++;
	if (dwarf_cfi_addrframe(file->cfi, pc, &frame) != 0) {
		if (row->cfa != D9__CFA_NONE)
			show(file, pc, "only ours", row, &theirs);
		return end;
	}
	dwarf_frame_info(frame, &start, &end, &is_signal);
	held = row_of(frame, is_signal, &theirs);
	free(frame);
	if (!held)
		theirs = (struct d9__unwind_row){ 0 };
	if (row->cfa == theirs.cfa && row->cfa_offset == theirs.cfa_offset &&
	    row->rbp == theirs.rbp && row->rbp_offset == theirs.rbp_offset)
		file->sums->equal++;
	else
		show(file, pc, "different", row, &theirs);
	file->sums->held_by_no_row += !held;
	return end > pc ? end : pc + 1;
}

static void compare_rows(struct file *file)
{
	for (size_t i = 0; i < file->rows.n; i++) {
		const struct d9__unwind_row *row = &file->rows.row[i];
		uint64_t pc = file->section.low + row->pc;
		uint64_t end = i + 1 < file->rows.n ? file->section.low + row[1].pc : pc + 1;

		file->sums->none += row->cfa == D9__CFA_NONE;
		while (pc < end)
			pc = compare_at(file, pc, row);
	}
}

/* ---- files ---- */

static bool find_section(struct file *file)
{
	size_t names, n = 0;
	GElf_Shdr header;
	GElf_Phdr segment;

	if (elf_getshdrstrndx(file->elf, &names) != 0)
		return false;
	elf_getphdrnum(file->elf, &n);
	file->section.low = UINT64_MAX;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(file->elf, (int)i, &segment) && segment.p_type == PT_LOAD) {
			if (segment.p_vaddr < file->section.low)
				file->section.low = segment.p_vaddr;
			if (segment.p_vaddr + segment.p_memsz > file->section.high)
				file->section.high = segment.p_vaddr + segment.p_memsz;
		}
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(file->elf, scn)) != NULL;) {
		const char *name = gelf_getshdr(scn, &header) ?
					   elf_strptr(file->elf, names, header.sh_name) : NULL;
		Elf_Data *data = name && !strcmp(name, ".eh_frame") ? elf_rawdata(scn, NULL) : NULL;

		if (!data || header.sh_type == SHT_NOBITS)
			continue;
		file->section.bytes = data->d_buf;
		file->section.len = data->d_size;
		file->section.address = header.sh_addr;
		return true;
	}
	return false;
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void compile_and_compare(struct file *file)
{
	double start = now_ms();

	if (d9__eh_frame_compile(&file->section, ROWS_MAX, &file->rows) != 0)
		return;
	file->sums->compile_ms += now_ms() - start;
	file->sums->sections++;
	file->sums->section_bytes += file->section.len;
	file->sums->rows += file->rows.n;
	file->cfi = dwarf_getcfi_elf(file->elf);
	if (file->cfi)
		compare_rows(file);
	dwarf_cfi_end(file->cfi);
	free(file->rows.row);
}

static void look_at(const char *path, struct sums *sums)
{
	struct file file = { .path = path, .sums = sums };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Ehdr header;

	if (fd < 0)
		return;
	file.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	sums->files++;
	if (file.elf && elf_kind(file.elf) == ELF_K_ELF && gelf_getehdr(file.elf, &header) &&
	    header.e_machine == EM_X86_64 && header.e_type != ET_REL && find_section(&file))
		compile_and_compare(&file);
	elf_end(file.elf);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sums sums = { 0 };

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		look_at(argv[i], &sums);
	printf("%lu files, %lu sections of %lu bytes: %lu rows (%lu without a rule) in %.1f ms; "
	       "%lu compared, %lu equal, %lu different, %lu that no row can hold\n",
	       (unsigned long)sums.files, (unsigned long)sums.sections,
	       (unsigned long)sums.section_bytes, (unsigned long)sums.rows, (unsigned long)sums.none,
	       sums.compile_ms, (unsigned long)sums.compared, (unsigned long)sums.equal,
	       (unsigned long)sums.different, (unsigned long)sums.held_by_no_row);
	return sums.different || !sums.equal;
}
