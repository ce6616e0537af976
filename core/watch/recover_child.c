/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "watch/recover_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/sanitized.h"
#include "base/time.h"
#include "drain/rescue.h"
#include "ring/ring_view.h"
#include "segment/files.h"

#define NOBODY	       65534
#define MEMORY_BYTES   (UINT64_C(1) << 30)
#define FILE_BYTES     (UINT64_C(1) << 30) /* a ring has 128 MiB at most */
#define CPU_SECONDS    60
#define PATIENCE_MS    120000 /* of nothing asked */
#define ANSWERS_MS     5000   /* for all that is asked of children */
#define DESCRIPTORS    64

/* ---- rights ---- */

static gid_t own_groups[1024];
static int n_own_groups;
static gid_t own_gid;

void d9__rights_give_back(void)
{
	if (seteuid(0) || setegid(own_gid) || setgroups((size_t)n_own_groups, own_groups))
		/* Stop: the rights are not the expected ones, and going on could use root's. */
		abort();
}

int d9__rights_take(const struct d9__child_user *user)
{
	int err;

	n_own_groups = getgroups((int)(sizeof(own_groups) / sizeof(own_groups[0])), own_groups);
	own_gid = getegid();
	if (n_own_groups < 0)
		return -errno;
	if (!user->uid)
		return 0;
	if (setgroups(0, NULL))
		return -errno;
	if (!setegid(user->gid) && !seteuid(user->uid))
		return 0;
	err = -errno;
	d9__rights_give_back();
	return err;
}

/* Return the first of the real, effective, saved and file system id that is not root's; 0: there is
 * none. */
static unsigned first_id(pid_t pid, const char *key)
{
	unsigned long ids[4];
	unsigned found = 0;

	if (pid <= 0 || d9__proc_status(pid, key, ids, 4) != 4)
		return 0;
	for (size_t i = 4; i-- > 0;)
		found = ids[i] ? (unsigned)ids[i] : found;
	return found;
}

struct d9__child_user d9__recover_child_user_of(const struct d9__ring_view *view)
{
	struct stat st;

	if (!fstat(view->fd, &st) && st.st_uid)
		return (struct d9__child_user){ st.st_uid, st.st_gid };
	return (struct d9__child_user) { first_id(view->pid, "Uid:"), first_id(view->pid, "Gid:") };
}

/* ---- the child ---- */

/* |result| of setrlimit(): a limit that is lower already is as good. */
static void settle(int result)
{
	if (result && errno != EPERM)
		_exit(1);
}

/* Where root is the only user that there is, in a namespace of a user's own: with no capability, that user. */
static bool give_up_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	return !syscall(SYS_capset, &head, none);
}

static bool become(const struct d9__child_user *user)
{
	uid_t uid = user->uid ? user->uid : NOBODY;
	gid_t gid = user->uid ? user->gid : NOBODY;

	if (!setgroups(0, NULL) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid))
		return setuid(0) == -1;
	return errno == EINVAL && !user->uid && give_up_capabilities();
}

int d9__rights_give_up(const struct d9__child_user *user)
{
	errno = 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !become(user))
		return errno ? -errno : -EPERM;
	return 0;
}

/* Close the descriptors above |after| and below |before|, but not the standard ones. */
static void close_between(int after, int before)
{
	int first = after < STDERR_FILENO ? STDERR_FILENO + 1 : after + 1;
	long most = sysconf(_SC_OPEN_MAX);

	if (first >= before)
		return;
#ifdef HAVE_CLOSE_RANGE
	if (!close_range((unsigned)first, (unsigned)before - 1, 0))
		return;
#endif
	if (most < 0 || most > 65536)
		most = 65536;
	for (int fd = first; fd < before && fd < most; fd++)
		close(fd);
}

/* Nothing is left open but what it needs: |ring| (-1: none) and |socket|. */
static void close_others(int ring, int socket)
{
	int low = ring < socket ? ring : socket, high = ring < socket ? socket : ring;

	close_between(STDERR_FILENO, low);
	close_between(low, high);
	close_between(high, INT_MAX);
}

static void confine(const struct d9__child_user *user, int ring, int socket)
{
	close_others(ring, socket);
	if (!D9__SANITIZED) /* which have terabytes mapped */
		settle(setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY_BYTES, MEMORY_BYTES }));
	settle(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ FILE_BYTES, FILE_BYTES }));
	settle(setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_SECONDS, CPU_SECONDS }));
	settle(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ DESCRIPTORS, DESCRIPTORS }));
	settle(setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }));
	if (chdir("/") || d9__rights_give_up(user) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		_exit(1);
	settle(setrlimit(RLIMIT_NPROC, &(struct rlimit){ 0, 0 }));
}

/* The result that the child sends; the parent knows the rest. */
struct verdict {
	uint32_t sealed, bad;
	uint64_t events, lost;
	int32_t err;
	char op[32];
};

static void tell(int socket, const struct d9__recovered *found)
{
	struct verdict verdict = { .sealed = found->sealed, .bad = found->bad, .events = found->events,
				   .lost = found->lost, .err = found->err };

	if (found->op)
		strncpy(verdict.op, found->op, sizeof(verdict.op) - 1);
	if (send(socket, &verdict, sizeof(verdict), MSG_NOSIGNAL) < 0)
		_exit(1);
}

/* ---- for the child ---- */

/*
 * Return the constant for an operation that the child named, because its text is not to be trusted.
 */
static const char *op_of(const char *text)
{
	static const char *const words[] = { "open", "read", "write", "rename", "remove", "read the ring" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], text))
			return words[i];
	return "read the ring";
}

static void take_verdict(const struct verdict *verdict, struct d9__recovered *out)
{
	out->sealed = verdict->sealed != 0;
	out->bad = verdict->bad;
	out->events = verdict->events;
	out->lost = verdict->lost;
	out->err = verdict->err < 0 && verdict->err > -4096 ? verdict->err : verdict->err ? -EBADMSG : 0;
	out->op = out->err ? op_of(verdict->op) : NULL;
}

/* Answer until the child tells what came of it.  False: it did not. */
static bool serve(int socket, const struct d9__namespace *ns, struct d9__recovered *out)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	uint64_t created = 0;
	struct verdict verdict;

	while (poll(&ready, 1, PATIENCE_MS) > 0) {
		/* By its length: questions have another. */
		if (recv(socket, &verdict, sizeof(verdict), MSG_PEEK | MSG_TRUNC) == (ssize_t)sizeof(verdict)) {
			verdict.op[sizeof(verdict.op) - 1] = '\0';
			take_verdict(&verdict, out);
			return true;
		}
		if (d9__files_answer(socket, ns->dir_fd, &created) != 1)
			return false;
	}
	return false;
}

/* A child with |ring| (-1: none) and one end of |pair|.  In it, 0; nothing but _exit() may follow. */
static pid_t start(const struct d9__child_user *user, int ring, int pair[2])
{
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid = fork();
	if (!pid) {
		confine(user, ring, pair[1]);
		return 0;
	}
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	return pid;
}

/* Its exit status, or -1. */
static int end(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void read_for_us(int socket, struct d9__dead_ring *ring, struct d9__recovered *out)
{
	const struct d9__namespace nothing = { .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 };

	d9__files_ask(socket);
	d9__rescue_into(&nothing, ring, out);
	tell(socket, out);
	_exit(0);
}

bool d9__recover_child_rescue(const struct d9__child_user *user, const struct d9__child_user *owner,
		      const struct d9__namespace *ns, struct d9__dead_ring *ring, struct d9__recovered *out)
{
	int pair[2], err;
	pid_t pid = start(user, ring ? ring->fd : -1, pair);
	bool told = false;

	if (!pid)
		read_for_us(pair[1], ring, out);
	out->op = "read the ring";
	out->err = pid < 0 ? -errno : -EBADMSG;
	if (pid < 0)
		return true;
	err = d9__rights_take(owner);
	if (!err) {
		told = serve(pair[0], ns, out);
		d9__rights_give_back();
	} else {
		out->err = err;
	}
	close(pair[0]);
	if (!told)
		kill(pid, SIGKILL);
	end(pid);
	return out->err || (ring && out->events + out->lost + out->bad) || out->sealed;
}

bool d9__recover_child_is_empty(const struct d9__child_user *user, struct d9__dead_ring *ring)
{
	int pair[2];
	pid_t pid = start(user, ring->fd, pair);

	if (!pid)
		_exit(d9__dead_ring_is_empty(ring) ? 0 : 2);
	if (pid < 0)
		return false;
	close(pair[0]);
	return end(pid) == 0;
}

static int now_ms(void)
{
	return (int)(d9__mono_ns() / D9__MS_NS % 1000000000);
}

bool d9__recover_child_ask(const struct d9__child_user *user, int fd, void (*fill)(void *arg, void *answer), void *arg,
		   void *answer, size_t len)
{
	static int left_ms = ANSWERS_MS;
	int pair[2], before = now_ms();
	pid_t pid = left_ms > 0 ? start(user, fd, pair) : -1;
	struct pollfd ready = { .events = POLLIN };
	bool told;

	if (!pid) {
		fill(arg, answer);
		_exit(send(pair[1], answer, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : 1);
	}
	if (pid < 0)
		return false;
	ready.fd = pair[0];
	told = poll(&ready, 1, left_ms) == 1 && recv(pair[0], answer, len, 0) == (ssize_t)len;
	close(pair[0]);
	kill(pid, SIGKILL);
	end(pid);
	left_ms -= now_ms() - before;
	return told;
}
