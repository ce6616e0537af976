/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions and budgets of the tables.  The modules are the test's own, instead of those that are loaded: as
 * many functions of 16 bytes as it likes, each with one row.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sys/mman.h>

#include "base/maps.h"
#include "core/sample/frames_builder.h"
#include "sample/module_frames.h"
#include "record/flush.h"
#include "sample/unwind_table.h"
#include "segment/modules.h"
#include "support/d9_test.h"

#define SECOND UINT64_C(1000000000)
#define MIB    (1024 * 1024 / sizeof(struct d9__unwind_row)) /* rows */
#define LOADED 40

/* ---- modules of the test's own ---- */

static struct fake {
	uintptr_t low;
	uint8_t id; /* 0: none is loaded here */
	uint32_t n; /* functions */
	uintptr_t data; /* this many bytes behind them that are not executable */
} fakes[LOADED];
static unsigned n_walks, n_copies;
static bool out_of_memory;

static unsigned long long changes; /* the loader's counter */

static void load(unsigned i, uint8_t id, uintptr_t low, uint32_t n)
{
	fakes[i] = (struct fake){ low, id, n, 0 };
	changes++;
}

static void put_u32(uint8_t **p, uint32_t value)
{
	memcpy(*p, &value, sizeof(value));
	*p += sizeof(value);
}

/* The CFA of function i is rsp + 8 + i % 100, so that neighbours do not share a row. */
static void make_section(struct d9__module_frames *module, const struct fake *fake)
{
	struct frames head = { 0 };
	uint8_t *p;

	frames_common_of(&head, "", 0, CFI(USUAL));
	module->len = head.len + (size_t)fake->n * 28;
	module->copy = p = malloc(module->len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	memcpy(p, head.bytes, head.len);
	p += head.len;
	for (uint32_t i = 0; i < fake->n; i++) {
		uint64_t range[] = { fake->low + i * 16, 16 };
		const uint8_t cfi[] = { DEF_OFFSET((uint8_t)(8 + i % 100)), NOP, NOP };

		put_u32(&p, 24);
		put_u32(&p, (uint32_t)(p - module->copy));
		memcpy(p, range, sizeof(range));
		memcpy(p + sizeof(range), cfi, 4);
		p += sizeof(range) + 4;
	}
}

static bool may_walk = true;

bool d9__modules_may_walk(void)
{
	return may_walk;
}

bool d9__module_frames_changed(const struct d9__frames_list *list)
{
	return list->adds != changes;
}

int d9__module_frames_list(struct d9__frames_list *list, d9__frames_wanted_fn wanted, void *arg)
{
	n_walks++;
	list->adds = changes;
	list->n = 0;
	list->n_code = 0;
	if (!list->module) {
		list->module = calloc(LOADED, sizeof(*list->module));
		list->code = calloc(LOADED, sizeof(*list->code));
	}
	for (int i = 0; i < LOADED && !out_of_memory; i++) {
		struct d9__module_frames *module = &list->module[list->n];

		if (!fakes[i].id)
			continue;
		memset(module, 0, sizeof(*module));
		module->low = fakes[i].low;
		module->high = fakes[i].low + 16 * (uintptr_t)fakes[i].n + 16 + fakes[i].data;
		list->code[list->n_code++] =
			(struct d9__module_code){ module->low, module->high - fakes[i].data, list->n };
		module->key = (struct d9__frames_key){ .id = { fakes[i].id }, .id_len = 1 };
		module->address = fakes[i].n ? 1 : 0;
		list->n++;
		if (!fakes[i].n || !wanted(arg, &module->key, (size_t)fakes[i].n * 5))
			continue;
		make_section(module, &fakes[i]);
		n_copies++;
	}
	return out_of_memory ? -ENOMEM : 0;
}

void d9__module_frames_drop_copy(struct d9__module_frames *module)
{
	free(module->copy);
	module->copy = NULL;
}

void d9__module_frames_list_release(struct d9__frames_list *list)
{
	free(list->module);
	free(list->code);
	*list = (struct d9__frames_list){ 0 };
}

/* ---- mappings of the test's own ---- */

static struct d9__mapping mapped[8];
static size_t n_mapped;
static unsigned n_looks; /* at the list */

static void map(uintptr_t low, uintptr_t high, int prot)
{
	mapped[n_mapped++] = (struct d9__mapping){ low, high, prot };
}

bool d9__maps_open(struct d9__maps *maps)
{
	n_looks++;
	maps->at = 0;
	return true;
}

bool d9__maps_next(struct d9__maps *maps, struct d9__mapping *out)
{
	if (maps->at == n_mapped)
		return false;
	*out = mapped[maps->at++];
	return true;
}

void d9__maps_close(struct d9__maps *maps)
{
	(void)maps;
}

/* ---- tests ---- */

struct d9__flush d9__flush; /* the recorder's, which is not linked */

static uint64_t now_ns;

static void reset(void)
{
	d9__unwind_tables_release();
	memset(fakes, 0, sizeof(fakes));
	n_walks = n_copies = n_looks = 0;
	n_mapped = 0;
	out_of_memory = false;
	now_ns = SECOND;
}

static struct d9__unwind_figures refresh(void)
{
	struct d9__unwind_figures figures;

	d9__unwind_tables_want_rows();
	CU_ASSERT_EQUAL(d9__unwind_tables_refresh(now_ns), 0);
	d9__unwind_tables_figures(&figures);
	return figures;
}

static bool is_code(uintptr_t pc)
{
	const struct d9__unwind_row *row;

	return d9__unwind_table_find(d9__unwind_table_now(), pc, &row);
}

static const struct d9__unwind_row *find(uintptr_t pc)
{
	const struct d9__unwind_row *row;

	d9__unwind_table_find(d9__unwind_table_now(), pc, &row);
	return row;
}

/* The offset of the CFA at |pc|; -1: there is no row; 0: one without a rule. */
static int cfa(uintptr_t pc)
{
	const struct d9__unwind_row *row = find(pc);

	return !row ? -1 : row->cfa == D9__CFA_RSP ? row->cfa_offset : 0;
}

static void test_thread_of_the_programs_makes_no_tables_where_it_may_not_ask_the_loader(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	may_walk = false;
	CU_ASSERT_EQUAL(d9__unwind_tables_begin(now_ns), 0);
	CU_ASSERT_PTR_NULL(d9__unwind_table_now());
	may_walk = true;
	CU_ASSERT_EQUAL(d9__unwind_tables_begin(now_ns), 0);
	CU_ASSERT_PTR_NOT_NULL(d9__unwind_table_now());
}

static void test_rows_are_made_when_something_wants_them(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	CU_ASSERT_EQUAL(d9__unwind_tables_refresh(now_ns), 0);
	CU_ASSERT(is_code(0x10000));
	CU_ASSERT_EQUAL(cfa(0x10000), -1);
	CU_ASSERT_FALSE(d9__unwind_tables_have_rows());
	CU_ASSERT_EQUAL(n_copies, 0);
	d9__unwind_tables_want_rows();
	CU_ASSERT_FALSE(d9__unwind_tables_have_rows());
	CU_ASSERT_EQUAL(d9__unwind_tables_refresh(now_ns), 0);
	CU_ASSERT(d9__unwind_tables_have_rows());
	CU_ASSERT_EQUAL(cfa(0x10000), 8);
	/* They are wanted until the tables stop. */
	d9__unwind_tables_stop(now_ns);
	CU_ASSERT_FALSE(d9__unwind_tables_have_rows());
}

static void test_end_waits_for_no_rows(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	atomic_store(&d9__flush.stop, 1);
	CU_ASSERT_EQUAL(refresh().n_rows, 0);
	CU_ASSERT_FALSE(d9__unwind_tables_have_rows());
	atomic_store(&d9__flush.stop, 0);
}

static void test_addresses_find_the_row_of_their_function(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	load(1, 2, 0x500000, 1);
	load(2, 3, 0x20000, 200);
	CU_ASSERT_EQUAL(refresh().n_modules, 3);

	CU_ASSERT_EQUAL(cfa(0x10000), 8);
	CU_ASSERT_EQUAL(cfa(0x1000f), 8);
	CU_ASSERT_EQUAL(cfa(0x10010), 9);
	CU_ASSERT_EQUAL(cfa(0x1002f), 10);
	CU_ASSERT_EQUAL(cfa(0x10030), 0);
	CU_ASSERT_EQUAL(cfa(0x10040), -1);
	CU_ASSERT_EQUAL(cfa(0xffff), -1);
	CU_ASSERT_EQUAL(cfa(0x500001), 8);
	CU_ASSERT_EQUAL(cfa(0x20000 + 16 * 150), 58);
	CU_ASSERT_EQUAL(cfa(UINTPTR_MAX), -1);
}

static void test_data_of_a_module_is_no_code_and_has_no_rows(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	fakes[0].data = 0x1000;
	refresh();

	CU_ASSERT_TRUE(is_code(0x1003f));
	CU_ASSERT_FALSE(is_code(0x10040));
	CU_ASSERT_FALSE(is_code(0x1103f));
	CU_ASSERT_EQUAL(cfa(0x10040), -1);
	CU_ASSERT_FALSE(is_code(0xffff));
}

/* 0x40000 to 0x42000, beside a module that is mapped by pages. */
static void map_module_and_other_code(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	map(0x10000, 0x11000, PROT_READ | PROT_EXEC);
	map(0x11000, 0x12000, PROT_READ | PROT_WRITE);
	map(0x40000, 0x41000, PROT_READ | PROT_WRITE | PROT_EXEC);
	map(0x41000, 0x42000, PROT_EXEC);
	refresh();
}

static void test_code_of_no_module_is_known_once_an_address_was_found_nowhere(void)
{
	map_module_and_other_code();
	now_ns += 5 * SECOND;
	CU_ASSERT_EQUAL(refresh().n_others, 0);
	CU_ASSERT_EQUAL(n_looks, 0);

	CU_ASSERT_FALSE(is_code(0x40010));
	CU_ASSERT_EQUAL(refresh().n_others, 1);
	CU_ASSERT_EQUAL(n_looks, 1);
	CU_ASSERT_TRUE(is_code(0x40000));
	CU_ASSERT_TRUE(is_code(0x41fff));
	CU_ASSERT_FALSE(is_code(0x3ffff));
	CU_ASSERT_FALSE(is_code(0x42000));
	CU_ASSERT_FALSE(is_code(0x11000));
	CU_ASSERT_PTR_NULL(find(0x40000));
	CU_ASSERT_EQUAL(cfa(0x10010), 9);
}

static void test_the_list_of_mappings_is_read_at_most_once_a_second(void)
{
	uint64_t version;

	map_module_and_other_code();
	is_code(0x50000);
	version = refresh().version;
	for (int i = 0; i < 10; i++) {
		is_code(0x50000);
		now_ns += SECOND / 10 - 1;
		refresh();
	}
	CU_ASSERT_EQUAL(n_looks, 1);
	now_ns += SECOND;
	/* It was asked for meanwhile, and says what it said. */
	CU_ASSERT_EQUAL(refresh().version, version);
	CU_ASSERT_EQUAL(n_looks, 2);
	now_ns += SECOND;
	refresh();
	CU_ASSERT_EQUAL(n_looks, 2);
}

static void test_code_that_went_is_no_code_after_the_next_look(void)
{
	map_module_and_other_code();
	is_code(0x40000);
	refresh();
	n_mapped = 2;
	map(0x41000, 0x42000, PROT_READ);
	map(0x60000, 0x61000, PROT_EXEC);
	is_code(0x60000);
	now_ns += SECOND;
	CU_ASSERT_EQUAL(refresh().n_others, 1);
	CU_ASSERT_FALSE(is_code(0x40000));
	CU_ASSERT_FALSE(is_code(0x41000));
	CU_ASSERT_TRUE(is_code(0x60000));
}

/* By then the program may use that memory for data. */
static void test_code_of_a_module_goes_with_it_though_it_was_mapped_at_the_latest_look(void)
{
	map_module_and_other_code();
	map(0x80000, 0x84000, PROT_EXEC);
	is_code(0x80000);
	CU_ASSERT_EQUAL(refresh().n_others, 2);
	/* It was mapped already when the loader did not tell of it. */
	load(1, 2, 0x81000, 0x1ff);
	CU_ASSERT_EQUAL(refresh().n_others, 3);
	CU_ASSERT_EQUAL(cfa(0x81010), 9);
	CU_ASSERT_TRUE(is_code(0x80fff));
	CU_ASSERT_TRUE(is_code(0x83000));

	fakes[1].id = 0;
	changes++;
	CU_ASSERT_EQUAL(refresh().n_others, 3);
	CU_ASSERT_FALSE(is_code(0x81010));
	CU_ASSERT_FALSE(is_code(0x82fff));
	CU_ASSERT_TRUE(is_code(0x83000));
}

static void test_version_stays_while_no_module_comes_or_goes(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	uint64_t version = refresh().version;
	CU_ASSERT_NOT_EQUAL(version, 0);
	n_walks = 0;
	CU_ASSERT_EQUAL(refresh().version, version);
	CU_ASSERT_EQUAL(n_walks, 0);

	/* Came and went between two refreshes. */
	changes++;
	CU_ASSERT_EQUAL(refresh().version, version);
	CU_ASSERT_EQUAL(n_walks, 1);

	load(1, 2, 0x20000, 3);
	CU_ASSERT_EQUAL(cfa(0x20000), -1);
	CU_ASSERT_EQUAL(refresh().version, version + 1);
	CU_ASSERT_EQUAL(cfa(0x20000), 8);
	CU_ASSERT_EQUAL(d9__unwind_table_number(d9__unwind_table_now()), version + 1);
}

static void test_rows_of_a_module_are_made_once_wherever_it_is_loaded(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	size_t n_rows = refresh().n_rows;
	load(0, 1, 0x90000, 3);
	load(1, 1, 0x70000, 3);
	CU_ASSERT_EQUAL(refresh().n_rows, n_rows);

	CU_ASSERT_EQUAL(n_copies, 1);
	CU_ASSERT_EQUAL(cfa(0x90010), 9);
	CU_ASSERT_EQUAL(cfa(0x70010), 9);
	CU_ASSERT_EQUAL(cfa(0x10010), -1);

	/* Loaded twice from the start: copied twice, kept once. */
	load(2, 5, 0x200000, 3);
	load(3, 5, 0x300000, 3);
	CU_ASSERT_EQUAL(refresh().n_rows, 2 * n_rows);
	CU_ASSERT_EQUAL(cfa(0x300010), 9);
}

static void test_another_module_at_the_same_address_has_its_own_rows(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	refresh();
	const struct d9__unwind_row *old = find(0x10000);
	load(0, 2, 0x10000, 3);
	refresh();
	CU_ASSERT_PTR_NOT_EQUAL(find(0x10000), old);
}

static void test_modules_over_8_mib_wait_until_a_sample_hits_them(void)
{
	struct d9__unwind_figures figures;

	reset();
	load(0, 1, 0x10000000, 7 * MIB);
	load(1, 2, 0x20000000, 3 * MIB);
	load(2, 3, 0x30000000, 100);
	figures = refresh();
	CU_ASSERT_EQUAL(figures.n_waiting, 1);
	CU_ASSERT_TRUE(figures.n_rows < 8 * MIB);
	CU_ASSERT_EQUAL(cfa(0x30000000), 8);
	CU_ASSERT_EQUAL(n_copies, 2);
	CU_ASSERT_EQUAL(refresh().version, figures.version);

	CU_ASSERT_EQUAL(cfa(0x20000010), -1);
	figures = refresh();
	CU_ASSERT_EQUAL(cfa(0x20000010), 9);
	CU_ASSERT_EQUAL(figures.n_waiting, 0);
	CU_ASSERT_TRUE(figures.n_rows > 10 * MIB);
}

static void test_modules_over_32_mib_have_no_rows_and_are_counted(void)
{
	struct d9__unwind_figures figures;

	reset();
	for (unsigned i = 0; i < 8; i++)
		load(i, (uint8_t)(i + 1), 0x10000000 * (i + 1), 6 * MIB);
	refresh();
	for (unsigned i = 0; i < 8; i++) {
		cfa(0x10000000 * (i + 1));
		refresh();
	}
	figures = refresh();
	CU_ASSERT_EQUAL(figures.n_refused, 3);
	CU_ASSERT_TRUE(figures.n_rows <= 32 * MIB);
	CU_ASSERT_EQUAL(cfa(0x80000000), -1);

	/* Asked for again and again, it is not tried again. */
	n_copies = 0;
	refresh();
	CU_ASSERT_EQUAL(n_copies, 0);
}

/* |n| versions, a second apart, by a module that moves; |ticks| refreshes for each. */
static struct d9__unwind_figures publish(unsigned n, unsigned ticks)
{
	struct d9__unwind_figures figures = { 0 };

	for (unsigned i = 0; i < n; i++) {
		load(9, 99, 0x1000000 + (changes + 1) * 4096, 2);
		for (unsigned k = 0; k < ticks; k++)
			figures = refresh();
		now_ns += SECOND;
	}
	return figures;
}

static void test_old_versions_are_kept_for_ten_seconds_and_64_versions(void)
{
	reset();
	CU_ASSERT_EQUAL(publish(64, 8).n_retired, 63);
	CU_ASSERT_EQUAL(publish(1, 8).n_retired, 64);
	CU_ASSERT_EQUAL(publish(20, 8).n_retired, 64);

	/* All at once: none is 10 s old. */
	for (int i = 0; i < 100; i++) {
		changes++;
		fakes[9].low += 4096;
		refresh();
	}
	CU_ASSERT_TRUE(refresh().n_retired > 100);
	now_ns += 11 * SECOND;
	CU_ASSERT_EQUAL(refresh().n_retired, 64);
}

static void test_rows_of_modules_that_went_are_freed_with_the_last_version(void)
{
	struct d9__unwind_figures figures;

	reset();
	load(0, 1, 0x10000000, 1000);
	refresh();
	fakes[0].id = 0;
	figures = publish(64, 8);
	CU_ASSERT_TRUE(figures.n_rows > 1000);
	figures = publish(2, 8);
	CU_ASSERT_TRUE(figures.n_rows < 1000);

	/* Sooner where memory is short. */
	load(0, 2, 0x10000000, 7 * MIB);
	load(1, 3, 0x20000000, 7 * MIB);
	refresh();
	cfa(0x20000000);
	refresh();
	fakes[0].id = fakes[1].id = 0;
	changes++;
	refresh();
	CU_ASSERT_TRUE(refresh().n_rows > 14 * MIB);
	/* A process that was stopped for long has not run its handlers meanwhile. */
	now_ns += 3600 * SECOND;
	CU_ASSERT_TRUE(refresh().n_rows > 14 * MIB);
	for (int i = 0; i < 64; i++)
		refresh();
	CU_ASSERT_TRUE(refresh().n_rows < 1000);
}

static void test_modules_without_information_are_known_and_have_no_rows(void)
{
	reset();
	load(0, 1, 0x10000, 0);
	CU_ASSERT_EQUAL(refresh().n_modules, 1);
	CU_ASSERT_EQUAL(refresh().n_waiting, 0);
	CU_ASSERT_EQUAL(cfa(0x10000), -1);
	CU_ASSERT_EQUAL(n_copies, 0);
}

static void test_last_version_stays_where_memory_is_out(void)
{
	uint64_t version;

	reset();
	load(0, 1, 0x10000, 3);
	version = refresh().version;
	load(1, 2, 0x20000, 3);
	out_of_memory = true;
	CU_ASSERT_EQUAL(d9__unwind_tables_refresh(now_ns), -ENOMEM);
	CU_ASSERT_EQUAL(d9__unwind_table_number(d9__unwind_table_now()), version);
	CU_ASSERT_EQUAL(cfa(0x10000), 8);
	out_of_memory = false;
	CU_ASSERT_EQUAL(refresh().version, version + 1);
}

static void test_stopped_tables_are_none_until_the_next_refresh(void)
{
	reset();
	load(0, 1, 0x10000, 3);
	refresh();
	d9__unwind_tables_stop(now_ns);
	CU_ASSERT_PTR_NULL(d9__unwind_table_now());
	d9__unwind_tables_stop(now_ns);
	CU_ASSERT_EQUAL(refresh().n_retired, 1);
	CU_ASSERT_EQUAL(cfa(0x10000), 8);
	CU_ASSERT_EQUAL(n_copies, 1);
	d9__unwind_tables_release();
	CU_ASSERT_PTR_NULL(d9__unwind_table_now());
}

static void test_child_has_the_tables_and_goes_on_with_them(void)
{
	int status = -1;
	pid_t pid;

	reset();
	load(0, 1, 0x10000, 3);
	refresh();
	d9__unwind_tables_fork_prepare();
	pid = fork();
	if (pid == 0) {
		d9__unwind_tables_fork_child();
		load(1, 2, 0x20000, 3);
		_exit(cfa(0x10000) == 8 && refresh().n_modules == 2 && cfa(0x20000) == 8 ? 0 : 1);
	}
	d9__unwind_tables_fork_parent();
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(refresh().n_modules, 1);
	reset();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "an end waits for no rows", test_end_waits_for_no_rows },
		{ "rows are made when something wants them",
		  test_rows_are_made_when_something_wants_them },
		{ "addresses find the row of their function",
		  test_addresses_find_the_row_of_their_function },
		{ "a thread of the program's makes no tables where it may not ask the loader",
		  test_thread_of_the_programs_makes_no_tables_where_it_may_not_ask_the_loader },
		{ "data of a module is no code and has no rows",
		  test_data_of_a_module_is_no_code_and_has_no_rows },
		{ "code of no module is known once an address was found nowhere",
		  test_code_of_no_module_is_known_once_an_address_was_found_nowhere },
		{ "the list of mappings is read at most once a second",
		  test_the_list_of_mappings_is_read_at_most_once_a_second },
		{ "code that went is no code after the next look",
		  test_code_that_went_is_no_code_after_the_next_look },
		{ "code of a module goes with it, though it was mapped at the latest look",
		  test_code_of_a_module_goes_with_it_though_it_was_mapped_at_the_latest_look },
		{ "a version stays while no module comes or goes",
		  test_version_stays_while_no_module_comes_or_goes },
		{ "rows of a module are made once, wherever it is loaded",
		  test_rows_of_a_module_are_made_once_wherever_it_is_loaded },
		{ "another module at the same address has its own rows",
		  test_another_module_at_the_same_address_has_its_own_rows },
		{ "modules over 8 MiB wait until a sample hits them",
		  test_modules_over_8_mib_wait_until_a_sample_hits_them },
		{ "modules over 32 MiB have no rows and are counted",
		  test_modules_over_32_mib_have_no_rows_and_are_counted },
		{ "old versions are kept for ten seconds and 64 versions",
		  test_old_versions_are_kept_for_ten_seconds_and_64_versions },
		{ "rows of modules that went are freed with the last version",
		  test_rows_of_modules_that_went_are_freed_with_the_last_version },
		{ "modules without information are known and have no rows",
		  test_modules_without_information_are_known_and_have_no_rows },
		{ "the last version stays where memory is out",
		  test_last_version_stays_where_memory_is_out },
		{ "stopped tables are none until the next refresh",
		  test_stopped_tables_are_none_until_the_next_refresh },
		{ "a child has the tables and goes on with them",
		  test_child_has_the_tables_and_goes_on_with_them },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("unwind_table", tests);
}
