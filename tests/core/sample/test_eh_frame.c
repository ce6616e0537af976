/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "core/sample/frames_builder.h"
#include "sample/eh_frame.h"
#include "support/d9_test.h"

#define MANY 1000

/* "0:rsp+8 1:rsp+16,cfa-16 ...": the rows, for comparison. */
static void put_row(char *text, size_t size, const struct d9__unwind_row *row)
{
	static const char *const names[] = { "none", "rsp", "rbp", "plt", "*rbp", "*rbp+8",
					     "*rsp+8", "signal", "end" };
	size_t len = strlen(text);

	len += (size_t)snprintf(text + len, size - len, "%s%x:", len ? " " : "", row->pc);
	if (row->cfa >= D9__CFA_REGISTER)
		len += (size_t)snprintf(text + len, size - len, "r%d", row->cfa - D9__CFA_REGISTER);
	else
		len += (size_t)snprintf(text + len, size - len, "%s", names[row->cfa]);
	if (row->cfa_offset)
		len += (size_t)snprintf(text + len, size - len, "%+d", row->cfa_offset);
	if (row->rbp != D9__RBP_SAME)
		snprintf(text + len, size - len, ",%s%+d",
			 row->rbp == D9__RBP_AT_CFA ? "cfa" : "rbp", row->rbp_offset);
}

static const char *compiled(const struct frames *frames)
{
	static char text[4096];
	struct d9__eh_frame section = { frames->bytes, frames->len, FRAMES_ADDRESS, FRAMES_LOW,
					FRAMES_HIGH };
	struct d9__eh_frame_rows rows = { 0 };
	int err = d9__eh_frame_compile(&section, MANY, &rows);

	text[0] = '\0';
	if (err)
		snprintf(text, sizeof(text), "%s", strerror(-err));
	for (size_t i = 0; i < rows.n; i++)
		put_row(text, sizeof(text), &rows.row[i]);
	free(rows.row);
	return text;
}

#define EXPECT(frames, wanted) CU_ASSERT_STRING_EQUAL(compiled(frames), wanted)

/* One function of 16 bytes at offset 0x10 with these instructions. */
static const char *function(const uint8_t *cfi, size_t n)
{
	struct frames frames = { 0 };

	frames_common(&frames, CFI(USUAL));
	frames_function(&frames, 0x10, 16, cfi, n);
	return compiled(&frames);
}

static void test_function_that_pushes_has_a_row_for_each_height_of_its_stack(void)
{
	CU_ASSERT_STRING_EQUAL(function(CFI(ADVANCE(1), DEF_OFFSET(16), ADVANCE(4), DEF_OFFSET(48),
					    ADVANCE(5), DEF_OFFSET(8))),
			       "10:rsp+8 11:rsp+16 15:rsp+48 1a:rsp+8 20:none");
}

static void test_function_with_a_frame_pointer_saves_it_and_uses_it(void)
{
	CU_ASSERT_STRING_EQUAL(function(CFI(ADVANCE(1), DEF_OFFSET(16), SAVE(6, 2), ADVANCE(3),
					    DEF_REGISTER(6), ADVANCE(8), DEF_CFA(7, 8))),
			       "10:rsp+8 11:rsp+16,cfa-16 14:rbp+16,cfa-16 1c:rsp+8,cfa-16 20:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(SAVE(6, 2), ADVANCE(2), RESTORE(6))),
			       "10:rsp+8,cfa-16 12:rsp+8 20:none");
}

static void test_realigned_function_finds_its_frame_by_r10_and_then_by_a_word(void)
{
	CU_ASSERT_STRING_EQUAL(function(CFI(ADVANCE(5), DEF_CFA(10, 0), ADVANCE(4), 0x10, 6, 2, 0x76,
					    0, ADVANCE(2), 0x0f, 3, 0x76, 0x78, 0x06)),
			       "10:rsp+8 15:r10 19:r10,rbp+0 1b:*rbp-8,rbp+0 20:none");
}

static void test_expressions_of_openssl_are_words_plus_eight(void)
{
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0f, 6, 0x77, 0x98, 0x01, 0x06, 0x23, 8)),
			       "10:*rsp+8+152 20:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0f, 5, 0x76, 0x70, 0x06, 0x23, 8)),
			       "10:*rbp+8-16 20:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0f, 5, 0x76, 0x70, 0x06, 0x23, 16)), "10:none");
}

static void test_plt_is_known_by_its_expression(void)
{
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a,
					    0x33, 0x24, 0x22)),
			       "10:plt+11 20:none");
	/* Shifted by 2 instead of 3, and with something behind it. */
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a,
					    0x32, 0x24, 0x22)),
			       "10:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0f, 12, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a,
					    0x33, 0x24, 0x22, 0x96)),
			       "10:none");
}

static void test_signal_frame_is_known_by_its_letter_and_expression(void)
{
	struct frames frames = { 0 };

	frames_common_of(&frames, "zRS", 0x1b, CFI(USUAL));
	frames_function(&frames, 0, 16, CFI(0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 6, 3, 0x77, 120, 0));
	frames_function(&frames, 16, 16, CFI(0x0f, 4, 0x77, 0xa8, 0x01, 0x06));
	EXPECT(&frames, "0:signal 10:none");
	/* Without the letter it is no such frame. */
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0f, 4, 0x77, 0xa0, 0x01, 0x06)), "10:none");
}

static void test_undefined_return_address_ends_the_stack(void)
{
	CU_ASSERT_STRING_EQUAL(function(CFI(UNDEFINED(16), UNDEFINED(6))), "10:end 20:none");
}

static void test_states_are_remembered_sixteen_deep(void)
{
	uint8_t deep[40] = { 0 };

	CU_ASSERT_STRING_EQUAL(function(CFI(ADVANCE(1), DEF_OFFSET(16), SAVE(6, 2), ADVANCE(1), REMEMBER,
					    DEF_OFFSET(8), RESTORE(6), ADVANCE(1), RESTORE_STATE)),
			       "10:rsp+8 11:rsp+16,cfa-16 12:rsp+8 13:rsp+16,cfa-16 20:none");
	memset(deep, REMEMBER, 16);
	memset(deep + 16, RESTORE_STATE, 16);
	CU_ASSERT_STRING_EQUAL(function(deep, 32), "10:rsp+8 20:none");
	memset(deep, REMEMBER, 17);
	CU_ASSERT_STRING_EQUAL(function(deep, 17), "10:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(RESTORE_STATE)), "10:none");
}

static void test_what_is_not_understood_ends_the_function_and_no_other(void)
{
	struct frames frames = { 0 };

	frames_common(&frames, CFI(USUAL));
	frames_function(&frames, 0, 16, CFI(ADVANCE(4), 0x3d, ADVANCE(2), DEF_OFFSET(16)));
	frames_function(&frames, 16, 16, CFI(ADVANCE(4), DEF_OFFSET(16)));
	EXPECT(&frames, "0:rsp+8 4:none 10:rsp+8 14:rsp+16 20:none");
}

static void test_rules_that_no_row_can_hold_have_none(void)
{
	/* Another CFA register than those of the psABI; rbp in a register; sp that is not the CFA. */
	CU_ASSERT_STRING_EQUAL(function(CFI(DEF_CFA(17, 8))), "10:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(0x09, 6, 3)), "10:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(SAVE(7, 2))), "10:none");
	/* The return address anywhere else. */
	CU_ASSERT_STRING_EQUAL(function(CFI(SAVE(16, 2))), "10:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(0x09, 16, 2)), "10:none");
	/* rbp at -32776: out of 16 bits; at -32768 it fits. */
	CU_ASSERT_STRING_EQUAL(function(CFI(SAVE(6, 0x81), 0x20)), "10:none");
	CU_ASSERT_STRING_EQUAL(function(CFI(SAVE(6, 0x80), 0x20)), "10:rsp+8,cfa-32768 20:none");
	/* An offset of the CFA out of 32 bits. */
	CU_ASSERT_STRING_EQUAL(function(CFI(0x0e, 0x80, 0x80, 0x80, 0x80, 0x08)), "10:none");
}

static void test_every_instruction_is_passed_with_its_operands(void)
{
	CU_ASSERT_STRING_EQUAL(function(CFI(NOP, 0x2e, 0x20, 0x05, 12, 2, 0x06, 12, 0x08, 12, 0x09, 12,
					    13, 0x11, 6, 0x7e, 0x12, 7, 0x7f, 0x13, 0x7e, 0x14, 12, 1,
					    0x15, 12, 1, 0x16, 12, 1, 0x96, 0x2f, 12, 2, 0x02, 4,
					    DEF_OFFSET(24), 0x03, 4, 0, DEF_OFFSET(32), 0x04, 4, 0, 0, 0,
					    DEF_OFFSET(40))),
			       "10:rsp+16,cfa+16 14:rsp+24,cfa+16 18:rsp+32,cfa+16 1c:rsp+40,cfa+16 20:none");
}

static void test_gaps_between_functions_have_no_rule_and_neighbours_share_rows(void)
{
	struct frames frames = { 0 };

	frames_common(&frames, CFI(USUAL));
	frames_function(&frames, 0, 16, CFI(NOP));
	frames_function(&frames, 16, 16, CFI(NOP));
	frames_function(&frames, 64, 16, CFI(NOP));
	EXPECT(&frames, "0:rsp+8 20:none 40:rsp+8 50:none");
}

static void test_functions_in_any_order_and_one_inside_another_are_put_in_order(void)
{
	struct frames frames = { 0 };

	frames_common(&frames, CFI(USUAL));
	frames_function(&frames, 64, 16, CFI(DEF_OFFSET(64)));
	frames_function(&frames, 0, 64, CFI(DEF_OFFSET(16), ADVANCE(40), DEF_OFFSET(24)));
	frames_function(&frames, 16, 16, CFI(DEF_OFFSET(32)));
	EXPECT(&frames, "0:rsp+16 10:rsp+32 20:none 40:rsp+64 50:none");
}

static void test_functions_outside_of_the_module_are_ignored(void)
{
	struct frames frames = { 0 };

	frames_common(&frames, CFI(USUAL));
	frames_function(&frames, (uint32_t)-16, 16, CFI(NOP));
	frames_function(&frames, FRAMES_HIGH - FRAMES_LOW, 16, CFI(NOP));
	frames_function(&frames, FRAMES_HIGH - FRAMES_LOW - 8, 16, CFI(NOP));
	frames_function(&frames, 0, 0, CFI(NOP));
	EXPECT(&frames, "");
	frames_function(&frames, FRAMES_HIGH - FRAMES_LOW - 16, 16, CFI(NOP));
	EXPECT(&frames, "1ffff0:rsp+8 200000:none");
}

static void test_common_parts_that_are_not_understood_take_their_functions_along(void)
{
	struct frames frames = { 0 };

	frames_common_of(&frames, "zX", 0x1b, CFI(USUAL));
	frames_function(&frames, 0, 16, CFI(NOP));
	frames_common_of(&frames, "eh", 0x1b, CFI(USUAL));
	frames_function(&frames, 16, 16, CFI(NOP));
	frames_common_of(&frames, "zR", 0x9b, CFI(USUAL)); /* a pointer to the pointer */
	frames_function(&frames, 32, 16, CFI(NOP));
	frames_common_of(&frames, "zR", 0x1b, CFI(USUAL, ADVANCE(1)));
	frames_function(&frames, 48, 16, CFI(NOP));
	frames_common(&frames, CFI(USUAL));
	frames_function(&frames, 64, 16, CFI(NOP));
	EXPECT(&frames, "40:rsp+8 50:none");
}

static void test_section_ends_at_its_terminator_and_where_it_is_cut(void)
{
	struct frames frames = { 0 };
	size_t first, whole;

	frames_common(&frames, CFI(USUAL));
	first = frames.len;
	frames_function(&frames, 0, 16, CFI(NOP));
	whole = frames.len;
	frames_u32(&frames, 0);
	frames_function(&frames, 32, 16, CFI(NOP));
	EXPECT(&frames, "0:rsp+8 10:none");
	CU_ASSERT_EQUAL(d9__eh_frame_length(frames.bytes, frames.len), whole);
	frames.len = whole - 1;
	EXPECT(&frames, "");
	CU_ASSERT_EQUAL(d9__eh_frame_length(frames.bytes, whole - 1), first);
	CU_ASSERT_EQUAL(d9__eh_frame_length(frames.bytes, 3), 0);
}

static void test_rows_over_the_limit_are_refused(void)
{
	struct frames frames = { 0 };
	struct d9__eh_frame section = { frames.bytes, 0, FRAMES_ADDRESS, FRAMES_LOW, FRAMES_HIGH };
	struct d9__eh_frame_rows rows = { 0 };

	frames_common(&frames, CFI(USUAL));
	frames_function(&frames, 0, 16, CFI(ADVANCE(1), DEF_OFFSET(16)));
	section.len = frames.len;
	CU_ASSERT_EQUAL(d9__eh_frame_compile(&section, 2, &rows), -E2BIG);
	CU_ASSERT_PTR_NULL(rows.row);
	CU_ASSERT_EQUAL(d9__eh_frame_compile(&section, 3, &rows), 0);
	CU_ASSERT_EQUAL(rows.n, 3);
	free(rows.row);
}

static void test_header_says_where_the_section_is(void)
{
	const uint8_t header[] = { 1, 0x1b, 3, 0x3b, 0x10, 0, 0, 0, 0 };
	const uint8_t none[] = { 1, 0xff, 0xff, 0xff, 0, 0, 0, 0 };

	CU_ASSERT_EQUAL(d9__eh_frame_find(header, sizeof(header), 0x1000), 0x1014);
	CU_ASSERT_EQUAL(d9__eh_frame_find(header, 7, 0x1000), 0);
	CU_ASSERT_EQUAL(d9__eh_frame_find(none, sizeof(none), 0x1000), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a function that pushes has a row for each height of its stack",
		  test_function_that_pushes_has_a_row_for_each_height_of_its_stack },
		{ "a function with a frame pointer saves it and uses it",
		  test_function_with_a_frame_pointer_saves_it_and_uses_it },
		{ "a realigned function finds its frame by r10 and then by a word",
		  test_realigned_function_finds_its_frame_by_r10_and_then_by_a_word },
		{ "expressions of OpenSSL are words plus eight",
		  test_expressions_of_openssl_are_words_plus_eight },
		{ "a PLT is known by its expression", test_plt_is_known_by_its_expression },
		{ "a signal frame is known by its letter and expression",
		  test_signal_frame_is_known_by_its_letter_and_expression },
		{ "an undefined return address ends the stack",
		  test_undefined_return_address_ends_the_stack },
		{ "states are remembered sixteen deep", test_states_are_remembered_sixteen_deep },
		{ "what is not understood ends the function and no other",
		  test_what_is_not_understood_ends_the_function_and_no_other },
		{ "rules that no row can hold have none", test_rules_that_no_row_can_hold_have_none },
		{ "every instruction is passed with its operands",
		  test_every_instruction_is_passed_with_its_operands },
		{ "gaps between functions have no rule and neighbours share rows",
		  test_gaps_between_functions_have_no_rule_and_neighbours_share_rows },
		{ "functions in any order and one inside another are put in order",
		  test_functions_in_any_order_and_one_inside_another_are_put_in_order },
		{ "functions outside of the module are ignored",
		  test_functions_outside_of_the_module_are_ignored },
		{ "common parts that are not understood take their functions along",
		  test_common_parts_that_are_not_understood_take_their_functions_along },
		{ "a section ends at its terminator and where it is cut",
		  test_section_ends_at_its_terminator_and_where_it_is_cut },
		{ "rows over the limit are refused", test_rows_over_the_limit_are_refused },
		{ "the header says where the section is", test_header_says_where_the_section_is },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("eh_frame", tests);
}
