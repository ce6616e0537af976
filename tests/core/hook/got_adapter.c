/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An adapter for the fake loop library, to be preloaded: adds 100 to what loop_run() returns and
 * 1000 to loop_step(), so that the program's output shows which calls were reached.
 */
#include "config.h"

#include "core/hook/fake_loop.h"
#include "hook/got.h"

static int (*real_run)(int);
static int (*real_step)(int);

static int hook_run(int n)
{
	return real_run(n) + 100;
}

static int hook_step(int n)
{
	return real_step(n) + 1000;
}

static const char *const names[] = { "libfakeloop", NULL };
static struct d9__images images = { .names = names, .scope_first = true };
static const struct d9__got_hook hooks[] = {
	D9__GOT_HOOK(loop_run, hook_run, &real_run, D9__GOT_EVERYWHERE),
	D9__GOT_HOOK(loop_step, hook_step, &real_step, D9__GOT_IN_LIBRARY),
};
static struct d9__got_table table = {
	.library = "fake",
	.images = &images,
	.hooks = hooks,
	.n_hooks = sizeof(hooks) / sizeof(hooks[0]),
	.reach = D9__GOT_NEEDED_OR_BOUND,
};

static __attribute__((constructor)) void start(void)
{
	d9__got_install(&table);
}
