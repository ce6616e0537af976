/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that give rights up: other users, filters, namespaces. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "odd.h"

#define OTHER 1002

/* ---- users ---- */

static void become_another_user(void)
{
	run_loop(5, NULL);
	tell_result("setgroups", setgroups(0, NULL));
	tell_result("setgid", setgid(OTHER));
	tell_result("setuid", setuid(OTHER));
	tell_result("setuid back", setuid(0));
	run_loop(20, NULL);
}

/* As setpriv(1) does it: the effective ones again, in this thread alone. */
static void raise_kept_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	syscall(SYS_capget, &header, data);
	data[0].effective = data[0].permitted;
	data[1].effective = data[1].permitted;
	syscall(SYS_capset, &header, data);
}

static void kept_capabilities(void)
{
	run_loop(20, NULL);
	tell_result("keep", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	tell_result("setresuid", setresuid(OTHER, OTHER, OTHER));
	raise_kept_capabilities();
	tell_result("setresgid", setresgid(OTHER, OTHER, OTHER));
	tell_result("setgroups", setgroups(0, NULL));
	run_loop(20, NULL);
}

static void between_two_users(void)
{
	run_loop(5, NULL);
	for (int i = 0; i < 20; i++)
		if (seteuid(OTHER) || seteuid(0))
			tell("changed", false);
	run_loop(20, NULL);
}

static void another_root(void)
{
	run_loop(5, NULL);
	if (chdir("/var"))
		abort();
	tell_result("chroot", chroot("/var"));
	run_loop(20, NULL);
}

/* ---- namespaces ---- */

static void user_namespace_first(void)
{
	tell_result("unshare", unshare(CLONE_NEWUSER));
	run_loop(20, NULL);
}

static void namespaces_in_a_loop(void)
{
	run_loop(5, NULL);
	tell_result("files", unshare(CLONE_FS | CLONE_FILES));
	tell_result("mounts", unshare(CLONE_NEWNS));
	tell_result("network", unshare(CLONE_NEWNET));
	tell_result("names", unshare(CLONE_NEWUTS | CLONE_NEWIPC));
	run_loop(20, NULL);
}

static void user_namespace_in_a_loop(void)
{
	run_loop(5, NULL);
	tell_result("unshare", unshare(CLONE_NEWUSER));
	run_loop(20, NULL);
}

static void process_namespace(void)
{
	int pid;

	run_loop(5, NULL);
	tell_result("unshare", unshare(CLONE_NEWPID));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		tell("it is the first", getpid() == 1);
		run_loop(20, NULL);
		leave(22);
	}
	tell_child("in its namespace", pid);
}

/* ---- filters ---- */

static void compute_and_write(void)
{
	for (volatile long i = 0; i < 20000000; i++)
		;
	if (write(STDOUT_FILENO, "strict\n", 7) != 7)
		abort();
	syscall(SYS_exit, 23);
}

static void be_strict(void)
{
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	compute_and_write();
}

static void strict_seccomp(void)
{
	run_loop(20, NULL);
	fflush(stdout);
	be_strict();
}

static void strict_seccomp_in_callback(void)
{
	run_loop(20, NULL);
	fflush(stdout);
	run_loop(1, be_strict);
}

static void strict_seccomp_in_child(void)
{
	int pid;

	run_loop(20, NULL);
	fflush(stdout);
	pid = fork();
	if (!pid)
		be_strict();
	tell_child("strict", pid);
	run_loop(5, NULL);
}

static void no_time_stamps(void)
{
	tell_result("no stamps", prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
	compute_and_write();
}

static void no_time_stamps_in_callback(void)
{
	run_loop(20, NULL);
	fflush(stdout);
	setbuf(stdout, NULL);
	run_loop(1, no_time_stamps);
}

/* All that the program does goes on; what it does not, ends it, or is refused. */
static void filter_all(unsigned refuse, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, refuse),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, refuse),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	tell_result("no new rights", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	tell_result("filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

static void filter_that_kills(void)
{
	run_loop(5, NULL);
	filter_all(SECCOMP_RET_KILL_PROCESS, 0);
	run_loop(20, NULL);
}

static void filter_of_all_threads(void)
{
	run_loop(5, NULL);
	filter_all(SECCOMP_RET_KILL_PROCESS, SECCOMP_FILTER_FLAG_TSYNC);
	run_loop(20, NULL);
}

static void filter_that_refuses(void)
{
	run_loop(5, NULL);
	filter_all(SECCOMP_RET_ERRNO | EPERM, SECCOMP_FILTER_FLAG_TSYNC);
	run_loop(20, NULL);
}

static void filter_before_the_loop(void)
{
	filter_all(SECCOMP_RET_KILL_PROCESS, SECCOMP_FILTER_FLAG_TSYNC);
	run_loop(20, NULL);
}

const struct shape right_shapes[] = {
	{ "become_another_user", become_another_user },
	{ "kept_capabilities", kept_capabilities },
	{ "between_two_users", between_two_users },
	{ "another_root", another_root },
	{ "user_namespace_first", user_namespace_first },
	{ "user_namespace_in_a_loop", user_namespace_in_a_loop },
	{ "namespaces_in_a_loop", namespaces_in_a_loop },
	{ "process_namespace", process_namespace },
	{ "strict_seccomp", strict_seccomp },
	{ "strict_seccomp_in_callback", strict_seccomp_in_callback },
	{ "strict_seccomp_in_child", strict_seccomp_in_child },
	{ "no_time_stamps_in_callback", no_time_stamps_in_callback },
	{ "filter_that_kills", filter_that_kills },
	{ "filter_of_all_threads", filter_of_all_threads },
	{ "filter_that_refuses", filter_that_refuses },
	{ "filter_before_the_loop", filter_before_the_loop },
	{ NULL, NULL },
};
