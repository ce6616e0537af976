/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file, all of them. */

#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Read the |len| bytes of |fd| that begin at |at|.  0; -EBADMSG: the file ends before; -errno.
 * Changes errno. */
static inline int d9__read_at(int fd, void *buf, size_t len, uint64_t at)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}
