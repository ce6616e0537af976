#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Callbacks that wait in the ways of C++20 and of Rust, and for signals: each wait has a name; and who held the lock is told by its
# thread's name, where it let go, and whether it computed or slept meanwhile.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >ways.cc <<'END'
#include <event2/event.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <pthread.h>
#include <semaphore>
#include <shared_mutex>
#include <signal.h>
#include <thread>
#include <time.h>
#include <unistd.h>

using namespace std::chrono_literals;

#define LENGTH 100ms

static std::atomic<int> begun;
static std::timed_mutex timed;
static std::shared_mutex shared;
static std::shared_timed_mutex shared_timed;

template <class F> static std::thread start(F f)
{
	begun = 0;
	return std::thread(f);
}

static void await()
{
	while (!begun)
		std::this_thread::yield();
}

template <class L> static std::thread hold(L &lock)
{
	std::thread thread = start([&] {
		lock.lock();
		begun = 1;
		std::this_thread::sleep_for(LENGTH);
		lock.unlock();
	});

	await();
	return thread;
}

static void timed_mutex()
{
	std::thread thread = hold(timed);

	if (timed.try_lock_for(10s))
		timed.unlock();
	thread.join();
}

static void shared_mutex()
{
	std::thread thread = hold(shared);

	shared.lock_shared();
	shared.unlock_shared();
	thread.join();
}

static void shared_timed_mutex()
{
	std::thread thread = hold(shared_timed);

	if (shared_timed.try_lock_shared_for(10s))
		shared_timed.unlock_shared();
	thread.join();
}

static void future()
{
	std::promise<int> promise;
	std::future<int> future = promise.get_future();
	std::thread thread = start([&] {
		std::this_thread::sleep_for(LENGTH);
		promise.set_value(1);
	});

	future.get();
	thread.join();
}

static void semaphore()
{
	std::counting_semaphore<1> semaphore(0);
	std::thread thread = start([&] {
		std::this_thread::sleep_for(LENGTH);
		semaphore.release();
	});

	semaphore.acquire();
	thread.join();
}

static void latch()
{
	std::latch latch(1);
	std::thread thread = start([&] {
		std::this_thread::sleep_for(LENGTH);
		latch.count_down();
	});

	latch.wait();
	thread.join();
}

static void atomic_wait()
{
	std::atomic<int> word{ 0 };
	std::thread thread = start([&] {
		std::this_thread::sleep_for(LENGTH);
		word = 1;
		word.notify_one();
	});

	word.wait(0);
	thread.join();
}

static void once()
{
	static std::once_flag flag;
	std::thread thread = start([] {
		std::call_once(flag, [] {
			begun = 1;
			std::this_thread::sleep_for(LENGTH);
		});
	});

	await();
	std::call_once(flag, [] {});
	thread.join();
}

static void barrier()
{
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, nullptr, 2);
	std::thread thread = start([&] {
		std::this_thread::sleep_for(LENGTH);
		pthread_barrier_wait(&barrier);
	});
	pthread_barrier_wait(&barrier);
	thread.join();
}

static void arm(int signal)
{
	struct itimerspec in = { { 0, 0 }, { 0, 100000000 } };
	struct sigevent event = {};
	static timer_t timer;

	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = signal;
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &in, nullptr);
}

static void wait_for(int (*wait)(const sigset_t *))
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, nullptr);
	arm(SIGUSR2);
	wait(&set);
}

static void sigwait_()
{
	wait_for([](const sigset_t *set) { int signal; return sigwait(set, &signal); });
}

static void sigwaitinfo_()
{
	wait_for([](const sigset_t *set) { return sigwaitinfo(set, nullptr); });
}

static void sigtimedwait_()
{
	wait_for([](const sigset_t *set) { timespec most = { 10, 0 }; return sigtimedwait(set, nullptr, &most); });
}

static void pause_()
{
	signal(SIGUSR1, [](int) {});
	arm(SIGUSR1);
	pause();
}

static void file()
{
	std::thread thread = start([] {
		flockfile(stderr);
		begun = 1;
		std::this_thread::sleep_for(LENGTH);
		funlockfile(stderr);
	});

	await();
	flockfile(stderr);
	funlockfile(stderr);
	thread.join();
}

#define WAY(name)                                                                                  \
	static void on_##name(evutil_socket_t, short, void *)                                      \
	{                                                                                          \
		name();                                                                            \
	}

WAY(timed_mutex) WAY(shared_mutex) WAY(shared_timed_mutex) WAY(future) WAY(semaphore) WAY(latch) WAY(atomic_wait) WAY(once)
WAY(barrier) WAY(sigwait_) WAY(sigwaitinfo_) WAY(sigtimedwait_) WAY(pause_) WAY(file)

int main()
{
	event_base *base = event_base_new();

	for (event_callback_fn way : { on_timed_mutex, on_shared_mutex, on_shared_timed_mutex, on_future, on_semaphore, on_latch,
				       on_atomic_wait, on_once, on_barrier, on_sigwait_, on_sigwaitinfo_, on_sigtimedwait_, on_pause_,
				       on_file }) {
		timeval now = { 0, 0 };

		event_base_once(base, -1, EV_TIMEOUT, way, nullptr, &now);
	}
	return event_base_dispatch(base) < 0;
}
END

# waits TRACE: what each callback waited in, but for ends of threads and POSIX's semaphores.
waits() {
	"$dial9" report --json "$1" | awk '
		/"blocking_calls": \[/ { inside = 1 }
		inside && /^ *\],*$/ { exit }
		inside && /"function": / && !call { call = $2 }
		inside && /"callback": / { print $2, call }
		/^ *},*$/ { call = "" }' | tr -d '",' | grep -v 'pthread_join\|sem_wait' | sort -u
}

# tried TRACE N COMMAND...: its waits; again where they are not N, because the machine let a callback come too late to wait.
tried() {
	trace=$1
	wanted=$2
	shift 2
	for _ in 1 2 3 4; do
		rm -rf "$trace"
		"$dial9" record --quiet -o "$trace" -- "$@" || echo "status $?"
		waits "$trace" >told
		[ "$(wc -l <told)" -lt "$wanted" ] || break
	done
	cat told
}

say "the ways of C++20, and signals"
if echo '#include <latch>
int main() {}' >latch.cc && c++ -std=c++20 -o latch latch.cc 2>/dev/null; then
	c++ -O2 -g -std=c++20 -pthread -o ways ways.cc -levent || exit 99
	tried ways.tr 14 ./ways
	"$dial9" report --json ways.tr | grep -o '"brief": "waits [^"]*' |
		sed 's/.* for \(a\|an\|the\) /for \1 /; s/, 1 of.*//; s/ \(at\|held\) .*//' | sort -u
else
	sed -n '/^# the ways/,/^$/p' "$expected" | sed 1d
	echo "no compiler of C++20: left out" >&3
fi

cat >holders.c <<'END'
#define _GNU_SOURCE
#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define KEEP __asm__ volatile("")

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t third = PTHREAD_RWLOCK_INITIALIZER;
static sem_t held, wanted;
static volatile unsigned long sink;

static void compute(void)
{
	struct timespec used;
	long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	end = used.tv_sec * 1000000000L + used.tv_nsec + 30000000;
	do {
		for (int i = 0; i < 3000; i++)
			sink += (unsigned long)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	} while (used.tv_sec * 1000000000L + used.tv_nsec < end);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 30000000 }, NULL);
}

__attribute__((noinline)) static void compute_with_lock(void)
{
	pthread_mutex_lock(&first);
	sem_post(&held);
	sem_wait(&wanted);
	compute();
	pthread_mutex_unlock(&first);
	KEEP;
}

__attribute__((noinline)) static void sleep_with_lock(void)
{
	pthread_mutex_lock(&second);
	sem_post(&held);
	sem_wait(&wanted);
	nap();
	pthread_mutex_unlock(&second);
	KEEP;
}

__attribute__((noinline)) static void write_with_lock(void)
{
	pthread_rwlock_wrlock(&third);
	sem_post(&held);
	sem_wait(&wanted);
	nap();
	pthread_rwlock_unlock(&third);
	KEEP;
}

static void *run(void *function)
{
	static const char *const names[] = { "computer", "sleeper", "writer" };
	static void (*const functions[])(void) = { compute_with_lock, sleep_with_lock, write_with_lock };
	long i = (long)function;

	pthread_setname_np(pthread_self(), names[i]);
	functions[i]();
	return NULL;
}

static pthread_t start(long function)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, (void *)function);
	sem_wait(&held);
	sem_post(&wanted);
	return thread;
}

static void on_first(evutil_socket_t fd, short what, void *arg)
{
	pthread_t thread = start(0);

	(void)fd, (void)what, (void)arg;
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_join(thread, NULL);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	pthread_t thread = start(1);
	struct timespec until;

	(void)fd, (void)what, (void)arg;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	if (!pthread_mutex_timedlock(&second, &until))
		pthread_mutex_unlock(&second);
	pthread_join(thread, NULL);
}

static void on_third(evutil_socket_t fd, short what, void *arg)
{
	pthread_t thread = start(2);

	(void)fd, (void)what, (void)arg;
	pthread_rwlock_rdlock(&third);
	pthread_rwlock_unlock(&third);
	pthread_join(thread, NULL);
}

int main(void)
{
	struct event_base *base = event_base_new();
	event_callback_fn all[] = { on_first, on_second, on_third };

	for (int i = 0; i < 3; i++)
		event_base_once(base, -1, EV_TIMEOUT, all[i], NULL, &(struct timeval){ 0, 0 });
	return event_base_dispatch(base) < 0;
}
END

say "holders, by their threads' names"
cc -O2 -g -pthread -o holders holders.c -levent || exit 99
tried holders.tr 3 ./holders
# Whether it was on the CPU for half of the time is what tells the two apart.
"$dial9" report --json holders.tr | awk '
	/"holder_name": / { name = $2 }
	/"held_ns": / { held = $2 + 0 }
	/"held_cpu_ns": / { line = name " " (held >= 20000000 ? "long enough" : held) ($2 + 0 >= 20000000 ? ", computing" : ", asleep") }
	/"held_at": / { inside = 1 }
	inside && /"function": / { print line ", released at", $2; inside = 0 }' | tr -d '"' | sort
"$dial9" report --width 200 --section blocking holders.tr |
	sed -n '/^Locks/,$s/.*  \(thread [a-z]*, released at [a-z_]* (holders.c:[0-9]*), had it for\) .* of them on the CPU.*/\1/p' | sort

say "Rust: a Mutex, a Condvar, a thread that is parked"
if command -v rustc >/dev/null; then
	cat >rust.rs <<'END'
use std::os::raw::{c_int, c_short, c_void};
use std::sync::{mpsc, Condvar, Mutex};
use std::{ptr, thread, time::Duration};

#[repr(C)]
struct Timeval { sec: i64, usec: i64 }

#[link(name = "event")]
extern "C" {
    fn event_base_new() -> *mut c_void;
    fn event_base_once(base: *mut c_void, fd: c_int, what: c_short, callback: extern "C" fn(c_int, c_short, *mut c_void),
                       arg: *mut c_void, after: *const Timeval) -> c_int;
    fn event_base_dispatch(base: *mut c_void) -> c_int;
}

static LOCK: Mutex<u32> = Mutex::new(0);

fn nap() { thread::sleep(Duration::from_millis(30)); }

extern "C" fn on_mutex(_: c_int, _: c_short, _: *mut c_void) {
    let (sender, held) = mpsc::channel();
    let holder = thread::spawn(move || {
        let guard = LOCK.lock().unwrap();
        sender.send(()).unwrap();
        nap();
        drop(guard);
    });
    held.recv().unwrap();
    *LOCK.lock().unwrap() += 1;
    holder.join().unwrap();
}

extern "C" fn on_condvar(_: c_int, _: c_short, _: *mut c_void) {
    let (lock, ready) = (Mutex::new(()), Condvar::new());
    let _ = ready.wait_timeout(lock.lock().unwrap(), Duration::from_millis(30)).unwrap();
}

extern "C" fn on_park(_: c_int, _: c_short, _: *mut c_void) {
    thread::park_timeout(Duration::from_millis(30));
}

fn main() {
    unsafe {
        let base = event_base_new();
        for callback in [on_mutex, on_condvar, on_park] {
            event_base_once(base, -1, 1, callback, ptr::null_mut(), &Timeval { sec: 0, usec: 0 });
        }
        event_base_dispatch(base);
    }
}
END
	MAKEFLAGS='' rustc -O -g -o rust rust.rs 2>rustc.log || { cat rustc.log; exit 99; }
	tried rust.tr 3 ./rust | sed 's/::h[0-9a-f]* / /'
else
	sed -n '/^# Rust/,/^$/p' "$expected" | sed 1d
	echo "no rustc: left out" >&3
fi

finish ''
