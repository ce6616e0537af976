/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repack: a segment with raw frames becomes one without, of the same content and with a table that
 * finds it.  Until that is whole the old one is there, even if a process is killed.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/record/scratch.h"
#include "core/segment/unpack.h"
#include "format/wire.h"
#include "segment/packer.h"
#include "segment/zstd_frame.h"
#include "stage/repack.h"

#define SECOND UINT64_C(1000000000)
#define BATCH  20000u
#define NAME   "trace.7.bin.zst"

/* ---- a process that is killed ---- */

static int steps; /* until then; 0: never */

static void step(void)
{
	if (steps && !--steps)
		kill(getpid(), SIGKILL);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __real_write(int fd, const void *bytes, size_t len);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_fsync(int fd);
int __real_fsync(int fd);

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	step();
	if (steps)
		len = (len + 1) / 2;
	return __real_write(fd, bytes, len);
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	int err;

	step();
	err = __real_linkat(from_fd, from, to_fd, to, flags);
	step();
	return err;
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	int err;

	step();
	err = __real_renameat(from_fd, from, to_fd, to);
	step();
	return err;
}

int __wrap_fsync(int fd)
{
	step();
	return __real_fsync(fd);
}

/* ---- segments ---- */

static char path[PATH_MAX + 32];
static struct unpacked before, after;
static uint8_t bytes[UNPACK_MAX];

static size_t load(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, bytes, sizeof(bytes));

	CU_ASSERT_FATAL(fd >= 0 && n >= 0);
	close(fd);
	return (size_t)n;
}

static void store(const void *from, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	while (len) {
		ssize_t n = write(fd, from, len);

		CU_ASSERT_FATAL(n > 0);
		from = (const uint8_t *)from + n;
		len -= (size_t)n;
	}
	close(fd);
}

/* How each frame is written, a letter each: r raw, c compressed. */
static void store_frames(const char *how, bool end)
{
	static uint8_t batch[BATCH];
	struct d9__packer packer = { .len = 0 };
	uint64_t ns = SECOND;

	scratch_new();
	snprintf(path, sizeof(path), "%s/" NAME, scratch_dir);
	CU_ASSERT_EQUAL_FATAL(d9__packer_begin(&packer, D9_COMPRESS_ZSTD), 0);
	for (; *how; how++) {
		packer.raw_limit = *how == 'r' ? UINT64_MAX : 0;
		for (int i = 0; i < 11; i++, ns += SECOND / 10) {
			for (size_t k = 0; k < BATCH; k++)
				batch[k] = k % 16 ? (uint8_t)(k / 16) : (uint8_t)(ns >> 20);
			CU_ASSERT_EQUAL(d9__packer_add(&packer, batch, BATCH, ns, ns + 5, 3, ns),
					0);
			CU_ASSERT_EQUAL(d9__packer_flush(&packer, ns), 0);
		}
	}
	if (end)
		CU_ASSERT_EQUAL(d9__packer_end(&packer), 0);
	store(packer.out, packer.len);
	d9__packer_release(&packer);
	unpack(&before, D9_COMPRESS_ZSTD, bytes, load());
	CU_ASSERT(before.complete);
}

static bool holds_the_same(void)
{
	unpack(&after, D9_COMPRESS_ZSTD, bytes, load());
	return after.len == before.len && !memcmp(after.data, before.data, before.len) &&
	       after.complete == before.complete && !after.damaged;
}

static unsigned raw_frames(void)
{
	int fd = open(path, O_RDONLY);
	struct d9__zstd_frame frame;
	struct stat st;
	uint64_t at = 0;
	unsigned n = 0;

	CU_ASSERT_FATAL(fd >= 0 && !fstat(fd, &st));
	for (; d9__zstd_frame_look(fd, (uint64_t)st.st_size, at, &frame); at = frame.end)
		n += frame.raw;
	close(fd);
	return n;
}

/* 1, 0 or an error; the lock is given back. */
static int repack(void)
{
	struct d9__claim claim;
	int err = d9__claim_open(&claim, path);

	if (!err) {
		err = d9__repack(&claim);
		d9__claim_release(&claim);
	}
	return err;
}

/* ---- the seek table ---- */

static void check_table(unsigned n_frames)
{
	size_t len = load(), at = 0, place = 0;
	const uint8_t *foot = bytes + len - D9__SEEK_FOOTER_LEN, *entry;

	CU_ASSERT_EQUAL_FATAL(d9__wire_get_u32(foot + 12), D9__SEEK_TABLE_MAGIC);
	CU_ASSERT_EQUAL_FATAL(d9__wire_get_u32(foot + 8), n_frames);
	CU_ASSERT_EQUAL(d9__wire_get_u64(foot), before.len);
	entry = foot - (size_t)n_frames * D9__SEEK_ENTRY_LEN;
	for (unsigned i = 0; i < n_frames; i++, entry += D9__SEEK_ENTRY_LEN) {
		uint32_t packed = d9__wire_get_u32(entry + 8),
			 unpacked = d9__wire_get_u32(entry + 12);

		CU_ASSERT_EQUAL_FATAL(d9__wire_get_u64(entry), place);
		unpack(&after, D9_COMPRESS_ZSTD, bytes + place, packed);
		CU_ASSERT(after.complete && after.len == unpacked);
		CU_ASSERT(!memcmp(after.data, before.data + at, unpacked));
		CU_ASSERT_EQUAL(d9__wire_get_u64(entry + 16), SECOND + i * 11 * (SECOND / 10));
		CU_ASSERT_EQUAL(d9__wire_get_u64(entry + 24),
				SECOND + (i * 11 + 10) * (SECOND / 10) + 5);
		CU_ASSERT_EQUAL(d9__wire_get_u64(entry + 32), 33);
		place += packed;
		at += unpacked;
	}
	CU_ASSERT_EQUAL(place + 8, (size_t)(foot - bytes) - (size_t)n_frames * D9__SEEK_ENTRY_LEN);
}

/* ---- tests ---- */

static void test_raw_frames_are_compressed_to_the_same_content_and_the_table_finds_them(void)
{
	static const char *const segments[] = { "r", "rr", "crc", "rcr", "ccr" };

	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		struct stat st;
		off_t size;

		store_frames(segments[i], true);
		check_table((unsigned)strlen(segments[i]));
		CU_ASSERT(raw_frames() > 0 && !stat(path, &st));
		size = st.st_size;
		CU_ASSERT_EQUAL(chmod(path, 0640), 0);
		CU_ASSERT_EQUAL(repack(), 1);
		CU_ASSERT_EQUAL(raw_frames(), 0);
		CU_ASSERT(holds_the_same());
		check_table((unsigned)strlen(segments[i]));
		CU_ASSERT_EQUAL(stat(path, &st), 0);
		CU_ASSERT(st.st_size < size);
		CU_ASSERT_EQUAL(st.st_mode & 07777, 0640);
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 1);
		CU_ASSERT_EQUAL(repack(), 0);
	}
}

static void test_segment_without_raw_frames_is_not_touched(void)
{
	static const char plain[] = "TRC\0 and what else begins otherwise";
	struct stat st, now;

	store_frames("ccc", true);
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(repack(), 0);
	CU_ASSERT_EQUAL(stat(path, &now), 0);
	CU_ASSERT_EQUAL(now.st_ino, st.st_ino);
	store(plain, sizeof(plain));
	CU_ASSERT_EQUAL(repack(), 0);
	store("", 0);
	CU_ASSERT_EQUAL(repack(), 0);
}

/* Cut by a full disk, recovered, or damaged: each frame that is whole, and then all the rest as it
 * is. */
static void test_segment_without_table_or_end_keeps_all_that_it_has(void)
{
	size_t len;

	store_frames("rrc", false);
	CU_ASSERT_EQUAL(repack(), 1);
	CU_ASSERT(holds_the_same());
	/* Its last frame is open and raw. */
	store_frames("crr", false);
	len = load();
	store(bytes, len - 5);
	unpack(&before, D9_COMPRESS_ZSTD, bytes, load());
	CU_ASSERT_EQUAL(repack(), 1);
	CU_ASSERT(holds_the_same());
	/* A table that tells of other frames is of no use. */
	store_frames("rr", true);
	len = load();
	bytes[len - D9__SEEK_FOOTER_LEN - 2 * D9__SEEK_ENTRY_LEN] ^= 1;
	store(bytes, len);
	CU_ASSERT_EQUAL(repack(), 1);
	CU_ASSERT(holds_the_same());
	len = load();
	CU_ASSERT_NOT_EQUAL(d9__wire_get_u32(bytes + len - 4), D9__SEEK_TABLE_MAGIC);
	/* Bytes that no one knows. */
	store_frames("r", false);
	len = load();
	memset(bytes + len, 0xee, 100);
	store(bytes, len + 100);
	CU_ASSERT_EQUAL(repack(), 1);
	CU_ASSERT_EQUAL(raw_frames(), 0);
	len = load();
	CU_ASSERT(len > 100 && bytes[len - 100] == 0xee && bytes[len - 1] == 0xee);
}

static void test_frame_that_does_not_shrink_stays_as_it_is(void)
{
	struct d9__packer packer = { .raw_limit = UINT64_MAX };
	static uint8_t noise[BATCH];
	uint32_t random = 1;

	store_frames("r", true);
	for (size_t i = 0; i < BATCH; i++) {
		random = random * 1664525 + 1013904223;
		noise[i] = (uint8_t)(random >> 24);
	}
	CU_ASSERT_EQUAL_FATAL(d9__packer_begin(&packer, D9_COMPRESS_ZSTD), 0);
	CU_ASSERT_EQUAL(d9__packer_add(&packer, noise, BATCH, 1, 1, 1, SECOND), 0);
	CU_ASSERT_EQUAL(d9__packer_end(&packer), 0);
	store(packer.out, packer.len);
	d9__packer_release(&packer);
	CU_ASSERT_EQUAL(repack(), 0);
	CU_ASSERT_EQUAL(raw_frames(), 1);
}

static void test_segment_that_another_process_claims_is_left_to_it(void)
{
	struct d9__claim claim;
	int fd;

	store_frames("r", true);
	fd = open(path, O_RDONLY);
	CU_ASSERT_EQUAL(flock(fd, LOCK_EX | LOCK_NB), 0);
	CU_ASSERT_EQUAL(repack(), -EAGAIN);
	CU_ASSERT_EQUAL(raw_frames(), 1);
	close(fd);
	/* Evicted by its recorder, while it was packed: it stays away. */
	CU_ASSERT_EQUAL_FATAL(d9__claim_open(&claim, path), 0);
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(d9__repack(&claim), -EAGAIN);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
}

static void test_segment_that_was_compressed_is_claimed_still(void)
{
	struct d9__claim claim;

	store_frames("r", true);
	CU_ASSERT_EQUAL_FATAL(d9__claim_open(&claim, path), 0);
	CU_ASSERT_EQUAL(d9__repack(&claim), 1);
	CU_ASSERT(d9__claim_holds(&claim));
	CU_ASSERT_EQUAL(repack(), -EAGAIN);
	d9__claim_release(&claim);
	CU_ASSERT_EQUAL(repack(), 0);
}

/* Killed at step |n|.  Whether it was. */
static bool kill_at(int n)
{
	int status;
	pid_t pid;

	store_frames("rcr", true);
	pid = fork();
	if (!pid) {
		steps = n;
		repack();
		_exit(0);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status);
}

static void test_whenever_it_is_killed_the_segment_is_whole_and_the_next_one_ends_the_work(void)
{
	int n = 1;

	for (; kill_at(n); n++) {
		CU_ASSERT(holds_the_same());
		check_table(3);
		CU_ASSERT(repack() >= 0);
		CU_ASSERT_EQUAL(raw_frames(), 0);
		CU_ASSERT(holds_the_same());
		check_table(3);
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 1);
	}
	CU_ASSERT(n > 8);
	CU_ASSERT_EQUAL(raw_frames(), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "the same content",
		  test_raw_frames_are_compressed_to_the_same_content_and_the_table_finds_them },
		{ "nothing to do", test_segment_without_raw_frames_is_not_touched },
		{ "no table, no end", test_segment_without_table_or_end_keeps_all_that_it_has },
		{ "noise", test_frame_that_does_not_shrink_stays_as_it_is },
		{ "claimed by another", test_segment_that_another_process_claims_is_left_to_it },
		{ "claimed still", test_segment_that_was_compressed_is_claimed_still },
		{ "killed",
		  test_whenever_it_is_killed_the_segment_is_whole_and_the_next_one_ends_the_work },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("repack", tests);
}
