/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions are those of DWARF 5, section 6.4.2, with the extensions of GCC.  Only what a row can
 * hold is followed: the CFA, rbp, and whether the return address is at CFA - 8.  Rules for all other
 * registers are parsed and dropped.
 *
 * Nothing here trusts its input: every read goes through a cursor, every offset is computed in 64 bits
 * with overflow checks where the operands are not small, and a program takes time in proportion to its
 * length, because each instruction takes at least one byte.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "sample/cfi.h"

#define STATES_MAX 16 /* that DW_CFA_remember_state keeps */

/* Register numbers of the x86-64 psABI. */
#define RBP            6
#define RSP            7
#define RETURN_ADDRESS 16

/* Offset of rsp in the ucontext_t of a signal frame, which glibc writes into its expression. */
#define SIGNAL_RSP 160

enum { RA_ELSEWHERE, RA_BELOW_CFA, RA_UNDEFINED };

enum {
	CFA_ADVANCE = 0x40, /* these three have an operand in their low six bits */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0,
	CFA_ADVANCE1 = 2,
	CFA_ADVANCE2,
	CFA_ADVANCE4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER,
	CFA_RESTORE_STATE,
	CFA_DEF,
	CFA_DEF_REGISTER,
	CFA_DEF_OFFSET,
	CFA_DEF_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_SF,
	CFA_DEF_SF,
	CFA_DEF_OFFSET_SF,
	CFA_VAL_OFFSET,
	CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
};

/* One program while it runs. */
struct run {
	const struct d9__cfi_common *common;
	struct d9__cursor in;
	struct d9__cfi_state state;
	struct d9__cfi_state kept[STATES_MAX];
	unsigned n_kept;
	uint64_t pc, end;
	struct d9__unwind_rows *rows; /* NULL for the program of a CIE, which may not advance */
	size_t first;                 /* where the rows of this program begin */
	int err;
};

bool d9__cfi_sleb(struct d9__cursor *cursor, int64_t *out)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (!d9__cursor_u8(cursor, &byte))
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			value |= ~UINT64_C(0) << (shift + 7);
		*out = (int64_t)value;
		return true;
	}
	return false;
}

int d9__unwind_rows_add(struct d9__unwind_rows *rows, const struct d9__unwind_row *row)
{
	if (rows->n == rows->capacity) {
		size_t more = rows->capacity ? rows->capacity * 2 : 256;
		struct d9__unwind_row *grown;

		if (rows->n >= rows->max)
			return -E2BIG;
		if (more > rows->max)
			more = rows->max;
		grown = d9__reallocarray(rows->row, more, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		rows->row = grown;
		rows->capacity = more;
	}
	rows->row[rows->n++] = *row;
	return 0;
}

/* ---- from a state to a row ---- */

static bool fits(const struct d9__cfi_state *state)
{
	return state->cfa_offset == (int32_t)state->cfa_offset &&
	       (state->rbp == D9__RBP_SAME || state->rbp_offset == (int16_t)state->rbp_offset);
}

static struct d9__unwind_row row_of(const struct d9__cfi_state *state, uint32_t pc)
{
	struct d9__unwind_row row = { .pc = pc };

	if (state->cfa == D9__CFA_SIGNAL || state->return_address == RA_UNDEFINED) {
		row.cfa = state->return_address == RA_UNDEFINED ? D9__CFA_END : D9__CFA_SIGNAL;
		return row;
	}
	if (state->cfa == D9__CFA_NONE || state->return_address != RA_BELOW_CFA ||
	    state->rbp_is_lost || state->rsp_is_odd || !fits(state))
		return row;
	row.cfa = state->cfa;
	row.cfa_offset = (int32_t)state->cfa_offset;
	row.rbp = state->rbp;
	row.rbp_offset = state->rbp == D9__RBP_SAME ? 0 : (int16_t)state->rbp_offset;
	return row;
}

static bool says_the_same(const struct d9__unwind_row *a, const struct d9__unwind_row *b)
{
	return a->cfa == b->cfa && a->rbp == b->rbp && a->rbp_offset == b->rbp_offset &&
	       a->cfa_offset == b->cfa_offset;
}

/* The present state holds from run->pc on. */
static void emit(struct run *run)
{
	struct d9__unwind_row row = row_of(&run->state, (uint32_t)run->pc);
	struct d9__unwind_rows *rows = run->rows;

	if (run->err || (rows->n > run->first && says_the_same(&rows->row[rows->n - 1], &row)))
		return;
	run->err = d9__unwind_rows_add(rows, &row);
}

/* False at the end of the range: later instructions say nothing about it. */
static bool advance(struct run *run, uint64_t delta)
{
	uint64_t bytes;

	if (!run->rows || __builtin_mul_overflow(delta, run->common->code_align, &bytes))
		return false;
	if (bytes)
		emit(run);
	if (run->err || bytes >= run->end - run->pc) {
		run->pc = run->end;
		return false;
	}
	run->pc += bytes;
	return true;
}

/* ---- expressions ---- */

static bool next_is(struct d9__cursor *in, uint8_t op)
{
	uint8_t byte;

	return d9__cursor_u8(in, &byte) && byte == op;
}

/* The operator DW_OP_breg of |reg|, and its offset. */
static bool next_is_register(struct d9__cursor *in, unsigned reg, int64_t *offset)
{
	return next_is(in, (uint8_t)(OP_BREG0 + reg)) && d9__cfi_sleb(in, offset);
}

/*
 * True if it is the expression of a PLT, whose entries push one word: rsp + 8 + ((rip & 15) >= k) * 8, where k
 * is the offset of the instruction behind the push.
 */
static bool is_plt(struct d9__cursor in, int64_t *k)
{
	static const uint8_t and_15[] = { OP_LIT0 + 15, OP_AND };
	static const uint8_t times_8[] = { OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS };
	const uint8_t *p;
	int64_t rsp, rip;

	if (!next_is_register(&in, RSP, &rsp) || rsp != 8 ||
	    !next_is_register(&in, RETURN_ADDRESS, &rip) || rip != 0 ||
	    !d9__cursor_take(&in, sizeof(and_15) + 1 + sizeof(times_8), &p))
		return false;
	*k = p[2] - OP_LIT0;
	return !memcmp(p, and_15, sizeof(and_15)) && *k >= 0 && *k <= 15 &&
	       !memcmp(p + 3, times_8, sizeof(times_8)) && d9__cursor_left(&in) == 0;
}

/* True if the expression ends here, or with the addition of 8 (|*plus_8|). */
static bool ends(struct d9__cursor *in, bool *plus_8)
{
	uint64_t more;

	*plus_8 = d9__cursor_left(in) != 0;
	if (!*plus_8)
		return true;
	return next_is(in, OP_PLUS_UCONST) && d9__cfi_uleb(in, &more) && more == 8 &&
	       d9__cursor_left(in) == 0;
}

/* A word that is read at an offset of |reg|. */
static bool is_word_at(struct d9__cursor in, unsigned reg, int64_t *offset, bool *plus_8)
{
	return next_is_register(&in, reg, offset) && next_is(&in, OP_DEREF) && ends(&in, plus_8);
}

static void set_cfa(struct d9__cfi_state *state, enum d9__cfa_rule rule, int64_t offset)
{
	state->cfa = (uint8_t)rule;
	state->cfa_offset = offset;
}

static void define_cfa_by_expression(struct run *run, struct d9__cursor in)
{
	struct d9__cfi_state *state = &run->state;
	int64_t offset = 0;
	bool plus_8;

	state->cfa_is_expression = true;
	set_cfa(state, D9__CFA_NONE, 0);
	if (is_plt(in, &offset))
		set_cfa(state, D9__CFA_PLT, offset);
	else if (is_word_at(in, RBP, &offset, &plus_8))
		set_cfa(state, plus_8 ? D9__CFA_AT_RBP_8 : D9__CFA_AT_RBP, offset);
	else if (!is_word_at(in, RSP, &offset, &plus_8))
		return;
	else if (plus_8)
		set_cfa(state, D9__CFA_AT_RSP_8, offset);
	else if (run->common->is_signal_frame && offset == SIGNAL_RSP)
		set_cfa(state, D9__CFA_SIGNAL, 0);
}

/* ---- rules for registers ---- */

static void lose(struct d9__cfi_state *state, uint64_t reg)
{
	if (reg == RBP)
		state->rbp_is_lost = true;
	else if (reg == RSP)
		state->rsp_is_odd = true;
	else if (reg == RETURN_ADDRESS)
		state->return_address = RA_ELSEWHERE;
}

static void set_rbp(struct d9__cfi_state *state, enum d9__rbp_rule rule, int64_t offset)
{
	state->rbp = (uint8_t)rule;
	state->rbp_offset = offset;
	state->rbp_is_lost = false;
}

/* |reg| is saved at CFA + factor * data_align. */
static bool save_at(struct run *run, uint64_t reg, int64_t factor)
{
	struct d9__cfi_state *state = &run->state;
	int64_t offset;

	if (__builtin_mul_overflow(factor, run->common->data_align, &offset))
		return false;
	lose(state, reg);
	if (reg == RBP)
		set_rbp(state, D9__RBP_AT_CFA, offset);
	else if (reg == RETURN_ADDRESS && offset == -8)
		state->return_address = RA_BELOW_CFA;
	return true;
}

static void save_by_expression(struct d9__cfi_state *state, uint64_t reg, struct d9__cursor in)
{
	int64_t offset;

	lose(state, reg);
	if (reg == RBP && next_is_register(&in, RBP, &offset) && d9__cursor_left(&in) == 0)
		set_rbp(state, D9__RBP_AT_RBP, offset);
}

static void keep_value(struct d9__cfi_state *state, uint64_t reg)
{
	lose(state, reg);
	if (reg == RBP)
		set_rbp(state, D9__RBP_SAME, 0);
}

static void undefine(struct d9__cfi_state *state, uint64_t reg)
{
	lose(state, reg);
	if (reg == RETURN_ADDRESS)
		state->return_address = RA_UNDEFINED;
}

static void restore(struct run *run, uint64_t reg)
{
	const struct d9__cfi_state *initial = &run->common->initial;

	if (reg == RBP) {
		set_rbp(&run->state, initial->rbp, initial->rbp_offset);
		run->state.rbp_is_lost = initial->rbp_is_lost;
	} else if (reg == RSP) {
		run->state.rsp_is_odd = initial->rsp_is_odd;
	} else if (reg == RETURN_ADDRESS) {
		run->state.return_address = initial->return_address;
	}
}

/* ---- the CFA by register ---- */

static bool define_cfa_register(struct d9__cfi_state *state, uint64_t reg)
{
	state->cfa_is_expression = false;
	state->cfa = reg == RSP ? D9__CFA_RSP :
		     reg == RBP ? D9__CFA_RBP :
		     reg < RETURN_ADDRESS ? (uint8_t)(D9__CFA_REGISTER + reg) : D9__CFA_NONE;
	return true;
}

static bool define_cfa_offset(struct d9__cfi_state *state, int64_t offset)
{
	state->cfa_offset = offset;
	return !state->cfa_is_expression;
}

static bool define_cfa(struct d9__cfi_state *state, uint64_t reg, int64_t offset)
{
	return define_cfa_register(state, reg) && define_cfa_offset(state, offset);
}

static bool remember(struct run *run)
{
	if (run->n_kept == STATES_MAX)
		return false;
	run->kept[run->n_kept++] = run->state;
	return true;
}

static bool restore_state(struct run *run)
{
	if (run->n_kept == 0)
		return false;
	run->state = run->kept[--run->n_kept];
	return true;
}

/* ---- instructions ---- */

static bool take_block(struct d9__cursor *in, struct d9__cursor *block)
{
	const uint8_t *p;
	uint64_t len;

	if (!d9__cfi_uleb(in, &len) || !d9__cursor_take(in, len, &p))
		return false;
	*block = (struct d9__cursor){ p, p + len, 0 };
	return true;
}

static bool run_advance(struct run *run, uint8_t op)
{
	uint8_t one;
	uint16_t two;
	uint32_t four;

	switch (op) {
	case CFA_ADVANCE1:
		return d9__cursor_u8(&run->in, &one) && advance(run, one);
	case CFA_ADVANCE2:
		return d9__cursor_u16(&run->in, &two) && advance(run, two);
	default:
		return d9__cursor_u32(&run->in, &four) && advance(run, four);
	}
}

/* An instruction whose first operand is a signed, factored offset, behind a register or not. */
static bool run_signed(struct run *run, uint8_t op)
{
	uint64_t reg = 0;
	int64_t factor, offset;

	if (op != CFA_DEF_OFFSET_SF && !d9__cfi_uleb(&run->in, &reg))
		return false;
	if (!d9__cfi_sleb(&run->in, &factor) ||
	    __builtin_mul_overflow(factor, run->common->data_align, &offset))
		return false;
	switch (op) {
	case CFA_OFFSET_SF:
		return save_at(run, reg, factor);
	case CFA_DEF_SF:
		return define_cfa(&run->state, reg, offset);
	case CFA_DEF_OFFSET_SF:
		return define_cfa_offset(&run->state, offset);
	default: /* CFA_VAL_OFFSET_SF */
		lose(&run->state, reg);
		return true;
	}
}

/* An instruction of a register and an unsigned number. */
static bool run_pair(struct run *run, uint8_t op)
{
	uint64_t reg, number;

	if (!d9__cfi_uleb(&run->in, &reg) || !d9__cfi_uleb(&run->in, &number) ||
	    number > INT64_MAX)
		return false;
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		return save_at(run, reg, (int64_t)number);
	case CFA_GNU_NEGATIVE_OFFSET:
		return save_at(run, reg, -(int64_t)number);
	case CFA_DEF:
		return define_cfa(&run->state, reg, (int64_t)number);
	default: /* CFA_REGISTER, CFA_VAL_OFFSET */
		lose(&run->state, reg);
		return true;
	}
}

/* An instruction of one number. */
static bool run_single(struct run *run, uint8_t op)
{
	uint64_t number;

	if (!d9__cfi_uleb(&run->in, &number) || number > INT64_MAX)
		return false;
	switch (op) {
	case CFA_DEF_REGISTER:
		return !run->state.cfa_is_expression && define_cfa_register(&run->state, number);
	case CFA_DEF_OFFSET:
		return define_cfa_offset(&run->state, (int64_t)number);
	case CFA_RESTORE_EXTENDED:
		restore(run, number);
		return true;
	case CFA_UNDEFINED:
		undefine(&run->state, number);
		return true;
	case CFA_SAME_VALUE:
		keep_value(&run->state, number);
		return true;
	default: /* CFA_GNU_ARGS_SIZE: concerns exceptions only */
		return true;
	}
}

static bool run_expression(struct run *run, uint8_t op)
{
	struct d9__cursor block;
	uint64_t reg = 0;

	if ((op != CFA_DEF_EXPRESSION && !d9__cfi_uleb(&run->in, &reg)) ||
	    !take_block(&run->in, &block))
		return false;
	if (op == CFA_DEF_EXPRESSION)
		define_cfa_by_expression(run, block);
	else if (op == CFA_EXPRESSION)
		save_by_expression(&run->state, reg, block);
	else
		lose(&run->state, reg);
	return true;
}

static bool run_compact(struct run *run, uint8_t op)
{
	uint64_t factor;

	if ((op & 0xc0) == CFA_ADVANCE)
		return advance(run, op & 0x3f);
	if ((op & 0xc0) == CFA_OFFSET)
		return d9__cfi_uleb(&run->in, &factor) && factor <= INT64_MAX &&
		       save_at(run, op & 0x3f, (int64_t)factor);
	restore(run, op & 0x3f);
	return true;
}

/* False: the program ends here, because the range does or because this is not understood. */
static bool run_instruction(struct run *run)
{
	uint8_t op;

	if (!d9__cursor_u8(&run->in, &op))
		return false;
	if (op & 0xc0)
		return run_compact(run, op);
	switch (op) {
	case CFA_NOP:
		return true;
	case CFA_ADVANCE1:
	case CFA_ADVANCE2:
	case CFA_ADVANCE4:
		return run_advance(run, op);
	case CFA_REMEMBER:
		return remember(run);
	case CFA_RESTORE_STATE:
		return restore_state(run);
	case CFA_OFFSET_EXTENDED:
	case CFA_GNU_NEGATIVE_OFFSET:
	case CFA_REGISTER:
	case CFA_DEF:
	case CFA_VAL_OFFSET:
		return run_pair(run, op);
	case CFA_OFFSET_SF:
	case CFA_DEF_SF:
	case CFA_DEF_OFFSET_SF:
	case CFA_VAL_OFFSET_SF:
		return run_signed(run, op);
	case CFA_DEF_REGISTER:
	case CFA_DEF_OFFSET:
	case CFA_RESTORE_EXTENDED:
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE:
	case CFA_GNU_ARGS_SIZE:
		return run_single(run, op);
	case CFA_DEF_EXPRESSION:
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		return run_expression(run, op);
	default:
		return false;
	}
}

bool d9__cfi_run_initial(struct d9__cfi_common *common, struct d9__cursor program)
{
	struct run run = { .common = common, .in = program };

	common->initial = run.state;
	while (d9__cursor_left(&run.in))
		if (!run_instruction(&run))
			return false;
	common->initial = run.state;
	return true;
}

int d9__cfi_run(const struct d9__cfi_common *common, struct d9__cursor program, uint32_t start,
		uint32_t end, struct d9__unwind_rows *rows)
{
	struct run run = { .common = common, .in = program, .state = common->initial,
			   .pc = start, .end = end, .rows = rows, .first = rows->n };

	while (d9__cursor_left(&run.in))
		if (!run_instruction(&run)) {
			run.state = (struct d9__cfi_state){ 0 };
			break;
		}
	if (run.pc < run.end)
		emit(&run);
	return run.err;
}
