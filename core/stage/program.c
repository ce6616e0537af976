/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "read/input.h"
#include "stage/clean_environment.h"
#include "stage/program.h"

#define TICK_MS	 10
#define GRACE_NS (1000 * D9__MS_NS) /* for processes that still write when the program has ended   \
				     */

static volatile pid_t running;

struct pump {
	const struct d9__program *program;
	struct d9__program_end *end;
	pid_t pid;
	int from, to;
	uint64_t at;	  /* of |from| */
	uint64_t taken;	  /* bytes of its standard output */
	int in, out, err; /* the pipes' ends here; -1: closed */
	int child_in, child_out, child_err;
	size_t said;
	char sent[16 << 10], got[64 << 10];
	size_t n_sent, sent_from;
};

/* ---- starting it ---- */

static void be_default(void)
{
	static const int signals[] = { SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP };
	sigset_t none;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Limit the data segment, not the address space, because runtimes reserve gigabytes that they never
 * touch.
 */
static void limit_memory(uint64_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	if (bytes)
		setrlimit(RLIMIT_DATA, &limit);
}

static void become(const struct pump *pump, pid_t parent, char **variables)
{
	const struct d9__program *program = pump->program;
	int status;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	be_default();
	if (dup2(pump->child_in, 0) < 0 || dup2(pump->child_out, 1) < 0 ||
	    dup2(pump->child_err, 2) < 0)
		_exit(127);
	limit_memory(program->limit_bytes);
	if (!program->argv) {
		status = program->call(program->path);
		fflush(stdout);
		_exit(status);
	}
	environ = variables;
	execvp(program->argv[0], program->argv);
	dprintf(2, "it cannot be started: %s\n", strerror(errno));
	_exit(127);
}

/* Skip numbers 0 to 2, because these become the program's standard streams. */
static int new_pipe(int *reads, int *writes)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*reads = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
	*writes = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
	close(ends[0]);
	close(ends[1]);
	return *reads < 0 || *writes < 0 ? -EMFILE : 0;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct pump *pump)
{
	int *const ends[] = { &pump->in,       &pump->out,	 &pump->err,
			      &pump->child_in, &pump->child_out, &pump->child_err };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		close_end(ends[i]);
}

static int open_pipes(struct pump *pump)
{
	int err = new_pipe(&pump->child_in, &pump->in);

	if (!err)
		err = new_pipe(&pump->out, &pump->child_out);
	if (!err)
		err = new_pipe(&pump->err, &pump->child_err);
	if (err)
		return err;
	fcntl(pump->in, F_SETFL, O_NONBLOCK);
	fcntl(pump->out, F_SETFL, O_NONBLOCK);
	fcntl(pump->err, F_SETFL, O_NONBLOCK);
	return 0;
}

static int start(struct pump *pump)
{
	char *variables[D9__CLEAN_VARIABLES + 2];
	pid_t parent = getpid();

	d9__clean_environment(variables, pump->program->facts);
	signal(SIGPIPE, SIG_IGN);
	fflush(NULL);
	pump->pid = fork();
	if (!pump->pid)
		become(pump, parent, variables);
	if (pump->pid < 0)
		return -errno;
	running = pump->pid;
	setpgid(pump->pid, pump->pid);
	close_end(&pump->child_in);
	close_end(&pump->child_out);
	close_end(&pump->child_err);
	return 0;
}

/* ---- while it runs ---- */

/* Write to the program; it need not read everything, or anything. */
static void feed(struct pump *pump)
{
	ssize_t n = 1;

	while (n > 0) {
		if (!pump->n_sent) {
			n = pump->from < 0 ? 0
					   : pread(pump->from, pump->sent, sizeof(pump->sent),
						   (off_t)pump->at);
			if (n <= 0)
				break;
			pump->at += (uint64_t)n;
			pump->n_sent = (size_t)n;
			pump->sent_from = 0;
		}
		n = write(pump->in, pump->sent + pump->sent_from, pump->n_sent);
		if (n > 0) {
			pump->sent_from += (size_t)n;
			pump->n_sent -= (size_t)n;
		}
	}
	if (!n || (errno != EAGAIN && errno != EINTR))
		close_end(&pump->in);
}

static void take(struct pump *pump)
{
	struct d9__program_end *end = pump->end;
	ssize_t n;

	while (!end->write_err && !end->too_much &&
	       (n = read(pump->out, pump->got, sizeof(pump->got))) > 0) {
		pump->taken += (uint64_t)n;
		end->too_much =
			pump->program->limit_bytes && pump->taken > pump->program->limit_bytes;
		if (!end->too_much)
			end->write_err = d9__write_all(pump->to, pump->got, (size_t)n);
	}
	if (!end->write_err && !end->too_much && (!n || (errno != EAGAIN && errno != EINTR)))
		close_end(&pump->out);
}

/*
 * Keep the beginning of standard error and read the rest, so that a program that writes much does
 * not block.
 */
static void listen_to(struct pump *pump)
{
	struct d9__program_end *end = pump->end;
	ssize_t n = read(pump->err, pump->got, sizeof(pump->got));

	if (n > 0) {
		size_t room = sizeof(end->said) - 1 - pump->said;
		size_t kept = (size_t)n < room ? (size_t)n : room;

		memcpy(end->said + pump->said, pump->got, kept);
		pump->said += kept;
	}
	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_end(&pump->err);
}

static void wait_and_move(struct pump *pump, uint64_t until_ns)
{
	struct pollfd ends[] = { { pump->in, POLLOUT, 0 },
				 { pump->out, POLLIN, 0 },
				 { pump->err, POLLIN, 0 } };
	uint64_t now = d9__mono_ns(),
		 left_ms = now < until_ns ? (until_ns - now) / D9__MS_NS + 1 : 0;

	poll(ends, 3, left_ms < TICK_MS ? (int)left_ms : TICK_MS);
	if (pump->program->pulse)
		pump->program->pulse(pump->program->context);
	if (ends[0].revents)
		feed(pump);
	if (ends[1].revents)
		take(pump);
	if (ends[2].revents)
		listen_to(pump);
}

static bool has_ended(const struct pump *pump)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t)pump->pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid == pump->pid;
}

static bool is_refused(const struct pump *pump)
{
	return pump->end->too_much || pump->end->write_err;
}

/* Run until the program has ended and its pipes are closed, but no longer than it may. */
static void run(struct pump *pump)
{
	uint64_t until_ns = d9__mono_ns() + pump->program->timeout_ns;
	bool ended = false;

	while (!is_refused(pump) && d9__mono_ns() < until_ns) {
		if (!ended && has_ended(pump)) {
			ended = true;
			until_ns = d9__mono_ns() + GRACE_NS < until_ns ? d9__mono_ns() + GRACE_NS
								       : until_ns;
		}
		if (ended && pump->out < 0)
			break;
		wait_and_move(pump, until_ns);
	}
	if (pump->err >= 0)
		listen_to(pump);
	pump->end->timed_out = !ended && !is_refused(pump);
	pump->end->held = ended && pump->out >= 0 && !is_refused(pump);
}

/*
 * Kill what is left of the group.  Its number cannot have been reused, because the group keeps it
 * while it has a process.
 */
static void end_group(struct pump *pump)
{
	if (pump->end->timed_out || is_refused(pump))
		kill(-pump->pid, SIGKILL);
	while (waitpid(pump->pid, &pump->end->status, 0) < 0 && errno == EINTR)
		;
	running = 0;
	pump->end->left = !kill(-pump->pid, SIGKILL);
}

int d9__program_run(const struct d9__program *program, int from, int to,
		    struct d9__program_end *end)
{
	struct pump *pump = calloc(1, sizeof(*pump));
	int err;

	if (!pump)
		return -ENOMEM;
	*end = (struct d9__program_end) { 0 };
	pump->program = program;
	pump->end = end;
	pump->from = from;
	pump->to = to;
	pump->in = pump->out = pump->err = pump->child_in = pump->child_out = pump->child_err = -1;
	err = open_pipes(pump);
	if (!err)
		err = start(pump);
	if (!err) {
		run(pump);
		end_group(pump);
		end->said[strcspn(end->said, "\n")] = '\0';
	}
	close_all(pump);
	free(pump);
	return err;
}

static void end_both(int sig)
{
	if (running > 0)
		kill(-running, SIGKILL);
	signal(sig, SIG_DFL);
	raise(sig);
}

void d9__program_guard(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signal(signals[i], end_both) == SIG_IGN)
			signal(signals[i], SIG_IGN);
}
