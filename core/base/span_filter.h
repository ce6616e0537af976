/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Span filter: which spans are recorded, by target and level.
 *
 * Each pair of target and level has one word, 1 while such spans are recorded and else 0.  The
 * program's descriptors point to it, so that asking is one load, whatever the reason for "no".
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__SPAN_FILTER_MAX 1024u /* bytes of text, its end included */

/* 0 or -EINVAL: |text| is no filter. */
int d9__span_filter_check(const char *text);

/* 0, -EINVAL.  Takes a mutex. */
int d9__span_filter_apply(const char *text);

/*
 * The word of |target| (copied) and |level|, for ever.  NULL: out of memory.  Takes a mutex and may
 * allocate; keeps errno.
 */
const uint32_t *d9__span_filter_word(const char *target, unsigned level);

/* Recording was switched on or off. */
void d9__span_filter_follow(bool recording);

/* Grows in every forked child, before that has a second thread: earlier spans are the parent's. */
extern _Atomic(uint32_t) d9__span_epoch;

/* The atfork handler's three. */
void d9__span_filter_fork_prepare(void);
void d9__span_filter_fork_parent(void);
void d9__span_filter_fork_child(void);
