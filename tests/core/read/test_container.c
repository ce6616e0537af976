/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/container.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "read/store.h"
#include "support/d9_test.h"

#define PATH "test_container.tmp"
#define LEN  300000

static uint8_t content[LEN];

/* Bytes that compress about two to one. */
static void fill_content(void)
{
	uint32_t seed = 1;

	for (size_t i = 0; i < LEN; i++) {
		seed = seed * 1664525 + 1013904223;
		content[i] = (uint8_t)(seed >> 28);
	}
	memcpy(content, "TRC\0\1", 5);
}

static void save(const void *bytes, size_t len)
{
	FILE *file = fopen(PATH, "wb");

	CU_ASSERT_FATAL(file != NULL);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

static size_t pack_gzip(uint8_t *to, size_t room, const uint8_t *from, size_t len)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)from,
		       .avail_in = (uInt)len,
		       .next_out = to,
		       .avail_out = (uInt)room };

	deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
	CU_ASSERT_EQUAL(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

/* Unpack PATH, |piece| bytes at a time, into a buffer to free. */
static uint8_t *unpack(struct d9__container *container, struct d9__input *input, size_t piece,
		       size_t *len)
{
	uint8_t *bytes = malloc(3 * LEN);
	ssize_t n;

	CU_ASSERT_EQUAL_FATAL(d9__input_open(input, PATH), 0);
	CU_ASSERT_EQUAL_FATAL(d9__container_open(container, input), 0);
	container->keep_frames = true;
	*len = 0;
	while ((n = d9__container_read(container, bytes + *len, piece)) > 0)
		*len += (size_t)n;
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(container->unpacked_at, *len);
	return bytes;
}

static void check_unpacks_to_content(enum d9__container_kind kind, size_t times)
{
	static const size_t pieces[] = { 1, 1000, LEN };

	for (size_t i = 0; i < 3; i++) {
		struct d9__container container;
		struct d9__input input;
		size_t len;
		uint8_t *bytes = unpack(&container, &input, pieces[i], &len);

		CU_ASSERT_EQUAL(container.kind, kind);
		CU_ASSERT_EQUAL(container.err, 0);
		CU_ASSERT_FALSE(container.truncated);
		CU_ASSERT_EQUAL_FATAL(len, times * LEN);
		CU_ASSERT_EQUAL(memcmp(bytes, content, LEN), 0);
		CU_ASSERT_EQUAL(memcmp(bytes + len - LEN, content, LEN), 0);
		CU_ASSERT_EQUAL(d9__container_stored(&container), input.size_bytes);
		free(bytes);
		d9__container_release(&container);
		d9__input_release(&input);
	}
}

static void test_plain_gzip_and_zstd_are_told_by_content(void)
{
	uint8_t *packed = malloc(2 * LEN);

	save(content, LEN);
	check_unpacks_to_content(D9__CONTAINER_PLAIN, 1);
	save(packed, pack_gzip(packed, LEN, content, LEN));
	check_unpacks_to_content(D9__CONTAINER_GZIP, 1);
	save(packed, ZSTD_compress(packed, 2 * LEN, content, LEN, 1));
	check_unpacks_to_content(D9__CONTAINER_ZSTD, 1);

	free(packed);
	unlink(PATH);
}

static void test_members_and_frames_one_after_another_are_one_stream(void)
{
	static const uint8_t skippable[] = { 0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c' };
	uint8_t *packed = malloc(4 * LEN);
	size_t len = pack_gzip(packed, LEN, content, LEN);

	len += pack_gzip(packed + len, LEN, content, LEN);
	memset(packed + len, 0, 512);
	save(packed, len + 512);
	check_unpacks_to_content(D9__CONTAINER_GZIP, 2);
	memcpy(packed, skippable, sizeof(skippable));
	len = sizeof(skippable);
	len += ZSTD_compress(packed + len, 2 * LEN, content, LEN, 1);
	len += ZSTD_compress(packed + len, LEN + 1000, content, LEN, 3);
	memcpy(packed + len, skippable, sizeof(skippable));
	save(packed, len + sizeof(skippable));
	check_unpacks_to_content(D9__CONTAINER_ZSTD, 2);

	free(packed);
	unlink(PATH);
}

static void check_cut(const uint8_t *packed, size_t len, size_t least)
{
	struct d9__container container;
	struct d9__input input;
	size_t got;
	uint8_t *bytes;

	save(packed, len);
	bytes = unpack(&container, &input, 5000, &got);
	CU_ASSERT_TRUE(container.truncated);
	CU_ASSERT_EQUAL(container.err, 0);
	CU_ASSERT(got >= least && got <= LEN);
	CU_ASSERT_EQUAL(memcmp(bytes, content, got), 0);
	free(bytes);
	d9__container_release(&container);
	d9__input_release(&input);
}

static void test_cut_tail_gives_what_could_be_unpacked(void)
{
	uint8_t *packed = malloc(2 * LEN);
	size_t len = pack_gzip(packed, LEN, content, LEN);

	check_cut(packed, len - 1, LEN / 2);
	check_cut(packed, len / 2, LEN / 3);
	check_cut(packed, 12, 0);
	len = ZSTD_compress(packed, 2 * LEN, content, LEN, 1);
	check_cut(packed, len - 1, LEN / 3);
	check_cut(packed, len / 2 + len / 4, LEN / 4);
	check_cut(packed, 6, 0);

	free(packed);
	unlink(PATH);
}

static void test_damage_is_reported_after_what_came_before(void)
{
	static const uint8_t garbage[] = "garbage";
	uint8_t *packed = malloc(2 * LEN);
	struct d9__container container;
	struct d9__input input;
	size_t len, got;

	len = pack_gzip(packed, LEN, content, LEN);
	memcpy(packed + len, garbage, sizeof(garbage));
	save(packed, len + sizeof(garbage));
	free(unpack(&container, &input, 5000, &got));
	CU_ASSERT_EQUAL(got, LEN);
	CU_ASSERT_EQUAL(container.err, -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(container.message);
	d9__container_release(&container);
	d9__input_release(&input);

	len = ZSTD_compress(packed, 2 * LEN, content, LEN, 1);
	memcpy(packed + len, garbage, sizeof(garbage));
	save(packed, len + sizeof(garbage));
	free(unpack(&container, &input, 5000, &got));
	CU_ASSERT_EQUAL(got, LEN);
	CU_ASSERT_EQUAL(container.err, -EBADMSG);
	d9__container_release(&container);
	d9__input_release(&input);

	free(packed);
	unlink(PATH);
}

/* Ten zstd frames of 30000 bytes, the last one cut short. */
static void save_frames(void)
{
	uint8_t *packed = malloc(2 * LEN);
	size_t len = 0;

	for (size_t i = 0; i < 10; i++)
		len += ZSTD_compress(packed + len, LEN, content + i * (LEN / 10), LEN / 10, 1);
	save(packed, len - 20);
	free(packed);
}

static void test_store_of_small_frames_gives_any_bytes_again(void)
{
	struct d9__container container;
	struct d9__store store = { 0 };
	struct d9__input input;
	uint8_t piece[1000];
	size_t len, compared = 0;

	save_frames();
	free(unpack(&container, &input, LEN, &len));
	CU_ASSERT_FATAL(len > 0);
	store.frames = container.frames;
	store.n_frames = container.n_frames;
	CU_ASSERT_EQUAL_FATAL(d9__store_open(&store, &input, D9__CONTAINER_ZSTD), 0);

	CU_ASSERT_EQUAL(store.form, D9__STORE_FRAMES);
	for (size_t i = 0; i < 2000; i++) {
		size_t at = i * 7919 % len;
		ssize_t n = d9__store_read_at(&store, at, piece, sizeof(piece));

		CU_ASSERT(n > 0 && memcmp(piece, content + at, (size_t)n) == 0);
		compared += n > 0 ? (size_t)n : 0;
	}
	CU_ASSERT(compared > 1000000);
	CU_ASSERT_EQUAL(d9__store_read_at(&store, len, piece, 1), 0);
	d9__store_close(&store);
	d9__container_release(&container);
	d9__input_release(&input);
	unlink(PATH);
}

static void test_store_of_gzip_goes_through_a_file_that_nobody_sees(void)
{
	uint8_t *packed = malloc(2 * LEN);
	struct d9__store store = { 0 };
	struct d9__input input;
	uint8_t piece[100];

	save(packed, pack_gzip(packed, LEN, content, LEN));
	CU_ASSERT_EQUAL_FATAL(d9__input_open(&input, PATH), 0);
	CU_ASSERT_EQUAL_FATAL(d9__store_open(&store, &input, D9__CONTAINER_GZIP), 0);

	CU_ASSERT_EQUAL(store.form, D9__STORE_FILE);
	CU_ASSERT_EQUAL(d9__store_read_at(&store, LEN - 100, piece, 100), 100);
	CU_ASSERT_EQUAL(memcmp(piece, content + LEN - 100, 100), 0);
	CU_ASSERT_EQUAL(d9__store_read_at(&store, LEN, piece, 100), 0);
	d9__store_close(&store);
	d9__input_release(&input);
	free(packed);
	unlink(PATH);
}

static void test_input_finds_a_segment_that_was_sealed_meanwhile(void)
{
	struct d9__input input;

	save("x", 1);
	rename(PATH, PATH ".active");
	CU_ASSERT_EQUAL_FATAL(d9__input_open(&input, PATH ".active"), 0);
	d9__input_close(&input);
	rename(PATH ".active", PATH);
	CU_ASSERT_EQUAL(d9__input_reopen(&input), 0);
	d9__input_close(&input);
	unlink(PATH);
	CU_ASSERT_EQUAL(d9__input_reopen(&input), -ENOENT);
	d9__input_release(&input);
	unlink(PATH);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "plain, gzip and zstd are told by content",
		  test_plain_gzip_and_zstd_are_told_by_content },
		{ "members and frames one after another are one stream",
		  test_members_and_frames_one_after_another_are_one_stream },
		{ "cut tail gives what could be unpacked",
		  test_cut_tail_gives_what_could_be_unpacked },
		{ "damage is reported after what came before",
		  test_damage_is_reported_after_what_came_before },
		{ "store of small frames gives any bytes again",
		  test_store_of_small_frames_gives_any_bytes_again },
		{ "store of gzip goes through a file that nobody sees",
		  test_store_of_gzip_goes_through_a_file_that_nobody_sees },
		{ "input finds a segment that was sealed meanwhile",
		  test_input_finds_a_segment_that_was_sealed_meanwhile },
		CU_TEST_INFO_NULL,
	};

	fill_content();
	return d9_test_main("container", tests);
}
