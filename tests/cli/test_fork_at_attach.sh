#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A thread has its first loop attached, or the first behind a recorder that was stopped, and asks the dynamic loader several times on the way.  At each of these moments in turn
# another thread has the loader, in the constructor of a library that forks.  No lock of ours that fork() takes is held by
# whom it keeps waiting for ever: the child is made, the loop runs.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >module.c <<'END'
void on_load(void);
__attribute__((constructor)) static void begin(void)
{
	on_load();
}
END
cat >fork.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <event2/event.h>
#include <glib.h>
#include <link.h>
#include <semaphore.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* <ev.h> cannot stand beside libevent's. */
struct ev_loop *ev_loop_new(unsigned flags);
int ev_run(struct ev_loop *loop, int flags);
#define NOWAIT 1

static const char *kind;
static int wanted; /* which question of the thread that attaches waits for the fork */
static _Atomic(int) questions;
static _Thread_local int attaches;
static sem_t asking, forking;

typedef int ask_fn(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg);

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

/* libc's. */
static int ask(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	static ask_fn *real;

	if (!real)
		real = (ask_fn *)dlsym(RTLD_NEXT, "dl_iterate_phdr");
	return real(each, arg);
}

/* In front of it. */
int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	if (attaches && ++questions == wanted) {
		sem_post(&asking);
		await(&forking);
	}
	return ask(each, arg);
}

static gboolean once(void *unused)
{
	(void)unused;
	return G_SOURCE_REMOVE;
}

static void run_context(void)
{
	GMainContext *context = g_main_context_new();
	GSource *source = g_idle_source_new();

	g_source_set_callback(source, once, NULL, NULL);
	g_source_attach(source, context);
	g_main_context_iteration(context, FALSE);
}

static void make_loop(void)
{
	if (!strcmp(kind, "libevent"))
		event_base_loop(event_base_new(), EVLOOP_NONBLOCK);
	else if (!strcmp(kind, "libev"))
		ev_run(ev_loop_new(0), NOWAIT);
	else
		run_context();
}

/* A loop, and the end of its recorder. */
static void stop_one(void)
{
	struct d9_recorder *(*running)(void) = (struct d9_recorder *(*)(void))dlsym(RTLD_DEFAULT, "d9_recorder_running");
	int (*stop)(struct d9_recorder *, unsigned) = (int (*)(struct d9_recorder *, unsigned))dlsym(RTLD_DEFAULT, "d9_recorder_stop");

	make_loop();
	if (stop(running(), 20000))
		puts("it does not stop");
}

static void *attach(void *unused)
{
	attaches = 1;
	make_loop();
	attaches = 0;
	if (questions < wanted)
		sem_post(&asking);
	return unused;
}

static int fork_here(struct dl_phdr_info *info, size_t size, void *unused)
{
	int status = -1;
	pid_t child;

	(void)info, (void)size, (void)unused;
	sem_post(&forking);
	child = fork();
	if (!child)
		_exit(7);
	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		puts("no child");
	return 1;
}

/* Constructors have one lock of the loader's, who looks at its list the other. */
void on_load(void)
{
	ask(fork_here, NULL);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	alarm(60); /* it hangs */
	kind = argv[1];
	wanted = argc > 2 ? atoi(argv[2]) : 0;
	sem_init(&asking, 0, 0);
	sem_init(&forking, 0, 0);
	if (argc > 3)
		stop_one();
	pthread_create(&thread, NULL, attach, NULL);
	if (wanted) {
		await(&asking);
		if (!dlopen("./module.so", RTLD_NOW))
			puts(dlerror());
	}
	pthread_join(thread, NULL);
	printf("%d\n", wanted ? 0 : questions);
	return 0;
}
END
$CC -shared -fPIC -o module.so module.c || exit 99
# shellcheck disable=SC2046 # words
$CC -g -O1 -pthread -rdynamic -o fork fork.c $(pkg-config --cflags --libs glib-2.0) -levent -lev || exit 99

# fork_at KIND QUESTION HOW FLAG...: what goes wrong there
fork_at() {
	loop=$1
	at=$2
	how=$3
	shift 3
	said=$("$dial9" record --quiet "$@" -o "tr.$loop.$at.$#$how" -- ./fork "$loop" "$at" $how 2>&1) && status=0 || status=$?
	[ "$status $said" = "0 0" ] || echo "$loop $how $*, question $at: exit status $status, $said"
}

# at_each KIND HOW FLAG...: 80 at once, for each but waits ten seconds; of 300 each would look at the others' rings at its start.
begun=0
at_each() {
	kind=$1
	how=$2
	shift 2
	questions=$("$dial9" record --quiet "$@" -o "tr.$kind.$#$how" -- ./fork "$kind" 0 $how)
	echo "$kind $how $*: $questions questions" >&3
	[ "$questions" -gt 0 ] || echo "$kind $how $*: the loader was not asked: nothing was tried"
	for question in $(seq "$questions"); do
		fork_at "$kind" "$question" "$how" "$@" &
		begun=$((begun + 1))
		[ $((begun % 80)) != 0 ] || wait
	done
}

for kind in libevent libev glib; do
	at_each $kind ""
	at_each $kind stopped
	at_each $kind "" --off-cpu
done
wait
echo "each loop was attached, and each child was made"
finish ''
