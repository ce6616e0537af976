/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring without a name is found through its process: the flush thread keeps the ring's descriptor
 * open in a table of its own, so /proc/PID/task/TID/fd has it, whatever the program closed and
 * whatever file system it lives in.  Anonymous memory is recognised by what stands at its begin.
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/heap.h"
#include "base/lines.h"
#include "base/proc.h"
#include "base/time.h"
#include "ring/ring_view.h"

#define LOOKS_MAX   20 /* at a page whose writer may be in it, at a lock that is held for a moment */
#define LOOK_MS     4  /* that one at all of a ring takes */
#define PATIENCE_MS 1000
#define SHARE       10 /* of the time that goes on is for waiting, too */

/* ---- time ---- */

/*
 * True if there are |ms| to try again.  Rings that never settle share one allowance, because another process
 * may have left any number of them.
 */
static bool has_patience(unsigned ms)
{
	static uint64_t begun_ns, used_ms;

	begun_ns = begun_ns ? begun_ns : d9__mono_ns();
	if (used_ms + ms > PATIENCE_MS + (d9__mono_ns() - begun_ns) / D9__MS_NS / SHARE)
		return false;
	used_ms += ms;
	return true;
}

/* False: no more of this. */
static bool pause_a_moment(void)
{
	if (!has_patience(1))
		return false;
	nanosleep(&(struct timespec){ 0, D9__MS_NS }, NULL);
	return true;
}

/* ---- reading ---- */

uint64_t d9__ring_view_taken(const struct d9__ring_view *view)
{
	struct stat st;

	return fstat(view->fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

int d9__ring_view_read(const struct d9__ring_view *view, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	if (offset > view->size || len > view->size - offset)
		return -ENODATA;
	while (len) {
		ssize_t n = pread(view->fd, to, len, (off_t)(view->at + offset));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* Check the fields that all layouts have in common. */
static int check_owner(const struct d9__ring_header *header)
{
	if (header->pid == 0 || header->pid > INT32_MAX ||
	    !ends(header->kernel_boot_id, sizeof(header->kernel_boot_id)) ||
	    !ends(header->boot_id, sizeof(header->boot_id)) ||
	    !ends(header->service, sizeof(header->service)) ||
	    !ends(header->trace_dir, sizeof(header->trace_dir)))
		return -EBADMSG;
	return 0;
}

static int check_header(const struct d9__ring_view *view)
{
	static const char nothing[sizeof(view->header.magic)];
	const struct d9__ring_header *header = &view->header;
	uint32_t chunks = atomic_load_explicit(&header->chunk_count, memory_order_relaxed);

	if (!memcmp(header->magic, nothing, sizeof(nothing)))
		return -EAGAIN; /* the magic is written last */
	if (memcmp(header->magic, D9__RING_MAGIC, sizeof(header->magic)) != 0)
		return -EBADMSG;
	if (!d9__ring_layout_is_known(header->layout))
		return -EPROTONOSUPPORT;
	if (header->slot_count != D9__SLOT_COUNT || header->chunk_size != D9__CHUNK_SIZE ||
	    header->chunks_at != D9__RING_CHUNKS_AT || header->chunks_max > D9__CHUNKS_MAX ||
	    chunks > header->chunks_max || header->kind > D9__RING_DISK || check_owner(header) ||
	    !ends(header->s3_bucket, sizeof(header->s3_bucket)) || !ends(header->s3_prefix, sizeof(header->s3_prefix)))
		return -EBADMSG;
	return view->size < D9__RING_CHUNKS_AT + (uint64_t)chunks * D9__CHUNK_SIZE ? -ENODATA : 0;
}

/* The header of what |view| was pointed at. */
static int take_header(struct d9__ring_view *view)
{
	int err = d9__ring_view_read(view, 0, &view->header, sizeof(view->header));

	if (err)
		return err;
	err = check_header(view);
	if (!err && !view->pid)
		view->pid = (pid_t)view->header.pid;
	return err;
}

/*
 * Look again at a file that is shorter than its header says: while its lock is held, its process is alive and
 * makes or grows it, so nothing was cut.
 */
static int look_again(struct d9__ring_view *view)
{
	struct stat st;

	if (!fstat(view->fd, &st) && (uint64_t)st.st_size > view->size) {
		view->size = (uint64_t)st.st_size;
		return take_header(view);
	}
	if (flock(view->fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK ? -EAGAIN : -ENODATA;
	flock(view->fd, LOCK_UN);
	return -ENODATA;
}

void d9__ring_view_close(struct d9__ring_view *view)
{
	if (view->fd >= 0)
		close(view->fd);
	view->fd = -1;
}

int d9__ring_view_adopt(struct d9__ring_view *view, int fd)
{
	struct stat st;
	int err = 0;

	*view = (struct d9__ring_view){ .fd = fd };
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EBADMSG;
	if (!err) {
		view->size = (uint64_t)st.st_size;
		err = take_header(view);
		if (err == -ENODATA)
			err = look_again(view);
	}
	if (err)
		d9__ring_view_close(view);
	return err;
}

int d9__ring_view_open(struct d9__ring_view *view, int dir_fd, const char *path)
{
	/* Not to wait for the writer of a fifo. */
	int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return d9__ring_view_adopt(view, fd);
}

int d9__ring_view_open_other(struct d9__ring_view *view, int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	*view = (struct d9__ring_view){ .fd = fd };
	err = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -EBADMSG : 0;
	if (!err) {
		view->size = (uint64_t)st.st_size;
		err = d9__ring_view_read(view, 0, &view->header, sizeof(view->header));
	}
	if (!err && (memcmp(view->header.magic, D9__RING_MAGIC, sizeof(view->header.magic)) != 0 ||
		     d9__ring_layout_is_known(view->header.layout)))
		err = -EBADMSG;
	if (!err)
		err = check_owner(&view->header);
	view->pid = (pid_t)view->header.pid;
	if (err)
		d9__ring_view_close(view);
	return err;
}

/* ---- the ring of a process ---- */

/* One look less of those that are left. */
static bool take_step(uint64_t *steps)
{
	if (!*steps)
		return false;
	--*steps;
	return true;
}

/* A descriptor in |folder| (".../fd/") whose link ends in "/ring" or names our memory. */
static bool is_ring_link(const char *link)
{
	size_t len = strlen(link);

	return strstr(link, "/memfd:dial9-ring") == link ||
	       (len > 5 && !strcmp(link + len - 5, "/ring")) ||
	       (len > 5 && !strcmp(link + len - 5, ".ring"));
}

/*
 * Adopt the ring |fd|, a descriptor of |pid|, unless it is another's: a recorder opens the rings of dead processes, too,
 * to save what is in them.  0, -ENOENT if it is another's, or as d9__ring_view_adopt().
 */
static int take_own(struct d9__ring_view *view, pid_t pid, int fd)
{
	struct d9__proc_stat stat;
	int err = d9__ring_view_adopt(view, fd);

	if (err || !d9__proc_stat_read(&stat, pid) || d9__proc_stat_field(&stat, D9__STAT_START) == view->header.start_time)
		return err;
	d9__ring_view_close(view);
	return -ENOENT;
}

static int open_descriptor(struct d9__ring_view *view, pid_t pid, const char *tid, uint64_t *steps)
{
	char path[64], link[1024];
	struct d9__dir dir;
	const char *name;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/fd", (int)pid, tid);
	err = d9__dir_open(&dir, path);
	if (err)
		return err;
	err = -ENOENT;
	while (err == -ENOENT && (name = d9__dir_next(&dir))) {
		ssize_t n;
		int fd;

		if (!take_step(steps)) {
			err = -E2BIG;
			break;
		}
		n = readlinkat(dir.fd, name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (!is_ring_link(link))
			continue;
		fd = openat(dir.fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		err = fd < 0 ? -errno : take_own(view, pid, fd);
		if (err == -EBADMSG)
			err = -ENOENT; /* the program has a file of such a name */
	}
	d9__dir_close(&dir);
	return err;
}

static bool is_flush_thread(pid_t pid, const char *tid)
{
	char path[64], name[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", (int)pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, name, sizeof(name) - 1) < 0)
		name[0] = '\0';
	close(fd);
	return !strcmp(name, "dial9-flush\n");
}

/* Whether the ring begins at |at| of the memory |fd|. */
static bool begins_at(int fd, uint64_t at)
{
	char magic[sizeof(((struct d9__ring_header *)NULL)->magic)];

	return pread(fd, magic, sizeof(magic), (off_t)at) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, D9__RING_MAGIC, sizeof(magic));
}

/*
 * Other mappings may have grown together with the ring's at its lower end; its upper end lies at the
 * rest of its reservation.  0 if it is not here.
 */
static uint64_t find_begin(int fd, uint64_t from, uint64_t to, uint64_t *steps)
{
	uint64_t least = D9__RING_CHUNKS_AT + (uint64_t)D9__CHUNKS_MIN * D9__CHUNK_SIZE;

	if (to <= from || to - from < least)
		return 0;
	if (!take_step(steps))
		return 0;
	if (begins_at(fd, from))
		return from;
	for (uint64_t n = D9__CHUNKS_MIN; n <= D9__CHUNKS_MAX; n++) {
		uint64_t len = D9__RING_CHUNKS_AT + n * D9__CHUNK_SIZE;

		if (len > to - from || !take_step(steps))
			break;
		if (begins_at(fd, to - len))
			return to - len;
	}
	return 0;
}

static int open_memory(struct d9__ring_view *view, pid_t pid, uint64_t *steps)
{
	uint64_t from, to, inode, at = 0;
	char path[64], access[5];
	struct d9__lines maps;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (!d9__lines_open(&maps, path)) {
		close(fd);
		return -errno;
	}
	while (!at && *steps && d9__lines_next(&maps)) {
		if (sscanf(maps.text, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, &from, &to, access,
			   &inode) != 4 ||
		    inode || strcmp(access, "rw-p") != 0)
			continue;
		at = find_begin(fd, from, to, steps);
	}
	d9__lines_close(&maps);
	*view = (struct d9__ring_view){ .fd = fd, .at = at, .size = at ? to - at : 0, .pid = pid };
	err = at ? take_header(view) : *steps ? -ENOENT : -E2BIG;
	if (err)
		d9__ring_view_close(view);
	return err;
}

int d9__ring_view_of_process(struct d9__ring_view *view, pid_t pid)
{
	uint64_t steps = D9__RING_VIEW_STEPS;

	return d9__ring_view_find(view, pid, &steps);
}

int d9__ring_view_find(struct d9__ring_view *view, pid_t pid, uint64_t *steps)
{
	char path[64];
	int err;
	bool flushes = false;
	struct d9__dir dir;
	const char *tid;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	err = d9__dir_open(&dir, path);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	err = -ENOENT;
	while (err == -ENOENT && (tid = d9__dir_next(&dir))) {
		if (!is_flush_thread(pid, tid))
			continue;
		flushes = true;
		err = open_descriptor(view, pid, tid, steps);
	}
	d9__dir_close(&dir);
	if (!err)
		view->pid = pid;
	else if (err == -ENOENT && flushes)
		err = open_memory(view, pid, steps);
	return err;
}

/* ---- its owner ---- */

/* Its process, or one of the same number that began at the same time; |*state| as /proc tells it. */
static bool is_running(const struct d9__ring_view *view, char *state)
{
	struct d9__proc_stat stat;

	/* 0, which a damaged header may hold, is no process; for d9__proc_stat_read() it would be this one. */
	if (!view->pid || !d9__proc_stat_read(&stat, view->pid))
		return false;
	*state = stat.state;
	return d9__proc_stat_field(&stat, D9__STAT_START) == view->header.start_time && stat.state != 'Z' && stat.state != 'X';
}

/*
 * True if its lock is held, perhaps by a process that we cannot see, in a container for example.
 * Recorders that start hold it for a moment too, to see whether there is something to save.
 * Returns |otherwise| where there are no locks.
 */
static bool is_held(const struct d9__ring_view *view, int looks_max, bool otherwise)
{
	for (int looks = 0; flock(view->fd, LOCK_SH | LOCK_NB); looks++) {
		if (errno != EWOULDBLOCK)
			return otherwise;
		if (looks == looks_max || !pause_a_moment())
			return true;
	}
	flock(view->fd, LOCK_UN);
	return false;
}

static bool line_maps(const char *line, const struct stat *st)
{
	unsigned major, minor;
	unsigned long inode;

	if (sscanf(line, "%*s %*s %*s %x:%x %lu", &major, &minor, &inode) != 3 ||
	    inode != (unsigned long)st->st_ino)
		return false;
	/* Some file systems show another device here than in stat(2). */
	return (major == major(st->st_dev) && minor == minor(st->st_dev)) ||
	       strstr(line, "/ring") || strstr(line, ".ring");
}

bool d9__ring_view_is_mapped(uint32_t pid, const struct stat *st)
{
	struct d9__lines maps;
	bool found = false;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	if (!d9__lines_open(&maps, path))
		return errno != ENOENT && errno != ESRCH;
	while (!found && d9__lines_next(&maps))
		found = line_maps(maps.text, st);
	d9__lines_close(&maps);
	return found;
}

/* A process that became another program by exec() has its pid and start time still, but not this. */
static bool is_mapped(const struct d9__ring_view *view)
{
	struct stat st;

	return fstat(view->fd, &st) || d9__ring_view_is_mapped((uint32_t)view->pid, &st);
}

enum d9__ring_owner d9__ring_view_owner(const struct d9__ring_view *view)
{
	char state = ' ';
	bool runs = is_running(view, &state);

	if (view->at ? !runs : !is_held(view, runs ? 0 : LOOKS_MAX, runs) && !(runs && is_mapped(view)))
		return D9__OWNER_DEAD;
	return runs && (state == 'T' || state == 't') ? D9__OWNER_SUSPENDED : D9__OWNER_ALIVE;
}

bool d9__ring_view_replaced(const struct d9__ring_view *view)
{
	char state;

	return is_running(view, &state) && d9__ring_view_owner(view) == D9__OWNER_DEAD;
}

/* ---- a look ---- */

static void end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
}

static void end_open_calls(struct d9__ring_health *health)
{
	if (health->n_open > D9__RING_OPEN_MAX)
		health->n_open = 0;
	for (uint32_t i = 0; i < health->n_open; i++) {
		struct d9__ring_open *call = &health->open[i];

		end_text(call->syscall, sizeof(call->syscall));
		end_text(call->wchan, sizeof(call->wchan));
		end_text(call->loc, sizeof(call->loc));
		end_text(call->span, sizeof(call->span));
	}
}

/* |*health| between two equal, even sequences.  |*torn| if there was no such moment. */
static int read_health(const struct d9__ring_view *view, struct d9__ring_health *health, bool *torn)
{
	uint32_t before = 1, after = 0;
	int err = 0;

	for (int i = 0; i < LOOKS_MAX && !err && ((before & 1) || before != after); i++) {
		if (i && !pause_a_moment())
			break;
		err = d9__ring_view_read(view, D9__RING_HEALTH_AT, &before, sizeof(before));
		/* acquire: pairs with the release of the sequence in d9__health_end() */
		atomic_thread_fence(memory_order_acquire);
		if (!err)
			err = d9__ring_view_read(view, D9__RING_HEALTH_AT, health, sizeof(*health));
		atomic_thread_fence(memory_order_acquire);
		if (!err)
			err = d9__ring_view_read(view, D9__RING_HEALTH_AT, &after, sizeof(after));
	}
	*torn = (before & 1) || before != after;
	end_text(health->error_op, sizeof(health->error_op));
	end_text(health->clock_reason, sizeof(health->clock_reason));
	end_text(health->segment, sizeof(health->segment));
	end_text(health->facts, sizeof(health->facts));
	end_open_calls(health);
	return err;
}

struct tables {
	struct d9__slot slots[D9__SLOT_COUNT];
	struct d9__losses losses[D9__SLOT_COUNT], process;
};

static int read_tables(const struct d9__ring_view *view, struct tables *tables)
{
	int err = d9__ring_view_read(view, D9__RING_SLOTS_AT, tables->slots, sizeof(tables->slots));

	if (!err)
		err = d9__ring_view_read(view, D9__RING_LOSSES_AT, tables->losses,
					 sizeof(tables->losses));
	if (!err)
		err = d9__ring_view_read(view, D9__RING_LOSS_AT, &tables->process,
					 sizeof(tables->process));
	return err;
}

static uint64_t events_of(const struct d9__losses *losses, int cause)
{
	return atomic_load_explicit(&losses->cause[cause].events, memory_order_relaxed);
}

/* Keep the workers by id: there are few. */
static void add_worker(struct d9__ring_look *look, const struct d9__slot *slot, uint32_t number,
		       uint32_t tid)
{
	uint32_t i = look->n_workers;

	if (i == D9__VIEW_WORKERS_MAX || slot->worker >= D9__WORKER_NONE ||
	    slot->worker_state == D9__WORKER_UNKNOWN || slot->worker_state > D9__WORKER_PARKED)
		return;
	for (; i && look->workers[i - 1].id > slot->worker; i--)
		look->workers[i] = look->workers[i - 1];
	look->workers[i] = (struct d9__ring_worker) { slot->worker, tid,
						      (enum d9__worker_state)slot->worker_state,
						      slot->last_ns, number };
	look->n_workers++;
}

static void sum_tables(const struct tables *tables, struct d9__ring_look *look)
{
	uint64_t owner;

	look->slots_in_use = look->n_workers = 0;
	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
		look->lost[cause] = events_of(&tables->process, cause);
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++) {
		for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
			look->lost[cause] += events_of(&tables->losses[i], cause);
		owner = atomic_load_explicit(&tables->slots[i].owner, memory_order_relaxed);
		if (owner >> 32 != D9__SLOT_TAKEN)
			continue;
		look->slots_in_use++;
		add_worker(look, &tables->slots[i], i, (uint32_t)owner);
	}
}

enum d9__worker_state d9__ring_view_state(const struct d9__ring_view *view,
					  const struct d9__ring_worker *worker)
{
	uint64_t at = D9__RING_SLOTS_AT + (uint64_t)worker->slot * sizeof(struct d9__slot);
	struct d9__slot slot;

	if (d9__ring_view_read(view, at, &slot, sizeof(slot)) || slot.worker != worker->id ||
	    (uint32_t)atomic_load_explicit(&slot.owner, memory_order_relaxed) != worker->tid ||
	    slot.worker_state > D9__WORKER_PARKED)
		return D9__WORKER_UNKNOWN;
	return (enum d9__worker_state)slot.worker_state;
}

/* Count the events of a chunk that the flush thread has not taken yet. */
static uint64_t waiting_in(const struct d9__chunk_header *chunk, uint32_t number,
			   const struct tables *tables)
{
	uint64_t word = atomic_load_explicit(&chunk->word, memory_order_relaxed);
	uint32_t taken = atomic_load_explicit(&chunk->taken_events, memory_order_relaxed);
	const struct d9__slot *slot;
	uint64_t events = 0;

	if ((word & 0xff) == D9__CHUNK_SEALED) {
		events = chunk->events;
	} else if ((word & 0xff) == D9__CHUNK_OPEN && chunk->slot < D9__SLOT_COUNT) {
		slot = &tables->slots[chunk->slot];
		if (atomic_load_explicit(&slot->open, memory_order_relaxed) ==
		    ((word >> 32) << 32 | (number + 1)))
			events = atomic_load_explicit(&slot->published, memory_order_relaxed) >> 32;
	}
	return events > taken ? events - taken : 0;
}

static int count_chunks(const struct d9__ring_view *view, const struct tables *tables,
			struct d9__ring_look *look)
{
	struct d9__ring_header header;
	struct d9__chunk_header chunk;
	int err = d9__ring_view_read(view, 0, &header, sizeof(header));

	look->waiting = look->chunks_in_use = look->chunks = 0;
	if (!err)
		look->chunks = atomic_load_explicit(&header.chunk_count, memory_order_relaxed);
	look->flight = !err && atomic_load_explicit(&header.flight, memory_order_relaxed);
	if (look->chunks > D9__CHUNKS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < look->chunks && !err; i++) {
		uint64_t at = D9__RING_CHUNKS_AT + (uint64_t)i * D9__CHUNK_SIZE;

		if (at + sizeof(chunk) > view->size) {
			look->chunks = i; /* it grew since the size was looked up */
			break;
		}
		err = d9__ring_view_read(view, at, &chunk, sizeof(chunk));
		if (err)
			break;
		look->waiting += waiting_in(&chunk, i, tables);
		look->chunks_in_use += (atomic_load_explicit(&chunk.word, memory_order_relaxed) &
					0xff) != D9__CHUNK_FREE;
	}
	return err;
}

static int sum_up(const struct d9__ring_view *view, const struct tables *tables,
		  struct d9__ring_look *look)
{
	struct d9__ring_control control;
	int err = d9__ring_view_read(view, D9__RING_CONTROL_AT, &control, sizeof(control));

	if (err)
		return err;
	sum_tables(tables, look);
	look->recorded = look->waiting;
	/* Events that were dumped in flight mode are in the ring as before, or recycled. */
	if (look->flight)
		look->recorded += atomic_load_explicit(&control.recycled, memory_order_relaxed);
	else
		look->recorded += look->health.events_written;
	return 0;
}

int d9__ring_view_look(const struct d9__ring_view *view, struct d9__ring_look *look)
{
	struct tables *tables = d9__malloc(sizeof(*tables));
	struct d9__ring_health again;
	bool torn;
	int err = tables ? 0 : -ENOMEM;

	/* A tick in between would count events twice, or not at all. */
	for (int i = 0; i < LOOKS_MAX && !err; i++) {
		err = read_health(view, &look->health, &look->torn);
		if (!err)
			err = read_tables(view, tables);
		look->mono_ns = d9__mono_ns();
		if (!err)
			err = count_chunks(view, tables, look);
		if (!err)
			err = read_health(view, &again, &torn);
		if (!err && (again.ticks == look->health.ticks || !has_patience(LOOK_MS)))
			break;
	}
	if (!err)
		err = sum_up(view, tables, look);
	d9__free(tables);
	return err;
}

const char *d9__ring_view_strerror(int err)
{
	switch (err) {
	case -EBADMSG:
		return "not a ring file, or a damaged one";
	case -EPROTONOSUPPORT:
		return "the ring of another version of dial9";
	case -ENODATA:
		return "a ring file that was cut short";
	case -EAGAIN:
		return "a ring file that is just being made";
	case -ELOOP:
		return "a symbolic link";
	case -E2BIG:
		return "too much in it that may be a ring";
	case -ENOENT:
		return "no recorder";
	default:
		return strerror(-err);
	}
}
