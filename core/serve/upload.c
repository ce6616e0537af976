/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report is made by a child whose working directory is one of ours in /tmp, with a link for
 * each file, called as the reader's is and leading to the memory that holds it: so it says of them
 * what `dial9 report` says of the reader's, by their names.
 */
#include "config.h"

#include "serve/upload.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "serve/child.h"
#include "serve/reply.h"
#include "serve/report_job.h"

#define BYTES_MAX     ((uint64_t)1 << 30) /* of all files together */
#define FILES_MAX     256
#define ID_MAX	      64
#define DIRECTORY_MAX 64

#define SILENCE_MS 10000  /* between two pieces: the page has gone */
#define SENDING_MS 600000 /* all of it: others are kept out meanwhile */

struct file {
	char *name; /* owned */
	int fd;
};

struct d9__upload {
	struct event_base *base;
	struct event *watch;	       /* owned */
	char id[ID_MAX + 1];	       /* of the page whose upload is under way */
	char directory[DIRECTORY_MAX]; /* "": none is under way */
	uint64_t total, taken;	       /* bytes */
	uint64_t begun_ms, heard_ms;
	struct file files[FILES_MAX];
	size_t n_files;
	struct d9__child *child;	/* makes the report; else NULL */
	struct evhttp_request *waiting; /* for it */
};

/* A piece that is not taken, as it is answered. */
struct refusal {
	int code;
	const char *why;
};

struct piece {
	const char *id, *name;
	uint64_t total, at, file;
	struct evbuffer *body;
};

static uint64_t now_ms(void)
{
	return d9__mono_ns() / D9__MS_NS;
}

/* ---- the one that is under way ---- */

/* Forget everything about it.  A request that waits is told |why|. */
static void drop(struct d9__upload *upload, const char *why)
{
	d9__child_free(upload->child);
	upload->child = NULL;
	if (upload->waiting)
		d9__reply_text(upload->waiting, HTTP_SERVUNAVAIL, why);
	upload->waiting = NULL;
	for (size_t i = 0; i < upload->n_files; i++) {
		struct file *file = &upload->files[i];
		char path[sizeof(upload->directory) + NAME_MAX + 1];

		snprintf(path, sizeof(path), "%s/%s", upload->directory, file->name);
		unlink(path);
		close(file->fd);
		free(file->name);
	}
	upload->n_files = 0;
	if (*upload->directory)
		rmdir(upload->directory);
	*upload->directory = '\0';
	event_del(upload->watch);
}

/* libevent does not look at a connection while its request waits. */
static bool has_left(struct evhttp_request *request)
{
	struct evhttp_connection *from = evhttp_request_get_connection(request);
	int fd = from ? bufferevent_getfd(evhttp_connection_get_bufferevent(from)) : -1;
	char byte;

	return fd < 0 || recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_watch(evutil_socket_t none, short what, void *context)
{
	struct d9__upload *upload = context;
	uint64_t now = now_ms();

	(void)none;
	(void)what;
	if (upload->child
		    ? has_left(upload->waiting)
		    : now - upload->heard_ms > SILENCE_MS || now - upload->begun_ms > SENDING_MS)
		drop(upload, "nobody waits for it");
}

static const struct refusal *begin(struct d9__upload *upload, const struct piece *piece)
{
	static const struct refusal
		busy = { HTTP_SERVUNAVAIL,
			 "another file is being looked at: try again when that is done" },
		large = { HTTP_ENTITYTOOLARGE,
			  "more than 1 GiB is not looked at here: dial9 report FILE does" },
		strange = { HTTP_BADREQUEST, "nothing was sent" },
		stuck = { HTTP_INTERNAL, "no directory can be made in /tmp" };
	static const struct timeval every = { .tv_sec = 1 };
	char directory[DIRECTORY_MAX];

	if (*upload->directory && strcmp(upload->id, piece->id) &&
	    !(upload->child && has_left(upload->waiting)))
		return &busy;
	drop(upload, "another file was opened instead");
	if (piece->total > BYTES_MAX)
		return &large;
	if (!piece->total)
		return &strange;
	snprintf(directory, sizeof(directory), "/tmp/dial9-serve.%ld.XXXXXX", (long)getpid());
	if (!mkdtemp(directory) || event_add(upload->watch, &every)) {
		rmdir(directory);
		return &stuck;
	}
	strcpy(upload->directory, directory);
	strcpy(upload->id, piece->id);
	upload->total = piece->total;
	upload->taken = 0;
	upload->begun_ms = now_ms();
	return NULL;
}

/* ---- its files ---- */

static bool is_file_name(const char *name)
{
	return *name && strlen(name) <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") &&
	       strcmp(name, "..") && strcmp(name, "-");
}

/* Make the file and the link to it, which leads there in the child.  0 or -errno. */
static int make_file(struct d9__upload *upload, const char *name)
{
	struct file file = { .name = strdup(name),
			     .fd = memfd_create("dial9-upload", MFD_CLOEXEC) };
	char path[sizeof(upload->directory) + NAME_MAX + 1], target[32];
	int err = !file.name ? -ENOMEM : file.fd < 0 ? -errno : 0;

	snprintf(path, sizeof(path), "%s/%s", upload->directory, name);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", file.fd);
	if (!err && symlink(target, path))
		err = -errno;
	if (!err) {
		upload->files[upload->n_files++] = file;
		return 0;
	}
	if (file.fd >= 0)
		close(file.fd);
	free(file.name);
	return err;
}

static const struct refusal *next_file(struct d9__upload *upload, const char *name)
{
	static const struct refusal many = { HTTP_ENTITYTOOLARGE,
					     "more than 256 files are not looked at here" },
				    strange = { HTTP_BADREQUEST, "no file is called so" },
				    twice = { HTTP_BADREQUEST,
					      "two of the files have the same name" },
				    stuck = { HTTP_INTERNAL, "there is no room for another file" };
	int err;

	if (upload->n_files == FILES_MAX)
		return &many;
	if (!is_file_name(name))
		return &strange;
	err = make_file(upload, name);
	return !err ? NULL : err == -EEXIST ? &twice : &stuck;
}

static const struct refusal *append(struct d9__upload *upload, const struct piece *piece)
{
	static const struct refusal strange = { 409, "this is not the piece that comes next" },
				    full = { HTTP_INTERNAL, "there is no memory for it" };
	size_t len = evbuffer_get_length(piece->body);
	const struct refusal *refusal = NULL;

	if (!*upload->directory || upload->child || strcmp(upload->id, piece->id) ||
	    piece->at != upload->taken || len > upload->total - upload->taken ||
	    piece->file > upload->n_files || piece->file + 1 < upload->n_files)
		return &strange;
	if (piece->file == upload->n_files)
		refusal = next_file(upload, piece->name);
	if (refusal)
		return refusal;
	while (evbuffer_get_length(piece->body))
		if (evbuffer_write(piece->body, upload->files[piece->file].fd) <= 0)
			return &full;
	upload->taken += len;
	upload->heard_ms = now_ms();
	return NULL;
}

/* ---- its report ---- */

static void on_report(void *context, struct d9__child_answer *answer)
{
	struct d9__upload *upload = context;
	struct evhttp_request *request = upload->waiting;

	upload->child = NULL;
	upload->waiting = NULL;
	if (answer->out)
		d9__reply_json(request, answer->out, answer->len);
	else
		d9__reply_text(request, 422, answer->why);
	answer->out = NULL;
	drop(upload, NULL);
}

static int start(struct d9__upload *upload)
{
	char *names[FILES_MAX + 1] = { NULL }, **argv;
	int fds[FILES_MAX], err;
	struct d9__child_options options = d9__report_limits;

	for (size_t i = 0; i < upload->n_files; i++) {
		names[i] = upload->files[i].name;
		fds[i] = upload->files[i].fd;
	}
	options.directory = upload->directory;
	options.fds = fds;
	options.n_fds = upload->n_files;
	argv = d9__report_command(names);
	err = argv ? d9__child_start(upload->base, (const char *const *)argv, &options, on_report,
				     upload, &upload->child)
		   : -ENOMEM;
	d9__report_command_free(argv);
	return err;
}

/* |request| has brought the last piece. */
static void ask_report(struct d9__upload *upload, struct evhttp_request *request)
{
	int err = start(upload);

	if (!err) {
		upload->waiting = request;
		return;
	}
	drop(upload, NULL);
	d9__reply_text(request, HTTP_INTERNAL, strerror(-err));
}

/* ---- */

/* The whole number |key| of |query|, |otherwise| without one. */
static bool read_number(const struct evkeyvalq *query, const char *key, uint64_t otherwise,
			uint64_t *out)
{
	const char *text = evhttp_find_header(query, key);
	char *end;

	*out = otherwise;
	if (!text)
		return true;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !*end && !errno;
}

static bool read_piece(struct piece *piece, struct evhttp_request *request,
		       const struct evkeyvalq *query)
{
	piece->body = evhttp_request_get_input_buffer(request);
	piece->id = evhttp_find_header(query, "upload");
	piece->name = evhttp_find_header(query, "name");
	if (!piece->id)
		piece->id = "";
	return piece->name && strlen(piece->id) <= ID_MAX &&
	       read_number(query, "at", 0, &piece->at) &&
	       read_number(query, "file", 0, &piece->file) &&
	       read_number(query, "bytes", evbuffer_get_length(piece->body), &piece->total);
}

struct d9__upload *d9__upload_new(struct event_base *base)
{
	struct d9__upload *upload = calloc(1, sizeof(*upload));

	if (!upload)
		return NULL;
	upload->base = base;
	upload->watch = event_new(base, -1, EV_PERSIST, on_watch, upload);
	if (!upload->watch) {
		free(upload);
		return NULL;
	}
	return upload;
}

void d9__upload_take(struct d9__upload *upload, struct evhttp_request *request,
		     const struct evkeyvalq *query)
{
	static const struct refusal strange = { HTTP_BADREQUEST, "this is no piece of a file" };
	struct piece piece;
	const struct refusal *refusal = read_piece(&piece, request, query) ? NULL : &strange;

	if (!refusal && !piece.at && !piece.file)
		refusal = begin(upload, &piece);
	if (!refusal)
		refusal = append(upload, &piece);
	if (!refusal && upload->taken == upload->total)
		ask_report(upload, request);
	else if (!refusal)
		d9__reply(request, HTTP_NOCONTENT, "text/plain", NULL);
	if (!refusal)
		return;
	d9__reply_text(request, refusal->code, refusal->why);
	/* One that lacks a piece does not become whole any more. */
	if (piece.id && !upload->child && !strcmp(upload->id, piece.id))
		drop(upload, NULL);
}

void d9__upload_free(struct d9__upload *upload)
{
	if (!upload)
		return;
	drop(upload, "the server has ended");
	event_free(upload->watch);
	free(upload);
}
