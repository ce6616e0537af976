/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/artefact.h"
#include "base/descriptors.h"

static int read_text(int dir_fd, const char *name, char text[D9__MANIFEST_BYTES])
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = d9__descriptor_place(openat(dir_fd, name, flags));
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		n = read(fd, text, D9__MANIFEST_BYTES - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n < 0 ? -EIO : 0;
}

/* It is searched as text, because no string in it holds an end of line. */
int d9__manifest_read(int dir_fd, const char *name, uint64_t *segments, bool *flight)
{
	static const char list[] = "\n  \"segments\": [";
	static char text[D9__MANIFEST_BYTES];
	int err = read_text(dir_fd, name, text), n = 0;
	char *at = err ? NULL : strstr(text, list), *end = at ? strchr(at, ']') : NULL;

	if (!end)
		return err ? err : -EBADMSG;
	*flight = strstr(text, "\n  \"mode\": \"flight\"");
	*end = '\0';
	at += strlen(list);
	for (; n < D9__MANIFEST_SEGMENTS && (at = strchr(at, '"')) && (end = strchr(at + 1, '"'));
	     at = end + 1) {
		*end = '\0';
		n += d9__artefact_of(at + 1, &segments[n]) == D9__ARTEFACT_SEGMENT;
	}
	return n;
}
