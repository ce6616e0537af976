/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wires the parts together; decisions live in flush, writer, retention and options.
 *
 * A recorder is started and stopped under |lock|.  In a forked child the atfork handler forgets
 * everything and leaves D9__PENDING_CHILD behind; the options are kept for the child's own start.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>
#include <dial9/version.h>

#include "base/environment.h"
#include "base/heap.h"
#include "base/sandbox.h"
#include "base/span_filter.h"
#include "base/thread.h"
#include "base/time.h"
#include "drain/health.h"
#include "record/aside.h"
#include "record/facts.h"
#include "record/flush.h"
#include "record/last_thread.h"
#include "record/recorder.h"
#include "record/sampling.h"
#include "record/source.h"
#include "record/triggers.h"
#include "record/usage.h"
#include "ring/chunk.h"
#include "ring/clock.h"
#include "ring/event_types.h"
#include "ring/gate.h"
#include "ring/names.h"
#include "ring/note.h"
#include "ring/ring_file.h"
#include "ring/slot.h"
#include "segment/metadata.h"
#include "segment/modules.h"
#include "segment/user_callbacks.h"

#define EXIT_DEADLINE_MS 1000
#define TRIES_APART      64

struct d9_recorder {
	int unused;
};

/* Protects starting and stopping, and |options|. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct d9_recorder the_recorder;
static struct d9_options options; /* resolved; kept after a stop, for children and questions */
static bool have_options;
static bool ever_started;
static pthread_t flush_thread;
static bool joinable;
static bool away; /* flush_thread has ended, and is to be started again */

static bool parent_was_off; /* at the fork that made this process */

_Atomic(int) d9__recorder_pending;

/* ---- starting ---- */

static uint32_t gate_bits(const struct d9_options *o)
{
	uint32_t bits = D9__GATE_EVENT;

	if (d9__options_number(o, D9__OPTION_LOOPS))
		bits |= D9__GATE_LOOP;
	if (d9__options_number(o, D9__OPTION_LOOPS) && d9__options_number(o, D9__OPTION_TASKS))
		bits |= D9__GATE_TASK | D9__GATE_WAKE;
	if (bits & D9__GATE_TASK && d9__options_number(o, D9__OPTION_TASK_DUMPS))
		bits |= D9__GATE_ARM;
	if (bits & D9__GATE_LOOP && d9__options_number(o, D9__OPTION_ACCEPT_QUEUES))
		bits |= D9__GATE_LISTEN;
	return bits;
}

/* The program may change its directory, a child its own. */
static int make_dir_absolute(struct d9_options *o)
{
	const char *dir = d9__options_text(o, D9__OPTION_TRACE_DIR);
	char cwd[PATH_MAX], path[2 * PATH_MAX];

	if (dir[0] == '/')
		return 0;
	if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	snprintf(path, sizeof(path), "%s/%s", cwd, dir);
	return d9_options_set_trace_dir(o, path);
}

static bool writes_files(void)
{
	uint64_t writer = d9__options_number(&options, D9__OPTION_WRITER);

	return writer == D9_WRITER_ROTATING || writer == D9_WRITER_SINGLE;
}

/* The ring, the clock and the gate, which stays closed. */
static int start_ring(const char *boot_id)
{
	struct d9__ring_options ring = {
		.kind = (enum d9__ring_kind)d9__options_number(&options, D9__OPTION_RING),
		.max_bytes = (size_t)d9__options_number(&options, D9__OPTION_RING_MB) << 20,
		.boot_id = boot_id,
		/* Recovery writes to no directory if we would not. */
		.trace_dir = writes_files() ? d9__flush.trace_dir : "",
		.service = d9__options_text(&options, D9__OPTION_SERVICE),
		.s3_bucket = d9__options_text(&options, D9__OPTION_S3_BUCKET),
		.s3_prefix = d9__options_text(&options, D9__OPTION_S3_PREFIX),
	};
	int err = d9__gate_init();

	if (err)
		return err;
	if (!d9__ring.base)
		d9__clock_start((enum d9__clock_want)d9__options_number(&options,
									D9__OPTION_CLOCK));
	return d9__ring_start(&ring);
}

static void prepare_flush(void)
{
	atomic_store_explicit(&d9__flush.state, D9_RECORDER_STARTING, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.open_result, 1, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.ended, 0, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.stop, 0, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.unwritten, false, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.end_err, 0, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.last, false, memory_order_relaxed);
	memset(&d9__flush.counters, 0, sizeof(d9__flush.counters));
	atomic_store_explicit(&d9__flush.on_to_the_end, false, memory_order_relaxed);
	d9__flush.options = &options;
	d9__flush.gate_bits = gate_bits(&options);
	atomic_store_explicit(&d9__log_bridge,
			      (int)d9__options_number(&options, D9__OPTION_LOG_BRIDGE),
			      memory_order_relaxed);
	atomic_store_explicit(&d9__event_types_old,
			      (uint32_t)d9__options_number(&options, D9__OPTION_OLD_EVENTS),
			      memory_order_relaxed);
	d9__flush.flight = d9__options_number(&options, D9__OPTION_MODE) == D9_MODE_FLIGHT;
	d9__flush.start_disabled = !d9__options_number(&options, D9__OPTION_ENABLED) ||
				   parent_was_off;
	parent_was_off = false;
	for (unsigned i = 0; i < D9_LOSS_COUNT; i++)
		d9__flush.lost_before[i] = d9__health_lost_by(i);
}

static int stop(uint32_t deadline_ms);

void d9__recorder_end(uint32_t deadline_ms)
{
	atomic_store_explicit(&d9__flush.last, true, memory_order_relaxed);
	(void)stop(deadline_ms);
}

void d9__recorder_end_here(void)
{
	d9__recorder_end(EXIT_DEADLINE_MS);
	/* Not in a raw clone(), nor while it goes on beyond the deadline, nor what is written nowhere else. */
	if (!atomic_load_explicit(&d9__gate_running, memory_order_acquire) && d9__ring.base &&
	    !atomic_load_explicit(&d9__flush.unwritten, memory_order_relaxed) &&
	    d9__ring.header->pid == (uint32_t)getpid())
		d9__ring_unlink();
}

/* In a sandbox the ring stays as it is: `dial9 record` or the next recorder recovers it. */
static void stop_at_exit(void)
{
	if (!d9__sandbox_is_shut() && d9__self.slot != D9__SLOT_JAILED)
		d9__recorder_end_here();
}

static void register_handlers(void);

static void register_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
}

/* With |options| resolved.  Nothing is left behind on failure.  |awaited|: await_directory_locked() follows. */
static int start_locked(bool awaited)
{
	char boot_id[D9__BOOT_ID_MAX];
	int err;

	snprintf(d9__flush.trace_dir, sizeof(d9__flush.trace_dir), "%s",
		 d9__options_text(&options, D9__OPTION_TRACE_DIR));
	register_once();
	d9__clock_ask_thread();
	d9__boot_id_make(boot_id, d9__clock_real_ns() / D9__MS_NS, (long)getpid());
	memcpy(d9__flush.boot_id, boot_id, sizeof(boot_id));
	err = start_ring(boot_id);
	if (err) {
		d9__note(D9_LOG_ERROR, "cannot make a ring: %s", d9_strerror(err));
		return err;
	}
	prepare_flush();
	d9__note(D9_LOG_INFO, "started in process %ld: dial9 %s, %s%s", (long)getpid(), D9_VERSION,
		 d9__flush.flight ? "flight" : "continuous", d9__flush.start_disabled ? ", disabled" : "");
	d9__flush.awaited = awaited;
	d9__facts_set(&options, boot_id);
	d9__usage_set_interval(d9__options_number(&options, D9__OPTION_USAGE) ?
			       d9__options_number(&options, D9__OPTION_USAGE_INTERVAL_MS) * D9__MS_NS :
			       0);
	d9__sampling_set(&options);
	d9__triggers_arm(d9__options_text(&options, D9__OPTION_TRIGGERS));
	err = d9__user_callbacks_start(&options);
	if (err) {
		d9__triggers_disarm();
		return err;
	}
	atomic_store_explicit(&d9__gate_owner, getpid(), memory_order_relaxed);
	if (!d9__flush.start_disabled)
		d9__gate_set(d9__flush.gate_bits);
	err = d9__flush_start(&flush_thread);
	if (err) {
		d9__gate_set(0);
		d9__user_callbacks_stop(0);
		d9__triggers_disarm();
		return err;
	}
	joinable = true;
	atomic_store_explicit(&d9__gate_running, true, memory_order_release);
	ever_started = true;
	return 0;
}

static bool stop_locked(uint64_t deadline_ns);

/* The trace directory could be made, or the thread has been sent home again. */
static int await_directory_locked(void)
{
	const struct timespec pause = { 0, 50000 };
	int result;

	if (d9__flush.start_disabled)
		return 0;
	/* Some ten system calls on another thread: not worth a condition variable. */
	while ((result = atomic_load_explicit(&d9__flush.open_result, memory_order_acquire)) == 1)
		nanosleep(&pause, NULL);
	if (!result || d9__flush_may_pass(result))
		return 0;
	stop_locked(UINT64_MAX);
	return result;
}

static int resolve_locked(const struct d9_options *api)
{
	struct d9_options resolved = { 0 };
	int err = d9__options_resolve(&resolved, api);

	if (!err)
		err = make_dir_absolute(&resolved);
	if (err) {
		d9__options_release(&resolved);
		return err;
	}
	d9__options_release(&options);
	options = resolved;
	have_options = true;
	d9__span_filter_apply(d9__options_text(&options, D9__OPTION_SPAN_FILTER));
	return 0;
}

/* A recorder that was told to stop and missed its deadline may have ended meanwhile. */
static bool is_running_locked(void)
{
	if (!atomic_load_explicit(&d9__gate_running, memory_order_relaxed))
		return false;
	if (atomic_load_explicit(&d9__flush.stop, memory_order_relaxed) &&
	    atomic_load_explicit(&d9__flush.ended, memory_order_acquire))
		stop_locked(0);
	return atomic_load_explicit(&d9__gate_running, memory_order_relaxed);
}

/* Started in a constructor, and the program has not asked for it yet. */
static _Atomic(bool) unclaimed;

/* 0: nothing is to be started later.  Else the process, which a child of vfork() is not. */
static _Atomic(pid_t) later;
static void (*before_later)(void); /* or NULL */
static uint64_t later_cpu_ns;	     /* not before the process has used so much */
static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER; /* one begins; outside of |lock|, as fork() takes others before that */

static void forget_later_locked(void)
{
	int start = D9__PENDING_START;

	atomic_store_explicit(&later, 0, memory_order_relaxed);
	atomic_compare_exchange_strong_explicit(&d9__recorder_pending, &start, 0, memory_order_relaxed,
						memory_order_relaxed);
}

static void forget_later(void)
{
	if (!atomic_load_explicit(&later, memory_order_relaxed))
		return;
	pthread_mutex_lock(&later_lock);
	forget_later_locked();
	pthread_mutex_unlock(&later_lock);
}

static void (*before_start[D9__BEFORE_START_MAX])(void);

void d9__recorder_on_start(void (*fn)(void))
{
	for (size_t i = 0; i < D9__BEFORE_START_MAX; i++)
		if (!before_start[i]) {
			before_start[i] = fn;
			break;
		}
}

static void prepare_start(void)
{
	for (size_t i = 0; i < D9__BEFORE_START_MAX && before_start[i]; i++)
		before_start[i]();
}

int d9_recorder_start(const struct d9_options *api, struct d9_recorder **out)
{
	int saved = errno, err = -EALREADY;

	if (d9__sandbox_is_shut())
		return -EPERM;
	prepare_start();
	forget_later();
	pthread_mutex_lock(&lock);
	/* The program's own wishes count, and it began none before. */
	if (atomic_exchange_explicit(&unclaimed, false, memory_order_relaxed) && is_running_locked())
		stop_locked(UINT64_MAX);
	if (!is_running_locked()) {
		err = resolve_locked(api);
		if (!err)
			err = start_locked(true);
		if (!err)
			err = await_directory_locked();
	}
	pthread_mutex_unlock(&lock);
	d9__last_thread_start();
	if (out && (!err || err == -EALREADY))
		*out = &the_recorder;
	errno = saved;
	return err;
}

/*
 * Nobody here is told that a recorder could not start, but `dial9 record` can tell: a link takes neither a
 * descriptor nor memory, and does no harm where it points.
 */
static void leave_cause(int err)
{
	char path[PATH_MAX + sizeof(D9__CAUSE_LINK)], text[PATH_MAX];

	if (!d9__environment_get("DIAL9_TRACE_DIR"))
		return;
	snprintf(path, sizeof(path), "%s/" D9__CAUSE_LINK, d9__options_text(&options, D9__OPTION_TRACE_DIR));
	snprintf(text, sizeof(text), "%d %.1000s", -err, d9__options_text(&options, D9__OPTION_SERVICE));
	if (symlink(text, path))
		return; /* another process was first, or DIR is not ours */
}

int d9__recorder_ensure(void)
{
	int saved = errno, err = 0;

	atomic_store_explicit(&unclaimed, false, memory_order_relaxed);
	d9__recorder_child_check();
	if (d9__sandbox_is_shut())
		return ever_started ? 0 : -EPERM;
	if (!atomic_load_explicit(&d9__gate_running, memory_order_relaxed))
		prepare_start();
	forget_later();
	pthread_mutex_lock(&lock);
	if (!ever_started) {
		err = resolve_locked(NULL);
		if (!err)
			err = start_locked(false);
		if (err && have_options)
			leave_cause(err);
	}
	pthread_mutex_unlock(&lock);
	d9__last_thread_start();
	errno = saved;
	return err;
}

void d9__recorder_open_later(void (*prepare)(void), uint64_t cpu_ns)
{
	prepare_start();
	if (prepare)
		before_later = prepare;
	pthread_mutex_lock(&lock);
	register_once();
	if (!ever_started && !resolve_locked(NULL)) {
		d9__sampling_set_memory(&options);
		if (!atomic_load_explicit(&later, memory_order_relaxed) || cpu_ns < later_cpu_ns)
			later_cpu_ns = cpu_ns;
		atomic_store_explicit(&later, getpid(), memory_order_relaxed);
		atomic_store_explicit(&d9__recorder_pending, D9__PENDING_START, memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
}

/* Somebody starts or stops one, or forks: it is tried again. */
static void begin_later(void)
{
	if (pthread_mutex_trylock(&lock))
		return;
	forget_later_locked();
	if (!ever_started) {
		d9__flush.early = true;
		if (start_locked(false))
			leave_cause(-EAGAIN);
		atomic_store_explicit(&unclaimed, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
}

void d9__recorder_begin(void)
{
	struct d9__calm before;

	if (!atomic_load_explicit(&later, memory_order_relaxed) || d9__sandbox_is_shut() ||
	    getpid() != atomic_load_explicit(&later, memory_order_relaxed) || d9__aside_in_handler() ||
	    !d9__calm_lock(&before, &later_lock))
		return;
	if (atomic_load_explicit(&later, memory_order_relaxed)) {
		if (before_later)
			before_later();
		begin_later();
	}
	d9__calm_unlock(&before, &later_lock);
	d9__last_thread_start();
}

/* No timer: its signal would be there for a program that waits for signals, or has it pending when it starts another. */
static bool is_due(void)
{
	struct timespec used;

	return !later_cpu_ns || (!d9__sandbox_is_shut() && d9__self.slot != D9__SLOT_JAILED &&
				 !clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) &&
				 d9__timespec_ns(&used) >= later_cpu_ns);
}

/* A program may live in its handlers. */
static void try_to_begin(void)
{
	static _Atomic(unsigned) tries;

	if (is_due() && atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed) % TRIES_APART == 0)
		d9__recorder_begin();
}

void d9__recorder_open_early(void)
{
	d9__flush.early = true;
	(void)d9__recorder_ensure();
	atomic_store_explicit(&unclaimed, true, memory_order_relaxed);
}

/* ---- stopping ---- */

static uint64_t deadline_of(uint32_t ms)
{
	return d9__clock_mono_ns() + ms * D9__MS_NS;
}

/* Until the flush thread has ended or the time has come. */
static void wait_for_thread(uint64_t deadline_ns)
{
	while (!atomic_load_explicit(&d9__flush.ended, memory_order_acquire)) {
		uint64_t now_ns = d9__clock_mono_ns(), left;
		struct timespec timeout;

		if (now_ns >= deadline_ns)
			return;
		left = deadline_ns - now_ns;
		timeout = d9__timespec_of(left % (1000000 * D9__SECOND_NS));
		syscall(SYS_futex, &d9__flush.ended, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
	}
}

/* False: there is no thread, and none can be started. */
static bool return_locked(void)
{
	if (!away)
		return true;
	/*
	 * A handler that ends the program may have interrupted the holder of a lock that this
	 * takes.
	 */
	if (d9__aside_in_handler() || d9__aside_return(&flush_thread))
		return false;
	away = false;
	joinable = true;
	atomic_store_explicit(&d9__recorder_pending, 0, memory_order_relaxed);
	return true;
}

/* As if the process had been killed: the ring keeps it for a recovery that can write. */
static void end_without_thread_locked(void)
{
	away = false;
	atomic_store_explicit(&d9__recorder_pending, 0, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.unwritten, true, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.ended, 1, memory_order_release);
}

/* True once nothing runs any more. */
static bool stop_locked(uint64_t deadline_ns)
{
	if (!return_locked())
		end_without_thread_locked();
	if (d9__gate_bits()) /* a second try to stop finds it shut */
		atomic_store_explicit(&d9__flush.on_to_the_end, true, memory_order_relaxed);
	d9__gate_set(0);
	atomic_store_explicit(&d9__flush.stop, 1, memory_order_release);
	d9__flush_wake();
	wait_for_thread(deadline_ns);
	if (!atomic_load_explicit(&d9__flush.ended, memory_order_acquire))
		return false;
	if (joinable)
		pthread_join(flush_thread, NULL);
	joinable = false;
	if (!d9__user_callbacks_stop(deadline_ns))
		return false;
	atomic_store_explicit(&d9__gate_running, false, memory_order_release);
	return true;
}

static int stop(uint32_t deadline_ms)
{
	int saved = errno, err = 0;

	if (!d9__gate_has_recorder())
		return 0;
	if (d9__user_callbacks_inside())
		return -EDEADLK;
	pthread_mutex_lock(&lock);
	if (atomic_load_explicit(&d9__gate_running, memory_order_relaxed))
		err = stop_locked(deadline_of(deadline_ms)) ?
			      atomic_load_explicit(&d9__flush.end_err, memory_order_relaxed) : -ETIMEDOUT;
	pthread_mutex_unlock(&lock);
	errno = saved;
	return err;
}

int d9_recorder_stop(struct d9_recorder *recorder, uint32_t deadline_ms)
{
	if (!recorder)
		return -EINVAL;
	return d9__sandbox_is_shut() ? -EPERM : stop(deadline_ms);
}

int d9_recorder_rotate(struct d9_recorder *recorder, uint32_t deadline_ms)
{
	const struct timespec pause = { 0, D9__MS_NS };
	uint64_t deadline_ns = deadline_of(deadline_ms);
	int saved = errno, err = 0;
	uint32_t wanted;

	if (!recorder || !d9__gate_has_recorder())
		return -EINVAL;
	if (d9__sandbox_is_shut())
		return -EPERM;
	d9__recorder_step_in();
	wanted = atomic_fetch_add_explicit(&d9__ring.control->rotate_requested, 1,
					   memory_order_acq_rel) + 1;
	d9__flush_wake();
	while ((int32_t)(atomic_load_explicit(&d9__ring.control->rotate_done,
					      memory_order_acquire) - wanted) < 0) {
		if (d9__clock_mono_ns() >= deadline_ns ||
		    !atomic_load_explicit(&d9__gate_running, memory_order_relaxed)) {
			err = -ETIMEDOUT;
			break;
		}
		nanosleep(&pause, NULL);
	}
	errno = saved;
	return err ? err : atomic_load_explicit(&d9__ring.control->rotate_err, memory_order_relaxed);
}

void d9__recorder_end_unasked(uint32_t deadline_ms)
{
	uint64_t deadline_ns = deadline_of(deadline_ms);

	d9__gate_set(0);
	atomic_store_explicit(&d9__flush.last, true, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.stop, 1, memory_order_release);
	if (away) {
		end_without_thread_locked();
		atomic_store_explicit(&d9__gate_running, false, memory_order_release);
		return;
	}
	/* It returns at once, and the kernel clears the word that it looks at once the thread has gone. */
	while (pthread_tryjoin_np(flush_thread, NULL) == EBUSY && d9__clock_mono_ns() < deadline_ns)
		;
	joinable = false;
	atomic_store_explicit(&d9__gate_running, false, memory_order_release);
}

void d9__recorder_resume(void)
{
	pthread_mutex_lock(&lock);
	if (!is_running_locked())
		(void)start_locked(false);
	pthread_mutex_unlock(&lock);
	d9__last_thread_start();
}

/* ---- aside ---- */

bool d9__recorder_step_aside(void)
{
	struct d9__calm before;
	bool go;

	if (d9__sandbox_is_shut() || !d9__gate_has_recorder() || d9__thread_is_flush() || !d9__calm_lock(&before, &lock))
		return false;
	go = atomic_load_explicit(&d9__gate_running, memory_order_relaxed) && !away &&
	     d9__options_number(&options, D9__OPTION_STEP_ASIDE) &&
	     !atomic_load_explicit(&d9__flush.stop, memory_order_relaxed) && d9__aside_may_go() &&
	     d9__aside_go(flush_thread);
	if (go) {
		away = true;
		joinable = false;
		atomic_store_explicit(&d9__recorder_pending, D9__PENDING_THREAD, memory_order_relaxed);
	}
	d9__calm_unlock(&before, &lock);
	return go;
}

void d9__recorder_step_in(void)
{
	static _Atomic(uint64_t) retry_ns;
	struct d9__calm before;
	uint64_t now_ns = d9__clock_mono_ns();

	if (atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed) != D9__PENDING_THREAD ||
	    d9__sandbox_is_shut() || now_ns < atomic_load_explicit(&retry_ns, memory_order_relaxed) || !d9__gate_has_recorder() ||
	    !d9__calm_lock(&before, &lock))
		return;
	if (!return_locked())
		atomic_store_explicit(&retry_ns, now_ns + D9__SECOND_NS, memory_order_relaxed);
	d9__calm_unlock(&before, &lock);
}

/* ---- asking ---- */

struct d9_recorder *d9_recorder_running(void)
{
	return d9__gate_has_recorder() ? &the_recorder : NULL;
}

uint64_t d9__recorder_number(enum d9__option id)
{
	struct d9_options defaults = { .no_environment = true };
	uint64_t value;

	pthread_mutex_lock(&lock);
	if (have_options) {
		value = d9__options_number(&options, id);
	} else {
		value = d9__options_resolve(&defaults, NULL) ? 0 :
				d9__options_number(&defaults, id);
		d9__options_release(&defaults);
	}
	pthread_mutex_unlock(&lock);
	return value;
}

void d9__recorder_text(enum d9__option id, char *buf, size_t size)
{
	const char *text;

	pthread_mutex_lock(&lock);
	text = have_options ? d9__options_text(&options, id) : NULL;
	snprintf(buf, size, "%s", text ? text : "");
	pthread_mutex_unlock(&lock);
}

/* ---- fork ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
	/* In the child the gate is shut before anybody could ask. */
	parent_was_off = atomic_load_explicit(&d9__gate_running, memory_order_relaxed) && !d9__gate_bits();
	d9__metadata_fork_prepare();
	d9__event_types_fork_prepare();
	d9__names_fork_prepare();
	d9__modules_fork_prepare();
	d9__span_filter_fork_prepare();
}

static void fork_parent(void)
{
	d9__span_filter_fork_parent();
	d9__modules_fork_parent();
	d9__names_fork_parent();
	d9__event_types_fork_parent();
	d9__metadata_fork_done();
	parent_was_off = false;
	pthread_mutex_unlock(&lock);
	d9__note(D9_LOG_INFO, "the program forked");
}

static void fork_child(void)
{
	bool was_running = atomic_load_explicit(&d9__gate_running, memory_order_relaxed);

	d9__heap_fork_child();
	d9__span_filter_fork_child();
	d9__modules_fork_child();
	d9__names_fork_child();
	d9__event_types_fork_child();
	d9__metadata_fork_done();
	d9__last_thread_fork_child();
	pthread_mutex_init(&later_lock, NULL);
	if (atomic_load_explicit(&later, memory_order_relaxed) && !d9__sandbox_is_shut())
		atomic_store_explicit(&later, getpid(), memory_order_relaxed);
	/* Also after a stop: the ring outlives it, and is the parent's. */
	if (was_running || d9__ring.base) {
		/* Not asked: a filter may forbid it. */
		long parent = (long)d9__ring.header->pid;

		d9__gate_set(0); /* where the kernel did not */
		d9__ring_forget_in_child();
		d9__slot_forget_in_child();
		d9__chunk_set_waker(NULL);
		d9__note(D9_LOG_INFO, "forked from process %ld", parent);
	}
	if (was_running) {
		d9__user_callbacks_fork_child();
		d9__flush_fork_child();
		joinable = false;
		atomic_store_explicit(&d9__gate_running, false, memory_order_relaxed);
		atomic_store_explicit(&d9__recorder_pending, D9__PENDING_CHILD, memory_order_relaxed);
		away = false;
		/* Spans ask the gate too: the child's first one starts its recorder. */
		d9__span_filter_follow(true);
	}
	pthread_mutex_unlock(&lock);
}

static void hold_over_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void d9__recorder_hold_over_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, hold_over_forks);
}

static void register_handlers(void)
{
	d9__recorder_hold_over_forks();
	atexit(stop_at_exit);
	d9__last_thread_on_end(d9__recorder_end);
	d9__tick_add(d9__facts_refresh);
}

void d9__recorder_clone_check(void)
{
	if (atomic_load_explicit(&d9__gate_running, memory_order_relaxed) && d9__gate_disown())
		atomic_fetch_add_explicit(&d9__ring.control->cloned, 1, memory_order_relaxed);
}

static void start_child(void)
{
	int saved = errno, pending = D9__PENDING_CHILD;

	if (d9__sandbox_is_shut())
		return;
	/* acq_rel: one thread starts it, with everything before the fork in sight */
	if (atomic_compare_exchange_strong_explicit(&d9__recorder_pending, &pending, 0,
						    memory_order_acq_rel, memory_order_relaxed)) {
		pthread_mutex_lock(&lock);
		if (!atomic_load_explicit(&d9__gate_running, memory_order_relaxed))
			start_locked(false);
		d9__span_filter_follow(d9__gate_open(D9__GATE_EVENT));
		pthread_mutex_unlock(&lock);
		d9__last_thread_start();
	}
	errno = saved;
}

void d9__recorder_do_pending(void)
{
	switch (atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed)) {
	case D9__PENDING_THREAD:
		d9__recorder_step_in();
		break;
	case D9__PENDING_START:
		try_to_begin();
		break;
	default:
		start_child();
	}
}

static void start_in_child(void)
{
	d9__flush.early = true;
	d9__recorder_child_check();
}

void d9__recorder_follow_forks(void)
{
	/* Handlers of children run in the order in which they came: the recorder's own has forgotten the parent by then. */
	pthread_atfork(NULL, NULL, start_in_child);
}
