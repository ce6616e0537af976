/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorder that starts does with the rings of killed processes, by who it is. */
#include "config.h"

#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/test_point.h"
#include "core/record/scratch.h"
#include "drain/recover.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

#define POLLS 1000

/* In memory that the test and its child processes share. */
static struct {
	_Atomic(int) read; /* rings that were read */
	_Atomic(int) told; /* lines of the log that say that some were not */
	char ring[PATH_MAX];
} *seen;

static uid_t stranger;

static void note_reading(enum d9__test_point point)
{
	if (point == D9__POINT_RESCUE_BEGUN)
		seen->read++;
}

static void note_line(void *arg, enum d9_log_level level, const char *text)
{
	(void)arg;
	seen->told += level == D9_LOG_WARNING && strstr(text, "dial9 recover") && strstr(text, scratch_dir);
}

static void start(enum d9_mode mode)
{
	struct d9_options *options = NULL;

	if (d9_options_new(&options) || d9_options_set_environment(options, false) ||
	    d9_options_set_trace_dir(options, scratch_dir) || d9_options_set_mode(options, mode) ||
	    d9_options_set_service(options, "test-dead-peers") || d9_options_set_log(options, note_line, NULL) ||
	    d9_recorder_start(options, NULL))
		_exit(1);
}

static void become(uid_t uid)
{
	if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
		_exit(1);
}

/* A process of |uid|'s records and is killed: its ring stays. */
static void die(uid_t uid)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct d9__slot *slot;
		uint32_t loc;

		become(uid);
		start(D9_MODE_FLIGHT);
		slot = d9__slot_self();
		loc = d9__name_intern("here", 4);
		for (int i = 0; i < POLLS; i++) {
			d9__emit_poll_start(slot, d9__slot_now(slot), 0, 0, 4, loc);
			d9__emit_poll_end(slot, d9__slot_now(slot), 0);
		}
		strcpy(seen->ring, d9__ring.path);
		kill(getpid(), SIGKILL);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));
}

/*
 * A process of |uid|'s starts a recorder, and ends when that has read the ring or left it.  If |may_return|, the process can
 * be root again.
 */
static void look(uid_t uid, bool may_return)
{
	const struct timespec pause = { 0, 10000000 };
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		if (!may_return)
			become(uid);
		else if (setegid(uid) || seteuid(uid))
			_exit(1);
		d9__test_point_hook = note_reading;
		start(D9_MODE_CONTINUOUS);
		for (int i = 0; i < 2000 && !seen->told && !access(seen->ring, F_OK); i++)
			nanosleep(&pause, NULL);
		d9__ring_unlink(); /* as its recorder would, if it were stopped */
		_exit(0);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
}

/* A process of |ring|'s leaves a ring, and a recorder of |who|'s starts after it: that reads the ring if |is_read|. */
static void check(uid_t ring, uid_t who, bool may_return, bool is_read)
{
	memset(seen, 0, sizeof(*seen));
	scratch_new();
	CU_ASSERT_EQUAL(chown(scratch_dir, ring, ring), 0);
	die(ring);
	CU_ASSERT_EQUAL_FATAL(access(seen->ring, F_OK), 0);

	look(who, may_return);

	CU_ASSERT_EQUAL(seen->read, is_read);
	CU_ASSERT_EQUAL(seen->told, !is_read);
	CU_ASSERT_EQUAL(access(seen->ring, F_OK), is_read ? -1 : 0);
	if (!is_read)
		unlink(seen->ring);
	*strrchr(seen->ring, '/') = '\0';
	rmdir(seen->ring);
	scratch_remove();
}

static void test_recorder_of_root_leaves_them_and_says_so(void)
{
	check(0, 0, false, false);
}

static void test_recorder_of_a_user_writes_them(void)
{
	check(stranger, stranger, false, true);
}

static void test_recorder_of_a_user_who_can_be_root_again_leaves_them(void)
{
	check(stranger, stranger, true, false);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "root leaves them", test_recorder_of_root_leaves_them_and_says_so },
		{ "a user writes them", test_recorder_of_a_user_writes_them },
		{ "who can be root again leaves them", test_recorder_of_a_user_who_can_be_root_again_leaves_them },
		CU_TEST_INFO_NULL,
	};
	char shm[64];
	int status;

	if (geteuid()) {
		printf("not root, who alone can be several users\n");
		return 77;
	}
	stranger = 50000 + (uid_t)getpid() % 10000;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	status = d9_test_main("dead_peers", tests);
	snprintf(shm, sizeof(shm), "/dev/shm/dial9-%u", (unsigned)stranger);
	rmdir(shm);
	return status;
}
