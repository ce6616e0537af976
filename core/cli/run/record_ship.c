/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/record_ship.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/store_name.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/run/record_child.h"
#include "ship/shipped.h"
#include "ship/tree.h"
#include "stage/words.h"

#define OWN_PROGRAM "/proc/self/exe"
#define NO_TRACES   "/proc/self/fdinfo" /* a directory with nothing to send: to have options judged */
#define STEP_NS	    UINT64_C(20000000)	/* between two looks whether it has ended */
#define GRACE_NS    UINT64_C(2000000000) /* beyond the deadline that it knows of itself */
#define NICE	    10
#define OWN_WORDS   8

/* ---- a `dial9 ship` ---- */

/*
 * Close every other descriptor, because the caller of `dial9 record` left them open for CMD alone.
 */
static void close_others(void)
{
	struct rlimit limit;

	if (!syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	for (int fd = STDERR_FILENO + 1; fd < (int)(limit.rlim_cur < 65536 ? limit.rlim_cur : 65536); fd++)
		close(fd);
}

/* In the child.  Nothing waits for it any longer than for this process: it ends with that. */
static _Noreturn void become(char **argv, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(D9__EXIT_USAGE);
	close_others();
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpriority(PRIO_PROCESS, 0, NICE);
	execv(OWN_PROGRAM, argv);
	d9__cmd_fail("record", "--ship: dial9 ship cannot be run: %s", strerror(errno));
	_exit(D9__EXIT_USAGE);
}

/* `dial9 ship OWN... MORE... -- DIR`; the list is to be freed, its texts are borrowed.  NULL: no memory. */
static char **make_argv(const struct d9__record_ship *ship, const char *const *own, const char *dir)
{
	size_t n = 0, words = 0;
	const char **argv;

	while (ship->words && ship->words[words])
		words++;
	argv = calloc(words + OWN_WORDS + 7, sizeof(*argv));
	if (!argv)
		return NULL;
	argv[n++] = "dial9";
	argv[n++] = "ship";
	argv[n++] = "--to";
	argv[n++] = ship->to;
	/*
	 * Keep the directories, because the last line counts the files in them that list what is
	 * stored.
	 */
	argv[n++] = "--keep-empty";
	for (size_t i = 0; i < words; i++)
		argv[n++] = ship->words[i];
	for (; *own; own++)
		argv[n++] = *own;
	argv[n++] = "--";
	argv[n++] = dir;
	return (char **)argv;
}

/* Its process, or 0 behind a line. */
static pid_t start(const struct d9__record_ship *ship, const char *const *own, const char *dir)
{
	char **argv = make_argv(ship, own, dir);
	pid_t parent = getpid(), pid = argv ? fork() : -1;

	if (!pid)
		become(argv, parent);
	if (pid < 0)
		d9__cmd_fail("record", "--ship: nothing is sent: %s", strerror(argv ? errno : ENOMEM));
	else
		setpgid(pid, pid); /* parent and child both set it: the first one wins */
	free(argv);
	return pid > 0 ? pid : 0;
}

/* True: it has ended, with |*status|, or is not there any more. */
static bool has_ended(pid_t pid, int *status)
{
	pid_t got = waitpid(pid, status, WNOHANG);

	return got == pid || (got < 0 && errno != EINTR);
}

/*
 * Wait for |*pid| until |until_ns| or a signal, then kill it with its children.  True: it ended in
 * time.
 */
static bool wait_for(pid_t *pid, uint64_t until_ns)
{
	bool ended = false;
	int status = 0;

	while (!(ended = has_ended(*pid, &status)) && d9__mono_ns() < until_ns &&
	       !d9__record_child_is_to_end())
		nanosleep(&(struct timespec){ .tv_nsec = (long)STEP_NS }, NULL);
	if (!ended) {
		kill(-*pid, SIGKILL);
		while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	*pid = 0;
	return ended;
}

/* ---- what it is given ---- */

static bool names_bucket(const char *url)
{
	static const char scheme[] = "s3://";
	char bucket[D9__BUCKET_NAME + 2];

	if (strncmp(url, scheme, strlen(scheme)) != 0)
		return false;
	url += strlen(scheme);
	snprintf(bucket, sizeof(bucket), "%.*s", (int)strcspn(url, "/"), url);
	return d9__is_bucket_name(bucket);
}

static bool take_url(struct d9__record_ship *ship)
{
	const char *bucket = getenv("DIAL9_S3_BUCKET"), *prefix = getenv("DIAL9_S3_PREFIX");
	int n;

	if (ship->url)
		n = snprintf(ship->to, sizeof(ship->to), "%s", ship->url);
	else if (bucket && *bucket)
		n = snprintf(ship->to, sizeof(ship->to), "s3://%s/%s", bucket, prefix && *prefix ? prefix : "dial9-traces");
	else
		return !d9__cmd_fail("record", "--ship: where to? --ship=s3://BUCKET/PREFIX, or DIAL9_S3_BUCKET");
	if (n < 0 || (size_t)n >= sizeof(ship->to) || !names_bucket(ship->to))
		return !d9__cmd_fail("record", "--ship: an address is s3://BUCKET or s3://BUCKET/PREFIX, not '%.100s'", ship->to);
	return true;
}

/* It would tell of a mistake once CMD runs; asked before, it has told, and CMD does not. */
static bool is_accepted(const struct d9__record_ship *ship)
{
	const char *own[] = { "--dry-run", NULL };
	pid_t pid = start(ship, own, NO_TRACES);
	int status = 0;

	while (pid && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return true; /* SIGCHLD is ignored, so the status is lost */
	return pid && WIFEXITED(status) && WEXITSTATUS(status) != D9__EXIT_USAGE;
}

bool d9__record_ship_check(struct d9__record_ship *ship)
{
	const char *fault;

	if (!ship->wanted)
		return true;
	if (!take_url(ship))
		return false;
	if (ship->more && !(ship->words = d9__words_split(ship->more, &fault)))
		return !d9__cmd_fail("record", "--ship-options '%s': %s", ship->more, fault);
	return is_accepted(ship);
}

/* ---- beside CMD, and behind it ---- */

void d9__record_ship_begin(struct d9__record_ship *ship, const char *dir)
{
	const char *own[] = { NULL };

	ship->dir = dir;
	if (ship->wanted)
		ship->pid = start(ship, own, dir);
}

static void count_stored(const char *path, struct d9__record_shipped *out)
{
	struct d9__shipped shipped = { 0 };
	int fd = d9__directory_open(path, 0);

	if (fd >= 0 && !d9__shipped_read(&shipped, fd)) {
		out->stored += shipped.n;
		out->bytes += shipped.bytes;
	}
	d9__shipped_release(&shipped);
	if (fd >= 0)
		close(fd);
}

/*
 * Count what is stored and left of CMD's processes.  |*anything|: the directory has something to
 * send, of other processes, too.
 */
static void count(const struct d9__record_ship *ship, const struct d9__namespaces *before, struct d9__record_shipped *out,
		  bool *anything)
{
	struct d9__ship_tree tree = { 0 };

	*out = (struct d9__record_shipped){ .to = ship->to };
	*anything = d9__ship_tree_add(&tree, ship->dir) != 0;
	for (size_t i = 0; i < tree.n; i++) {
		const struct d9__ship_process *process = &tree.processes[i];

		*anything |= process->n_segments || process->n_dumps;
		if (d9__namespaces_hold(before, process->boot_id))
			continue;
		out->left += process->n_segments;
		out->dumps_left += process->n_dumps;
		count_stored(process->path, out);
	}
	d9__ship_tree_release(&tree);
}

/* Run another `dial9 ship` for what is left. */
static void send_rest(struct d9__record_ship *ship, uint64_t until_ns)
{
	uint64_t now = d9__mono_ns();
	char deadline[32];
	const char *own[] = { "--once", "--deadline", deadline, NULL };

	if (now >= until_ns || d9__record_child_is_to_end())
		return;
	snprintf(deadline, sizeof(deadline), "%" PRIu64 "ms", (until_ns - now) / 1000000 + 1);
	ship->pid = start(ship, own, ship->dir);
	if (ship->pid)
		wait_for(&ship->pid, until_ns + GRACE_NS);
}

void d9__record_ship_end(struct d9__record_ship *ship, const struct d9__namespaces *before, struct d9__record_shipped *out)
{
	uint64_t until_ns = d9__mono_ns() + ship->deadline_ns;
	bool anything;

	*out = (struct d9__record_shipped){ .to = NULL };
	if (!ship->wanted)
		return;
	/* SIGTERM: it starts no further transfer and finishes those that run. */
	if (ship->pid) {
		kill(ship->pid, SIGTERM);
		wait_for(&ship->pid, until_ns);
	}
	count(ship, before, out, &anything);
	if (!anything)
		return;
	send_rest(ship, until_ns);
	count(ship, before, out, &anything);
}

void d9__record_ship_release(struct d9__record_ship *ship)
{
	if (ship->pid)
		wait_for(&ship->pid, 0);
	free(ship->words);
	ship->words = NULL;
}
