/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/heap.h"
#include "base/proc.h"
#include "base/read_at.h"
#include "base/sort.h"
#include "base/time.h"
#include "drain/dead_ring.h"
#include "format/wire.h"
#include "ring/event_types.h"
#include "ring/ring_view.h"
#include "ring/side_ring.h"
#include "segment/continuation.h"

#define LOCK_TRIES 50
#define LATELY_NS  (5 * D9__SECOND_NS) /* several times what the flush thread sleeps at most */

/* ---- is it dead? ---- */

static ssize_t read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	buf[len] = '\0';
	return n < 0 ? -1 : (ssize_t)len;
}

/*
 * Whether /proc may hide processes of this user: we are in a user namespace, and a /proc of another one shows processes
 * to those alone who could trace them.  A service of systemd with PrivateUsers= and ProtectProc= is there.
 */
static bool is_hiding_processes(void)
{
	unsigned long long inside, outside, n;
	char map[256] = "";

	if (!access("/proc/1", F_OK) || read_text("/proc/self/uid_map", map, sizeof(map)) <= 0)
		return false;
	return sscanf(map, "%llu %llu %llu", &inside, &outside, &n) != 3 || inside || outside || n != UINT32_MAX;
}

/* Its flush thread ran a moment ago, which it does every second at least. */
static bool ran_lately(int fd)
{
	uint64_t tick_ns, now = d9__mono_ns();

	return !d9__read_at(fd, &tick_ns, sizeof(tick_ns),
			    D9__RING_HEALTH_AT + offsetof(struct d9__ring_health, tick_ns)) &&
	       tick_ns <= now && now - tick_ns < LATELY_NS;
}

/*
 * The lock is the authority, and it is ours by now.  This is for a process whose lock was taken
 * from it: one that closed a descriptor which it could see.  After exec(2) pid and start time are
 * still those of the ring, but nothing maps it.  Who cannot see it has its heartbeat.
 */
static bool process_lives(int fd, const struct d9__ring_header *header, const struct stat *st)
{
	char boot[64] = "";

	if (!header->pid || (read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) > 36 &&
			     strncmp(boot, header->kernel_boot_id, 36) != 0))
		return false;
	if (d9__proc_start((pid_t)header->pid) == header->start_time)
		return d9__ring_view_is_mapped(header->pid, st);
	return is_hiding_processes() && ran_lately(fd);
}

/* ---- opening ---- */

static bool read_header(int fd, struct d9__ring_header *header)
{
	if (d9__read_at(fd, header, sizeof(*header), 0))
		return false;
	header->kernel_boot_id[sizeof(header->kernel_boot_id) - 1] = '\0';
	header->boot_id[sizeof(header->boot_id) - 1] = '\0';
	header->service[sizeof(header->service) - 1] = '\0';
	header->trace_dir[sizeof(header->trace_dir) - 1] = '\0';
	return true;
}

/*
 * Its process holds the lock while it lives; others that only look at what is dead hold it for a moment, and
 * are waited for.
 */
static int lock(struct d9__dead_ring *ring)
{
	const struct timespec pause = { 0, D9__MS_NS };

	for (int tries = 0; flock(ring->fd, LOCK_EX | LOCK_NB); tries++) {
		if (errno != EWOULDBLOCK)
			return -errno;
		if (!read_header(ring->fd, &ring->header) || !ring->header.pid ||
		    d9__proc_start((pid_t)ring->header.pid) == ring->header.start_time)
			return -EBUSY;
		if (tries == LOCK_TRIES)
			return -EAGAIN;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int check(struct d9__dead_ring *ring)
{
	struct d9__ring_header *header = &ring->header;
	struct stat st;
	int err;

	if (fstat(ring->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	err = lock(ring);
	if (err)
		return err;
	/* Whoever had the lock before may have removed it. */
	if (fstat(ring->fd, &st) || !st.st_nlink)
		return -ESTALE;
	if (!read_header(ring->fd, header) || memcmp(header->magic, D9__RING_MAGIC, sizeof(header->magic)) != 0)
		return -EBADMSG;
	return process_lives(ring->fd, header, &st) ? -EBUSY : 0;
}

int d9__dead_ring_open(struct d9__dead_ring *ring, const char *path)
{
	int err;

	*ring = (struct d9__dead_ring){ .fd = -1 };
	if (strlen(path) >= sizeof(ring->path))
		return -ENAMETOOLONG;
	strcpy(ring->path, path);
	ring->fd = d9__descriptor_place(open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
	if (ring->fd < 0)
		return -errno;
	err = check(ring);
	if (err)
		d9__dead_ring_close(ring);
	return err;
}

void d9__dead_ring_close(struct d9__dead_ring *ring)
{
	if (ring->fd >= 0)
		close(ring->fd);
	ring->fd = -1;
	d9__free(ring->head);
	d9__free(ring->batches);
	d9__free(ring->buffer);
	ring->head = ring->buffer = NULL;
	ring->batches = NULL;
	ring->n_batches = 0;
}

void d9__dead_ring_unlink(struct d9__dead_ring *ring)
{
	char *slash = strrchr(ring->path, '/');

	unlink(ring->path);
	if (slash && !strcmp(slash, "/ring")) {
		*slash = '\0';
		rmdir(ring->path);
		*slash = '/';
	}
}

/* ---- reading ---- */

static int check_layout(struct d9__dead_ring *ring)
{
	const struct d9__ring_header *header = &ring->header;
	uint32_t count = atomic_load_explicit(&header->chunk_count, memory_order_relaxed);
	off_t size = lseek(ring->fd, 0, SEEK_END);

	if (!d9__ring_layout_is_known(header->layout))
		return -EPROTONOSUPPORT;
	if (header->slot_count != D9__SLOT_COUNT || header->chunk_size != D9__CHUNK_SIZE ||
	    header->chunks_at != D9__RING_CHUNKS_AT || header->chunks_max > D9__CHUNKS_MAX ||
	    count > header->chunks_max || size < D9__RING_CHUNKS_AT)
		return -EBADMSG;
	ring->chunks = (uint32_t)((size - D9__RING_CHUNKS_AT) / D9__CHUNK_SIZE);
	if (ring->chunks > count)
		ring->chunks = count;
	return 0;
}

static int read_head(struct d9__dead_ring *ring)
{
	uint8_t *head;

	if (!ring->head)
		ring->head = d9__malloc(D9__RING_CHUNKS_AT);
	if (!ring->buffer)
		ring->buffer = d9__calloc(1, D9__CHUNK_SIZE + D9__BATCH_PAD);
	if (!ring->batches)
		ring->batches = d9__calloc(ring->chunks + 1u, sizeof(*ring->batches));
	head = ring->head;
	if (!head || !ring->buffer || !ring->batches)
		return -ENOMEM;
	if (d9__read_at(ring->fd, head, D9__RING_CHUNKS_AT, 0))
		return -EIO;
	ring->view = (struct d9__ring){
		.base = head,
		.fd = -1,
		.slots = (struct d9__slot *)(void *)(head + D9__RING_SLOTS_AT),
		.losses = (struct d9__losses *)(void *)(head + D9__RING_LOSSES_AT),
		.proc_losses = (struct d9__losses *)(void *)(head + D9__RING_LOSS_AT),
	};
	return 0;
}

static bool read_chunk(struct d9__dead_ring *ring, uint32_t chunk)
{
	return chunk < ring->chunks &&
	       !d9__read_at(ring->fd, ring->buffer, D9__CHUNK_SIZE,
			    D9__RING_CHUNKS_AT + (uint64_t)chunk * D9__CHUNK_SIZE);
}

static uint64_t load(const _Atomic(uint64_t) *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* How much of an open chunk is published: what the slot says that names it. */
static uint64_t published_of(const struct d9__dead_ring *ring, uint32_t slot, uint32_t serial,
			     uint32_t chunk)
{
	const struct d9__slot *s = &ring->view.slots[slot];

	return load(&s->open) == ((uint64_t)serial << 32 | (chunk + 1)) ? load(&s->published) : 0;
}

/* Whether the trace has this chunk to its end. */
static bool is_written(const struct d9__slot *slot, uint32_t serial)
{
	uint64_t written = load(&slot->written);
	int32_t ahead = (int32_t)(serial - (uint32_t)(written >> 32));

	return written && (ahead < 0 || (ahead == 0 && (written & 1)));
}

/* Nothing of this chunk is missing in the trace: what follows it, follows. */
static void set_written(struct d9__slot *slot, uint32_t serial)
{
	atomic_store_explicit(&slot->written, (uint64_t)serial << 32 | 1, memory_order_relaxed);
}

/* Fill |batch| from the chunk in the buffer.  False: it holds nothing that is to be written. */
static bool describe(const struct d9__dead_ring *ring, uint32_t chunk, struct d9__batch *batch)
{
	const struct d9__chunk_header *h = (const void *)ring->buffer;
	uint64_t word = load(&h->word), length = (uint64_t)h->events << 32 | h->bytes;
	uint32_t serial = (uint32_t)(word >> 32), state = word & 0xff;

	if (h->slot >= D9__SLOT_COUNT || state < D9__CHUNK_OPEN || state > D9__CHUNK_LOST)
		return false;
	if (state == D9__CHUNK_OPEN)
		length = published_of(ring, h->slot, serial, chunk);
	if (is_written(&ring->view.slots[h->slot], serial))
		return false;
	if (!(length >> 32)) {
		if (state != D9__CHUNK_OPEN)
			set_written(&ring->view.slots[h->slot], serial);
		return false;
	}
	*batch = (struct d9__batch){
		.bytes = ring->buffer + D9__CHUNK_HEADER,
		.len = (uint32_t)length,
		.events = (uint32_t)(length >> 32),
		.taken_bytes = atomic_load_explicit(&h->taken_bytes, memory_order_relaxed),
		.taken_events = atomic_load_explicit(&h->taken_events, memory_order_relaxed),
		.chunk = chunk,
		.slot = h->slot,
		.serial = serial,
		.tid = d9__slot_tid(&ring->view.slots[h->slot]),
		.first_ns = load(&h->first_ns),
		.entry = { h->entry_task, h->entry_worker, (enum d9__worker_state)h->entry_state },
		.exit = { 0, D9__WORKER_NONE, D9__WORKER_UNKNOWN },
	};
	if (h->entry_state > D9__WORKER_PARKED)
		batch->entry.state = D9__WORKER_UNKNOWN;
	return true;
}

struct look {
	const struct d9__batch *batch;
	uint32_t events, taken_events; /* counted */
	bool at_taken;                 /* |taken_bytes| is between two frames */
	uint64_t first_ns, last_ns, loop_ns;
};

static bool look_at(void *arg, const struct d9__wire_frame *frame)
{
	struct look *look = arg;
	uint32_t end = (uint32_t)(frame->bytes - look->batch->bytes) + frame->len;

	if (frame->tag == D9__WIRE_EVENT) {
		look->events++;
		if (!look->first_ns || frame->ns < look->first_ns)
			look->first_ns = frame->ns;
		look->last_ns = frame->ns;
		if (frame->type_id <= D9__EVENT_UNPARK)
			look->loop_ns = frame->ns;
	}
	if (end == look->batch->taken_bytes) {
		look->at_taken = true;
		look->taken_events = look->events;
	}
	return true;
}

/* Decode the batch once.  False: it is bad. */
static bool decode(struct d9__walker *walker, struct d9__dead_batch *dead)
{
	struct d9__batch *batch = &dead->batch;
	struct look look = { .batch = batch };

	if (batch->len > D9__BATCH_MAX || batch->taken_bytes > batch->len ||
	    d9__walk(walker, batch->bytes, batch->len, look_at, &look) != 0 ||
	    look.events != batch->events)
		return false;
	if (batch->taken_bytes && !look.at_taken)
		return false;
	batch->taken_events = look.taken_events;
	batch->first_ns = look.first_ns;
	batch->last_ns = look.last_ns;
	dead->order_ns = look.loop_ns ? look.loop_ns : look.last_ns;
	return true;
}

/*
 * The process wrote and was killed before it could say so: then one of the last batches of the
 * file begins what we would write.  How much of |batch| is in the file is taken off.  Of a torn one
 * there may be the beginning only, which all have in common: so the longest counts.
 */
static int skip_tail(const struct d9__segment_tail *tail, struct d9__walker *walker,
		     struct d9__batch *batch, struct d9__builder *rest)
{
	const uint8_t *bytes = batch->bytes;
	size_t len = batch->len;
	uint32_t most = 0;
	int err = 0;

	if (batch->taken_bytes) {
		err = d9__continuation(walker, batch->bytes, batch->taken_bytes, batch->len, rest,
				       NULL);
		if (err)
			return err;
		bytes = rest->data;
		len = rest->len;
	}
	for (size_t i = tail->n_batches; i-- > 0;) {
		const struct d9__tail_batch *t = &tail->batch[i];

		if (t->len > most && t->len <= len && !memcmp(tail->data + t->at, bytes, t->len))
			most = (uint32_t)t->len;
	}
	if (most && batch->taken_bytes)
		err = d9__continuation(walker, batch->bytes, batch->taken_bytes, batch->len, rest,
				       &most);
	if (most)
		batch->taken_bytes = most;
	return err;
}

/* Take what is left in the chunk that is in the buffer. */
static int take(struct d9__dead_ring *ring, uint32_t chunk, const struct d9__segment_tail *tail,
		struct d9__walker *walker, struct d9__builder *rest)
{
	struct d9__dead_batch *dead = &ring->batches[ring->n_batches];
	uint32_t before;
	int err;

	if (!describe(ring, chunk, &dead->batch))
		return 0;
	if (!decode(walker, dead)) {
		ring->bad++;
		ring->bad_events += dead->batch.events < D9__CHUNK_SIZE ? dead->batch.events : 0;
		return 0;
	}
	before = dead->batch.taken_bytes;
	err = skip_tail(tail, walker, &dead->batch, rest);
	if (err)
		return err;
	if (dead->batch.taken_bytes != before && !decode(walker, dead))
		dead->batch.taken_bytes = before;
	if (dead->batch.events == dead->batch.taken_events) {
		set_written(&ring->view.slots[dead->batch.slot], dead->batch.serial);
		return 0;
	}
	if (!ring->first_ns || dead->batch.first_ns < ring->first_ns)
		ring->first_ns = dead->batch.first_ns;
	dead->batch.bytes = NULL;
	ring->n_batches++;
	return 0;
}

static int by_serial(const void *a, const void *b)
{
	const struct d9__dead_batch *x = a, *y = b;

	if (x->batch.slot != y->batch.slot)
		return x->batch.slot < y->batch.slot ? -1 : 1;
	return x->batch.serial < y->batch.serial ? -1 : x->batch.serial > y->batch.serial;
}

static int by_time(const void *a, const void *b)
{
	const struct d9__dead_batch *x = a, *y = b;

	if (x->order_ns != y->order_ns)
		return x->order_ns < y->order_ns ? -1 : 1;
	return by_serial(a, b);
}

/*
 * In the order of time: a worker's id may move to another slot, and what it did there comes later.
 * Inside a slot that is the order of serials, whatever the times are.
 */
static void order(struct d9__dead_ring *ring)
{
	struct d9__dead_batch *b = ring->batches;

	d9__sort(b, ring->n_batches, sizeof(*b), by_serial);
	for (uint32_t i = 1; i < ring->n_batches; i++)
		if (b[i].batch.slot == b[i - 1].batch.slot && b[i].order_ns < b[i - 1].order_ns)
			b[i].order_ns = b[i - 1].order_ns;
	d9__sort(b, ring->n_batches, sizeof(*b), by_time);
}

/* Nothing of this chunk, whose header is in the buffer, is missing in the trace. */
static bool is_spent(struct d9__dead_ring *ring, uint32_t chunk)
{
	const struct d9__chunk_header *h = (const void *)ring->buffer;
	struct d9__side_record record;
	struct d9__batch batch;

	if ((load(&h->word) & 0xff) == D9__CHUNK_SIDE)
		return read_chunk(ring, chunk) && !d9__side_take_from(ring->buffer, &record);
	return !describe(ring, chunk, &batch) || batch.events == batch.taken_events;
}

bool d9__dead_ring_is_empty(struct d9__dead_ring *ring)
{
	if (check_layout(ring) || read_head(ring))
		return false;
	for (uint32_t i = 0; i < ring->chunks; i++)
		if (d9__read_at(ring->fd, ring->buffer, D9__CHUNK_HEADER,
				D9__RING_CHUNKS_AT + (uint64_t)i * D9__CHUNK_SIZE) ||
		    !is_spent(ring, i))
			return false;
	return true;
}

int d9__dead_ring_load(struct d9__dead_ring *ring, const struct d9__segment_tail *tail,
		       struct d9__walker *walker)
{
	struct d9__builder rest = { 0 };
	int err = check_layout(ring);

	if (!err)
		err = read_head(ring);
	for (uint32_t i = 0; !err && i < ring->chunks; i++) {
		err = read_chunk(ring, i) ? take(ring, i, tail, walker, &rest) : -EIO;
	}
	d9__builder_release(&rest);
	if (!err)
		order(ring);
	return err;
}

int d9__dead_ring_read(struct d9__dead_ring *ring, uint32_t i)
{
	struct d9__batch *batch = &ring->batches[i].batch;

	if (!read_chunk(ring, batch->chunk))
		return -EIO;
	batch->bytes = ring->buffer + D9__CHUNK_HEADER;
	return 0;
}

void d9__dead_ring_begin(struct d9__dead_ring *ring, uint64_t index)
{
	uint64_t word = index + 1;

	/* Refused: a recovery after us, should we be killed, may write some events twice. */
	if (pwrite(ring->fd, &word, sizeof(word), offsetof(struct d9__ring_header, recovery)) < 0)
		return;
}

uint8_t *d9__dead_ring_side(struct d9__dead_ring *ring, uint32_t slot)
{
	uint32_t chunk = atomic_load_explicit(&ring->view.slots[slot].side, memory_order_relaxed);
	const struct d9__chunk_header *h = (const void *)ring->buffer;

	if (!chunk || !read_chunk(ring, chunk - 1) || (load(&h->word) & 0xff) != D9__CHUNK_SIDE ||
	    h->slot != slot)
		return NULL;
	return ring->buffer;
}

uint8_t *d9__dead_ring_description(const struct d9__dead_ring *ring, uint32_t *len)
{
	uint64_t description = load(&ring->header.description);
	uint8_t *copy;

	*len = (uint32_t)description;
	if (!*len || *len > D9__RING_DESCRIPTION_BYTES || description >> 32 > 1)
		return NULL;
	copy = d9__calloc(1, *len + (size_t)D9__BATCH_PAD);
	if (copy)
		memcpy(copy, ring->head + D9__RING_DESCRIPTION_AT + (description >> 32) * D9__RING_DESCRIPTION_BYTES,
		       *len);
	return copy;
}
