/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "core/record/refuse.h"
#include "core/record/scratch.h"
#include "drain/peers.h"
#include "segment/directory_helper.h"
#include "segment/namespace.h"
#include "segment/shipped_next.h"

/* Make DIR/NAME with |len| bytes. */
static void make_file(const char *peer, const char *name, size_t len)
{
	char path[2 * PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", scratch_dir, peer);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", scratch_dir, peer, name);
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	for (; len; len--)
		fputc('x', f);
	fclose(f);
}

static bool exists(const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", scratch_dir, name);
	return !access(path, F_OK);
}

static void open_ours(struct d9__namespace *ns, struct d9__retention *ret)
{
	*ns = (struct d9__namespace){ .boot_id = "ours-1" };
	d9__retention_init(ret, 1 << 20, 1 << 18, 1);
	CU_ASSERT_EQUAL_FATAL(d9__namespace_open(ns, scratch_dir, 5), 0);
}

static void test_namespace_that_is_taken_yields_to_another_name(void)
{
	struct d9__namespace a, b;
	struct d9__retention ret;

	scratch_new();
	open_ours(&a, &ret);
	open_ours(&b, &ret);

	CU_ASSERT_STRING_EQUAL(a.boot_id, "ours-1");
	CU_ASSERT_STRING_NOT_EQUAL(b.boot_id, "ours-1");
	CU_ASSERT(d9__boot_id_valid(b.boot_id));
	d9__namespace_close(&a);
	d9__namespace_close(&b);
	CU_ASSERT_FALSE(exists("ours-1"));
}

static void test_namespace_counts_what_is_there_and_removes_stale_files(void)
{
	struct d9__namespace ns;
	struct d9__retention ret;

	scratch_new();
	open_ours(&ns, &ret);
	make_file("ours-1", "trace.4.bin", 100);
	make_file("ours-1", "trace.4.bin.gz", 20);
	make_file("ours-1", "trace.9.bin.zst.active", 500);
	CU_ASSERT_EQUAL(d9__namespace_scan(&ns, &ret), 0);

	CU_ASSERT_EQUAL(ret.n, 1);
	CU_ASSERT_EQUAL(ret.bytes, 120);
	CU_ASSERT_EQUAL(ret.next_index, 5);
	CU_ASSERT_FALSE(exists("ours-1/trace.9.bin.zst.active"));
	d9__namespace_close(&ns);
	CU_ASSERT(exists("ours-1/trace.4.bin"));
	d9__retention_release(&ret);
}

static void test_namespace_removes_dead_peers_that_hold_nothing(void)
{
	struct d9__namespace ns;
	struct d9__retention ret;

	scratch_new();
	make_file("dead-11", ".lock", 0);
	make_file("dead-12", ".lock", 0);
	make_file("dead-12", "trace.0.bin.zst.active", 0);
	make_file("nice-13", ".lock", 0);
	make_file("nice-13", "notes.txt", 3);
	make_file("notours", ".lock", 0);
	make_file("dead-14", "trace.0.bin", 4); /* no lock: never one of ours */
	open_ours(&ns, &ret);
	d9__namespace_collect(&ns, &ret);

	CU_ASSERT_FALSE(exists("dead-11"));
	CU_ASSERT_FALSE(exists("dead-12"));
	CU_ASSERT(exists("nice-13/notes.txt"));
	CU_ASSERT(exists("notours/.lock"));
	CU_ASSERT(exists("dead-14/trace.0.bin"));
	CU_ASSERT_EQUAL(ret.n, 0);
	d9__namespace_close(&ns);
}

static void test_namespace_keeps_dead_peers_segments_until_the_budget_wants_them(void)
{
	struct d9__namespace ns;
	struct d9__retention ret;
	struct d9__family victim;

	scratch_new();
	make_file("dead-11", ".lock", 0);
	make_file("dead-11", "trace.0.bin", 500000);
	make_file("dead-11", "trace.1.bin.active", 400000);
	open_ours(&ns, &ret);
	d9__namespace_collect(&ns, &ret);
	CU_ASSERT(exists("dead-11/trace.0.bin"));
	CU_ASSERT_EQUAL(ret.bytes, 900000);
	CU_ASSERT_EQUAL(ret.next_index, 0);

	while (d9__retention_victim(&ret, &victim)) {
		CU_ASSERT_EQUAL(d9__namespace_evict(&ns, &victim), 0);
		d9__retention_remove(&ret, &victim, true);
	}
	CU_ASSERT(ret.bytes <= (1 << 20) - (1 << 18));
	CU_ASSERT_EQUAL(exists("dead-11/trace.0.bin") + exists("dead-11/trace.1.bin.active"), 1);
	d9__retention_release(&ret);
	d9__retention_init(&ret, 1 << 10, 1 << 9, 1);
	d9__namespace_collect(&ns, &ret);
	while (d9__retention_victim(&ret, &victim)) {
		CU_ASSERT_EQUAL(d9__namespace_evict(&ns, &victim), 0);
		d9__retention_remove(&ret, &victim, true);
	}
	CU_ASSERT_FALSE(exists("dead-11"));
	d9__namespace_close(&ns);
	d9__retention_release(&ret);
}

/* Lock ".ship" as a shipper does, through a descriptor of its own. */
static int lock_ship(void)
{
	char path[2 * PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/" D9__SHIP_FILE, scratch_dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(flock(fd, LOCK_SH), 0);
	return fd;
}

static void test_namespace_leaves_dead_peers_to_a_shipper_that_is_there_or_was_within_a_day(void)
{
	struct timespec long_ago[2] = { { .tv_sec = time(NULL) - 86500 }, { .tv_sec = time(NULL) - 86500 } };
	struct d9__namespace ns;
	struct d9__retention ret;
	int fd;

	scratch_new();
	make_file("dead-11", ".lock", 0);
	make_file("dead-11", ".shipped", 10);
	open_ours(&ns, &ret);
	CU_ASSERT_EQUAL(d9__namespace_shipping(&ns), D9__SHIPPING_NONE);
	fd = lock_ship();
	CU_ASSERT_EQUAL(d9__namespace_shipping(&ns), D9__SHIPPING_NOW);
	CU_ASSERT_EQUAL(flock(fd, LOCK_SH | LOCK_NB), 0);
	d9__namespace_collect(&ns, &ret);
	CU_ASSERT(exists("dead-11/.shipped"));
	flock(fd, LOCK_UN);
	CU_ASSERT_EQUAL(d9__namespace_shipping(&ns), D9__SHIPPING_PAUSED);
	d9__namespace_collect(&ns, &ret);
	CU_ASSERT(exists("dead-11/.shipped"));

	CU_ASSERT_EQUAL(futimens(fd, long_ago), 0);
	CU_ASSERT_EQUAL(d9__namespace_shipping(&ns), D9__SHIPPING_NONE);
	d9__namespace_collect(&ns, &ret);
	CU_ASSERT_FALSE(exists("dead-11"));
	close(fd);
	d9__namespace_close(&ns);
	d9__retention_release(&ret);
}

static void write_shipped(const char *text)
{
	char path[2 * PATH_MAX];
	FILE *f;

	make_file("ours-1", ".shipped", 0);
	snprintf(path, sizeof(path), "%s/ours-1/.shipped", scratch_dir);
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void test_numbers_of_segments_that_were_sent_are_not_used_again(void)
{
	struct d9__namespace ns;
	struct d9__retention ret;

	scratch_new();
	open_ours(&ns, &ret);
	CU_ASSERT_EQUAL(d9__shipped_next(ns.dir_fd), 0);
	write_shipped("stored 3 10 0 0 0 0 k\nmissing 7 10\nstored 5 1 0 0 0 0 k\nstored 99");
	CU_ASSERT_EQUAL(d9__shipped_next(ns.dir_fd), 8);
	CU_ASSERT_EQUAL(d9__namespace_scan(&ns, &ret), 0);
	CU_ASSERT_EQUAL(ret.next_index, 8);
	make_file("ours-1", "trace.11.bin", 10);
	CU_ASSERT_EQUAL(d9__namespace_scan(&ns, &ret), 0);
	CU_ASSERT_EQUAL(ret.next_index, 12);
	/* Lines of another form are passed over. */
	write_shipped("stored x 1\nsent 5 1\nstored 18446744073709551615 1\nstored 99999999999999999999999999999 1\nstored 4\n");
	CU_ASSERT_EQUAL(d9__shipped_next(ns.dir_fd), 0);
	d9__namespace_close(&ns);
	d9__retention_release(&ret);
}

static void test_namespace_leaves_living_peers_alone(void)
{
	struct d9__namespace ns;
	struct d9__retention ret;
	char path[2 * PATH_MAX];
	int fd;

	scratch_new();
	make_file("live-11", ".lock", 0);
	make_file("live-11", "trace.0.bin", 500);
	snprintf(path, sizeof(path), "%s/live-11/.lock", scratch_dir);
	fd = open(path, O_RDWR);
	CU_ASSERT_EQUAL(flock(fd, LOCK_EX | LOCK_NB), 0);
	open_ours(&ns, &ret);
	d9__namespace_collect(&ns, &ret);

	CU_ASSERT_EQUAL(ret.n, 0);
	CU_ASSERT(exists("live-11/trace.0.bin"));
	close(fd);
	d9__namespace_close(&ns);
}

static void test_namespace_refuses_links_and_directories_that_others_may_change(void)
{
	struct d9__namespace ns = { .boot_id = "ours-1" };
	char path[2 * PATH_MAX];

	scratch_new();
	snprintf(path, sizeof(path), "%s/open", scratch_dir);
	mkdir(path, 0700);
	chmod(path, 0770);
	CU_ASSERT_EQUAL(d9__namespace_open(&ns, path, 1), -EPERM);
	snprintf(path, sizeof(path), "%s/link", scratch_dir);
	CU_ASSERT_EQUAL(symlink("open", path), 0);
	CU_ASSERT_EQUAL(d9__namespace_open(&ns, path, 1), -EPERM);
	chmod(path, 01770);
	CU_ASSERT_EQUAL(d9__namespace_open(&ns, path, 1), 0);
	CU_ASSERT(exists("open/ours-1/.lock"));
	d9__namespace_close(&ns);
	snprintf(path, sizeof(path), "%s/a/b/c", scratch_dir);
	CU_ASSERT_EQUAL(d9__namespace_open(&ns, path, 1), 0);
	CU_ASSERT(exists("a/b/c/ours-1/.lock"));
	d9__namespace_close(&ns);
	scratch_remove();
}

/* Some network file systems have no locks. */
static void test_directory_without_locks_is_refused_and_left_empty(void)
{
	int status = -1;
	pid_t pid;

	scratch_new();
	pid = fork();
	if (!pid) {
		struct d9__namespace ns = { .boot_id = "ours-1" };

		if (!refuse(SYS_flock, ENOLCK))
			_exit(0);
		for (int i = 0; i < 3; i++)
			if (d9__namespace_open(&ns, scratch_dir, 1) != -ENOLCK)
				_exit(1);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(rmdir(scratch_dir), 0);
	scratch_remove();
}

static void test_peers_are_looked_at_again_when_a_hundred_times_the_time_has_passed(void)
{
	uint64_t now = UINT64_C(1800000000000000000), ms = 1000000;
	int dir = open(scratch_new(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CU_ASSERT(d9__peers_due(dir, now));
	d9__peers_looked(dir, 1 * ms, now);
	CU_ASSERT(d9__peers_due(dir, now));
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".peers"), 0);

	d9__peers_looked(dir, 20 * ms, now);
	CU_ASSERT_FALSE(d9__peers_due(dir, now));
	CU_ASSERT_FALSE(d9__peers_due(dir, now + 1999 * ms));
	CU_ASSERT(d9__peers_due(dir, now + 2000 * ms));
	/* The clock was set back by a day. */
	CU_ASSERT(d9__peers_due(dir, now - UINT64_C(86400000) * ms));

	d9__peers_looked(dir, 1 * ms, now);
	CU_ASSERT(d9__peers_due(dir, now));
	close(dir);
	scratch_remove();
}

/* In a child: another user listens under the address of a helper that has ended, until it is killed. */
/* Whoever asks gets one descriptor instead of two, as from the kernel when there is no room for the other. */
static void give_one(int to)
{
	char control[CMSG_SPACE(sizeof(int))] = "", request[512];
	int answer = 0;
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &to, sizeof(int));
	if (read(to, request, sizeof(request)) > 0)
		sendmsg(to, &message, 0);
}

static void listen_as(uid_t uid, const struct sockaddr_un *address, socklen_t len, int ready)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char byte = setuid(uid) || bind(fd, (const struct sockaddr *)address, len) || listen(fd, 1);

	if (write(ready, &byte, 1) == 1 && !uid)
		give_one(accept(fd, NULL, NULL));
	pause();
	_exit(0);
}

/* What a process asks that is told of |uid|'s as its giver. */
static int ask_one_of(uid_t uid, const char *giver)
{
	struct d9__namespace ns = { .boot_id = "abcd-1", .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 };
	struct sockaddr_un address;
	socklen_t len = d9__directory_helper_address(giver, &address);
	char not_listening = 1;
	int ready[2], err;
	pid_t pid;

	CU_ASSERT_FATAL(len && !pipe(ready));
	pid = fork();
	if (!pid)
		listen_as(uid, &address, len, ready[1]);
	CU_ASSERT_EQUAL(read(ready[0], &not_listening, 1), 1);
	CU_ASSERT_FALSE(not_listening);
	err = d9__directory_helper_ask(giver, &ns, "/tmp", 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	return err;
}

static void make_giver(char giver[D9__DIRECTORY_HELPER_TEXT + 1])
{
	snprintf(giver, D9__DIRECTORY_HELPER_TEXT + 1, "%064d", (int)getpid());
	memcpy(giver, giver + D9__DIRECTORY_HELPER_HALF, D9__DIRECTORY_HELPER_HALF);
}

static void test_directories_are_taken_from_root_only(void)
{
	struct d9__namespace ns = { .boot_id = "abcd-1", .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 };
	char giver[D9__DIRECTORY_HELPER_TEXT + 1];

	if (geteuid()) /* only root can become another user */
		return;
	make_giver(giver);
	CU_ASSERT_EQUAL(ask_one_of(65534, giver), -EPERM);
	CU_ASSERT_EQUAL(d9__directory_helper_ask(giver, &ns, "/tmp", 0), -ECONNREFUSED);
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_one_directory_alone_is_given_back(void)
{
	unsigned before = count_descriptors();
	char giver[D9__DIRECTORY_HELPER_TEXT + 1];

	if (geteuid()) /* whose directories nobody takes */
		return;
	make_giver(giver);
	CU_ASSERT_EQUAL(ask_one_of(0, giver), -EBADMSG);
	CU_ASSERT_EQUAL(count_descriptors(), before);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "taken name", test_namespace_that_is_taken_yields_to_another_name },
		{ "what is there",
		  test_namespace_counts_what_is_there_and_removes_stale_files },
		{ "empty dead peers", test_namespace_removes_dead_peers_that_hold_nothing },
		{ "dead peers' segments",
		  test_namespace_keeps_dead_peers_segments_until_the_budget_wants_them },
		{ "dead peers are left to a shipper",
		  test_namespace_leaves_dead_peers_to_a_shipper_that_is_there_or_was_within_a_day },
		{ "numbers of what was sent", test_numbers_of_segments_that_were_sent_are_not_used_again },
		{ "living peers", test_namespace_leaves_living_peers_alone },
		{ "links", test_namespace_refuses_links_and_directories_that_others_may_change },
		{ "directory without locks is refused, and left empty",
		  test_directory_without_locks_is_refused_and_left_empty },
		{ "peers are looked at again when a hundred times the time has passed",
		  test_peers_are_looked_at_again_when_a_hundred_times_the_time_has_passed },
		{ "directories are taken from root only", test_directories_are_taken_from_root_only },
		{ "one directory alone is given back", test_one_directory_alone_is_given_back },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("namespace", tests);
}
