/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "export/export_sink.h"

#define GZIP_WINDOW (15 + 16)

struct d9__sink {
	int fd, err;
	bool gzip;
	const char *path; /* to rename to */
	char *temporary;  /* NULL: written in place */
	z_stream z;
	size_t len;
	unsigned char plain[64 << 10], packed[64 << 10];
};

/* The file that a signal handler removes. */
static char *volatile half_written;

static void remove_and_die(int sig)
{
	if (half_written)
		unlink(half_written);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void guard(char *temporary)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	half_written = temporary;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signal(signals[i], temporary ? remove_and_die : SIG_DFL) == SIG_IGN)
			signal(signals[i], SIG_IGN);
}

/* Write into a pipe or device directly; replace anything else as a whole. */
static int open_target(struct d9__sink *sink)
{
	struct stat st;

	if (!strcmp(sink->path, "-")) {
		sink->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return sink->fd < 0 ? -errno : 0;
	}
	if (!stat(sink->path, &st) && !S_ISREG(st.st_mode)) {
		sink->fd = open(sink->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return sink->fd < 0 ? -errno : 0;
	}
	if (asprintf(&sink->temporary, "%s.XXXXXX", sink->path) < 0) {
		sink->temporary = NULL;
		return -ENOMEM;
	}
	sink->fd = mkostemp(sink->temporary, O_CLOEXEC);
	if (sink->fd >= 0) {
		guard(sink->temporary);
		return 0;
	}
	free(sink->temporary);
	sink->temporary = NULL;
	return -errno;
}

int d9__export_sink_open(const char *path, bool gzip, struct d9__sink **out)
{
	struct d9__sink *sink = calloc(1, sizeof(*sink));
	int err;

	if (!sink)
		return -ENOMEM;
	sink->path = path;
	err = open_target(sink);
	if (err) {
		free(sink);
		return err;
	}
	signal(SIGPIPE, SIG_IGN);
	if (isatty(sink->fd) == 1)
		err = -ENOTTY;
	else if (gzip && deflateInit2(&sink->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
				      Z_DEFAULT_STRATEGY) != Z_OK)
		err = -ENOMEM;
	sink->gzip = gzip && !err;
	if (err)
		d9__export_sink_abandon(sink);
	else
		*out = sink;
	return err;
}

static void write_out(struct d9__sink *sink, const unsigned char *bytes, size_t len)
{
	while (len && !sink->err) {
		ssize_t n = write(sink->fd, bytes, len);

		if (n < 0 && errno != EINTR)
			sink->err = -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
}

/* Compress the bytes in |plain|; |flush| is Z_NO_FLUSH or Z_FINISH. */
static void pack(struct d9__sink *sink, int flush)
{
	sink->z.next_in = sink->plain;
	sink->z.avail_in = (uInt)sink->len;
	do {
		sink->z.next_out = sink->packed;
		sink->z.avail_out = sizeof(sink->packed);
		deflate(&sink->z, flush);
		write_out(sink, sink->packed, sizeof(sink->packed) - sink->z.avail_out);
	} while (!sink->z.avail_out && !sink->err);
}

static void empty(struct d9__sink *sink, int flush)
{
	if (sink->gzip)
		pack(sink, flush);
	else
		write_out(sink, sink->plain, sink->len);
	sink->len = 0;
}

int d9__export_sink_write(struct d9__sink *sink, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	while (len && !sink->err) {
		size_t n = sizeof(sink->plain) - sink->len;

		n = n < len ? n : len;
		memcpy(sink->plain + sink->len, p, n);
		sink->len += n;
		p += n;
		len -= n;
		if (sink->len == sizeof(sink->plain))
			empty(sink, Z_NO_FLUSH);
	}
	return sink->err;
}

int d9__export_sink_commit(struct d9__sink *sink)
{
	int err;

	empty(sink, Z_FINISH);
	if (!sink->err && sink->temporary && rename(sink->temporary, sink->path))
		sink->err = -errno;
	err = sink->err;
	if (!err) {
		guard(NULL);
		free(sink->temporary);
		sink->temporary = NULL;
	}
	d9__export_sink_abandon(sink);
	return err;
}

void d9__export_sink_abandon(struct d9__sink *sink)
{
	if (!sink)
		return;
	if (sink->temporary) {
		unlink(sink->temporary);
		guard(NULL);
		free(sink->temporary);
	}
	if (sink->gzip)
		deflateEnd(&sink->z);
	close(sink->fd);
	free(sink);
}
