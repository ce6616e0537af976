/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of reads, writes and accepts count results, for the task that runs. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "base/sanitized.h"
#include "block/call.h"
#include "block/calls.h"
#include "core/loop/loop_events.h"
#include "loop/loops.h"
#include "record/sampling.h"
#include "support/d9_test.h"

#define NO_TASK 0

static struct d9_loop *loop;
static struct d9_poll poll_;
static uint64_t callback_task; /* of the latest */
static struct d9_loop_run run;

/* ---- callbacks ---- */

static void begin_callback(uint64_t key)
{
	poll_ = (struct d9_poll){ .loop = loop, .task = { .key = key, .fd = -1 } };
	d9_poll_begin(&poll_);
	callback_task = poll_.task_id;
}

static void end_callback(void)
{
	d9_poll_end(&poll_);
}

/* ---- wrappers ---- */

/* As the engine does: not a cast, which compilers warn of. */
typedef void *any_function __attribute__((may_alias));

/* The wrapper of |name| in front of |real|. */
static void *wrap(const char *name, void *real)
{
	for (size_t i = 0; i < D9__CALL_HOOKS; i++) {
		if (strcmp(d9__call_hooks[i].name, name) != 0)
			continue;
		*(any_function *)d9__call_hooks[i].real = real;
		return d9__call_hooks[i].replacement;
	}
	CU_FAIL_FATAL("it is wrapped");
	return NULL;
}

static void *wrapped(const char *name)
{
	return wrap(name, dlsym(RTLD_DEFAULT, name));
}

typedef ssize_t (*read_fn)(int fd, void *buf, size_t n);
typedef ssize_t (*write_fn)(int fd, const void *buf, size_t n);
typedef ssize_t (*recv_fn)(int fd, void *buf, size_t n, int flags);

/* Reads that answer what the test says, without a descriptor. */
static ssize_t answer;

static ssize_t answered_read(int fd, void *buf, size_t n)
{
	(void)fd, (void)buf, (void)n;
	if (answer < 0)
		errno = (int)-answer;
	return answer < 0 ? -1 : answer;
}

static void read_gets(ssize_t result)
{
	read_fn call = wrap("read", (void *)answered_read);
	char buf[8];

	answer = result;
	errno = EXDEV;
	CU_ASSERT_EQUAL(call(42, buf, sizeof(buf)), result < 0 ? -1 : result);
	CU_ASSERT_EQUAL(errno, result < 0 ? -result : EXDEV);
}

/* ---- told ---- */

static const struct loop_events *told;

static void tell(void)
{
	d9__task_io_tell(d9__slot_self(), loop_ns);
	told = loop_events_collect();
}

/* The one event of |task|; without one the test fails. */
static const struct loop_event *told_of(uint64_t task)
{
	const struct loop_event *found = NULL;

	for (size_t i = 0; i < told->n; i++) {
		if (told->items[i].kind != LOOP_TASK_IO || told->items[i].task != task)
			continue;
		CU_ASSERT_PTR_NULL(found);
		found = &told->items[i];
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	return found;
}

static uint64_t sum_of(enum d9__io_figure figure)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < told->n; i++)
		if (told->items[i].kind == LOOP_TASK_IO)
			sum += told->items[i].io[figure];
	return sum;
}

static size_t n_told(void)
{
	return loop_count(told, LOOP_TASK_IO);
}

static void begin_test(void)
{
	atomic_store(&d9__sampling.io, true);
	d9_loop_enter(loop, &run);
	tell();
}

static void end_test(void)
{
	d9_loop_leave(&run);
}

/* ---- tasks ---- */

static void test_calls_count_for_the_task_whose_callback_made_them(void)
{
	uint64_t first, second;

	begin_test();
	begin_callback(1);
	first = callback_task;
	read_gets(5);
	read_gets(3);
	end_callback();
	begin_callback(2);
	second = callback_task;
	read_gets(4);
	end_callback();
	begin_callback(1);
	read_gets(2);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(n_told(), 2);
	CU_ASSERT_EQUAL(told_of(first)->io[D9__IO_READS], 3);
	CU_ASSERT_EQUAL(told_of(first)->io[D9__IO_READ_BYTES], 10);
	CU_ASSERT_EQUAL(told_of(first)->fd, 42);
	CU_ASSERT_FALSE(told_of(first)->shared);
	CU_ASSERT_EQUAL(told_of(second)->io[D9__IO_READS], 1);
	CU_ASSERT_EQUAL(told_of(second)->io[D9__IO_READ_BYTES], 4);
	end_test();
}

static void test_calls_outside_of_callbacks_count_for_no_task(void)
{
	struct d9_loop_run inner;

	begin_test();
	read_gets(5);
	d9_loop_park(loop, true);
	read_gets(6);
	d9_loop_unpark(loop);
	begin_callback(1);
	d9_loop_enter(loop, &inner);
	d9_loop_park(loop, true);
	read_gets(7);
	d9_loop_unpark(loop);
	d9_loop_leave(&inner);
	end_callback();
	end_test();
	read_gets(8);
	tell();
	CU_ASSERT_EQUAL(n_told(), 1);
	CU_ASSERT_EQUAL(told_of(NO_TASK)->io[D9__IO_READS], 4);
	CU_ASSERT_EQUAL(told_of(NO_TASK)->io[D9__IO_READ_BYTES], 5 + 6 + 7 + 8);
	CU_ASSERT_FALSE(told_of(NO_TASK)->shared);
}

static void test_what_was_told_is_not_told_again(void)
{
	begin_test();
	begin_callback(1);
	read_gets(5);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(n_told(), 1);
	tell();
	CU_ASSERT_EQUAL(n_told(), 0);
	begin_callback(1);
	read_gets(2);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READS], 1);
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READ_BYTES], 2);
	end_test();
}

static void test_without_calls_nothing_is_told(void)
{
	begin_test();
	begin_callback(1);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(n_told(), 0);
	end_test();
}

#define MANY 100

/* Each of |MANY| tasks reads once. */
static void read_in_many(uint64_t first_key, uint64_t last[MANY])
{
	for (uint64_t i = 0; i < MANY; i++) {
		begin_callback(first_key + i);
		read_gets(1);
		last[i] = callback_task;
		end_callback();
	}
}

static size_t n_shared(void)
{
	size_t n = 0;

	for (size_t i = 0; i < told->n; i++)
		n += told->items[i].kind == LOOP_TASK_IO && told->items[i].shared;
	return n;
}

static void test_more_tasks_than_there_are_rows_count_by_callback(void)
{
	uint64_t ids[MANY];

	begin_test();
	read_in_many(1000, ids);
	tell();
	CU_ASSERT_EQUAL(n_told(), D9__IO_TASKS - 1 + 1);
	CU_ASSERT_EQUAL(n_shared(), 1);
	CU_ASSERT_EQUAL(sum_of(D9__IO_READS), MANY);
	CU_ASSERT_EQUAL(told_of(ids[0])->io[D9__IO_READS], 1);
	for (size_t i = 0; i < told->n; i++)
		if (told->items[i].kind == LOOP_TASK_IO && told->items[i].shared)
			CU_ASSERT(told->items[i].task != NO_TASK);
	end_test();
}

static void test_rows_of_tasks_that_were_told_are_there_for_others(void)
{
	uint64_t ids[MANY];

	begin_test();
	read_in_many(2000, ids);
	tell();
	begin_callback(3000);
	read_gets(9);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(n_told(), 1);
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READ_BYTES], 9);
	CU_ASSERT_FALSE(told_of(callback_task)->shared);
	end_test();
}

/* As many callbacks as there are tasks. */
static void read_in_many_callbacks(void)
{
	static const char places[MANY];

	for (uint64_t i = 0; i < MANY; i++) {
		poll_ = (struct d9_poll){ .loop = loop, .task = { .key = 4000 + i, .fd = -1 } };
		poll_.task.callsite = d9_callsite(&places[i], NULL, 0);
		d9_poll_begin(&poll_);
		read_gets(1);
		d9_poll_end(&poll_);
	}
}

static void test_callbacks_that_find_no_row_are_told_together(void)
{
	begin_test();
	read_in_many_callbacks();
	tell();
	CU_ASSERT_EQUAL(n_told(), D9__IO_ROWS - 1);
	CU_ASSERT_EQUAL(sum_of(D9__IO_READS), MANY);
	CU_ASSERT_EQUAL(told_of(NO_TASK)->io[D9__IO_READS],
			MANY - (D9__IO_TASKS - 1) - D9__IO_CALLBACKS);
	CU_ASSERT(told_of(NO_TASK)->shared);
	end_test();
}

/* ---- outcomes ---- */

static void test_each_outcome_has_a_figure(void)
{
	const struct loop_event *event;

	begin_test();
	begin_callback(1);
	read_gets(8);
	read_gets(0);
	read_gets(0);
	read_gets(-EAGAIN);
	read_gets(-EAGAIN);
	read_gets(-EAGAIN);
	read_gets(-EINTR);
	read_gets(-ECONNRESET);
	end_callback();
	tell();
	event = told_of(callback_task);
	CU_ASSERT_EQUAL(event->io[D9__IO_READS], 8);
	CU_ASSERT_EQUAL(event->io[D9__IO_READ_BYTES], 8);
	CU_ASSERT_EQUAL(event->io[D9__IO_EOF], 2);
	CU_ASSERT_EQUAL(event->io[D9__IO_AGAIN], 3);
	CU_ASSERT_EQUAL(event->io[D9__IO_ERRORS], 2);
	CU_ASSERT_EQUAL(event->last_errno, ECONNRESET);
	CU_ASSERT_EQUAL(event->io[D9__IO_WRITES], 0);
	/* The errno of an earlier second is not said again. */
	begin_callback(1);
	read_gets(1);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(told_of(callback_task)->last_errno, 0);
	end_test();
}

static void test_an_empty_read_is_no_end_and_a_look_takes_no_bytes(void)
{
	read_fn read_ = wrapped("read");
	recv_fn recv_ = wrapped("recv");
	ssize_t (*readv_)(int, const struct iovec *, int) = wrapped("readv");
	struct iovec none = { NULL, 0 };
	const struct loop_event *event;
	char buf[8];
	int fds[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CU_ASSERT_EQUAL_FATAL(write(fds[1], "abc", 3), 3);
	begin_test();
	begin_callback(1);
	CU_ASSERT_EQUAL(read_(fds[0], buf, 0), 0);
	CU_ASSERT_EQUAL(readv_(fds[0], &none, 1), 0);
	CU_ASSERT_EQUAL(recv_(fds[0], buf, sizeof(buf), MSG_PEEK), 3);
	CU_ASSERT_EQUAL(recv_(fds[0], buf, sizeof(buf), 0), 3);
	close(fds[1]);
	CU_ASSERT_EQUAL(recv_(fds[0], buf, sizeof(buf), MSG_PEEK), 0);
	end_callback();
	tell();
	event = told_of(callback_task);
	CU_ASSERT_EQUAL(event->io[D9__IO_READS], 5);
	CU_ASSERT_EQUAL(event->io[D9__IO_READ_BYTES], 3);
	CU_ASSERT_EQUAL(event->io[D9__IO_EOF], 1);
	CU_ASSERT_EQUAL(event->fd, (uint64_t)fds[0]);
	end_test();
	close(fds[0]);
}

static void test_messages_count_as_one_call_with_their_bytes(void)
{
	ssize_t (*sendmsg_)(int, const struct msghdr *, int) = wrapped("sendmsg");
	ssize_t (*recvmsg_)(int, struct msghdr *, int) = wrapped("recvmsg");
	int (*sendmmsg_)(int, struct mmsghdr *, unsigned, int) = wrapped("sendmmsg");
	int (*recvmmsg_)(int, struct mmsghdr *, unsigned, int, struct timespec *) =
		wrapped("recvmmsg");
	char text[2][8] = { "abcdefg", "hi" };
	struct iovec parts[2] = { { text[0], 5 }, { text[1], 2 } };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &parts[0], .msg_iovlen = 1 } },
				       { .msg_hdr = { .msg_iov = &parts[1], .msg_iovlen = 1 } } };
	const struct loop_event *event;
	int fds[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
	begin_test();
	begin_callback(1);
	CU_ASSERT_EQUAL(sendmmsg_(fds[0], messages, 2, 0), 2);
	CU_ASSERT_EQUAL(sendmsg_(fds[0], &messages[1].msg_hdr, 0), 2);
	CU_ASSERT_EQUAL(recvmmsg_(fds[1], messages, 2, 0, NULL), 2);
	CU_ASSERT_EQUAL(recvmsg_(fds[1], &messages[1].msg_hdr, 0), 2);
	CU_ASSERT_EQUAL(recvmsg_(fds[1], &messages[1].msg_hdr, MSG_DONTWAIT), -1);
	CU_ASSERT_EQUAL(recvmsg_(fds[1], NULL, MSG_DONTWAIT), -1);
	CU_ASSERT_EQUAL(send(fds[0], NULL, 0, 0), 0);
	CU_ASSERT_EQUAL(recvmmsg_(fds[1], messages, 2, MSG_DONTWAIT, NULL), 1);
	end_callback();
	tell();
	event = told_of(callback_task);
	CU_ASSERT_EQUAL(event->io[D9__IO_WRITES], 2);
	CU_ASSERT_EQUAL(event->io[D9__IO_WRITE_BYTES], 5 + 2 + 2);
	CU_ASSERT_EQUAL(event->io[D9__IO_READS], 5);
	CU_ASSERT_EQUAL(event->io[D9__IO_READ_BYTES], 5 + 2 + 2);
	CU_ASSERT_EQUAL(event->io[D9__IO_AGAIN], 1);
	CU_ASSERT_EQUAL(event->io[D9__IO_ERRORS], 1);
	CU_ASSERT_EQUAL(event->last_errno, EFAULT);
	CU_ASSERT_EQUAL(event->io[D9__IO_EOF], 1);
	end_test();
	close(fds[0]);
	close(fds[1]);
}

static void test_writes_and_accepts_are_told_apart_from_reads(void)
{
	write_fn write_ = wrapped("write");
	int (*accept_)(int, struct sockaddr *, socklen_t *) = wrapped("accept");
	int (*accept4_)(int, struct sockaddr *, socklen_t *, int) = wrapped("accept4");
	const struct loop_event *event;
	int fds[2];

	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	begin_test();
	begin_callback(1);
	CU_ASSERT_EQUAL(write_(fds[1], "abcd", 4), 4);
	CU_ASSERT_EQUAL(accept_(fds[0], NULL, NULL), -1);
	CU_ASSERT_EQUAL(accept4_(-5, NULL, NULL, 0), -1);
	end_callback();
	tell();
	event = told_of(callback_task);
	CU_ASSERT_EQUAL(event->io[D9__IO_WRITES], 1);
	CU_ASSERT_EQUAL(event->io[D9__IO_WRITE_BYTES], 4);
	CU_ASSERT_EQUAL(event->io[D9__IO_READS], 0);
	CU_ASSERT_EQUAL(event->io[D9__IO_ACCEPTS], 2);
	CU_ASSERT_EQUAL(event->io[D9__IO_ERRORS], 2);
	CU_ASSERT_EQUAL(event->last_errno, EBADF);
	CU_ASSERT_EQUAL(event->fd, UINT64_MAX); /* there is none */
	end_test();
	close(fds[0]);
	close(fds[1]);
}

/* ---- not counted ---- */

static void test_nothing_counts_that_was_not_asked_for(void)
{
	begin_test();
	begin_callback(1);
	atomic_store(&d9__sampling.io, false);
	read_gets(5);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(n_told(), 0);
	end_test();
}

static void test_nothing_counts_while_recording_is_off(void)
{
	begin_test();
	begin_callback(1);
	d9__gate_set(0);
	read_gets(5);
	d9__gate_set(D9__GATE_ALL);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(n_told(), 0);
	end_test();
}

static void *read_without_loop(void *arg)
{
	read_gets(5);
	return arg;
}

static void test_threads_without_a_loop_do_not_count(void)
{
	pthread_t thread;

	begin_test();
	pthread_create(&thread, NULL, read_without_loop, NULL);
	pthread_join(thread, NULL);
	tell();
	CU_ASSERT_EQUAL(n_told(), 0);
	end_test();
}

static void test_a_forked_child_counts_nothing_and_tells_nothing_of_its_parent(void)
{
	int status = 0;
	pid_t pid;

	begin_test();
	begin_callback(1);
	read_gets(5);
	pid = fork();
	if (!pid) {
		read_gets(5);
		_exit(d9__self.thread->io.row ? 1 : 0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READS], 1);
	end_test();
}

/* ---- signals ---- */

static void read_in_handler(int signal)
{
	(void)signal;
	read_gets(3);
}

/* As if this thread stood inside a count that began at |address| of its stack. */
static void pretend_to_count(uintptr_t address)
{
	atomic_store(&d9__self.thread->io.counting, address);
}

static void test_a_handler_counts_but_not_inside_a_count(void)
{
	struct sigaction action = { .sa_handler = read_in_handler };

	sigaction(SIGUSR1, &action, NULL);
	begin_test();
	begin_callback(1);
	raise(SIGUSR1);
	pretend_to_count(UINTPTR_MAX);
	raise(SIGUSR1);
	pretend_to_count(0);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READS], 1);
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READ_BYTES], 3);
	end_test();
}

static void test_a_count_that_was_left_by_a_jump_stops_no_later_one(void)
{
	begin_test();
	begin_callback(1);
	pretend_to_count(1);
	read_gets(4);
	CU_ASSERT_EQUAL(atomic_load(&d9__self.thread->io.counting), 0);
	end_callback();
	tell();
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READS], 1);
	end_test();
}

static void *read_in_vfork(void *arg)
{
	pid_t pid = vfork();

	if (!pid) {
		read_gets(7);
		_exit(0);
	}
	*(int *)arg = waitpid(pid, NULL, 0) == pid;
	return arg;
}

/* It has the memory of its parent, which stands still meanwhile. */
static void test_a_child_of_vfork_counts_for_the_callback_that_made_it(void)
{
	int ended = 0;

	if (D9__SANITIZED == 2)
		return; /* ThreadSanitizer makes it a fork() */
	begin_test();
	begin_callback(1);
	read_gets(1);
	read_in_vfork(&ended);
	read_gets(2);
	end_callback();
	tell();
	CU_ASSERT(ended);
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READS], 3);
	CU_ASSERT_EQUAL(told_of(callback_task)->io[D9__IO_READ_BYTES], 1 + 7 + 2);
	end_test();
}

/* ---- many threads ---- */

#define THREADS 3
#define ROUNDS	4000

static _Atomic(unsigned) n_running;
static read_fn shared_read;

static ssize_t instant_read(int fd, void *buf, size_t n)
{
	(void)fd, (void)buf;
	return (ssize_t)n;
}

static void *read_often(void *arg)
{
	struct d9_loop *own = loop_events_add(D9_LIBRARY_LIBEV, arg);
	struct d9_loop_run own_run;
	char buf[8];

	d9_loop_enter(own, &own_run);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct d9_poll poll = { .loop = own, .task = { .key = 1 + i % MANY, .fd = -1 } };

		d9_poll_begin(&poll);
		CU_ASSERT_EQUAL(shared_read(42, buf, sizeof(buf)), sizeof(buf));
		d9_poll_end(&poll);
	}
	d9_loop_leave(&own_run);
	atomic_fetch_sub(&n_running, 1);
	return NULL;
}

/* Some are told while they count, the others as they end. */
static void test_each_call_is_told_once_however_many_threads_count(void)
{
	static char addresses[THREADS];
	pthread_t threads[THREADS];
	uint64_t ns = loop_ns;

	begin_test();
	end_test();
	shared_read = wrap("read", (void *)instant_read);
	atomic_store(&n_running, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, read_often, &addresses[i]);
	for (unsigned i = 0; atomic_load(&n_running) && i < 200; i++)
		d9__task_io_tell(d9__slot_self(), ns);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	tell();
	CU_ASSERT_EQUAL(sum_of(D9__IO_READS), THREADS * ROUNDS);
	CU_ASSERT_EQUAL(sum_of(D9__IO_READ_BYTES), THREADS * ROUNDS * 8);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "calls count for the task whose callback made them",
		  test_calls_count_for_the_task_whose_callback_made_them },
		{ "calls outside of callbacks count for no task",
		  test_calls_outside_of_callbacks_count_for_no_task },
		{ "what was told is not told again", test_what_was_told_is_not_told_again },
		{ "without calls nothing is told", test_without_calls_nothing_is_told },
		{ "more tasks than there are rows count by callback",
		  test_more_tasks_than_there_are_rows_count_by_callback },
		{ "rows of tasks that were told are there for others",
		  test_rows_of_tasks_that_were_told_are_there_for_others },
		{ "callbacks that find no row are told together",
		  test_callbacks_that_find_no_row_are_told_together },
		{ "each outcome has a figure", test_each_outcome_has_a_figure },
		{ "an empty read is no end, and a look takes no bytes",
		  test_an_empty_read_is_no_end_and_a_look_takes_no_bytes },
		{ "messages count as one call, with their bytes",
		  test_messages_count_as_one_call_with_their_bytes },
		{ "writes and accepts are told apart from reads",
		  test_writes_and_accepts_are_told_apart_from_reads },
		{ "nothing counts that was not asked for",
		  test_nothing_counts_that_was_not_asked_for },
		{ "nothing counts while recording is off",
		  test_nothing_counts_while_recording_is_off },
		{ "threads without a loop do not count", test_threads_without_a_loop_do_not_count },
		{ "a forked child counts nothing, and tells nothing of its parent",
		  test_a_forked_child_counts_nothing_and_tells_nothing_of_its_parent },
		{ "a handler counts, but not inside a count",
		  test_a_handler_counts_but_not_inside_a_count },
		{ "a count that was left by a jump stops no later one",
		  test_a_count_that_was_left_by_a_jump_stops_no_later_one },
		{ "a child of vfork() counts for the callback that made it",
		  test_a_child_of_vfork_counts_for_the_callback_that_made_it },
		{ "each call is told once, however many threads count",
		  test_each_call_is_told_once_however_many_threads_count },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_LIBEVENT, &loop);
	return d9_test_main("task I/O", tests);
}
