/* SPDX-License-Identifier: Apache-2.0 */
/* What programs do to processes, descriptors, directories and limits (recorder.md, 3.9). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sanitized.h"
#include "core/record/again.h"
#include "core/record/numbered.h"
#include "record/recorder.h"
#include "ring/emit_inl.h"

#define THREADS 8
#define OURS    THREADS /* who the main thread is */

static void start_in(const char *dir)
{
	struct d9_options *options = NULL;

	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir);
	d9_options_set_usage_interval_ms(options, 0);
	MUST(!d9_recorder_start(options, NULL));
	d9_options_free(options);
}

static uint64_t lost[D9_LOSS_COUNT]; /* when the recorder was stopped */

static void stop(void)
{
	struct d9_counters c = { 0 };

	d9_recorder_counters(d9_recorder_running(), &c, sizeof(c));
	memcpy(lost, c.lost, sizeof(lost));
	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
}

/* ---- processes that are made beside busy threads ---- */

static struct {
	pthread_t thread[THREADS];
	_Atomic(bool) stop;
	_Atomic(uint64_t) n[THREADS];
} busy;

static void *be_busy(void *arg)
{
	uintptr_t who = (uintptr_t)arg;

	while (!busy.stop) {
		number(who, busy.n[who]++);
		if (busy.n[who] % 200 == 0) {
			again_pause_ms(1);
			MUST(AGAIN_WAIT(d9__chunk_free_count() >= 3)); /* nothing is to be lost */
		}
	}
	return NULL;
}

static void start_busy(void)
{
	/* The ring begins with eight chunks, and grows when few are left. */
	for (uintptr_t i = 0; i < THREADS; i++) {
		pthread_create(&busy.thread[i], NULL, be_busy, (void *)i);
		MUST(AGAIN_WAIT(busy.n[i] && d9__chunk_free_count() >= 4));
	}
}

static void stop_busy(void)
{
	busy.stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(busy.thread[i], NULL);
}

static void record_some(uint64_t from, uint64_t n)
{
	for (uint64_t i = from; i < from + n; i++)
		number(OURS, i);
}

/* |pid| ended with status 0. */
static void await(pid_t pid)
{
	int status = -1;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
}

/* A child records: its events go to a trace of its own, which holds nothing else. */
static void check_child(pid_t pid, uint64_t n)
{
	struct numbers child = numbers_of(scratch_dir, pid);

	MUST(child.found[OURS] == n && !child.foreign && !child.disorder);
	for (int i = 0; i < THREADS; i++)
		MUST(!child.found[i]);
}

static pid_t fork_and_record(void)
{
	pid_t pid = fork();

	if (!pid) {
		record_some(0, 50);
		exit(0);
	}
	return pid;
}

/* Inside a callback: the child leaves it, and begins by that. */
static pid_t fork_inside_a_poll(void)
{
	struct d9__slot *slot = d9__slot_self();
	uint32_t loc = d9__name_intern("forks", 5);
	pid_t pid;

	d9__emit_poll_start(slot, d9__slot_now(slot), OURS, 0, 1, loc);
	pid = fork();
	if (!pid) {
		/* The slot is not there any more; a hook would ask for one first. */
		record_some(0, 50);
		exit(0);
	}
	d9__emit_poll_end(slot, d9__slot_now(slot), OURS);
	return pid;
}

#ifndef HAVE__FORK
#define _Fork fork_raw /* before glibc 2.34 */
#endif

static pid_t fork_raw(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* No handler of pthread_atfork() runs. */
static pid_t fork_without_handlers(bool raw)
{
	pid_t pid = raw ? fork_raw() : _Fork();

	if (!pid) {
		record_some(0, 50);
		_exit(d9_enabled());
	}
	return pid;
}

static pid_t vfork_and_exec(void)
{
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork,bugprone-unsafe-functions): tried */

	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	return pid;
}

static pid_t spawn(void)
{
	char *argv[] = { (char *)"true", NULL };
	pid_t pid = -1;

	MUST(!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
	return pid;
}

/* The one that goes on is a grandchild, in a session of its own. */
static pid_t daemonise(void)
{
	int pipes[2];
	pid_t pid, daemon = -1;

	MUST(!pipe(pipes));
	pid = fork();
	if (!pid) {
		setsid();
		pid = fork();
		if (pid)
			_exit(0);
		MUST(!chdir("/"));
		record_some(0, 50);
		MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
		pid = getpid();
		MUST(write(pipes[1], &pid, sizeof(pid)) == sizeof(pid));
		exit(0);
	}
	close(pipes[1]);
	await(pid);
	MUST(read(pipes[0], &daemon, sizeof(daemon)) == sizeof(daemon));
	close(pipes[0]);
	return daemon;
}

/* For a message. */
static const char *lost_causes(void)
{
	static char text[256];
	size_t len = 0;

	for (int i = 0; i < D9_LOSS_COUNT; i++)
		if (lost[i])
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %lu ",
						d9_loss_text((enum d9_loss)i),
						(unsigned long)lost[i]);
	return text;
}

static int makes_processes(void)
{
	enum { ROUNDS = 5 };
	pid_t forked[ROUNDS], inside[ROUNDS], daemon;
	struct numbers own;
	uint64_t n = 0;

	if (AGAIN_SANITIZED)
		return again_skip("a sanitizer ends children that start threads, or that forget memory");
	alarm(120);
	scratch_new();
	start_in(scratch_dir);
	start_busy();
	for (int i = 0; i < ROUNDS; i++) {
		record_some(n++, 1);
		await(forked[i] = fork_and_record());
		await(inside[i] = fork_inside_a_poll());
		await(fork_without_handlers(false));
		await(fork_without_handlers(true));
		await(vfork_and_exec());
		await(spawn());
		record_some(n++, 1);
	}
	daemon = daemonise();
	record_some(n++, 1);
	stop_busy();
	stop();

	own = numbers_of(scratch_dir, getpid());
	if (own.foreign || own.disorder || own.lost)
		fprintf(stderr, "foreign %lu, disorder %lu, lost %lu: %s\n",
			(unsigned long)own.foreign, (unsigned long)own.disorder,
			(unsigned long)own.lost, lost_causes());
	MUST(!own.foreign && !own.disorder && !own.lost);
	MUST(own.found[OURS] == n && own.polls[OURS] == ROUNDS);
	for (int i = 0; i < THREADS; i++)
		MUST(own.found[i] == busy.n[i] && !own.missing[i]);
	for (int i = 0; i < ROUNDS; i++) {
		check_child(forked[i], 50);
		check_child(inside[i], 50);
	}
	check_child(daemon, 50);
	return 0;
}

/* ---- copies by clone(2), of which no handler is told ---- */

/* A thread's slot is the parent's, whose thread goes on in it when the copy's ends. */
static void *clone_ends(void *arg)
{
	pid_t pid;

	record_some(0, 10);
	pid = fork_raw();
	if (!pid) {
		record_some(10, 5);
		pthread_exit(NULL);
	}
	await(pid);
	MUST(atomic_load(&d9__slot_self()->owner) >> 32 == D9__SLOT_TAKEN);
	return arg;
}

static void note_cloned(void *arg, const struct d9_event *event)
{
	const struct d9_value *pairs = &event->values[0];

	if (event->kind != D9_EVENT_SEGMENT_METADATA)
		return;
	for (size_t i = 0; i < pairs->u.string_map.n; i++) {
		const struct d9_text *pair = &pairs->u.string_map.pairs[2 * i];

		if (pair[0].len == 16 && !memcmp(pair[0].data, "processes.cloned", 16))
			snprintf(arg, 8, "%.*s", (int)pair[1].len, pair[1].data);
	}
}

static int ends_a_clone(void)
{
	char told[8] = "";
	pthread_t thread;
	pid_t pid;

	scratch_new();
	start_in(scratch_dir);
	MUST(!pthread_create(&thread, NULL, clone_ends, NULL) && !pthread_join(thread, NULL));
	record_some(10, 1);
	pid = fork_raw();
	if (!pid) {
		for (int i = 0; i < 3; i++)
			record_some(11, 5);
		_exit(0);
	}
	await(pid);
	/* A child of fork() has not lost any; a sanitizer ends it, as it starts a thread and forgets memory. */
	if (!AGAIN_SANITIZED)
		await(pid = fork_and_record());
	stop();
	MUST(numbers_of(scratch_dir, getpid()).found[OURS] == 11);
	if (!AGAIN_SANITIZED)
		check_child(pid, 50);
	scratch_read(scratch_dir, true, note_cloned, told);
	MUST(!strcmp(told, "2"));
	return 0;
}

/* ---- surroundings ---- */

static unsigned descriptors(void)
{
	return scratch_files("/proc/self/fd", "");
}

/* The program's files get the numbers that ours had, if we had any. */
static int closes_everything(void)
{
	char path[PATH_MAX];
	struct stat st;
	int n = 0;

	if (AGAIN_SANITIZED || again_in_valgrind())
		return again_skip("a sanitizer, or valgrind, has descriptors of its own");
	scratch_new();
	start_in(scratch_dir);
	record_some(0, 100);
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	for (; n < 60; n++) {
		snprintf(path, sizeof(path), "%.3000s/foreign.%d", scratch_dir, n);
		if (open(path, O_RDWR | O_CREAT | O_EXCL, 0600) != n)
			_exit(2);
	}
	if (descriptors() != 61) /* and the one that looks */
		_exit(3);
	for (uint64_t i = 100; i < 20000; i += 100) {
		record_some(i, 100);
		if (i % 5000 == 0 && d9_recorder_rotate(d9_recorder_running(), 10000))
			_exit(4);
	}
	if (d9_recorder_stop(d9_recorder_running(), 20000))
		_exit(5);
	for (int i = 0; i < n; i++)
		if (fstat(i, &st) || st.st_size)
			_exit(6);
	if (numbers_of(scratch_dir, getpid()).found[OURS] != 20000)
		_exit(7);
	return 0;
}

static int has_no_descriptor_left(void)
{
	struct rlimit limit;

	scratch_new();
	MUST(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 16; /* valgrind wants to keep the other one */
	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	start_in(scratch_dir);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	MUST(errno == EMFILE);
	for (uint64_t i = 0; i < 1000; i += 100) {
		int err;

		record_some(i, 100);
		err = d9_recorder_rotate(d9_recorder_running(), 10000);
		/* Under ThreadSanitizer so low a limit leaves us to the program's table, and is told. */
		MUST(!err || (D9__SANITIZED == 2 && err == -EMFILE));
	}
	for (int fd = 3; fd < 16; fd++)
		close(fd);
	stop();
	MUST(numbers_of(scratch_dir, getpid()).found[OURS] == 1000);
	return 0;
}

static int changes_directory(void)
{
	scratch_new();
	MUST(!chdir(scratch_dir));
	start_in("traces");
	record_some(0, 100);
	MUST(!chdir("/"));
	record_some(100, 100);
	MUST(!d9_recorder_rotate(d9_recorder_running(), 10000));
	record_some(200, 100);
	stop();
	strcat(scratch_dir, "/traces");
	MUST(numbers_of(scratch_dir, getpid()).found[OURS] == 300);
	*strrchr(scratch_dir, '/') = '\0';
	return 0;
}

/* The parent looks at the trace: we cannot see it any more. */
static int changes_root(void)
{
	char jail[PATH_MAX];

	if (geteuid() || AGAIN_SANITIZED)
		return again_skip("not root, or a sanitizer needs /proc");
	start_in(again_arg);
	record_some(0, 100);
	snprintf(jail, sizeof(jail), "%.3000s/jail", again_arg);
	MUST(!mkdir(jail, 0700) && !chroot(jail) && !chdir("/"));
	record_some(100, 100);
	MUST(!d9_recorder_rotate(d9_recorder_running(), 10000));
	record_some(200, 100);
	stop();
	return 0;
}

static bool is_paused(void)
{
	return d9_recorder_state(d9_recorder_running()) == D9_RECORDER_PAUSED;
}

/* Nobody gets SIGXFSZ, which would end the process. */
static int has_a_file_size_limit(void)
{
	struct rlimit limit = { 3000, RLIM_INFINITY };
	struct numbers own;

	scratch_new();
	MUST(!setrlimit(RLIMIT_FSIZE, &limit));
	start_in(scratch_dir);
	record_some(0, 20000);
	MUST(AGAIN_WAIT(is_paused()));
	MUST(d9_recorder_error(d9_recorder_running()) == -EFBIG);
	limit.rlim_cur = RLIM_INFINITY;
	MUST(!setrlimit(RLIMIT_FSIZE, &limit));
	MUST(AGAIN_WAIT(!is_paused()));
	record_some(20000, 100);
	stop();
	own = numbers_of(scratch_dir, getpid());
	MUST(own.found[OURS] + own.lost == 20100 && !own.disorder && !own.unnamed);
	return 0;
}

static int has_little_address_space(void)
{
	struct d9_options *options = NULL;
	struct rlimit limit = { 0, RLIM_INFINITY };
	char line[128];
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	int err;

	while (status && !kib && fgets(line, sizeof(line), status))
		(void)!sscanf(line, "VmSize: %lu", &kib);
	fclose(status);
	if (kib > 1ul << 30)
		return again_skip("a sanitizer takes the address space");
	scratch_new();
	limit.rlim_cur = (kib << 10) + (64u << 20);
	MUST(!setrlimit(RLIMIT_AS, &limit));
	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, scratch_dir);
	d9_options_set_ring_mb(options, 100);
	err = d9_recorder_start(options, NULL);
	/* A clean refusal, or it runs; what follows works either way. */
	MUST(!err || err == -ENOMEM || err == -EAGAIN);
	record_some(0, 1000);
	if (!err)
		stop();
	d9_options_free(options);
	return 0;
}

/* Reading ticks would end the thread: the kernel is asked first. */
static int forbids_ticks(void)
{
	if (AGAIN_SANITIZED)
		return again_skip("a sanitizer reads ticks");
	scratch_new();
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
		return again_skip("the kernel cannot forbid ticks");
	start_in(scratch_dir);
	for (uint64_t i = 0; i < 3; i++) {
		record_some(i * 100, 100);
		again_pause_ms(150); /* ticks would be in use by then */
	}
	stop();
	MUST(numbers_of(scratch_dir, getpid()).found[OURS] == 300);
	return 0;
}

/* ---- a main thread that leaves ---- */

static int kept_fd;

/* Runs on whichever thread is the last, with the program's descriptors. */
static void all_is_there(void)
{
	MUST(write(kept_fd, "end", 3) == 3);
	MUST(numbers_of(scratch_dir, getpid()).found[OURS] == 100);
	scratch_remove();
}

static void child_is_there(void)
{
	MUST(numbers_of(scratch_dir, getpid()).found[OURS] == 50);
	_exit(0); /* what the parent registered is not the child's */
}

static void *ends_without_recording(void *arg)
{
	(void)arg;
	again_pause_ms(50);
	return NULL;
}

/* Its child's only thread ends as this one does: by returning. */
static void *records_and_ends(void *arg)
{
	pthread_t other;
	pid_t pid;

	(void)arg;
	record_some(0, 100);
	pid = fork();
	if (!pid) {
		alarm(120);
		atexit(child_is_there);
		record_some(0, 50);
		return NULL;
	}
	await(pid);
	MUST(!pthread_create(&other, NULL, ends_without_recording, NULL));
	pthread_detach(other);
	return NULL;
}

/* As under strict seccomp, where there is no other way to end. */
static int ends_by_the_bare_call(void)
{
	scratch_new();
	start_in(scratch_dir);
	record_some(0, 100);
	syscall(SYS_exit, 7);
	return 1;
}

static int ends_as_alone(void)
{
	int status;

	if (AGAIN_SANITIZED)
		return again_skip("its runtime has threads of its own");
	status = again("ends_by_the_bare_call", NULL);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return 0;
}

static int leaves_main(void)
{
	pthread_t thread;

	if (AGAIN_SANITIZED)
		return again_skip("a sanitizer has threads of its own");
	if (again_in_valgrind())
		return again_skip("the second for which a program waits for its recorder is too short in valgrind");
	alarm(120);
	scratch_new();
	kept_fd = open("/dev/null", O_WRONLY);
	start_in(scratch_dir);
	atexit(all_is_there);
	MUST(!pthread_create(&thread, NULL, records_and_ends, NULL));
	pthread_detach(thread);
	pthread_exit(NULL);
}

/* ---- a wall clock that is set ---- */

static _Atomic(int64_t) shift_ns;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = __real_clock_gettime(id, ts);

	if (id == CLOCK_REALTIME)
		ts->tv_sec += shift_ns / 1000000000;
	return err;
}

struct clocks {
	int64_t offset[16];
	int n;
	uint64_t last_ns;
	bool back;
};

static void note_clock(void *arg, const struct d9_event *event)
{
	struct clocks *clocks = arg;
	int64_t offset;

	if (!strcmp(d9_event_name(event), "Numbered")) {
		clocks->back |= event->timestamp_ns < clocks->last_ns;
		clocks->last_ns = event->timestamp_ns;
	}
	if (strcmp(d9_event_name(event), "ClockSyncEvent") != 0 || clocks->n == 16)
		return;
	offset = (int64_t)(numbered_field(event, "realtime_ns") - event->timestamp_ns);
	/* Two readings a few ns apart; machines slew by less than that is. */
	if (!clocks->n || llabs(offset - clocks->offset[clocks->n - 1]) > 500000000)
		clocks->offset[clocks->n++] = offset;
}

static uint64_t events_written(void)
{
	struct d9_counters counters = { 0 };

	MUST(!d9_recorder_counters(d9_recorder_running(), &counters, sizeof(counters)));
	return counters.events_written;
}

/* So many that full chunks go to the file at once. */
static void record_and_await(uint64_t round)
{
	uint64_t before = events_written();

	record_some(round * 10000, 10000);
	MUST(AGAIN_WAIT(events_written() > before));
}

/* Set ahead and back again: the trace says so, and its stamps know nothing of it. */
static int sets_the_clock(void)
{
	struct clocks clocks = { .n = 0 };

	scratch_new();
	start_in(scratch_dir);
	for (uint64_t i = 0; i < 4; i++) {
		/* What looked at the clock before it was set is over; a pass may write more than once. */
		for (uint64_t k = 0; k < 6; k++)
			record_and_await(6 * i + k);
		shift_ns = i == 0 ? INT64_C(3600000000000) : i == 1 ? INT64_C(-7000000000) : 0;
	}
	stop();
	scratch_read(scratch_dir, true, note_clock, &clocks);
	if (clocks.n != 4 || clocks.back)
		fprintf(stderr, "%d offsets, back: %d\n", clocks.n, clocks.back);
	MUST(clocks.n == 4 && !clocks.back);
	MUST(llabs(clocks.offset[1] - clocks.offset[0] - INT64_C(3600000000000)) < 1000000000);
	MUST(llabs(clocks.offset[2] - clocks.offset[0] + INT64_C(7000000000)) < 1000000000);
	MUST(llabs(clocks.offset[3] - clocks.offset[0]) < 1000000000);
	return 0;
}

/* ---- tests ---- */

static void test_processes_made_beside_busy_threads_record_for_themselves(void)
{
	again_check("makes_processes", NULL);
}

static void test_copies_without_fork_handlers_leave_the_parents_slots_alone_and_are_counted(void)
{
	again_check("ends_a_clone", NULL);
}

static void test_program_that_closes_everything_loses_nothing_and_finds_nothing(void)
{
	again_check("closes_everything", NULL);
}

static void test_program_without_descriptors_is_recorded(void)
{
	again_check("has_no_descriptor_left", NULL);
}

static void test_program_that_changes_directory_is_recorded_where_it_began(void)
{
	again_check("changes_directory", NULL);
}

static uint64_t found_by_pid(const char *dir)
{
	DIR *d = opendir(dir);
	uint64_t n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		const char *hyphen = strchr(e->d_name, '-');

		if (hyphen)
			n += numbers_of(dir, atoi(hyphen + 1)).found[OURS];
	}
	if (d)
		closedir(d);
	return n;
}

static void test_program_that_changes_root_is_recorded_where_it_began(void)
{
	again_check("changes_root", scratch_new());
	CU_ASSERT(geteuid() || AGAIN_SANITIZED || found_by_pid(scratch_dir) == 300);
	scratch_remove();
}

static void test_program_with_a_file_size_limit_is_not_killed_by_us(void)
{
	again_check("has_a_file_size_limit", NULL);
}

static void test_program_with_little_address_space_runs_on(void)
{
	again_check("has_little_address_space", NULL);
}

static void test_program_that_forbids_ticks_is_recorded_by_the_clock(void)
{
	again_check("forbids_ticks", NULL);
}

static void test_program_whose_main_thread_leaves_ends_with_the_others(void)
{
	again_check("leaves_main", NULL);
}

static void test_program_whose_main_thread_ends_by_the_bare_call_ends_as_alone(void)
{
	again_check("ends_as_alone", NULL);
}

static void test_program_whose_wall_clock_is_set_tells_so_and_keeps_its_stamps(void)
{
	again_check("sets_the_clock", NULL);
}

int main(int argc, char **argv)
{
	static const struct again_role roles[] = {
		{ "makes_processes", makes_processes },
		{ "ends_a_clone", ends_a_clone },
		{ "closes_everything", closes_everything },
		{ "has_no_descriptor_left", has_no_descriptor_left },
		{ "changes_directory", changes_directory },
		{ "changes_root", changes_root },
		{ "has_a_file_size_limit", has_a_file_size_limit },
		{ "has_little_address_space", has_little_address_space },
		{ "forbids_ticks", forbids_ticks },
		{ "leaves_main", leaves_main },
		{ "ends_by_the_bare_call", ends_by_the_bare_call },
		{ "ends_as_alone", ends_as_alone },
		{ "sets_the_clock", sets_the_clock },
		{ NULL, NULL },
	};
	static const CU_TestInfo tests[] = {
		{ "processes made beside busy threads record for themselves",
		  test_processes_made_beside_busy_threads_record_for_themselves },
		{ "copies without fork handlers leave the parent's slots alone and are counted",
		  test_copies_without_fork_handlers_leave_the_parents_slots_alone_and_are_counted },
		{ "program that closes everything loses nothing and finds nothing",
		  test_program_that_closes_everything_loses_nothing_and_finds_nothing },
		{ "program without descriptors is recorded",
		  test_program_without_descriptors_is_recorded },
		{ "program that changes directory is recorded where it began",
		  test_program_that_changes_directory_is_recorded_where_it_began },
		{ "program that changes root is recorded where it began",
		  test_program_that_changes_root_is_recorded_where_it_began },
		{ "program with a file size limit is not killed by us",
		  test_program_with_a_file_size_limit_is_not_killed_by_us },
		{ "program with little address space runs on",
		  test_program_with_little_address_space_runs_on },
		{ "program that forbids ticks is recorded by the clock",
		  test_program_that_forbids_ticks_is_recorded_by_the_clock },
		{ "program whose main thread leaves ends with the others",
		  test_program_whose_main_thread_leaves_ends_with_the_others },
		{ "program whose main thread ends by the bare call ends as alone",
		  test_program_whose_main_thread_ends_by_the_bare_call_ends_as_alone },
		{ "program whose wall clock is set tells so and keeps its stamps",
		  test_program_whose_wall_clock_is_set_tells_so_and_keeps_its_stamps },
		CU_TEST_INFO_NULL,
	};
	int role = again_main(argc, argv, roles);

	if (role >= 0) {
		scratch_remove();
		return role;
	}
	return d9_test_main("processes", tests);
}
