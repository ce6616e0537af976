/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program in whose process the kernel refuses something.
 *
 *	glib_refused eventfd|copy CMD...	no eventfd(2), or no process_vm_readv(2)
 *	glib_refused pages			attaches itself, where no page may be made writable
 */
#include "config.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <glib.h>

#include <dial9/glib.h>

static int refuse(unsigned number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int pages_refused;

__attribute__((visibility("default"))) int mprotect(void *address, size_t len, int protection)
{
	if (pages_refused && protection & PROT_WRITE) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_mprotect, address, len, protection);
}

static gboolean count(gpointer arg)
{
	++*(int *)arg;
	return G_SOURCE_CONTINUE;
}

/* Everything runs as it does alone; prints what attach returned. */
static int attach_without_pages(void)
{
	int runs = 0, result;

	g_idle_add(count, &runs);
	pages_refused = 1;
	result = d9_g_main_context_attach(NULL);
	for (int i = 0; i < 3; i++)
		g_main_context_iteration(NULL, FALSE);
	printf("%s\n", result == -EPERM ? "-EPERM" : strerror(-result));
	return runs != 3;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "pages"))
		return attach_without_pages();
	if (argc < 3 ||
	    refuse(!strcmp(argv[1], "eventfd") ? SYS_eventfd2 : SYS_process_vm_readv)) {
		perror("seccomp");
		return 77;
	}
	execv(argv[2], argv + 2);
	return 99;
}
