#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls that block inside callbacks, on each loop library: the report names function, descriptor and line, and who held
# the lock; an innocent twin makes the same calls, which do not block.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# What takes long elsewhere: a disk, a name server.  By bare system calls, which are not timed.
cat >slow.c <<'END'
#define _GNU_SOURCE
#include <netdb.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for_it(void)
{
	struct timespec length = { 0, 40000000 };

	syscall(SYS_nanosleep, &length, NULL);
}

int fsync(int fd)
{
	wait_for_it();
	return syscall(SYS_fsync, fd);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	(void)node, (void)service, (void)hints, (void)out;
	wait_for_it();
	return EAI_AGAIN;
}
END

cat >calls.h <<'END'
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define KEEP __asm__ volatile("") /* of no last call a frame is left */

static int innocent, dies, file;

NOINLINE static void db_commit(void)
{
	if (!innocent)
		fsync(file);
	KEEP;
}

NOINLINE static void take_a_nap(void)
{
	struct timespec length = { 0, innocent ? 0 : 40000000 };

	nanosleep(&length, NULL);
	KEEP;
}

NOINLINE static void look_up(void)
{
	struct addrinfo *out;

	if (!innocent)
		getaddrinfo("db.example", "5432", NULL, &out);
	KEEP;
}

/* A process that waits for go(), then for a while, and ends; it holds the file by |operation|. */
static int go_fds[2];

static pid_t other(int operation)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) || pipe(go_fds))
		exit(99);
	pid = fork();
	if (!pid) {
		close(go_fds[1]); /* for a program that never says go */
		if (flock(open("lock", O_RDWR), operation) || write(ready[1], "x", 1) != 1 || read(go_fds[0], &byte, 1) != 1)
			_exit(1);
		usleep(innocent ? 0 : 40000);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(99);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void go(int fd)
{
	if (write(fd, "x", 1) != 1)
		exit(99);
}

static pid_t child;
static int child_fd, holder_fd;

NOINLINE static void reap(void)
{
	int status;

	waitpid(child, &status, innocent ? WNOHANG : 0);
	KEEP;
}

NOINLINE static void lock_file(void)
{
	flock(file, innocent ? LOCK_EX | LOCK_NB : LOCK_EX);
	KEEP;
}

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t locked, wanted;

NOINLINE static void flush_index(void)
{
	pthread_mutex_lock(&index_lock);
	sem_post(&locked);
	sem_wait(&wanted);
	usleep(innocent ? 0 : 40000);
	pthread_mutex_unlock(&index_lock);
	KEEP;
}

static void *flush(void *arg)
{
	flush_index();
	return arg;
}

NOINLINE static void use_index(void)
{
	if (innocent && pthread_mutex_trylock(&index_lock))
		return;
	if (!innocent)
		pthread_mutex_lock(&index_lock);
	pthread_mutex_unlock(&index_lock);
	KEEP;
}

/* All that others have to do before, so that callbacks wait for nothing else. */
static void prepare(int argc, char **argv)
{
	pthread_t flusher;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	dies = argc > 1 && !strcmp(argv[1], "dies");
	file = fcntl(open("lock", O_RDWR | O_CREAT, 0600), F_DUPFD, 77);
	child = other(LOCK_UN);
	child_fd = go_fds[1];
	other(LOCK_EX);
	holder_fd = go_fds[1];
	sem_init(&locked, 0, 0);
	sem_init(&wanted, 0, 0);
	pthread_create(&flusher, NULL, flush, NULL);
	sem_wait(&locked);
}

static void on_commit(void)
{
	db_commit();
	KEEP;
}

static void on_nap(void)
{
	take_a_nap();
	KEEP;
}

static void on_name(void)
{
	look_up();
	KEEP;
}

static void on_child(void)
{
	go(child_fd);
	reap();
	KEEP;
}

static void on_file(void)
{
	go(holder_fd);
	lock_file();
	KEEP;
}

static void on_index(void)
{
	sem_post(&wanted);
	use_index();
	KEEP;
}
END

cat >on_libevent.c <<'END'
#include "calls.h"
#include <event2/event.h>

#define CALLBACK(name)                                                                             \
	static void name##_cb(evutil_socket_t fd, short what, void *base)                          \
	{                                                                                          \
		(void)fd, (void)what, (void)base;                                                  \
		name();                                                                            \
		KEEP;                                                                              \
	}

CALLBACK(on_commit)
CALLBACK(on_nap)
CALLBACK(on_name)
CALLBACK(on_child)
CALLBACK(on_file)
CALLBACK(on_index)

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	event_callback_fn all[] = { on_commit_cb, on_nap_cb, on_name_cb, on_child_cb, on_file_cb, on_index_cb };

	prepare(argc, argv);
	for (int i = 0; i < 6; i++)
		event_base_once(base, -1, EV_TIMEOUT, all[i], base, &(struct timeval){ 0, 1000 * i });
	return event_base_dispatch(base) < 0;
}
END

cat >on_libev.c <<'END'
#include "calls.h"
#include <ev.h>

static void on_commit_cb(EV_P_ ev_timer *w, int revents)
{
	(void)w, (void)revents;
	on_commit();
	if (dies)
		kill(getpid(), SIGKILL);
	ev_break(EV_A_ EVBREAK_ALL);
}

int main(int argc, char **argv)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer timer;

	(void)on_nap, (void)on_name, (void)on_child, (void)on_file, (void)on_index;
	prepare(argc, argv);
	ev_timer_init(&timer, on_commit_cb, 0.001, 0.);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	return 0;
}
END

cat >on_glib.c <<'END'
#include "calls.h"
#include <glib.h>

static gboolean on_index_cb(gpointer loop)
{
	on_index();
	g_main_loop_quit(loop);
	return FALSE;
}

int main(int argc, char **argv)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	(void)on_nap, (void)on_name, (void)on_child, (void)on_file, (void)on_commit;
	prepare(argc, argv);
	g_timeout_add(1, on_index_cb, loop);
	g_main_loop_run(loop);
	return 0;
}
END

cc -O2 -g -shared -fPIC -o libslow.so slow.c || exit 99

# build PROGRAM FLAGS...
build() {
	program=$1
	shift
	cc -O2 -g -o "$program" "$program.c" ./libslow.so "$@" -lpthread
}

# places TRACE: the place where each function blocked longest, and what held locks.
places() {
	"$dial9" report --width 200 --section blocking "$1" >table
	for function in fsync nanosleep getaddrinfo waitpid flock pthread_mutex_lock; do
		grep " $function(" table | head -n 1 | sed -n 's/.* \([a-z_]*([0-9]*)\)  *\([a-z].*\)/\1 at \2/p'
	done
	sed -n '/^Locks/,$s/.*held by //p; s/.*  thread [a-z_]*, released at \(.*\), had it for .*/held by a thread, released at \1/p' table
}

# accused TRACE: what findings say of callbacks that blocked.
accused() {
	"$dial9" report --json "$1" | grep -o '"brief": *"\(blocks\|waits\|sleeps\)[^"]*"' |
		sed 's/[0-9.]* [mu]*s /TIME /; s/, [0-9]* of [0-9]* calls//; s/.*: *//' | sort -u
}

# try PROGRAM
try() {
	say "$1"
	"$dial9" record --quiet -o "$work/tr.$1" "./$1" || echo "status $?"
	"$dial9" info "$work/tr.$1" | grep '^  source.blocking'
	places "$work/tr.$1"
	accused "$work/tr.$1"
	say "$1, innocent"
	"$dial9" record --quiet -o "$work/innocent.$1" "./$1" innocent || echo "status $?"
	accused "$work/innocent.$1"
}

build on_libevent -levent || skip "no libevent to build with"
try on_libevent
if build on_libev -lev 2>errors; then
	try on_libev
	say "killed behind the call, which the flush thread has not seen yet"
	"$dial9" record --quiet -o "$work/killed" ./on_libev dies || echo "status $?"
	places "$work/killed"
fi
# Words of pkg-config are meant.
# shellcheck disable=SC2046
! build on_glib $(pkg-config --cflags --libs glib-2.0 2>/dev/null) 2>errors || try on_glib

say "switched off"
"$dial9" record --quiet --no-blocking -o "$work/off" ./on_libevent || echo "status $?"
"$dial9" info "$work/off" | grep '^  source.blocking'
run report --section blocking "$work/off"
say "a function that a header of the system's has inlined stands for who called it"
cat >fortified.c <<'END'
#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

static int fds[2];

/* Read by an inline function of <unistd.h>, which looks at the size. */
__attribute__((noinline)) static void fetch_reply(char *buf, size_t n)
{
	if (read(fds[0], buf, n) < 1)
		exit(99);
	__asm__ volatile("");
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	char *buf = malloc(8);

	(void)fd, (void)what, (void)arg;
	fetch_reply(buf, 1);
	free(buf);
}

int main(void)
{
	struct event_base *base = event_base_new();
	struct timeval soon = { 0, 1000 };

	if (pipe(fds))
		return 99;
	if (!fork()) {
		usleep(40000);
		_exit(write(fds[1], "x", 1) != 1);
	}
	event_base_once(base, -1, EV_TIMEOUT, on_request, NULL, &soon);
	return event_base_dispatch(base) < 0;
}
END
cc -O2 -g -D_FORTIFY_SOURCE=2 -o fortified fortified.c -levent || exit 99
"$dial9" record --quiet -o "$work/tr.fortified" ./fortified || echo "status $?"
"$dial9" report --width 200 --section blocking "$work/tr.fortified" | grep -o 'fetch_reply (fortified.c:[0-9]*)' | head -n 1
say "without a profile, too, a call has its whole stack that is long, however soon, or comes later than a second"
cat >alone.c <<'END'
#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned ms;

__attribute__((noinline)) static void fetch(void)
{
	usleep(1000 * ms);
	__asm__ volatile("");
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	fetch();
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct timeval after = { argc > 2 ? atoi(argv[1]) : 0, 10000 };

	ms = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	event_base_once(base, -1, EV_TIMEOUT, on_request, NULL, &after);
	return event_base_dispatch(base) < 0;
}
END
cc -O2 -g -o alone alone.c -levent || exit 99
for when in '0 1000' '3 5'; do
	rm -rf alone.tr
	# shellcheck disable=SC2086 # words
	"$dial9" record --quiet --cpu off -o alone.tr -- ./alone $when
	"$dial9" events --format text -e BlockingCallEvent -e CpuSampleEvent alone.tr | grep -ow 'fetch\|on_request\|main' | tr '\n' ' '
	echo
done

say "a log that is printed into a full pipe, and by a fprintf() of the program's own"
cat >prints.c <<'END'
#define _GNU_SOURCE
#include <event2/event.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *log_file;

#ifdef OWN
int fprintf(FILE *stream, const char *format, ...)
{
	va_list args;
	int n;

	fputs("own: ", stream);
	va_start(args, format);
	n = vfprintf(stream, format, args);
	va_end(args);
	return n;
}
#endif

__attribute__((noinline)) static int log_line(const char *text, int n)
{
	int length = fprintf(log_file, "%s, %d of %.1f\n", text, n, 8.5);

	__asm__ volatile("");
	return length;
}

static void on_request(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what, (void)base;
	printf("%d letters\n", log_line("served", 7));
	__asm__ volatile("");
}

/* Reads after a while, and says what came behind the bytes that fill the pipe. */
static void read_late(int fd, int full)
{
	char text[5000];
	int n = 0, got;

	usleep(50000);
	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += got;
	text[n] = 0;
	write(1, text + full, n - full);
	_exit(0);
}

int main(void)
{
	struct event_base *base = event_base_new();
	int fds[2], full;

	if (pipe(fds))
		return 1;
	full = fcntl(fds[1], F_SETPIPE_SZ, 4096);
	if (full != 4096 || write(fds[1], calloc(1, full), full) != full)
		return 1;
	if (!fork()) {
		close(fds[1]);
		read_late(fds[0], full);
	}
	log_file = fdopen(fds[1], "w");
	setvbuf(log_file, NULL, _IOLBF, 1000);
	event_base_once(base, -1, EV_TIMEOUT, on_request, NULL, &(struct timeval){ 0, 10000 });
	event_base_dispatch(base);
	fclose(log_file);
	wait(NULL);
	return 0;
}
END
for way in '-O1' '-O2 -D_FORTIFY_SOURCE=2' '-O1 -DOWN -rdynamic -fno-builtin'; do
	# shellcheck disable=SC2086 # words
	cc -g -w $way -o prints prints.c -levent || exit 99
	rm -rf prints.tr
	"$dial9" record --quiet -o prints.tr -- ./prints
	# Behind its loop it waits for who reads.
	"$dial9" events --format text -e BlockingCallEvent prints.tr | grep -v 'task_id=0\>' | grep -o 'function=[a-z]*'
	"$dial9" report --section findings prints.tr | grep -o -m 1 'printf() at log_line'
done

say "a sleep is told once, whether the kernel's switches show it, too, or alone"
sleeps() {
	echo "row 0x1010 0 save svc.c 10"
	echo "spawn 2000 0x1010 0 1"
	for i in 1 2 3 4 5 6 7 8; do
		at=$((i * 100000000))
		echo "poll $at 1 1 0x1010 0"
		echo "taken $((at + 1000)) 1 1 0 0x1010"
		[ "$1" = switches ] || echo "blocked $((at + 1000)) 1 fsync 3000000"
		echo "taken $((at + 2000)) 1 1 0 0x1010"
		echo "end $((at + 3002000)) 1"
	done
}
for what in both switches; do
	sleeps $what | "$top_builddir/tests/cli/make_samples" plain $what.bin
	"$dial9" report --section findings $what.bin | grep -o 'is off the CPU while it runs, [0-9]* times\|were taken off the CPU.*'
	echo "$what"
done

finish 's/  */ /g'
