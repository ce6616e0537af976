/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/time.h"
#include "text/fail.h"
#include "tool/args.h"
#include "watch/control.h"
#include "watch/dir_fault.h"

#define WORDS_BYTES (D9__RING_FULL_AT - D9__RING_CONTROL_AT)
#define TURN_NS	    (10 * D9__MS_NS)
#define ANSWER_NS   (10 * D9__SECOND_NS)

/* ---- the words ---- */

/* SIGBUS: the ring's process cut it short while it was mapped here. */
static void ring_was_cut(int signal)
{
	static const char line[] = "dial9: the ring of the process was cut short\n";

	(void)signal;
	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(D9__EXIT_FINDING);
	_exit(D9__EXIT_FINDING);
}

/* 0 or -errno. */
static int map_words(struct d9__control *control)
{
	char path[64];
	void *p;
	int fd, err = 0;

	/* Memory without a file cannot be shared afterwards. */
	if (control->view.at)
		return -ENOTSUP;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", control->view.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	signal(SIGBUS, ring_was_cut);
	p = mmap(NULL, WORDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, D9__RING_CONTROL_AT);
	if (p == MAP_FAILED)
		err = -errno;
	else {
		control->words = p;
		control->trigger = (void *)((uint8_t *)p + (D9__RING_TRIGGER_AT - D9__RING_CONTROL_AT));
	}
	close(fd);
	return err;
}

static int explain(const struct d9__control *control, int err)
{
	int pid = (int)control->pid;

	switch (err) {
	case -ESRCH:
		d9__cmd_fail(control->command, "no process %d", pid);
		break;
	case -ENOENT:
		d9__cmd_fail(control->command, "process %d has no recorder", pid);
		break;
	case -EACCES:
	case -EPERM:
		d9__cmd_fail(control->command,
			     "process %d: only its user and root may do that", pid);
		break;
	case -ENOTSUP:
		d9__cmd_fail(control->command,
			     "process %d keeps its ring in memory of its own, which others cannot "
			     "write to; start it with DIAL9_RING=memfd or shm", pid);
		break;
	default:
		d9__cmd_fail(control->command, "process %d: %s", pid, d9__ring_view_strerror(err));
	}
	return D9__EXIT_FINDING;
}

int d9__control_open(struct d9__control *control, const char *command, const char *text)
{
	uint64_t pid;
	int err;

	*control = (struct d9__control){ .command = command, .view = { .fd = -1 } };
	if (!d9__parse_u64(text, &pid) || !pid || pid > INT_MAX)
		return d9__cmd_fail(command, "'%s' is no process id", text);
	control->pid = (pid_t)pid;
	err = d9__ring_view_of_process(&control->view, control->pid);
	if (err)
		return explain(control, err);
	err = map_words(control);
	if (!err)
		return 0;
	d9__control_close(control);
	return explain(control, err);
}

void d9__control_close(struct d9__control *control)
{
	if (control->words)
		munmap(control->words, WORDS_BYTES);
	control->words = NULL;
	d9__ring_view_close(&control->view);
}

void d9__control_wake(struct d9__control *control)
{
	/*
	 * release: the process that reads the new number also reads the request written before it
	 */
	atomic_fetch_add_explicit(&control->words->futex, 1, memory_order_release);
	syscall(SYS_futex, &control->words->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int d9__control_take_turn(struct d9__control *control, _Atomic(uint32_t) *owner, uint64_t timeout_ns)
{
	uint32_t nobody = 0, me = (uint32_t)getpid();

	for (uint64_t waited_ns = 0; !waited_ns || waited_ns < timeout_ns; waited_ns += TURN_NS) {
		if (atomic_compare_exchange_strong(owner, &nobody, me))
			return 0;
		if (kill((pid_t)nobody, 0) && errno == ESRCH && atomic_compare_exchange_strong(owner, &nobody, me))
			return 0;
		nobody = 0;
		nanosleep(&(struct timespec){ 0, TURN_NS }, NULL);
	}
	d9__cmd_fail(control->command, "process %d is busy with another dial9 %s", (int)control->pid, control->command);
	return D9__EXIT_FINDING;
}

void d9__control_end_turn(_Atomic(uint32_t) *owner)
{
	uint32_t me = (uint32_t)getpid();

	atomic_compare_exchange_strong(owner, &me, 0);
}

/* ---- answers ---- */

static int no_answer(const struct d9__control *control)
{
	int pid = (int)control->pid;

	switch (d9__ring_view_owner(&control->view)) {
	case D9__OWNER_SUSPENDED:
		d9__cmd_fail(control->command,
			     "process %d is stopped by a signal or a debugger; it will do it when it "
			     "goes on", pid);
		break;
	case D9__OWNER_DEAD:
		d9__cmd_fail(control->command, "process %d has ended", pid);
		break;
	default:
		d9__cmd_fail(control->command, "process %d does not answer; see: dial9 status %d",
			     pid, pid);
	}
	return D9__EXIT_FINDING;
}

int d9__control_cannot_write(const struct d9__control *control, const char *trace_dir, int err)
{
	char fault[D9__DIR_FAULT_LEN];

	d9__cmd_fail(control->command, "process %d cannot write to its trace directory %s: %s%s; see: dial9 status %d",
		     (int)control->pid, trace_dir, d9_strerror(err),
		     d9__dir_fault(fault, control->pid, trace_dir, control->view.header.boot_id, D9__DIR_TRACE,
				   err),
		     (int)control->pid);
	return D9__EXIT_FINDING;
}

static int not_rotated(const struct d9__control *control, int err)
{
	int pid = (int)control->pid;

	if (err != -ENOTSUP)
		return d9__control_cannot_write(control, control->view.header.trace_dir, err);
	d9__cmd_fail(control->command,
		     "process %d is in flight mode and has no segment to seal; for what its ring holds: "
		     "dial9 dump %d", pid, pid);
	return D9__EXIT_FINDING;
}

int d9__control_await(struct d9__control *control, const _Atomic(uint32_t) *done, uint32_t number,
		      uint64_t timeout_ns)
{
	uint64_t end_ns = d9__mono_ns() + timeout_ns, pause_ns = D9__MS_NS / 4,
		 look_ns = d9__mono_ns();

	/* acquire: pairs with the process's release of its answer */
	while ((int32_t)(atomic_load_explicit(done, memory_order_acquire) - number) < 0) {
		uint64_t now = d9__mono_ns();

		if (now >= end_ns)
			return no_answer(control);
		if (now - look_ns > D9__SECOND_NS) {
			look_ns = now;
			if (d9__ring_view_owner(&control->view) != D9__OWNER_ALIVE)
				return no_answer(control);
		}
		nanosleep(&(struct timespec){ 0, (long)pause_ns }, NULL);
		if (pause_ns < 20 * D9__MS_NS)
			pause_ns += pause_ns / 8;
	}
	return 0;
}

int d9__control_ask(struct d9__control *control, uint32_t wanted)
{
	struct d9__ring_control *words = control->words;
	uint32_t number;
	int status, err;

	if (!wanted) {
		number = atomic_fetch_add_explicit(&words->rotate_requested, 1,
						   memory_order_acq_rel) + 1;
		d9__control_wake(control);
		status = d9__control_await(control, &words->rotate_done, number, ANSWER_NS);
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): who could not open it does not ask */
		err = atomic_load_explicit(&words->rotate_err, memory_order_relaxed);
		return status || !err ? status : not_rotated(control, err);
	}
	number = atomic_load_explicit(&words->wanted, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&words->wanted, &number,
						      ((number >> 8) + 1) << 8 | wanted,
						      memory_order_acq_rel, memory_order_relaxed))
		;
	d9__control_wake(control);
	return d9__control_await(control, &words->wanted_done, ((number >> 8) + 1) << 8 | wanted,
				 ANSWER_NS);
}

int d9__control_command(int argc, char **argv, const struct d9__usage *usage, uint32_t wanted)
{
	struct d9__args args = { .usage = usage, .argc = argc, .argv = argv };
	struct d9__control control;
	int key = d9__args_next(&args), status;

	if (key < 0)
		return d9__args_exit(key);
	if (args.first + 1 != argc)
		return d9__cmd_fail(usage->command, "which PID? see dial9 %s --help", usage->command);
	status = d9__control_open(&control, usage->command, argv[args.first]);
	if (status)
		return status;
	status = d9__control_ask(&control, wanted);
	d9__control_close(&control);
	return status;
}
