/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/trigger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/heap.h"

int d9__trigger_file_name(const char *one, size_t len, char path[PATH_MAX])
{
	if (!len || *one != '@')
		return 0;
	for (one++, len--; len && strchr(" \t\r", one[len - 1]); len--)
		;
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(path, one, len);
	path[len] = '\0';
	return 1;
}

/* At most |size| bytes.  How many there were, or -errno. */
static ssize_t read_all(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n = 1;

	while (n && len < size) {
		n = read(fd, out + len, size - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)len;
}

static int read_list(int fd, char **list)
{
	char *text = d9__calloc(1, D9__TRIGGER_FILE_MAX + 2);
	ssize_t len = text ? read_all(fd, text, D9__TRIGGER_FILE_MAX + 1) : -ENOMEM;

	if (len > (ssize_t)D9__TRIGGER_FILE_MAX)
		len = -EFBIG;
	else if (len >= 0 && strlen(text) != (size_t)len)
		len = -EILSEQ;
	if (len < 0)
		d9__free(text);
	else
		*list = text;
	return len < 0 ? (int)len : 0;
}

int d9__trigger_file_read(const char *path, char **list)
{
	/* One end of a pipe alone would wait for the other. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? read_list(fd, list) : -EINVAL;
	close(fd);
	return err;
}

const char *d9__trigger_file_fault(int err)
{
	switch (err) {
	case -EINVAL:
		return "it is no regular file";
	case -EFBIG:
		return "it has more than 64 KiB";
	case -EILSEQ:
		return "it is no text: a byte is 0";
	default:
		return d9_strerror(err);
	}
}
