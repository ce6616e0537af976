/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/task_io.h"
#include "base/hot.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "loop/thread_state.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

/* ---- rows ---- */

/* So many rows may be a task's own. */
#define NEAR 8

static uint64_t load(const _Atomic(uint64_t) *figure)
{
	return atomic_load_explicit(figure, memory_order_relaxed);
}

/* Only this thread writes it. */
static void add(_Atomic(uint64_t) *figure, uint64_t n)
{
	atomic_store_explicit(figure, load(figure) + n, memory_order_relaxed);
}

/* acquire: pairs with the release in leave() */
static uint64_t calls_of(const struct d9__io_row *row)
{
	return atomic_load_explicit(&row->figures[D9__IO_READS], memory_order_acquire) +
	       atomic_load_explicit(&row->figures[D9__IO_WRITES], memory_order_acquire) +
	       atomic_load_explicit(&row->figures[D9__IO_ACCEPTS], memory_order_acquire);
}

static bool is_free(const struct d9__io_row *row)
{
	/* acquire: pairs with the release of the flush thread, which has read the row */
	return atomic_load_explicit(&row->told, memory_order_acquire) == calls_of(row);
}

static struct d9__io_row *take_row(struct d9__task_io *io, uint32_t i, uint64_t task)
{
	atomic_store_explicit(&io->tasks[i], task, memory_order_relaxed);
	atomic_store_explicit(&io->rows[i].shared, false, memory_order_relaxed);
	return &io->rows[i];
}

static struct d9__io_row *share(struct d9__io_row *row)
{
	atomic_store_explicit(&row->shared, true, memory_order_relaxed);
	return row;
}

static bool is_of_callback(struct d9__task_io *io, uint32_t i, uint32_t callback)
{
	return io->callbacks[i] == callback && load(&io->tasks[D9__IO_TASKS + i]);
}

/* Rows are free again in the next |pass| of the flush thread. */
static struct d9__io_row *row_of_callback(struct d9__task_io *io, uint64_t task, uint32_t callback,
					  uint32_t pass)
{
	if (is_of_callback(io, io->callback, callback))
		return share(&io->rows[D9__IO_TASKS + io->callback]);
	if (io->pass != pass) {
		io->pass = pass;
		io->next_callback = 0;
	}
	for (uint32_t i = 0; i < D9__IO_CALLBACKS; i++)
		if (is_of_callback(io, i, callback)) {
			io->callback = i;
			return share(&io->rows[D9__IO_TASKS + i]);
		}
	while (io->next_callback < D9__IO_CALLBACKS) {
		uint32_t i = io->next_callback++;

		if (is_free(&io->rows[D9__IO_TASKS + i])) {
			io->callback = i;
			io->callbacks[i] = callback;
			return take_row(io, D9__IO_TASKS + i, task);
		}
	}
	return share(&io->rows[D9__IO_REST]);
}

/* A thread numbers its tasks one by one. */
static inline uint32_t home_of(uint64_t task)
{
	return 1 + (uint32_t)task % (D9__IO_TASKS - 1);
}

/* A task's row is at its home, or near it. */
static uint32_t place_near(uint32_t home, uint32_t i)
{
	return home + i < D9__IO_TASKS ? home + i : home + i - (D9__IO_TASKS - 1);
}

static struct d9__io_row *row_of_task(struct d9__task_io *io, uint64_t task, uint32_t callback)
{
	uint32_t home = home_of(task), at;
	uint32_t pass = atomic_load_explicit(&io->passes, memory_order_relaxed) + 1;

	for (uint32_t i = 0; i < NEAR; i++) {
		at = place_near(home, i);
		if (load(&io->tasks[at]) == task)
			return &io->rows[at];
	}
	/* Hundreds of connections: rows, which are not in the cache, are looked at once a pass. */
	for (uint32_t i = 0; io->full[home] != pass && i < NEAR; i++) {
		at = place_near(home, i);
		if (is_free(&io->rows[at]))
			return take_row(io, at, task);
	}
	io->full[home] = pass;
	return row_of_callback(io, task, callback, pass);
}

/* Another task runs than at the call before. */
static __attribute__((noinline)) struct d9__io_row *move(struct d9__thread *thread, uint64_t task)
{
	struct d9__task_io *io = &thread->io;

	io->task = task;
	io->row = &io->rows[0];
	if (task)
		io->row = row_of_task(io, task, thread->frames[thread->n_frames - 1].loc);
	return io->row;
}

/* ---- calls ---- */

#define INLINE static inline __attribute__((always_inline))

/*
 * False: recording is off, or this is a handler inside of a count.  One that a longjmp() out of a
 * handler has left, or in which a child of vfork() was killed, is over where it lay no higher.
 */
INLINE bool enter(struct d9__thread *thread)
{
	uintptr_t here = (uintptr_t)&here;
	uintptr_t counting = atomic_load_explicit(&thread->io.counting, memory_order_relaxed);

	if (__builtin_expect(!d9__slot_is_real(d9__self.slot) || !d9__gate_open(D9__GATE_LOOP) ||
				     here < counting,
			     0))
		return false;
	/* A handler that runs from here on counts nothing. */
	atomic_store_explicit(&thread->io.counting, here, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

INLINE void leave(struct d9__thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&thread->io.counting, 0, memory_order_relaxed);
}

INLINE uint64_t task_of(const struct d9__thread *thread)
{
	return thread->stage == D9__STAGE_BACKEND ? 0 : d9__thread_task(thread);
}

/* True if the row is that of |task|, or now is, because the row was where it usually is. */
INLINE bool is_home(struct d9__task_io *io, uint64_t task)
{
	uint32_t home = home_of(task);

	if (io->task == task && io->row)
		return true;
	if (__builtin_expect(load(&io->tasks[home]) != task || !task, 0))
		return false;
	io->task = task;
	io->row = &io->rows[home];
	return true;
}

INLINE void add_call(struct d9__io_row *row, enum d9__io_figure kind, int fd)
{
	_Atomic(uint64_t) *calls = &row->figures[kind];

	atomic_store_explicit(&row->fd, fd, memory_order_relaxed);
	/* release: where this call is seen, so are its other figures and the task of the row */
	atomic_store_explicit(calls, load(calls) + 1, memory_order_release);
}

static void add_error(struct d9__io_row *row)
{
	if (errno == EAGAIN) {
		add(&row->figures[D9__IO_AGAIN], 1);
		return;
	}
	add(&row->figures[D9__IO_ERRORS], 1);
	atomic_store_explicit(&row->error, errno, memory_order_relaxed);
}

D9__HOT void d9__task_io_count(struct d9__thread *thread, enum d9__io_figure kind, int fd,
			       int64_t result, bool is_empty)
{
	struct d9__io_row *row;
	uint64_t task;

	if (!enter(thread))
		return;
	task = task_of(thread);
	row = is_home(&thread->io, task) ? thread->io.row : move(thread, task);
	if (result < 0)
		add_error(row);
	if (is_empty)
		add(&row->figures[D9__IO_EOF], 1);
	add_call(row, kind, fd);
	leave(thread);
}

/* A call of a task that has no row, or not its usual one. */
static __attribute__((noinline)) void move_and_count(struct d9__thread *thread,
						     enum d9__io_figure kind, int fd,
						     uint64_t bytes)
{
	struct d9__io_row *row;

	if (!enter(thread))
		return;
	row = move(thread, task_of(thread));
	add(&row->figures[kind + 1], bytes);
	add_call(row, kind, fd);
	leave(thread);
}

D9__HOT void d9__task_io_moved(struct d9__thread *thread, enum d9__io_figure kind, int fd,
			       uint64_t bytes)
{
	struct d9__io_row *row;
	uint64_t task;

	if (!enter(thread))
		return;
	task = task_of(thread);
	if (!is_home(&thread->io, task)) {
		leave(thread);
		move_and_count(thread, kind, fd, bytes);
		return;
	}
	row = thread->io.row;
	add(&row->figures[kind + 1], bytes);
	add_call(row, kind, fd);
	leave(thread);
}

/* ---- telling ---- */

#define FIELDS_MAX ((D9__IO_FIGURES + 4) * D9__VARINT_MAX + 2)

struct d9__io_sums d9__io_sums;

/* Take the growth of row |i| since it was taken before.  False: none. */
static bool take_growth(struct d9__thread *thread, uint32_t i, struct d9__io_growth *growth)
{
	struct d9__io_row *row = &thread->io.rows[i];
	uint64_t told = load(&row->told);

	/* From here on the thread leaves the row to its task, until all is told. */
	if (calls_of(row) == told)
		return false;
	*growth = (struct d9__io_growth){ .task = load(&thread->io.tasks[i]) };
	growth->worker = __atomic_load_n(&thread->worker, __ATOMIC_RELAXED);
	growth->fd = atomic_load_explicit(&row->fd, memory_order_relaxed);
	growth->shared = atomic_load_explicit(&row->shared, memory_order_relaxed);
	for (unsigned k = 0; k < D9__IO_FIGURES; k++) {
		/* acquire: pairs with add_call(); the other figures of each call come behind it */
		uint64_t figure = atomic_load_explicit(&row->figures[k], memory_order_acquire);

		growth->figures[k] = figure - row->told_figures[k];
		row->told_figures[k] = figure;
	}
	if (growth->figures[D9__IO_ERRORS])
		growth->error = atomic_load_explicit(&row->error, memory_order_relaxed);
	growth->calls = growth->figures[D9__IO_READS] + growth->figures[D9__IO_WRITES] +
			growth->figures[D9__IO_ACCEPTS];
	/* release: pairs with the acquire in is_free() */
	atomic_store_explicit(&row->told, told + growth->calls, memory_order_release);
	return true;
}

size_t d9__task_io_take(struct d9__thread *thread, struct d9__io_growth growths[D9__IO_ROWS])
{
	size_t n = 0;

	for (uint32_t i = 0; i < D9__IO_ROWS; i++)
		n += take_growth(thread, i, &growths[n]);
	atomic_fetch_add_explicit(&thread->io.passes, 1, memory_order_relaxed);
	return n;
}

void d9__task_io_emit(struct d9__slot *slot, uint64_t ns, const struct d9__io_growth *growth)
{
	uint8_t *p = d9__emit_begin(slot, D9__EVENT_TASK_IO, ns, FIELDS_MAX);

	if (!p)
		return;
	p = d9__varint_put(d9__varint_put(p, growth->worker), growth->task);
	for (unsigned k = 0; k < D9__IO_FIGURES; k++)
		p = d9__varint_put(p, growth->figures[k]);
	p = d9__varint_put(p, (uint32_t)growth->error);
	*p++ = growth->fd >= 0;
	if (growth->fd >= 0)
		p = d9__varint_put(p, (uint32_t)growth->fd);
	*p++ = growth->shared;
	d9__emit_end(slot, p);
	atomic_fetch_add_explicit(&d9__io_sums.calls, growth->calls, memory_order_relaxed);
	atomic_fetch_add_explicit(&d9__io_sums.events, 1, memory_order_relaxed);
}

void d9__task_io_end(struct d9__thread *thread)
{
	struct d9__io_growth growth;
	struct d9__slot *slot = d9__self.slot;

	if (!d9__slot_is_real(slot) || !d9__gate_open(D9__GATE_LOOP))
		return;
	for (uint32_t i = 0; i < D9__IO_ROWS; i++)
		if (take_growth(thread, i, &growth))
			d9__task_io_emit(slot, d9__slot_now(slot), &growth);
}

void d9__task_io_forget(struct d9__task_io *io)
{
	memset(io, 0, sizeof(*io));
	atomic_store_explicit(&d9__io_sums.calls, 0, memory_order_relaxed);
	atomic_store_explicit(&d9__io_sums.events, 0, memory_order_relaxed);
}
