/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes for a section .eh_frame: no crash, rows in order and with rules that the walk knows, and the same
 * rows whatever the limit is, as long as it suffices.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "sample/eh_frame.h"

#define ADDRESS 0x500000u /* where the section claims to be */
#define LOW     0x400000u /* and its module */
#define HIGH    0x600000u
#define MANY    100000

static void check_rows(const struct d9__eh_frame_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct d9__unwind_row *row = &rows->row[i];

		fuzz_require(row->cfa < D9__CFA_RULES && row->rbp < D9__RBP_RULES,
			     "rules are known");
		fuzz_require(row->pc <= HIGH - LOW, "rows lie in the module");
		fuzz_require(i == 0 || row[-1].pc < row->pc, "rows are in order");
		fuzz_require(row->cfa != D9__CFA_NONE ||
				     (!row->cfa_offset && !row->rbp && !row->rbp_offset),
			     "no rule is nothing else");
	}
	fuzz_require(rows->n == 0 || rows->row[rows->n - 1].cfa == D9__CFA_NONE,
		     "nothing is said of what is behind the last function");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct d9__eh_frame section = { data, size, ADDRESS, LOW, HIGH };
	struct d9__eh_frame_rows rows = { 0 }, again = { 0 };
	int err = d9__eh_frame_compile(&section, MANY, &rows);

	fuzz_require(err == 0 || err == -E2BIG, "it can be compiled, or is too large");
	fuzz_require(rows.n <= MANY && !rows.row == !rows.n, "rows are within the limit");
	check_rows(&rows);
	err = d9__eh_frame_compile(&section, rows.n, &again);
	fuzz_require(err == -E2BIG || (err == 0 && again.n == rows.n), "the limit is one");
	fuzz_require(err || !rows.n ||
			     !memcmp(rows.row, again.row, rows.n * sizeof(rows.row[0])),
		     "the rows are the same");
	fuzz_require(d9__eh_frame_length(data, size) <= size, "the section lies in its bytes");
	d9__eh_frame_find(data, size, ADDRESS);
	free(rows.row);
	free(again.row);
	return 0;
}
