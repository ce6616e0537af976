/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <dial9/error.h>

static const struct {
	int err;
	const char *text;
} meanings[] = {
	{ 0, "no error" },
	{ -EACCES, "permission denied" },
	{ -EAGAIN, "not available at the moment" },
	{ -EALREADY, "a recorder is already running in this process" },
	{ -EBADMSG, "malformed trace" },
	{ -EBUSY, "in use" },
	{ -EDQUOT, "quota of disk space used up" },
	{ -EEXIST, "already exists" },
	{ -EFBIG, "limit of file size or memory reached" },
	{ -EINVAL, "invalid argument" },
	{ -EIO, "input or output error" },
	{ -EISDIR, "is a directory" },
	{ -ELOOP, "a symbolic link leads there" },
	{ -EMFILE, "too many open files" },
	{ -ENAMETOOLONG, "name too long" },
	{ -ENFILE, "too many open files on this machine" },
	{ -ENODATA, "trace ends in the middle of a frame" },
	{ -ENOENT, "not found" },
	{ -ENOMEM, "out of memory" },
	{ -ENOSPC, "no space left" },
	{ -ENOTDIR, "not a directory" },
	{ -ENOTSUP, "not supported here" },
	{ -EPERM, "operation not permitted" },
	{ -EPROTONOSUPPORT, "trace of a newer format" },
	{ -EROFS, "read-only file system" },
	{ -ESTALE, "file changed meanwhile" },
	{ -ESRCH, "no such process" },
	{ -ETIMEDOUT, "deadline passed" },
};

/* In libc's words, which are static and take no lock; strerror() would. */
static const char *text_of_libc(int err)
{
	const char *text = NULL;

#ifdef HAVE_STRERRORDESC_NP
	if (err < 0 && err > -4096)
		text = strerrordesc_np(-err);
#else
	(void)err;
#endif
	return text ? text : "an error that this system has no name for";
}

const char *d9_strerror(int err)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].err == err)
			return meanings[i].text;
	return text_of_libc(err);
}
