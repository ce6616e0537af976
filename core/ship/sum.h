/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of a body: SHA-256 for the signature, MD5 for the ETag of stores, in one pass. */

#pragma once

#include <stdint.h>

struct d9__sum {
	char sha256[65]; /* hex */
	char checksum[48], md5_base64[28];
	unsigned char md5[16];
};

/* Sum up |size| bytes of |fd| from |first| on.  0 or -errno; -ENODATA: there are fewer. */
int d9__sum_of(int fd, uint64_t first, uint64_t size, struct d9__sum *sum);
int d9__sum_of_text(const char *text, struct d9__sum *sum);
