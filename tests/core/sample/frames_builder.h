/* SPDX-License-Identifier: Apache-2.0 */
/* Builds sections like .eh_frame in a line per entry. */

#ifndef D9_TESTS_FRAMES_BUILDER_H
#define D9_TESTS_FRAMES_BUILDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_ADDRESS 0x500000u /* where the section claims to be */
#define FRAMES_LOW     0x400000u /* and its module, one MiB */
#define FRAMES_HIGH    0x600000u

struct frames {
	uint8_t bytes[8192];
	size_t len;
	size_t common; /* where the last CIE begins */
};

/* Instructions for frames_common() and frames_function(). */
#define CFI(...)         ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })
#define ADVANCE(n)       (0x40 | (n))
#define DEF_CFA(reg, n)  0x0c, (reg), (n)
#define DEF_REGISTER(r)  0x0d, (r)
#define DEF_OFFSET(n)    0x0e, (n)
#define SAVE(reg, words) (0x80 | (reg)), (words)
#define RESTORE(reg)     (0xc0 | (reg))
#define REMEMBER         0x0a
#define RESTORE_STATE    0x0b
#define UNDEFINED(reg)   0x07, (reg)
#define NOP              0x00
#define USUAL            DEF_CFA(7, 8), SAVE(16, 1) /* how all functions begin */

static inline void frames_u32(struct frames *frames, uint32_t value)
{
	memcpy(frames->bytes + frames->len, &value, sizeof(value));
	frames->len += sizeof(value);
}

static inline void frames_bytes(struct frames *frames, const void *bytes, size_t n)
{
	memcpy(frames->bytes + frames->len, bytes, n);
	frames->len += n;
}

/* The length word of the entry that began at |at|. */
static inline void frames_end_entry(struct frames *frames, size_t at)
{
	uint32_t len = (uint32_t)(frames->len - at - 4);

	memcpy(frames->bytes + at, &len, sizeof(len));
}

/* A CIE with |letters| (of which "R" has the |encoding|): factors 1 and -8, return address in register 16. */
static inline void frames_common_of(struct frames *frames, const char *letters, uint8_t encoding,
				    const uint8_t *cfi, size_t n)
{
	const uint8_t factors[] = { 1, 0x78, 16 };
	const uint8_t data[] = { 1, encoding };

	frames->common = frames->len;
	frames_u32(frames, 0);
	frames_u32(frames, 0);
	frames_bytes(frames, "\1", 1);
	frames_bytes(frames, letters, strlen(letters) + 1);
	frames_bytes(frames, factors, sizeof(factors));
	if (letters[0] == 'z')
		frames_bytes(frames, data, sizeof(data));
	frames_bytes(frames, cfi, n);
	frames_end_entry(frames, frames->common);
}

/* The usual one: pointers are four bytes, relative to where they are. */
static inline void frames_common(struct frames *frames, const uint8_t *cfi, size_t n)
{
	frames_common_of(frames, "zR", 0x1b, cfi, n);
}

/* An FDE of the last CIE for |size| bytes of code at offset |start| of the module. */
static inline void frames_function(struct frames *frames, uint32_t start, uint32_t size,
				   const uint8_t *cfi, size_t n)
{
	size_t at = frames->len;

	frames_u32(frames, 0);
	frames_u32(frames, (uint32_t)(frames->len - frames->common));
	frames_u32(frames, FRAMES_LOW + start - (uint32_t)(FRAMES_ADDRESS + frames->len));
	frames_u32(frames, size);
	frames_bytes(frames, "", 1); /* no augmentation data */
	frames_bytes(frames, cfi, n);
	frames_end_entry(frames, at);
}

#endif /* D9_TESTS_FRAMES_BUILDER_H */
