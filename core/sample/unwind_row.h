/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind row: how to find the caller's frame from any instruction of a range.
 *
 * The call frame information of a module is compiled into an array of rows that is sorted by pc.  A row
 * holds from its pc to the pc of the next row.  The return address is always the word below the CFA
 * (the canonical frame address: the stack pointer of the caller, right after the call returns).
 */

#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Where the CFA is; n is the row's |cfa_offset|. */
enum d9__cfa_rule {
	D9__CFA_NONE,     /* unknown: a gap between functions, or information that is not understood */
	D9__CFA_RSP,      /* rsp + n */
	D9__CFA_RBP,      /* rbp + n */
	D9__CFA_PLT,      /* rsp + 8, and 8 more if the low four bits of pc are at least n */
	D9__CFA_AT_RBP,   /* the word at rbp + n */
	D9__CFA_AT_RBP_8, /* the word at rbp + n, plus 8 */
	D9__CFA_AT_RSP_8, /* the word at rsp + n, plus 8: hand-written code of OpenSSL */
	D9__CFA_SIGNAL,   /* rsp points to the ucontext_t that the kernel saved for a signal handler */
	D9__CFA_END,      /* this code has no caller */

	/*
	 * Behind these: another register + n, by the number that the psABI gives it.  Mostly it is r10 in the
	 * prologue of a function that realigns its stack.
	 */
	D9__CFA_REGISTER,
	D9__CFA_RULES = D9__CFA_REGISTER + 16
};

/* The caller's rbp; m is the row's |rbp_offset|. */
enum d9__rbp_rule {
	D9__RBP_SAME,   /* unchanged */
	D9__RBP_AT_CFA, /* the word at CFA + m */
	D9__RBP_AT_RBP, /* the word at rbp + m */
	D9__RBP_RULES
};

struct d9__unwind_row {
	uint32_t pc; /* offset from the start of the module's lowest segment */
	uint8_t cfa;
	uint8_t rbp;
	int16_t rbp_offset;
	int32_t cfa_offset;
};
static_assert(sizeof(struct d9__unwind_row) == 12, "a row is 12 bytes: large modules have a million of them");
