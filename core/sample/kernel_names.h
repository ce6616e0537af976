/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel names: functions of the kernel in stacks, named while the kernel runs that they were in.
 *
 * /proc/kallsyms has over 100,000 lines, which take some 40 ms to read.  So addresses are collected, and looked up
 * together: a second after the first, then ever more seldom, and at the end.  What was found becomes a
 * SymbolTableEntry, in each segment in which the address is met.
 *
 * Flush thread only, but for d9__kallsyms_find().
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ring/slot.h"

#define D9__KERNEL_NAME_LEN 96

/* |pc| is in a stack that is written at |ns| into |own|. */
void d9__kernel_names_met(struct d9__slot *own, uint64_t pc, uint64_t ns);

/* Look up what is due; all if |last|.  Their rows go into |own|. */
void d9__kernel_names_look(struct d9__slot *own, uint64_t now_ns, bool last);

/* A recorder begins, whose trace has no names yet. */
void d9__kernel_names_renew(void);

/* In a forked child: what was met is the parent's, and its thread may have been about to free it. */
void d9__kernel_names_forget(void);

struct d9__kernel_symbol {
	uint64_t start;			/* 0: nothing is known of the address */
	char name[D9__KERNEL_NAME_LEN]; /* "do_idle", "ext4_readdir [ext4]" */
};

/*
 * The functions of |n| addresses, ascending, in |out|, by |fd|, a /proc/kallsyms.  0, -EPERM where it hides addresses,
 * or -errno of read(2).
 */
int d9__kallsyms_find(int fd, const uint64_t *addresses, size_t n, struct d9__kernel_symbol *out);
