/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/directory.h"
#include "base/mapped.h"
#include "base/memory_limit.h"
#include "base/proc.h"
#include "base/sandbox.h"
#include "base/test_point.h"
#include "ring/event_types.h"
#include "ring/gate.h"
#include "ring/ring_file.h"

#define DEFAULT_BYTES ((size_t)32 << 20)
#define OVERFLOW_UID   65534 /* /proc/sys/kernel/overflowuid as the kernel has it */
#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE, which comes with Linux 5.14 */

struct d9__ring d9__ring = { .fd = -1 };

const char *const d9__loss_names[D9__LOSS_CAUSES] = {
	[D9__LOSS_OVERRUN] = "overrun",	      [D9__LOSS_NO_CHUNK] = "no_chunk",
	[D9__LOSS_NO_SLOT] = "no_slot",	      [D9__LOSS_DISK] = "disk",
	[D9__LOSS_REENTRANT] = "reentrant",   [D9__LOSS_SIDE_RING] = "side_ring",
	[D9__LOSS_THREAD_EXIT] = "thread_exit", [D9__LOSS_TOO_BIG] = "too_big",
};

static _Atomic(bool) threads_grow;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER; /* protects d9__ring's making */

static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* ---- places ---- */

static const char *const kind_names[] = { "auto", "shm", "memfd", "anon", "disk" };

/*
 * Locked from its first moment on, so that recovery never takes it for a dead one.  The lock
 * belongs to the open file: the flush thread's duplicate keeps it.
 */
static int create_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	flock(fd, LOCK_EX | LOCK_NB);
	D9__TEST_POINT(RING_CREATED);
	return fd;
}

/*
 * True in a user namespace that does not map this user.  The kernel shows all such users as number 65534, so
 * their directory would be one of several users.
 */
static bool is_unmapped(uid_t uid)
{
	char buf[4096], *line = buf;
	unsigned inside, outside, n;
	int len;

	if (uid != OVERFLOW_UID || read_file("/proc/self/uid_map", buf, sizeof(buf)) < 0)
		return false;
	for (; sscanf(line, "%u %u %u%n", &inside, &outside, &n, &len) == 3; line += len)
		if (uid >= inside && uid - inside < n)
			return false;
	return true;
}

/* The directory in which the ring has a name, made, and the whole |path|.  Its descriptor or -errno. */
static int open_shm_folder(const char *boot_id, char *path, size_t path_len)
{
	const unsigned flags = D9__DIRECTORY_MAKE | D9__DIRECTORY_PRIVATE;
	char user[64];
	int top, dir;

	/* It is not to be made: behind chroot(2) it would be on a disk. */
	if (access("/dev/shm", F_OK))
		return -errno;
	if (is_unmapped(geteuid()))
		return -EACCES;
	snprintf(user, sizeof(user), "/dev/shm/dial9-%u", (unsigned)geteuid());
	snprintf(path, path_len, "%s/%s/ring", user, boot_id);
	top = d9__directory_open(user, flags);
	if (top < 0)
		return top;
	dir = d9__directory_enter(top, boot_id, flags);
	close(top);
	return dir;
}

/* Open the trace directory, made, and name the ring in it. */
static int open_disk_folder(const struct d9__ring_options *options, char *path, size_t path_len)
{
	int n = snprintf(path, path_len, "%s/%s.ring", options->trace_dir, options->boot_id);

	if (n < 0 || (size_t)n >= path_len)
		return -ENAMETOOLONG;
	return d9__directory_open(options->trace_dir, D9__DIRECTORY_MAKE);
}

/* Recovery removes empty directories: ours may go before there is a file in it. */
static int open_shm(const char *boot_id, char *path, size_t path_len)
{
	int fd = -ENOENT;

	for (int i = 0; fd == -ENOENT && i < 3; i++) {
		int dir = open_shm_folder(boot_id, path, path_len);

		fd = dir < 0 ? dir : create_file(dir, "ring");
		if (dir >= 0)
			close(dir);
	}
	return fd;
}

static int open_disk(const struct d9__ring_options *options, char *path, size_t path_len)
{
	int dir = open_disk_folder(options, path, path_len), fd;

	if (dir < 0)
		return dir;
	fd = create_file(dir, strrchr(path, '/') + 1);
	close(dir);
	return fd;
}

/* A file to map, -1 for anonymous memory, or -errno below that. */
static int open_place(enum d9__ring_kind kind, const struct d9__ring_options *options)
{
	int fd;

	d9__ring.path[0] = '\0';
	switch (kind) {
	case D9__RING_SHM:
		return open_shm(options->boot_id, d9__ring.path, sizeof(d9__ring.path));
	case D9__RING_DISK:
		return open_disk(options, d9__ring.path, sizeof(d9__ring.path));
	case D9__RING_MEMFD:
		fd = memfd_create("dial9-ring", MFD_CLOEXEC);
		return fd < 0 ? -errno : fd;
	default:
		return -1;
	}
}

/* ---- memory ---- */

/*
 * Allocate |file|'s first |len| bytes: a full tmpfs has to be an error now, not SIGBUS later.
 * The file size limit is asked first, because exceeding it would raise SIGXFSZ in the program.
 */
static int allocate(int fd, size_t offset, size_t len)
{
	struct rlimit limit;
	int err;

	if (fd < 0)
		return 0;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < offset + len)
		return -EFBIG;
	do
		err = posix_fallocate(fd, (off_t)offset, (off_t)len);
	while (err == EINTR);
	if (!err)
		D9__TEST_POINT(GROW_ALLOCATED);
	return -err;
}

/* Put |len| bytes of the ring in place of the reservation. */
static int map_part(int fd, size_t offset, size_t len)
{
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	/*
	 * valgrind looks a descriptor's name up in the table of the main thread, which is not the
	 * flush thread's.  It joins neighbouring parts of one file whatever their names, miscounts
	 * these, and dies of that when a forked child gives the ring up.  One part has no neighbour.
	 */
	if (fd >= 0 && d9__clock_under_valgrind()) {
		len += offset;
		offset = 0;
	}
	if (mmap(d9__ring.base + offset, len, PROT_READ | PROT_WRITE, flags, fd,
		 fd < 0 ? 0 : (off_t)offset) == MAP_FAILED)
		return -errno;
	d9__mapped_unlock(d9__ring.base + offset, len);
	return 0;
}

/* Have the kernel make the pages now, because later a thread that records would wait for each. */
static bool populate(size_t offset, size_t len)
{
	return !madvise(d9__ring.base + offset, len, POPULATE_WRITE);
}

/* Make pages that no other thread knows of: by a touch where the kernel is too old to be asked. */
static void populate_new(size_t offset, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (populate(offset, len))
		return;
	for (size_t at = 0; at < len; at += page)
		*(volatile uint8_t *)(d9__ring.base + offset + at) = 0;
}

/* A file in memory is as long as the ring may become: with a hole, that takes nothing. */
static bool lengthen(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= d9__ring.reserved) &&
	       !ftruncate(fd, (off_t)d9__ring.reserved);
}

/*
 * The ring's first |len| bytes; where that can be, the hole behind them too.  It is populated by and by: that
 * fails, where a touch would be SIGBUS, if there is no memory.
 */
static int map_head(int fd, size_t len, bool in_memory)
{
	bool whole;
	int err = allocate(fd, 0, len);

	if (err)
		return err;
	whole = in_memory && lengthen(fd);
	err = map_part(fd, 0, whole ? d9__ring.reserved : len);
	d9__ring.whole = whole && !err && populate(0, 1);
	return err;
}

/*
 * Map header, slots and the first chunks.  The number of chunks or -errno.  The program waits for this:
 * of the slots and their losses, which are most of it, each page comes with the first thread in it.
 */
static int map_first(int fd, bool in_memory)
{
	int err = -ENOSPC;
	size_t len;

	for (uint32_t n = D9__CHUNKS_FIRST; n >= D9__CHUNKS_MIN; n /= 2) {
		if (n > d9__ring.chunks_max)
			continue;
		len = D9__RING_CHUNKS_AT + (size_t)n * D9__CHUNK_SIZE;
		err = map_head(fd, len, in_memory);
		if (err)
			continue;
		populate_new(0, D9__RING_SLOTS_AT + 1);
		populate_new(D9__RING_LOSSES_AT, 1);
		populate_new(D9__RING_CHUNKS_AT, (size_t)n * D9__CHUNK_SIZE);
		return (int)n;
	}
	return err;
}

/* ---- contents ---- */

static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = from ? strnlen(from, size - 1) : 0;

	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
}

static void fill_texts(const struct d9__ring_options *options)
{
	struct d9__ring_header *header = d9__ring.header;

	copy_text(header->boot_id, sizeof(header->boot_id), options->boot_id);
	copy_text(header->service, sizeof(header->service), options->service);
	copy_text(header->trace_dir, sizeof(header->trace_dir), options->trace_dir);
	copy_text(header->s3_bucket, sizeof(header->s3_bucket), options->s3_bucket);
	copy_text(header->s3_prefix, sizeof(header->s3_prefix), options->s3_prefix);
}

static void fill_header(const struct d9__ring_options *options, enum d9__ring_kind kind)
{
	struct d9__ring_header *header = d9__ring.header;
	char boot_id[64];

	header->layout = D9__RING_LAYOUT;
	header->kind = kind;
	header->slot_count = D9__SLOT_COUNT;
	header->chunk_size = D9__CHUNK_SIZE;
	header->chunks_at = D9__RING_CHUNKS_AT;
	header->chunks_max = d9__ring.chunks_max;
	header->pid = (uint32_t)getpid();
	header->start_time = d9__proc_start(0);
	if (read_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) > 0)
		copy_text(header->kernel_boot_id, 37, boot_id);
	fill_texts(options);
	d9__clock_anchor(&header->anchor, 8);
	/* Last: a reader that finds the magic finds the rest. */
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(header->magic, D9__RING_MAGIC, sizeof(header->magic));
}

static void set_pointers(void)
{
	uint8_t *base = d9__ring.base;

	d9__ring.header = (struct d9__ring_header *)(void *)base;
	d9__ring.control = (struct d9__ring_control *)(void *)(base + D9__RING_CONTROL_AT);
	d9__ring.trigger = (struct d9__ring_trigger *)(void *)(base + D9__RING_TRIGGER_AT);
	d9__ring.health = (struct d9__ring_health *)(void *)(base + D9__RING_HEALTH_AT);
	d9__ring.free = (struct d9__queue *)(void *)(base + D9__RING_FREE_AT);
	d9__ring.full = (struct d9__queue *)(void *)(base + D9__RING_FULL_AT);
	d9__ring.proc_losses = (struct d9__losses *)(void *)(base + D9__RING_LOSS_AT);
	d9__ring.losses = (struct d9__losses *)(void *)(base + D9__RING_LOSSES_AT);
	d9__ring.slots = (struct d9__slot *)(void *)(base + D9__RING_SLOTS_AT);
}

/* ---- start ---- */

static void *reserve_chunks(size_t chunks)
{
	d9__ring.chunks_max = (uint32_t)chunks;
	d9__ring.reserved = D9__RING_CHUNKS_AT + chunks * D9__CHUNK_SIZE;
	return mmap(NULL, d9__ring.reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static int reserve(const struct d9__ring_options *options)
{
	size_t bytes = options->max_bytes ? options->max_bytes : DEFAULT_BYTES;
	struct d9__memory_limit limit = d9__memory_limit();
	size_t chunks;
	void *p;

	d9__ring.limited_by = limit.bytes < bytes ? limit.what : NULL;
	if (limit.bytes < bytes)
		bytes = (size_t)limit.bytes;
	chunks = bytes / D9__CHUNK_SIZE;

	if (chunks > D9__CHUNKS_MAX)
		chunks = D9__CHUNKS_MAX;
	if (chunks < D9__CHUNKS_MIN)
		chunks = D9__CHUNKS_MIN;
	p = reserve_chunks(chunks);
	/* EAGAIN: the kernel locks every mapping, after mlockall(MCL_FUTURE). */
	if (p == MAP_FAILED && errno == EAGAIN && chunks > D9__CHUNKS_FIRST) {
		d9__ring.limited_by = "ulimit -l";
		d9__mapped_limit();
		p = reserve_chunks(D9__CHUNKS_FIRST);
	}
	if (p == MAP_FAILED)
		return -ENOMEM;
	d9__ring.base = p;
	d9__mapped_unlock(p, d9__ring.reserved);
	return 0;
}

/* Try one place.  The number of chunks it gave, or -errno with nothing left behind. */
static int try_place(enum d9__ring_kind kind, const struct d9__ring_options *options)
{
	int fd = open_place(kind, options), n;

	if (fd < -1 || (fd == -1 && kind != D9__RING_ANON))
		return fd;
	n = map_first(fd, kind == D9__RING_SHM || kind == D9__RING_MEMFD);
	if (n < 0) {
		if (fd >= 0)
			close(fd);
		d9__ring_unlink();
		return n;
	}
	d9__ring.fd = fd;
	return n;
}

static const enum d9__ring_kind *places(enum d9__ring_kind kind)
{
	static const enum d9__ring_kind all[] = { D9__RING_SHM, D9__RING_MEMFD, D9__RING_ANON,
						  D9__RING_AUTO };

	switch (kind) {
	case D9__RING_MEMFD:
		return all + 1;
	case D9__RING_ANON:
		return all + 2;
	default:
		return all;
	}
}

static void say_why_not(const char *place, int err)
{
	if (err == -ENOENT)
		snprintf(d9__ring.why, sizeof(d9__ring.why), "%s is not there", place);
	else
		snprintf(d9__ring.why, sizeof(d9__ring.why), "%s: %s", place, d9_strerror(err));
}

/* The number of chunks, or -errno of the last place. */
static int find_place(const struct d9__ring_options *options, enum d9__ring_kind *kind)
{
	const enum d9__ring_kind *place = places(options->kind);
	int n = -ENOTSUP;

	if (options->kind == D9__RING_DISK) {
		*kind = D9__RING_DISK;
		n = try_place(*kind, options);
		if (n > 0)
			return n;
		say_why_not("the trace directory", n);
	}
	for (; *place != D9__RING_AUTO; place++) {
		*kind = *place;
		n = try_place(*kind, options);
		if (n > 0)
			return n;
		if (!d9__ring.why[0])
			say_why_not(*place == D9__RING_SHM ? "/dev/shm" : kind_names[*place], n);
	}
	return n;
}

/* The old reservation, given up; also after a half-successful mapping. */
static void unreserve(void)
{
	munmap(d9__ring.base, d9__ring.reserved);
	d9__ring = (struct d9__ring){ .fd = -1 };
}

static int start_locked(const struct d9__ring_options *options)
{
	enum d9__ring_kind kind;
	int n, err = d9__event_types_init();

	if (!err)
		err = d9__gate_init();
	if (!err)
		err = reserve(options);
	if (err)
		return err;
	n = find_place(options, &kind);
	if (n < 0) {
		unreserve();
		return n;
	}
	set_pointers();
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		d9__queue_push(d9__ring.free, i);
	atomic_store_explicit(&d9__ring.header->chunk_count, (uint32_t)n, memory_order_release);
	fill_header(options, kind);
	d9__notes_use((struct d9__notes *)(void *)(d9__ring.base + D9__RING_NOTES_AT));
	return 0;
}

/* ---- another recorder in the same ring ---- */

/* A new name that goes with |options|, in |path|; shared memory has a directory for each. */
static int new_name(const struct d9__ring_options *options, char *path, size_t path_len)
{
	int dir = d9__ring.header->kind == D9__RING_DISK ? open_disk_folder(options, path, path_len) :
							   open_shm_folder(options->boot_id, path, path_len);

	if (dir < 0)
		return dir;
	close(dir);
	return 0;
}

static void remove_folder_of(char *path)
{
	*strrchr(path, '/') = '\0';
	/* Its own directory in /dev/shm; a trace directory is not empty or not removed. */
	if (strncmp(path, "/dev/shm/", 9) == 0)
		rmdir(path);
}

static int give_name(const struct d9__ring_options *options)
{
	char path[sizeof(d9__ring.path)];
	int err = new_name(options, path, sizeof(path));

	if (err)
		return err;
	if (rename(d9__ring.path, path) != 0) {
		err = -errno;
		remove_folder_of(path);
		return err;
	}
	remove_folder_of(d9__ring.path);
	memcpy(d9__ring.path, path, sizeof(path));
	return 0;
}

/* The ring is to be found by the names of the recorder that starts now. */
static void rename_ring(const struct d9__ring_options *options)
{
	d9__ring.not_renamed = strcmp(d9__ring.header->boot_id, options->boot_id) == 0 ? 0 : give_name(options);
}

/* The descriptor that went with the flush thread before.  -1: the file is gone, or another one. */
static int reopen(void)
{
	struct d9__ring_header header;
	int fd = open(d9__ring.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -1;
	/* Of one process there is one with this start: what it holds tells as much as its inode. */
	if (read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header) &&
	    header.pid == d9__ring.header->pid &&
	    header.anchor.mono_ns == d9__ring.header->anchor.mono_ns) {
		flock(fd, LOCK_EX | LOCK_NB);
		return fd;
	}
	close(fd);
	return -1;
}

void d9__ring_open_again(void)
{
	d9__ring.fd = d9__ring.path[0] ? reopen() : -1;
	if (d9__ring.fd < 0 && d9__ring.header->kind != D9__RING_ANON)
		d9__ring.chunks_max = atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed);
}

static void restart_locked(const struct d9__ring_options *options)
{
	if (d9__ring.path[0]) {
		rename_ring(options);
		if (d9__ring.fd < 0)
			d9__ring.fd = reopen();
	}
	fill_texts(options);
}

int d9__ring_start(const struct d9__ring_options *options)
{
	int saved = errno, err = 0;

	if (!options->boot_id || !*options->boot_id || strchr(options->boot_id, '/') ||
	    (options->kind == D9__RING_DISK && !options->trace_dir))
		return -EINVAL;
	pthread_mutex_lock(&start_lock);
	if (!d9__ring.base)
		err = start_locked(options);
	else
		restart_locked(options);
	pthread_mutex_unlock(&start_lock);
	errno = saved;
	return err;
}

int d9__ring_grow(void)
{
	return d9__ring_grow_to(D9__CHUNKS_AHEAD);
}

/* The next chunk is counted, and the caller's.  Several may want the same one: then the others want the next. */
static bool count_chunk(uint32_t limit, bool (*make)(size_t offset, size_t len), uint32_t *chunk)
{
	uint32_t n = atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed);

	do
		if (n >= limit || !make(D9__RING_CHUNKS_AT + (size_t)n * D9__CHUNK_SIZE, D9__CHUNK_SIZE))
			return false;
	/* release: a thread that knows of a chunk finds it mapped */
	while (!atomic_compare_exchange_strong_explicit(&d9__ring.header->chunk_count, &n, n + 1,
							memory_order_release, memory_order_relaxed));
	D9__TEST_POINT(GROW_COUNTED);
	*chunk = n;
	return true;
}

bool d9__ring_add_chunk(uint32_t *chunk)
{
	int saved = errno;
	bool done;

	if (!d9__ring.whole || d9__sandbox_is_shut() ||
	    !atomic_load_explicit(&threads_grow, memory_order_relaxed))
		return false;
	done = count_chunk(d9__ring.chunks_max, populate, chunk);
	/* Others need not try in vain. */
	if (!done)
		d9__ring_let_threads_grow(false);
	errno = saved;
	return done;
}

void d9__ring_let_threads_grow(bool let)
{
	atomic_store_explicit(&threads_grow, let, memory_order_relaxed);
}

/* A whole ring's memory may have become another thread's meanwhile: it is not touched. */
static bool make_chunk(size_t offset, size_t len)
{
	if (d9__ring.whole)
		return populate(offset, len);
	populate_new(offset, len);
	return true;
}

/* Room for |n| chunks behind |have|. */
static int make_room(uint32_t have, uint32_t n)
{
	size_t offset = D9__RING_CHUNKS_AT + (size_t)have * D9__CHUNK_SIZE, len = (size_t)n * D9__CHUNK_SIZE;
	int err = allocate(d9__ring.fd, offset, len);

	return err || d9__ring.whole ? err : map_part(d9__ring.fd, offset, len);
}

int d9__ring_grow_to(uint32_t wanted_free)
{
	uint32_t have, chunk, n = D9__RING_EXTENT / D9__CHUNK_SIZE;
	int saved = errno, err;

	if (!d9__ring.base || d9__queue_count(d9__ring.free) >= wanted_free)
		return 0;
	have = atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed);
	if (n > d9__ring.chunks_max - have)
		n = d9__ring.chunks_max - have;
	if (n == 0)
		return 0;
	while ((err = make_room(have, n)) == -ENOSPC && n > 1)
		n /= 2;
	errno = saved;
	if (err)
		return err;
	D9__TEST_POINT(GROW_MAPPED);
	/* In small steps: the program's own mappings wait for each. */
	while (count_chunk(have + n, make_chunk, &chunk))
		d9__queue_push(d9__ring.free, chunk);
	errno = saved;
	return atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed) == have ? -ENOMEM : 1;
}

void d9__ring_adopt_fd(int fd)
{
	d9__ring.fd = fd;
}

int d9__ring_set_description(const uint8_t *batch, size_t len)
{
	uint64_t now = atomic_load_explicit(&d9__ring.header->description, memory_order_relaxed);
	uint64_t half = now >> 32 ? 0 : 1;

	if (len > D9__RING_DESCRIPTION_BYTES)
		return -E2BIG;
	memcpy(d9__ring.base + D9__RING_DESCRIPTION_AT + half * D9__RING_DESCRIPTION_BYTES, batch, len);
	/* release: a reader that finds the length finds the bytes */
	atomic_store_explicit(&d9__ring.header->description, half << 32 | len, memory_order_release);
	return 0;
}

void d9__ring_set_boot_id(const char *boot_id)
{
	struct d9__ring_header *header = d9__ring.header;
	const struct d9__ring_options options = { .boot_id = boot_id, .trace_dir = header->trace_dir };

	if (strcmp(header->boot_id, boot_id) == 0)
		return;
	/* Recovery goes by the file's name. */
	if (d9__ring.path[0])
		rename_ring(&options);
	copy_text(header->boot_id, sizeof(header->boot_id), boot_id);
}

void d9__ring_unlink(void)
{
	int saved = errno;

	if (d9__ring.path[0]) {
		unlink(d9__ring.path);
		remove_folder_of(d9__ring.path);
		d9__ring.path[0] = '\0';
	}
	errno = saved;
}

void d9__ring_forget_in_child(void)
{
	int saved = errno;

	d9__gate_set(0);
	d9__notes_use(NULL);
	if (d9__ring.base && !d9__sandbox_is_shut())
		/* NOLINTNEXTLINE(bugprone-unused-return-value): else it stays, and is not used */
		mmap(d9__ring.base, d9__ring.reserved, PROT_READ | PROT_WRITE,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	d9__ring = (struct d9__ring){ .fd = -1 };
	pthread_mutex_init(&start_lock, NULL);
	errno = saved;
}

/* ---- losses ---- */

static struct d9__loss *loss_of(int slot, enum d9__loss_cause cause)
{
	return slot < 0 ? &d9__ring.proc_losses->cause[cause] : &d9__ring.losses[slot].cause[cause];
}

void d9__loss_add(int slot, enum d9__loss_cause cause, uint64_t events, uint64_t from_ns,
		  uint64_t to_ns)
{
	struct d9__loss *loss;
	uint64_t seen;

	if (!d9__ring.base || !events)
		return;
	loss = loss_of(slot, cause);
	seen = atomic_load_explicit(&loss->from_ns, memory_order_relaxed);
	while ((!seen || from_ns < seen) &&
	       !atomic_compare_exchange_weak_explicit(&loss->from_ns, &seen, from_ns,
						      memory_order_relaxed, memory_order_relaxed))
		;
	seen = atomic_load_explicit(&loss->to_ns, memory_order_relaxed);
	while (to_ns > seen &&
	       !atomic_compare_exchange_weak_explicit(&loss->to_ns, &seen, to_ns,
						      memory_order_relaxed, memory_order_relaxed))
		;
	/* release: the flush thread that counts these events sees their times */
	atomic_fetch_add_explicit(&loss->events, events, memory_order_release);
}

uint64_t d9__loss_take(struct d9__loss *loss, uint64_t seen, uint64_t *from_ns, uint64_t *to_ns)
{
	uint64_t events = atomic_load_explicit(&loss->events, memory_order_acquire);

	if (events == seen)
		return 0;
	*from_ns = atomic_load_explicit(&loss->from_ns, memory_order_relaxed);
	*to_ns = atomic_load_explicit(&loss->to_ns, memory_order_relaxed);
	return events - seen;
}

void d9__loss_noted(struct d9__loss *loss, uint64_t events, uint64_t until_ns)
{
	atomic_store_explicit(&loss->noted, events, memory_order_relaxed);
	/* Events lost meanwhile are later than those that are told. */
	if (atomic_load_explicit(&loss->events, memory_order_acquire) == events) {
		until_ns = 0;
		atomic_store_explicit(&loss->to_ns, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&loss->from_ns, until_ns, memory_order_relaxed);
}
