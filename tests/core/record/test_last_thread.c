/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose main thread ends before others do, each in a process of its own.  Its exit handlers, which run on whichever
 * thread is the last, look at what was recorded.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/thread.h"
#include "core/record/again.h"
#include "core/record/numbered.h"
#include "core/record/scratch.h"
#include "record/last_thread.h"

#define OURS "dial9-keeper" /* its name */
#define SOME   100

/* ---- what it asks the system for ---- */

static _Atomic(unsigned) looks; /* of the last thread, at those that are left */
static bool proc_is_shut, no_thread;

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_d9__thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), size_t stack);
int __real_d9__thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), size_t stack);

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (strcmp(path, "/proc/self/status") != 0)
		return __real_open(path, flags, mode);
	looks++;
	errno = EACCES;
	return proc_is_shut ? -1 : __real_open(path, flags, mode);
}

int __wrap_d9__thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), size_t stack)
{
	return no_thread && !strcmp(name, OURS) ? -EAGAIN : __real_d9__thread_start(thread, name, fn, stack);
}

/* ---- who ends ---- */

static bool is_called(const char *path, const char *name)
{
	char text[32] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	if (fgets(text, sizeof(text), f))
		text[strcspn(text, "\n")] = '\0';
	fclose(f);
	return !strcmp(text, name);
}

static bool has_last_thread(void)
{
	DIR *d = opendir("/proc/self/task");
	bool found = false;

	for (struct dirent *e; d && (e = readdir(d));) {
		char path[300];

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		found |= is_called(path, OURS);
	}
	if (d)
		closedir(d);
	return found;
}

/* Each time by another |who|, for what a later recorder wrote may be read first. */
static void record_some(uint64_t who)
{
	for (uint64_t i = 0; i < SOME; i++)
		number(who, i);
}

static void start_with(void (*set)(struct d9_options *options))
{
	struct d9_options *options = NULL;

	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, scratch_dir);
	if (set)
		set(options);
	MUST(!d9_recorder_start(options, NULL));
	d9_options_free(options);
}

static pid_t owner; /* of the directory, if it is one of this process's */
static uint64_t expected; /* events of this process */
static bool any_is_last; /* else the last thread is ours */

static void all_is_there(void)
{
	struct numbers own = numbers_of(scratch_dir, getpid());
	uint64_t found = 0;
	char name[16] = "";

	MUST(!prctl(PR_GET_NAME, name) && (any_is_last || !strcmp(name, OURS)));
	for (int i = 0; i < NUMBERED_WHO; i++)
		found += own.found[i];
	MUST(found == expected && !own.foreign && !own.disorder);
	if (getpid() == owner)
		scratch_remove();
}

static const char *cannot_be_tried(void)
{
	if (AGAIN_SANITIZED)
		return "a sanitizer has threads of its own";
	return again_in_valgrind() ? "the second for which a program waits for its recorder is too short in valgrind" : NULL;
}

static void begin(void *(*fn)(void *))
{
	pthread_t thread;

	alarm(120);
	if (again_arg) {
		snprintf(scratch_dir, sizeof(scratch_dir), "%s", again_arg);
	} else {
		scratch_new();
		owner = getpid();
	}
	MUST(!pthread_create(&thread, NULL, fn, NULL));
	pthread_detach(thread);
}

/* The main thread, which starts a recorder (|set|) and leaves another thread behind. */
static int leave_to(void *(*fn)(void *), void (*set)(struct d9_options *options))
{
	const char *why = cannot_be_tried();

	if (why)
		return again_skip(why);
	begin(fn);
	start_with(set);
	record_some(0);
	expected = SOME;
	atexit(all_is_there);
	pthread_exit(NULL);
}

static void await_last_thread(void)
{
	MUST(AGAIN_WAIT(has_last_thread()));
}

/* Wait until the last thread has found that other threads are left, and looks again. */
static void await_looks(void)
{
	unsigned from = looks;

	MUST(AGAIN_WAIT(looks >= from + 3));
}

/* ---- the main thread leaves ---- */

static void *is_the_last(void *arg)
{
	await_looks();
	MUST(d9_recorder_state(d9_recorder_running()) == D9_RECORDER_RECORDING);
	record_some(2);
	expected += SOME;
	return arg;
}

static void *leaves_it_to_another(void *arg)
{
	pthread_t other;

	await_looks();
	record_some(1);
	expected += SOME;
	MUST(!pthread_create(&other, NULL, is_the_last, NULL));
	pthread_detach(other);
	return arg;
}

static int main_leaves(void)
{
	return leave_to(leaves_it_to_another, NULL);
}

static void *ends_at_once(void *arg)
{
	await_looks();
	return arg;
}

static void hear(void *arg, enum d9_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	(void)text;
}

static void with_callback(struct d9_options *options)
{
	d9_options_set_log(options, hear, NULL);
}

static int main_leaves_callbacks(void)
{
	return leave_to(ends_at_once, with_callback);
}

static void *stops_and_starts(void *arg)
{
	await_last_thread();
	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
	MUST(AGAIN_WAIT(!has_last_thread()));
	start_with(NULL);
	await_last_thread();
	record_some(1);
	expected += SOME;
	await_looks();
	return arg;
}

static int main_leaves_a_recorder_that_is_stopped(void)
{
	return leave_to(stops_and_starts, NULL);
}

/* ---- no recorder runs when it leaves ---- */

static bool main_is_gone(void)
{
	char path[64], text[512] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'Z';
}

static void *starts_late(void *arg)
{
	MUST(AGAIN_WAIT(main_is_gone()));
	MUST(!has_last_thread());
	start_with(NULL);
	record_some(0);
	expected = SOME;
	await_looks();
	return arg;
}

static int main_leaves_no_recorder(void)
{
	const char *why = cannot_be_tried();

	if (why)
		return again_skip(why);
	begin(starts_late);
	atexit(all_is_there);
	pthread_exit(NULL);
}

/* ---- a child ---- */

/* The thread that forks is its main thread. */
static void be_child(void)
{
	alarm(120);
	record_some(0);
	expected = SOME;
	MUST(d9_recorder_running());
	d9__last_thread_start();
	d9__last_thread_look();
	MUST(!has_last_thread());
	pthread_exit(NULL);
}

static void *forks(void *arg)
{
	int status = -1;
	pid_t pid;

	await_looks();
	pid = fork();
	if (!pid)
		be_child();
	MUST(waitpid(pid, &status, 0) == pid && !status);
	return arg;
}

static int main_leaves_one_that_forks(void)
{
	return leave_to(forks, NULL);
}

/* ---- what the last thread cannot have ---- */

static void *sees_it_end(void *arg)
{
	MUST(AGAIN_WAIT(!d9_recorder_running()));
	return arg;
}

static int main_leaves_without_proc(void)
{
	proc_is_shut = any_is_last = true;
	return leave_to(sees_it_end, NULL);
}

static int main_leaves_without_last_thread(void)
{
	no_thread = any_is_last = true;
	return leave_to(sees_it_end, NULL);
}

/* ---- the main thread ends without a word ---- */

static void *records_behind_it(void *arg)
{
	await_looks();
	record_some(1);
	return arg;
}

static void start_to_end_bare(void)
{
	begin(records_behind_it);
	start_with(NULL);
	record_some(0);
}

static int main_ends_by_the_bare_call(void)
{
	start_to_end_bare();
	syscall(SYS_exit, 7);
	return 1;
}

static int main_is_killed_by_a_filter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	const struct rlimit no_core = { 0, 0 };

	start_to_end_bare();
	setrlimit(RLIMIT_CORE, &no_core);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(AGAIN_SKIPPED);
	syscall(SYS_getppid);
	return 1;
}

/* Role |name| ends as its main thread did, with all that was recorded before and behind that. */
static int end_of(const char *name)
{
	int status = again(name, scratch_new());

	if (WIFEXITED(status) && WEXITSTATUS(status) == AGAIN_SKIPPED)
		return status;
	CU_ASSERT_EQUAL(scratch_count("Numbered"), 2 * SOME);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
	return status;
}

/* ---- tests ---- */

static void test_no_last_thread_is_begun_while_the_main_thread_is_there(void)
{
	scratch_new();
	start_with(NULL);
	d9__last_thread_start();
	d9__last_thread_look();
	CU_ASSERT_FALSE(has_last_thread());
	CU_ASSERT_EQUAL(d9_recorder_stop(d9_recorder_running(), 20000), 0);
	CU_ASSERT_EQUAL(looks, 0);
}

static void test_program_ends_when_the_last_of_its_own_threads_does_and_is_recorded_till_then(void)
{
	again_check("main_leaves", NULL);
}

static void test_thread_of_callbacks_is_none_of_the_programs(void)
{
	again_check("main_leaves_callbacks", NULL);
}

static void test_last_thread_goes_with_its_recorder_and_comes_with_the_next(void)
{
	again_check("main_leaves_a_recorder_that_is_stopped", NULL);
}

static void test_recorder_that_starts_behind_the_main_thread_gets_a_last_thread(void)
{
	again_check("main_leaves_no_recorder", NULL);
}

static void test_child_has_a_main_thread_of_its_own(void)
{
	again_check("main_leaves_one_that_forks", NULL);
}

static char ended[128];

static void note_ended(void *arg, const struct d9_event *event)
{
	const struct d9_value *pairs = &event->values[0];

	(void)arg;
	if (event->kind != D9_EVENT_SEGMENT_METADATA)
		return;
	for (size_t i = 0; i < pairs->u.string_map.n; i++) {
		const struct d9_text *pair = &pairs->u.string_map.pairs[2 * i];

		if (pair[0].len == 14 && !memcmp(pair[0].data, "recorder.ended", 14))
			snprintf(ended, sizeof(ended), "%.*s", (int)pair[1].len, pair[1].data);
	}
}

static void test_recording_is_cut_short_and_says_so_where_threads_cannot_be_counted(void)
{
	again_check("main_leaves_without_proc", scratch_new());
	scratch_read(scratch_dir, true, note_ended, NULL);
	CU_ASSERT(cannot_be_tried() || strstr(ended, "when the main thread left"));
}

static void test_recording_ends_with_the_main_thread_where_no_last_thread_can_be_started(void)
{
	again_check("main_leaves_without_last_thread", NULL);
}

static void test_program_whose_main_thread_ends_bare_has_its_status(void)
{
	int status = cannot_be_tried() ? 7 << 8 : end_of("main_ends_by_the_bare_call");

	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_program_whose_main_thread_is_killed_dies_of_the_same_signal(void)
{
	int status = cannot_be_tried() ? SIGSYS : end_of("main_is_killed_by_a_filter");

	CU_ASSERT((WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) ||
		  (WIFEXITED(status) && WEXITSTATUS(status) == AGAIN_SKIPPED));
}

int main(int argc, char **argv)
{
	static const struct again_role roles[] = {
		{ "main_leaves", main_leaves },
		{ "main_leaves_callbacks", main_leaves_callbacks },
		{ "main_leaves_a_recorder_that_is_stopped", main_leaves_a_recorder_that_is_stopped },
		{ "main_leaves_no_recorder", main_leaves_no_recorder },
		{ "main_leaves_one_that_forks", main_leaves_one_that_forks },
		{ "main_leaves_without_proc", main_leaves_without_proc },
		{ "main_leaves_without_last_thread", main_leaves_without_last_thread },
		{ "main_ends_by_the_bare_call", main_ends_by_the_bare_call },
		{ "main_is_killed_by_a_filter", main_is_killed_by_a_filter },
		{ NULL, NULL },
	};
	static const CU_TestInfo tests[] = {
		{ "main thread is there", test_no_last_thread_is_begun_while_the_main_thread_is_there },
		{ "main thread leaves", test_program_ends_when_the_last_of_its_own_threads_does_and_is_recorded_till_then },
		{ "callbacks", test_thread_of_callbacks_is_none_of_the_programs },
		{ "stopped and started", test_last_thread_goes_with_its_recorder_and_comes_with_the_next },
		{ "started late", test_recorder_that_starts_behind_the_main_thread_gets_a_last_thread },
		{ "child", test_child_has_a_main_thread_of_its_own },
		{ "no /proc", test_recording_is_cut_short_and_says_so_where_threads_cannot_be_counted },
		{ "no last thread", test_recording_ends_with_the_main_thread_where_no_last_thread_can_be_started },
		{ "bare end", test_program_whose_main_thread_ends_bare_has_its_status },
		{ "killed", test_program_whose_main_thread_is_killed_dies_of_the_same_signal },
		CU_TEST_INFO_NULL,
	};
	int role = again_main(argc, argv, roles);
	int status = role < 0 ? d9_test_main("last_thread", tests) : role;

	scratch_remove();
	return status;
}
