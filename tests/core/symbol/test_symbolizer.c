/* SPDX-License-Identifier: Apache-2.0 */
/* The symbolizer on this very process: its modules are where dl_iterate_phdr() says. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/d9_test.h"
#include "support/trace_builder.h"
#include "symbol/address_set.h"
#include "symbol/demangle.h"
#include "symbol/elf_file.h"
#include "symbol/row_batch.h"
#include "symbol/symbolizer.h"

enum { MODULE = 1, ROW, SAMPLE, ENTER, HELPER };

#define SELF_NS 5000

static char trace_path[] = "/tmp/dial9-symbolizer.XXXXXX";

__attribute__((noinline)) int d9_test_known_function(int n);

__attribute__((noinline)) int d9_test_known_function(int n)
{
	return n + getpid();
}

static void begin(struct trace *t)
{
	trace_batch(t);
	trace_builtin_fields(t, MODULE, "ModuleEvent", "base start size path build_id unloaded");
	trace_builtin(t, ROW, "SymbolTableEntry");
	trace_builtin_fields(t, SAMPLE, "CpuSampleEvent", "worker_id tid source callchain");
	trace_schema(t, ENTER, "SpanEnter:libevent", "worker_id:9 span_id:9 parent_span_id:9 span_name:7");
	trace_schema(t, HELPER, "HelperRunEvent", "function:7 item:9 task_id:9 wait_ns:9 run_ns:9");
}

static void put_row(struct trace *t, uint64_t address, uint64_t depth, const char *name, const char *file, uint64_t line)
{
	trace_event(t, ROW, 0, address, (uint64_t)0, (uint64_t)trace_string(t, name), depth,
		    (uint64_t)trace_string(t, file), line);
}

/* libx.so, which is nowhere, at 0x10000. */
static void put_lost_module(struct trace *t)
{
	trace_event(t, MODULE, (uint64_t)1000, (uint64_t)0x10000, (uint64_t)0x11000, (uint64_t)0x5000, "/no/such/libx.so",
		    "abcdef", (uint64_t)0);
}

/* Read |t| into |symbolizer| and, unless it is NULL, |set|. */
static void learn(struct trace *t, struct d9__symbolizer *symbolizer, struct d9__address_set *set)
{
	const struct d9_event *event;
	struct d9_reader *reader = NULL;

	trace_save(t, trace_path, "plain");
	trace_free(t);
	memset(t, 0, sizeof(*t));
	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL(d9_reader_add(reader, trace_path), 0);
	while (d9_reader_next(reader, &event) == 1) {
		CU_ASSERT_EQUAL(d9__symbolizer_learn(symbolizer, event), 0);
		if (set)
			CU_ASSERT_EQUAL(d9__address_set_learn(set, symbolizer, event), 0);
	}
	d9_reader_free(reader);
}

static const char *name_at(struct d9__symbolizer *symbolizer, uint64_t address, enum d9__address_role role)
{
	struct d9__frames frames;

	d9__symbolizer_resolve(symbolizer, address, SELF_NS, role, &frames);
	return frames.items[frames.n - 1].function;
}

static int put_own_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	char path[4096] = "";
	struct trace *t = arg;
	uint64_t end = 0;
	bool vdso = info->dlpi_name && strstr(info->dlpi_name, "vdso");

	(void)size;
	if (info->dlpi_name && *info->dlpi_name && !vdso)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	if (vdso)
		strcpy(path, info->dlpi_name);
	else if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 0;
	trace_event(t, MODULE, (uint64_t)1000, (uint64_t)info->dlpi_addr, (uint64_t)info->dlpi_addr, end, path,
		    vdso ? "00" : "", (uint64_t)0);
	return 0;
}

static void test_rows_of_the_trace_are_answers(void)
{
	struct d9__symbolizer *symbolizer;
	struct d9__frames frames;
	struct trace t = { 0 };

	CU_ASSERT_EQUAL_FATAL(d9__symbolizer_open(NULL, &symbolizer), 0);
	begin(&t);
	put_row(&t, 0x1000, 0, "outer", "a.c", 10);
	put_row(&t, 0x1000, 2, "innermost", "dir/b.h", 3);
	put_row(&t, 0x1000, 1, "_ZN3app5innerEv", "dir/b.h", 2);
	put_row(&t, 0x1000, 0, "a second one", "c.c", 10);
	put_row(&t, 0x1000, 1000000, "too deep", "c.c", 10);
	put_row(&t, 0x2000, 0, "module+0x2000", "", 0);
	put_row(&t, 0x3000, 0, "[symbolize-failed] 0x3000", "", 0);
	put_row(&t, UINT64_C(0xffffffff81000000), 0, "schedule", "", 0);
	learn(&t, symbolizer, NULL);

	d9__symbolizer_resolve(symbolizer, 0x1000, SELF_NS, D9__RETURN, &frames);
	CU_ASSERT_EQUAL(frames.n, 3);
	CU_ASSERT_TRUE(frames.known);
	CU_ASSERT_STRING_EQUAL(frames.items[0].function, "innermost");
	CU_ASSERT_STRING_EQUAL(frames.items[0].file, "b.h");
	CU_ASSERT_EQUAL(frames.items[0].line, 3);
	CU_ASSERT_STRING_EQUAL(frames.items[2].function, "outer");
	CU_ASSERT_STRING_EQUAL(name_at(symbolizer, UINT64_C(0xffffffff81000000), D9__EXECUTING), "schedule");
	CU_ASSERT_STRING_EQUAL(name_at(symbolizer, UINT64_C(0xffffffff81000001), D9__EXECUTING),
			       "[kernel] 0xffffffff81000001");
	CU_ASSERT_STRING_EQUAL(name_at(symbolizer, 0x2000, D9__EXECUTING), "0x2000");
	CU_ASSERT_STRING_EQUAL(name_at(symbolizer, 0x3000, D9__EXECUTING), "0x3000");
	d9__symbolizer_close(symbolizer);
}

/* True if |name| is |plain| once it is demangled; NULL: it stays as it is. */
static bool reads(const char *name, const char *plain)
{
	char *found = d9__demangle(name);
	bool same = plain ? found && !strcmp(found, plain) : !found;

	free(found);
	return same;
}

static void test_mangled_names_are_read_as_their_authors_wrote_them(void)
{
#ifdef HAVE_LIBIBERTY
	CU_ASSERT_TRUE(reads("_ZN3net6Server7on_readEisPv", "net::Server::on_read"));
	/* Rust's older ones end in a hash. */
	CU_ASSERT_TRUE(reads("_ZN5hello4main17h05af221e174051e9E", "hello::main"));
	CU_ASSERT_TRUE(reads("_ZN43_$LT$a..Test$u20$as$u20$b..Bar$LT$T$GT$$GT$3bar"
			     "17h930b740aa94f1d3aE",
			     "<a::Test as b::Bar<T>>::bar"));
	CU_ASSERT_TRUE(reads("_ZN5hello4main17h05af221e174051e9E.llvm.1234", "hello::main"));
	CU_ASSERT_TRUE(reads("_RNvCs1234_7mycrate3foo", "mycrate::foo"));
	CU_ASSERT_TRUE(reads("_RNvNtCs6GmmlP4bgsG_1r4work7on_read", "r::work::on_read"));
	CU_ASSERT_TRUE(reads("_RNvMs_NtCskBCZyXyjS9T_5alloc3vecINtB4_3VechE4push",
			     "<alloc::vec::Vec<u8>>::push"));
#endif
	CU_ASSERT_TRUE(reads("main", NULL));
	CU_ASSERT_TRUE(reads("_Reading_is_no_name", NULL));
	CU_ASSERT_TRUE(reads("_R", NULL));
	CU_ASSERT_TRUE(reads("", NULL));
}

static void test_functions_of_this_program_have_names(void)
{
	uint64_t address = (uint64_t)(uintptr_t)d9_test_known_function;
	struct d9__symbolizer *symbolizer;
	struct d9__frames frames;
	struct trace t = { 0 };

	CU_ASSERT_EQUAL_FATAL(d9__symbolizer_open(NULL, &symbolizer), 0);
	begin(&t);
	dl_iterate_phdr(put_own_module, &t);
	learn(&t, symbolizer, NULL);
	d9__symbolizer_resolve(symbolizer, address, SELF_NS, D9__ENTRY, &frames);
	/* A build-id, which the linker gives or not, was not told of. */
	if (d9__symbolizer_problem(symbolizer, 0)) {
		CU_ASSERT_FALSE(frames.known);
		CU_ASSERT_PTR_NOT_NULL(strstr(frames.items[0].function, "test_symbolizer+0x"));
	} else {
		CU_ASSERT_STRING_EQUAL(frames.items[0].function, "d9_test_known_function");
		CU_ASSERT_STRING_EQUAL(name_at(symbolizer, address + 1, D9__RETURN), "d9_test_known_function");
	}
	d9__symbolizer_close(symbolizer);
}

static void test_module_that_is_nowhere_is_told_with_the_offset(void)
{
	struct d9__symbolizer *symbolizer;
	struct d9__frames frames;
	struct trace t = { 0 };

	CU_ASSERT_EQUAL_FATAL(d9__symbolizer_open(NULL, &symbolizer), 0);
	begin(&t);
	put_lost_module(&t);
	trace_event(&t, MODULE, (uint64_t)1000, (uint64_t)0x90000, (uint64_t)0x90000, (uint64_t)0x5000, "linux-vdso.so.1",
		    "abcdef", (uint64_t)0);
	learn(&t, symbolizer, NULL);
	CU_ASSERT_STRING_EQUAL(name_at(symbolizer, 0x11234, D9__EXECUTING), "libx.so+0x1234");
	CU_ASSERT_STRING_EQUAL(name_at(symbolizer, 0x90010, D9__EXECUTING), "linux-vdso.so.1+0x10");
	CU_ASSERT_TRUE(d9__symbolizer_resolve_name(symbolizer, "libx.so+0x10", 12, D9__ENTRY, &frames));
	CU_ASSERT_FALSE(frames.known);
	CU_ASSERT_STRING_EQUAL(frames.items[0].function, "libx.so+0x10");
	CU_ASSERT_FALSE(d9__symbolizer_resolve_name(symbolizer, "liby.so+0x10", 12, D9__ENTRY, &frames));
	CU_ASSERT_FALSE(d9__symbolizer_resolve_name(symbolizer, "libx.so+0xg0", 12, D9__ENTRY, &frames));
	CU_ASSERT_FALSE(d9__symbolizer_resolve_name(symbolizer, "libx.so", 7, D9__ENTRY, &frames));
	CU_ASSERT_STRING_EQUAL(d9__symbolizer_problem(symbolizer, 0),
			       "/no/such/libx.so: not found; its functions are shown as module+offset");
	CU_ASSERT_PTR_NULL(d9__symbolizer_problem(symbolizer, 1));
	d9__symbolizer_close(symbolizer);
}

static void test_addresses_of_a_segment_are_met_once(void)
{
	struct d9__symbolizer *symbolizer;
	struct d9__address_set set = { 0 };
	struct trace t = { 0 };
	uint64_t stack[] = { 0x300, 0x100, 0x200 }, again[] = { 0x100 };
	uint64_t interrupted[] = { UINT64_C(0xffffffff81000000), UINT64_C(0xffffffff81000100), 0x400, 0x500 };

	CU_ASSERT_EQUAL_FATAL(d9__symbolizer_open(NULL, &symbolizer), 0);
	begin(&t);
	put_row(&t, 0x200, 0, "told", "", 0);
	put_row(&t, 0x900, 0, "not met", "", 0);
	trace_event(&t, SAMPLE, (uint64_t)2000, (uint64_t)0, (uint64_t)1, (uint64_t)0, (uint64_t)trace_stack(&t, 3, stack));
	trace_event(&t, SAMPLE, (uint64_t)3000, (uint64_t)0, (uint64_t)1, (uint64_t)0, (uint64_t)trace_stack(&t, 1, again));
	trace_event(&t, SAMPLE, (uint64_t)3000, (uint64_t)0, (uint64_t)1, (uint64_t)0,
		    (uint64_t)trace_stack(&t, 4, interrupted));
	learn(&t, symbolizer, &set);
	d9__address_set_sort(&set);

	CU_ASSERT_EQUAL_FATAL(set.n, 8);
	CU_ASSERT_EQUAL(set.items[0].address, 0x100);
	CU_ASSERT_EQUAL(set.items[0].role, D9__RETURN);
	CU_ASSERT_EQUAL(set.items[0].ns, 2000);
	CU_ASSERT_TRUE(set.items[1].has_row);
	CU_ASSERT_EQUAL(set.items[2].role, D9__EXECUTING);
	CU_ASSERT_FALSE(set.items[2].has_row);
	/* An instruction that the kernel interrupted is no call. */
	CU_ASSERT_EQUAL(set.items[3].role, D9__EXECUTING);
	CU_ASSERT_EQUAL(set.items[4].role, D9__RETURN);
	CU_ASSERT_FALSE(set.items[5].met);
	CU_ASSERT_EQUAL(set.items[7].role, D9__RETURN);
	d9__address_set_release(&set);
	d9__symbolizer_close(symbolizer);
}

/* Their binary may be gone when the trace is read. */
static void test_places_that_spans_and_helpers_name_are_met_and_rows_name_them(void)
{
	struct d9__symbolizer *symbolizer;
	struct d9__address_set set = { 0 };
	struct d9__frames frames;
	struct trace t = { 0 };

	CU_ASSERT_EQUAL_FATAL(d9__symbolizer_open(NULL, &symbolizer), 0);
	begin(&t);
	put_lost_module(&t);
	trace_event(&t, ENTER, (uint64_t)2000, (uint64_t)0, (uint64_t)7, (uint64_t)0,
		    (uint64_t)trace_string(&t, "libx.so+0x1234 @ libx.so+0x1300"));
	trace_event(&t, HELPER, (uint64_t)3000, (uint64_t)trace_string(&t, "libx.so+0x1400"), (uint64_t)1, (uint64_t)1,
		    (uint64_t)1, (uint64_t)1);
	put_row(&t, 0x11234, 0, "render", "", 0);
	learn(&t, symbolizer, &set);
	d9__address_set_sort(&set);

	CU_ASSERT_EQUAL_FATAL(set.n, 3);
	CU_ASSERT_EQUAL(set.items[0].address, 0x11234);
	CU_ASSERT_EQUAL(set.items[0].role, D9__ENTRY);
	CU_ASSERT_EQUAL(set.items[1].address, 0x11300);
	CU_ASSERT_EQUAL(set.items[1].role, D9__RETURN);
	CU_ASSERT_EQUAL(set.items[2].address, 0x11400);
	CU_ASSERT_TRUE(d9__symbolizer_resolve_name(symbolizer, "libx.so+0x1234", 14, D9__ENTRY, &frames));
	CU_ASSERT_TRUE_FATAL(frames.known);
	CU_ASSERT_STRING_EQUAL(frames.items[0].function, "render");
	d9__address_set_release(&set);
	d9__symbolizer_close(symbolizer);
}

/* Answers that were written are read back as they were. */
static void test_rows_that_were_written_are_answers(void)
{
	const struct d9__symbol symbols[] = { { .function = "inner", .path = "src/a.h", .line = 3 },
					      { .function = "outer", .path = "src/a.c", .line = 30 } };
	const struct d9__symbol place = { .function = "0x500" };
	struct d9__row_batch batch = { 0 };
	struct d9__symbolizer *symbolizer;
	struct d9__frames frames = { symbols, 2, true };
	struct trace t = { 0 };

	CU_ASSERT_EQUAL(d9__row_batch_add(&batch, 0x1000, &frames), 0);
	CU_ASSERT_EQUAL(d9__row_batch_add(&batch, 0x2000, &frames), 0);
	frames = (struct d9__frames){ &place, 1, false };
	CU_ASSERT_EQUAL(d9__row_batch_add(&batch, 0x500, &frames), 0);
	CU_ASSERT_EQUAL(batch.rows, 5);
	trace_bytes(&t, batch.bytes, batch.len);
	CU_ASSERT_EQUAL_FATAL(d9__symbolizer_open(NULL, &symbolizer), 0);
	learn(&t, symbolizer, NULL);

	d9__symbolizer_resolve(symbolizer, 0x2000, SELF_NS, D9__EXECUTING, &frames);
	CU_ASSERT_EQUAL_FATAL(frames.n, 2);
	CU_ASSERT_STRING_EQUAL(frames.items[0].function, "inner");
	CU_ASSERT_STRING_EQUAL(frames.items[0].path, "src/a.h");
	CU_ASSERT_EQUAL(frames.items[1].line, 30);
	CU_ASSERT_STRING_EQUAL(name_at(symbolizer, 0x500, D9__EXECUTING), "0x500");
	d9__symbolizer_close(symbolizer);
	d9__row_batch_release(&batch);
}

static void test_only_regular_files_are_opened_as_binaries(void)
{
	char dir[] = "/tmp/dial9-symbolizer.XXXXXX", path[sizeof(dir) + 8];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event seen;
	struct d9__elf_file *file;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/pipe", dir);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	CU_ASSERT_FATAL(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	CU_ASSERT_EQUAL(d9__elf_file_open(path, &file), -EBADMSG);
	CU_ASSERT_EQUAL(read(watch, &seen, sizeof(seen)), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	close(watch);
	unlink(path);
	rmdir(dir);
}

static const CU_TestInfo tests[] = {
	{ "rows of the trace are answers", test_rows_of_the_trace_are_answers },
	{ "mangled names are read as their authors wrote them",
	  test_mangled_names_are_read_as_their_authors_wrote_them },
	{ "functions of this program have names", test_functions_of_this_program_have_names },
		{ "module that is nowhere is told with the offset", test_module_that_is_nowhere_is_told_with_the_offset },
		{ "places that spans and helpers name are met, and rows name them",
		  test_places_that_spans_and_helpers_name_are_met_and_rows_name_them },
	{ "addresses of a segment are met once", test_addresses_of_a_segment_are_met_once },
	{ "rows that were written are answers", test_rows_that_were_written_are_answers },
	{ "only regular files are opened as binaries", test_only_regular_files_are_opened_as_binaries },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int fd = mkstemp(trace_path), status;

	if (fd < 0)
		return 99;
	close(fd);
	status = d9_test_main("symbolizer", tests);
	unlink(trace_path);
	return status;
}
