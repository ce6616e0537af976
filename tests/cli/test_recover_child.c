/* SPDX-License-Identifier: Apache-2.0 */
/* The child that reads rings for root: what it can do, seen from inside it while it writes a segment. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/test_point.h"
#include "core/record/scratch.h"
#include "drain/rescue.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "watch/recover_child.h"

#define POLLS 3000

/* In memory that all processes share. */
static struct {
	int looked;
	uid_t uid, saved;
	gid_t gid;
	int groups, no_new_privs, opened, descriptors, can_return;
	char ring[PATH_MAX];
} *seen;

static void look_around(enum d9__test_point point)
{
	uid_t real;
	gid_t gids[2];

	if (point == D9__POINT_RESCUE_BEGUN) {
		seen->looked++;
		getresuid(&real, &seen->uid, &seen->saved);
		getresgid(&gids[0], &seen->gid, &gids[1]);
		seen->groups = getgroups(0, NULL);
		seen->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
		seen->opened = open(scratch_dir, O_RDONLY | O_DIRECTORY);
		seen->can_return = !setuid(0) || !seteuid(0);
		for (int fd = 3; fd < 1024; fd++)
			seen->descriptors += fcntl(fd, F_GETFD) >= 0;
	}
}

static void note_ring(void)
{
	snprintf(seen->ring, sizeof(seen->ring), "%s", d9__ring.path);
}

/* Leave root's ring, or that of |uid|, with the polls of a process that was killed. */
static void leave_ring(uid_t uid)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct d9_options *options = NULL;
		struct d9__slot *slot;
		uint32_t loc;

		if ((uid && (setgid(uid) || setuid(uid))) || d9_options_new(&options) ||
		    d9_options_set_environment(options, false) || d9_options_set_trace_dir(options, scratch_dir) ||
		    d9_options_set_mode(options, D9_MODE_FLIGHT) || d9_recorder_start(options, NULL))
			_exit(1);
		slot = d9__slot_self();
		loc = d9__name_intern("here", 4);
		for (int i = 0; i < POLLS; i++) {
			d9__emit_poll_start(slot, d9__slot_now(slot), 0, 0, 4, loc);
			d9__emit_poll_end(slot, d9__slot_now(slot), 0);
		}
		note_ring();
		kill(getpid(), SIGKILL);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));
}

/* Recovered below |scratch_dir|, as root. */
static void recover(const struct d9__child_user *user, struct d9__recovered *out)
{
	const struct d9__child_user root = { 0, 0 };
	int parent = open(scratch_dir, O_RDONLY | O_DIRECTORY), dir;
	struct d9__dead_ring ring;
	struct d9__namespace ns;

	mkdirat(parent, "abcd-1", 0700);
	dir = openat(parent, "abcd-1", O_RDONLY | O_DIRECTORY);
	CU_ASSERT_EQUAL_FATAL(d9__rights_take(user), 0);
	CU_ASSERT_EQUAL_FATAL(d9__dead_ring_open(&ring, seen->ring), 0);
	d9__rights_give_back();
	CU_ASSERT_EQUAL_FATAL(d9__namespace_adopt(&ns, parent, dir, "abcd-1"), 0);
	d9__rescue_describe(scratch_dir, "abcd-1", &ring, out);
	d9__recover_child_rescue(user, &root, &ns, &ring, out);
	d9__namespace_close(&ns);
	d9__dead_ring_unlink(&ring);
	d9__dead_ring_close(&ring);
}

static void check(uid_t owner, uid_t expected)
{
	const struct d9__child_user user = { owner, owner };
	struct d9__recovered found = { 0 };

	memset(seen, 0, sizeof(*seen));
	seen->opened = 99;
	scratch_new();
	CU_ASSERT_EQUAL(chown(scratch_dir, owner, owner), 0);
	leave_ring(owner);
	CU_ASSERT_EQUAL(chown(scratch_dir, 0, 0), 0);
	recover(&user, &found);

	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(found.events, 2 * POLLS);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), POLLS);
	CU_ASSERT_EQUAL(seen->looked, 1);
	CU_ASSERT(seen->uid == expected && seen->saved == expected && seen->gid == expected);
	CU_ASSERT_EQUAL(seen->groups, 0);
	CU_ASSERT_EQUAL(seen->no_new_privs, 1);
	CU_ASSERT_EQUAL(seen->opened, -1);
	CU_ASSERT_FALSE(seen->can_return);
	/* The ring and the socket. */
	CU_ASSERT_EQUAL(seen->descriptors, 2);
	CU_ASSERT_EQUAL(geteuid(), 0);
	scratch_remove();
}

static void test_ring_of_roots_is_read_by_nobody(void)
{
	check(0, 65534);
}

static void test_ring_of_a_user_is_read_with_that_users_rights(void)
{
	uid_t uid = 50000 + (uid_t)getpid() % 10000;
	char shm[64];

	check(uid, uid);
	snprintf(shm, sizeof(shm), "/dev/shm/dial9-%u", (unsigned)uid);
	CU_ASSERT_EQUAL(rmdir(shm), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "root's", test_ring_of_roots_is_read_by_nobody },
		{ "a user's", test_ring_of_a_user_is_read_with_that_users_rights },
		CU_TEST_INFO_NULL,
	};

	if (geteuid()) {
		printf("not root, for whom alone there is a child\n");
		return 77;
	}
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	d9__test_point_hook = look_around;
	return d9_test_main("recover_child", tests);
}
