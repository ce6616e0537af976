/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <elf.h>
#include <stdio.h>

#include "hook/elf_module.h"
#include "support/d9_test.h"

static enum d9__elf_word word_of(unsigned machine, unsigned type, unsigned symbol, long addend)
{
	ElfW(Rela) rela = { .r_info = ELF64_R_INFO((Elf64_Xword)symbol, type), .r_addend = addend };

	return d9__elf_word_of(machine, &rela);
}

static void test_elf_word_is_told_by_the_numbers_of_each_machine(void)
{
	static const struct {
		unsigned machine, type;
		enum d9__elf_word word;
	} cases[] = {
		{ EM_X86_64, 7, D9__ELF_WORD_SLOT },	{ EM_X86_64, 6, D9__ELF_WORD_SLOT },
		{ EM_X86_64, 1, D9__ELF_WORD_ABSOLUTE },  { EM_X86_64, 8, D9__ELF_WORD_OTHER },
		{ EM_X86_64, 1026, D9__ELF_WORD_OTHER },  { EM_AARCH64, 1026, D9__ELF_WORD_SLOT },
		{ EM_AARCH64, 1025, D9__ELF_WORD_SLOT },  { EM_AARCH64, 257, D9__ELF_WORD_ABSOLUTE },
		{ EM_AARCH64, 1027, D9__ELF_WORD_OTHER }, { EM_AARCH64, 7, D9__ELF_WORD_OTHER },
		{ EM_RISCV, 5, D9__ELF_WORD_OTHER },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(word_of(cases[i].machine, cases[i].type, 3, 0), cases[i].word);
}

static void test_elf_word_without_symbol_or_with_an_offset_is_none_of_ours(void)
{
	CU_ASSERT_EQUAL(word_of(EM_X86_64, 7, 0, 0), D9__ELF_WORD_OTHER);
	CU_ASSERT_EQUAL(word_of(EM_X86_64, 1, 3, 8), D9__ELF_WORD_OTHER);
	CU_ASSERT_EQUAL(word_of(EM_AARCH64, 257, 3, 8), D9__ELF_WORD_OTHER);
}

static void test_elf_file_matches_up_to_a_suffix(void)
{
	static const char *const names[] = { "libevent", "libev.so.4", NULL };

	CU_ASSERT_TRUE(d9__elf_file_is("/usr/lib/libevent-2.1.so.7", names));
	CU_ASSERT_TRUE(d9__elf_file_is("libevent_core.so", names));
	CU_ASSERT_TRUE(d9__elf_file_is("/opt/libev.so.4.0.0", names));
	CU_ASSERT_FALSE(d9__elf_file_is("/usr/lib/libeventlog.so.0", names));
	CU_ASSERT_FALSE(d9__elf_file_is("/usr/lib/libevent2.so", names));
	CU_ASSERT_FALSE(d9__elf_file_is("/usr/lib/libdial9-libevent.so", names));
	CU_ASSERT_FALSE(d9__elf_file_is("/srv/libevent/server", names));
	CU_ASSERT_FALSE(d9__elf_file_is("", names));
	CU_ASSERT_FALSE(d9__elf_file_is("libevent.so", NULL));
}

struct census {
	unsigned modules, with_stdout_data, needs_libc;
	void *snprintf_address;
};

static int take_census(struct dl_phdr_info *info, size_t len, void *arg)
{
	static const char *const libc[] = { "libc.so", NULL };
	struct census *census = arg;
	struct d9__elf_module mod;

	(void)len;
	if (!d9__elf_module_init(&mod, info))
		return 0;
	census->modules++;
	census->needs_libc += d9__elf_module_needs(&mod, libc);
	if (d9__elf_module_holds(&mod, (uintptr_t)&stdout)) {
		census->with_stdout_data++;
		CU_ASSERT_TRUE(d9__elf_module_is_data(&mod, (uintptr_t)&stdout));
	}
	CU_ASSERT_FALSE(d9__elf_module_is_data(&mod, (uintptr_t)&take_census));
	if (d9__elf_file_is(mod.path, libc))
		census->snprintf_address = d9__elf_module_define(&mod, "snprintf");
	return 0;
}

static void test_elf_modules_of_this_process_are_read(void)
{
	struct census census = { 0 };

	dl_iterate_phdr(take_census, &census);

	CU_ASSERT_TRUE(census.modules >= 2);
	CU_ASSERT_EQUAL(census.with_stdout_data, 1);
	CU_ASSERT_TRUE(census.needs_libc >= 1);
	CU_ASSERT_PTR_NOT_NULL(census.snprintf_address);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "word is told by the numbers of each machine",
		  test_elf_word_is_told_by_the_numbers_of_each_machine },
		{ "word without symbol or with an offset is none of ours",
		  test_elf_word_without_symbol_or_with_an_offset_is_none_of_ours },
		{ "file matches up to a suffix", test_elf_file_matches_up_to_a_suffix },
		{ "modules of this process are read", test_elf_modules_of_this_process_are_read },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("elf_module", tests);
}
