/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "ship/class_name.h"
#include "ship/message.h"
#include "ship/store_program.h"

#define READY_MS (30 * 1000)
#define END_MS   1000
#define PAGE_MAX (16 << 20) /* bytes of a list's keys */

extern char **environ;

struct d9__bucket {
	char *program;               /* owned */
	struct json_object *options; /* owned: the first message of each child */
	char *url;                   /* owned */
	pid_t pid;                   /* 0: no child */
	int fd;                      /* -1: no child */
	char ended[128];             /* how the last child did */

	uint64_t outstanding[D9__BUCKET_OUTSTANDING_MAX]; /* tokens */
	size_t n_outstanding;
	size_t n_lost; /* the first of them: their child has ended */

	/* The latest answer, and the memory that it borrows from; owned. */
	struct d9__bucket_answer answer;
	struct json_object *said, *page;
	struct d9__bucket_key *keys;
	const char **prefixes;
};

__attribute__((format(printf, 4, 5))) static int fail(int err, char *why, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, size, format, arguments);
	va_end(arguments);
	return err;
}

static struct json_object *options_message(const struct d9__bucket_options *options)
{
	struct json_object *message = json_object_new_object();

	if (!message)
		return NULL;
	d9__message_add_text(message, "op", "start");
	d9__message_add_text(message, "bucket", options->bucket);
	d9__message_add_text(message, "endpoint", options->endpoint);
	d9__message_add_text(message, "region", options->region);
	d9__message_add_text(message, "profile", options->profile);
	d9__message_add_text(message, "ca", options->ca);
	d9__message_add_text(message, "sse", options->sse);
	d9__message_add_text(message, "sse_key", options->sse_key);
	d9__message_add_number(message, "max_rate", options->max_rate);
	d9__message_add_number(message, "single_max", options->single_max);
	d9__message_add_number(message, "parallel", options->parallel);
	d9__message_add_number(message, "stall", options->stall);
	d9__message_add_number(message, "path_style", options->path_style);
	d9__message_add_number(message, "allow_http", options->allow_http);
	d9__message_add_number(message, "md5", options->md5);
	return message;
}

/* Reap the child and describe how it ended. */
static void reap(struct d9__bucket *bucket)
{
	int status = 0;

	if (bucket->fd >= 0)
		close(bucket->fd);
	bucket->fd = -1;
	if (!bucket->pid)
		return;
	kill(bucket->pid, SIGKILL);
	while (waitpid(bucket->pid, &status, 0) < 0 && errno == EINTR)
		;
	bucket->pid = 0;
	if (WIFEXITED(status))
		snprintf(bucket->ended, sizeof(bucket->ended), "dial9-store ended with status %d", WEXITSTATUS(status));
	else
		snprintf(bucket->ended, sizeof(bucket->ended), "dial9-store was ended by signal %d", WTERMSIG(status));
}

/* Its signals are the usual ones, whatever this program ignores. */
static int spawn(struct d9__bucket *bucket, int end)
{
	char *argv[] = { (char *)(uintptr_t)"dial9-store", NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		sigemptyset(&none);
		sigfillset(&all);
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setsigdefault(&attributes, &all);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		err = posix_spawn_file_actions_adddup2(&files, end, 0);
		if (!err)
			err = posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
		if (!err)
			err = posix_spawn(&bucket->pid, bucket->program, &files, &attributes, argv, environ);
		if (err)
			bucket->pid = 0;
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

/* Start a child and tell it the options; its answer is still to come. */
static int start_child(struct d9__bucket *bucket)
{
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	bucket->fd = ends[0];
	err = spawn(bucket, ends[1]);
	close(ends[1]);
	if (!err)
		err = d9__message_send(bucket->fd, bucket->options, -1);
	/* One that ended at once is found to have, with its status, where its answer is read. */
	if (err == -EPIPE)
		err = 0;
	if (err)
		reap(bucket);
	return err;
}

/* Read the child's first message. */
static int take_ready(struct d9__bucket *bucket, char *why, size_t size)
{
	struct pollfd waiting = { bucket->fd, POLLIN, 0 };
	struct json_object *said = NULL;
	const char *error;
	int passed = -1, got = poll(&waiting, 1, READY_MS);

	got = got > 0 ? d9__message_receive(bucket->fd, false, &said, &passed) : got;
	if (passed >= 0)
		close(passed);
	if (got <= 0) {
		reap(bucket);
		return fail(-EPROTO, why, size, "%s: %s", bucket->program, bucket->ended);
	}
	error = d9__message_text(said, "error", NULL);
	if (error)
		got = fail(-EINVAL, why, size, "%s", error);
	bucket->url = strdup(d9__message_text(said, "url", ""));
	json_object_put(said);
	return error ? got : bucket->url ? 0 : fail(-ENOMEM, why, size, "out of memory");
}

/*
 * Make /proc/PID/environ unreadable for this user's other processes, because our environment has
 * the same secrets as the child's.
 */
static void hide_environment(void)
{
	if (getenv("AWS_SECRET_ACCESS_KEY") || getenv("AWS_SESSION_TOKEN") || getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN"))
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Program, options and the child. */
static int set_up(struct d9__bucket *bucket, const struct d9__bucket_options *options, char *why, size_t size)
{
	int err;

	hide_environment();
	bucket->fd = -1;
	bucket->program = options->program ? strdup(options->program) : d9__store_program();
	bucket->options = options_message(options);
	if (!bucket->program && !options->program)
		return fail(-ENOENT, why, size,
			    "dial9-store is not there: install libcurl's development files, and build dial9 again");
	if (!bucket->program || !bucket->options)
		return fail(-ENOMEM, why, size, "out of memory");
	err = start_child(bucket);
	if (err)
		return fail(err, why, size, "%s: %s", bucket->program, strerror(-err));
	return take_ready(bucket, why, size);
}

int d9__bucket_start(const struct d9__bucket_options *options, struct d9__bucket **out, char *why,
		     size_t why_size)
{
	struct d9__bucket *bucket = calloc(1, sizeof(*bucket));
	int err;

	if (!bucket)
		return fail(-ENOMEM, why, why_size, "out of memory");
	err = set_up(bucket, options, why, why_size);
	if (err)
		d9__bucket_free(bucket);
	else
		*out = bucket;
	return err;
}

const char *d9__bucket_url(const struct d9__bucket *bucket)
{
	return bucket->url;
}

/* Answer every request that this child has as lost. */
static void lose_child(struct d9__bucket *bucket)
{
	reap(bucket);
	bucket->n_lost = bucket->n_outstanding;
}

static void ensure_child(struct d9__bucket *bucket)
{
	int err = bucket->fd >= 0 ? 0 : start_child(bucket);

	if (err)
		snprintf(bucket->ended, sizeof(bucket->ended), "dial9-store cannot be started: %s", strerror(-err));
}

/* Send |message|, which is taken, with |fd|; it counts as under way. */
static int ask(struct d9__bucket *bucket, uint64_t token, struct json_object *message, int fd)
{
	int err;

	if (!message)
		return -ENOMEM;
	if (bucket->n_outstanding == D9__BUCKET_OUTSTANDING_MAX) {
		json_object_put(message);
		return -EAGAIN;
	}
	json_object_object_add(message, "token", json_object_new_uint64(token));
	ensure_child(bucket);
	err = bucket->fd < 0 ? -EPIPE : d9__message_send(bucket->fd, message, fd);
	if (err == -EPIPE && bucket->fd >= 0) {
		lose_child(bucket);
		ensure_child(bucket);
		err = bucket->fd < 0 ? -EPIPE : d9__message_send(bucket->fd, message, fd);
	}
	json_object_put(message);
	if (err == -EMSGSIZE)
		return -EINVAL;
	if (err == -ENOMEM || err == -ENOBUFS)
		return -ENOMEM;
	bucket->outstanding[bucket->n_outstanding++] = token;
	if (err) {
		/* The requests before it went to a child that has ended: they are lost. */
		reap(bucket);
		bucket->n_lost = bucket->n_outstanding;
	}
	return 0;
}

static struct json_object *request(const char *operation, const char *key)
{
	struct json_object *message = json_object_new_object();

	d9__message_add_text(message, "op", operation);
	d9__message_add_text(message, "key", key);
	return message;
}

static bool is_key(const char *key)
{
	size_t len = strlen(key);

	return len > 0 && len <= D9__BUCKET_KEY_MAX && key[0] != '/';
}

/* Add names and values of metadata; refuse them if they are longer than stores allow. */
static bool add_meta(struct json_object *message, const struct d9__bucket_put *put)
{
	struct json_object *meta = json_object_new_object();
	size_t total = 0;

	if (!meta)
		return false;
	json_object_object_add(message, "meta", meta);
	for (size_t i = 0; i < put->n_meta; i++) {
		const char *name = put->meta[i].name, *value = put->meta[i].value;
		char full[160];

		if (!*name || strlen(name) > 128 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(name))
			return false;
		for (const char *c = value; *c; c++)
			if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
				return false;
		total += strlen(name) + strlen(value);
		snprintf(full, sizeof(full), D9__BUCKET_META "%s", name);
		d9__message_add_text(meta, full, value);
	}
	return total <= D9__BUCKET_META_MAX;
}

int d9__bucket_put(struct d9__bucket *bucket, uint64_t token, const struct d9__bucket_put *put, int fd)
{
	struct json_object *message = is_key(put->key) ? request("put", put->key) : NULL;

	if (!message)
		return is_key(put->key) ? -ENOMEM : -EINVAL;
	d9__message_add_text(message, "type", put->type);
	d9__message_add_number(message, "size", put->size);
	d9__message_add_number(message, "new", put->only_new);
	if (!add_meta(message, put)) {
		json_object_put(message);
		return -EINVAL;
	}
	return ask(bucket, token, message, fd);
}

int d9__bucket_put_bytes(struct d9__bucket *bucket, uint64_t token, const struct d9__bucket_put *put,
			 const void *data)
{
	int fd = memfd_create("dial9-body", MFD_CLOEXEC), err;
	ssize_t n;

	if (fd < 0)
		return -ENOMEM;
	n = put->size ? write(fd, data, put->size) : 0;
	err = n < 0 || (uint64_t)n != put->size ? -ENOMEM : d9__bucket_put(bucket, token, put, fd);
	close(fd);
	return err;
}

int d9__bucket_get(struct d9__bucket *bucket, uint64_t token, const char *key, uint64_t first,
		   uint64_t size, int fd)
{
	struct json_object *message = is_key(key) ? request("get", key) : NULL;

	if (!message)
		return is_key(key) ? -ENOMEM : -EINVAL;
	d9__message_add_number(message, "first", first);
	d9__message_add_number(message, "size", size);
	return ask(bucket, token, message, fd);
}

int d9__bucket_head(struct d9__bucket *bucket, uint64_t token, const char *key)
{
	return is_key(key) ? ask(bucket, token, request("head", key), -1) : -EINVAL;
}

int d9__bucket_list(struct d9__bucket *bucket, uint64_t token, const struct d9__bucket_list *list)
{
	struct json_object *message = request("list", NULL);

	if (!message)
		return -ENOMEM;
	d9__message_add_text(message, "prefix", list->prefix);
	d9__message_add_text(message, "delimiter", list->delimiter);
	d9__message_add_text(message, "after", list->start_after);
	d9__message_add_text(message, "continuation", list->continuation);
	d9__message_add_number(message, "max", list->max_keys);
	return ask(bucket, token, message, -1);
}

int d9__bucket_presign(struct d9__bucket *bucket, uint64_t token, const char *key, unsigned seconds)
{
	struct json_object *message;

	if (!is_key(key) || seconds < 1 || seconds > 604800)
		return -EINVAL;
	message = request("presign", key);
	if (!message)
		return -ENOMEM;
	d9__message_add_number(message, "seconds", seconds);
	return ask(bucket, token, message, -1);
}

int d9__bucket_cancel(struct d9__bucket *bucket, uint64_t token)
{
	struct json_object *message = request("cancel", NULL);

	if (!message)
		return -ENOMEM;
	json_object_object_add(message, "token", json_object_new_uint64(token));
	if (bucket->fd >= 0 && d9__message_send(bucket->fd, message, -1))
		lose_child(bucket);
	json_object_put(message);
	return 0;
}

static void forget_answer(struct d9__bucket *bucket)
{
	json_object_put(bucket->said);
	json_object_put(bucket->page);
	free(bucket->keys);
	free(bucket->prefixes);
	bucket->said = bucket->page = NULL;
	bucket->keys = NULL;
	bucket->prefixes = NULL;
	bucket->answer = (struct d9__bucket_answer) {
		.code = "", .message = "", .request = "", .etag = "", .note = "", .url = "",
	};
}

static bool take_token(struct d9__bucket *bucket, uint64_t token)
{
	for (size_t i = bucket->n_lost; i < bucket->n_outstanding; i++)
		if (bucket->outstanding[i] == token) {
			memmove(&bucket->outstanding[i], &bucket->outstanding[i + 1],
				(bucket->n_outstanding - i - 1) * sizeof(token));
			bucket->n_outstanding--;
			return true;
		}
	return false;
}

static enum d9__bucket_class class_of(struct json_object *said)
{
	const char *name = d9__message_text(said, "class", "");

	for (int i = 0; i <= D9__BUCKET_ABSENT; i++)
		if (!strcmp(name, d9__bucket_class_name((enum d9__bucket_class)i)))
			return (enum d9__bucket_class)i;
	return D9__BUCKET_RETRY;
}

/* The page that came in |fd|, owned; NULL: none that can be read. */
static struct json_object *read_page(int fd)
{
	struct json_object *page = NULL;
	struct stat st;
	char *text;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > PAGE_MAX)
		return NULL;
	text = calloc(1, (size_t)st.st_size + 1);
	/* Copied first: the child could still change it. */
	if (text && pread(fd, text, (size_t)st.st_size, 0) == st.st_size)
		page = json_tokener_parse(text);
	free(text);
	if (json_object_is_type(page, json_type_object))
		return page;
	json_object_put(page);
	return NULL;
}

static const char *text_of(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static bool take_keys(struct d9__bucket *bucket, struct json_object *list)
{
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	bucket->keys = calloc(n + 1, sizeof(*bucket->keys));
	for (size_t i = 0; bucket->keys && i < n; i++) {
		struct json_object *row = json_object_array_get_idx(list, i);

		if (!json_object_is_type(row, json_type_array))
			return false;
		bucket->keys[i] = (struct d9__bucket_key) {
			text_of(json_object_array_get_idx(row, 0)),
			json_object_get_uint64(json_object_array_get_idx(row, 1)),
			json_object_get_int64(json_object_array_get_idx(row, 2)),
		};
	}
	bucket->answer.keys = bucket->keys;
	bucket->answer.n_keys = n;
	return bucket->keys;
}

static bool take_prefixes(struct d9__bucket *bucket, struct json_object *list)
{
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	bucket->prefixes = calloc(n + 1, sizeof(*bucket->prefixes));
	for (size_t i = 0; bucket->prefixes && i < n; i++)
		bucket->prefixes[i] = text_of(json_object_array_get_idx(list, i));
	bucket->answer.prefixes = bucket->prefixes;
	bucket->answer.n_prefixes = n;
	return bucket->prefixes;
}

static bool take_page(struct d9__bucket *bucket, int fd)
{
	bucket->page = read_page(fd);
	if (!bucket->page || !take_keys(bucket, json_object_object_get(bucket->page, "keys")) ||
	    !take_prefixes(bucket, json_object_object_get(bucket->page, "prefixes")))
		return false;
	bucket->answer.more = d9__message_text(bucket->page, "more", NULL);
	return true;
}

static void take_answer(struct d9__bucket *bucket, struct json_object *said)
{
	bucket->answer = (struct d9__bucket_answer) {
		.token = d9__message_number(said, "token"),
		.class = class_of(said),
		.status = (unsigned)d9__message_number(said, "status"),
		.retry_after = (unsigned)d9__message_number(said, "retry_after"),
		.bytes = d9__message_number(said, "bytes"),
		.modified = (int64_t)d9__message_number(said, "modified"),
		.code = d9__message_text(said, "code", ""),
		.message = d9__message_text(said, "message", ""),
		.request = d9__message_text(said, "request", ""),
		.etag = d9__message_text(said, "etag", ""),
		.note = d9__message_text(said, "note", ""),
		.url = d9__message_text(said, "url", ""),
	};
}

/* One message of the child: 1 an answer, 0 none yet, -1: the child has ended, or talks nonsense. */
static int take_message(struct d9__bucket *bucket)
{
	struct json_object *said = NULL;
	int passed = -1, got = d9__message_receive(bucket->fd, false, &said, &passed);

	if (got == -EAGAIN)
		return 0;
	if (got <= 0)
		return -1;
	/* Of a child that was started anew. */
	if (!json_object_object_get(said, "token")) {
		got = json_object_object_get(said, "ready") ? 0 : -1;
		json_object_put(said);
		if (passed >= 0)
			close(passed);
		return got;
	}
	forget_answer(bucket);
	bucket->said = said;
	take_answer(bucket, said);
	got = take_token(bucket, bucket->answer.token) ? 1 : -1;
	if (got == 1 && passed >= 0 && !take_page(bucket, passed)) {
		bucket->answer.class = D9__BUCKET_RETRY;
		bucket->answer.code = "BadAnswer";
	}
	if (passed >= 0)
		close(passed);
	return got;
}

static void answer_lost(struct d9__bucket *bucket)
{
	forget_answer(bucket);
	bucket->answer.token = bucket->outstanding[0];
	bucket->answer.class = D9__BUCKET_RETRY;
	bucket->answer.code = "StoreEnded";
	bucket->answer.message = bucket->ended;
	bucket->n_lost--;
	bucket->n_outstanding--;
	memmove(bucket->outstanding, bucket->outstanding + 1, bucket->n_outstanding * sizeof(uint64_t));
}

static int64_t now_ms(void)
{
	return (int64_t)(d9__mono_ns() / D9__MS_NS);
}

int d9__bucket_wait(struct d9__bucket *bucket, int timeout_ms,
		    const struct d9__bucket_answer **answer)
{
	int64_t until = now_ms() + timeout_ms;

	for (;;) {
		struct pollfd waiting = { bucket->fd, POLLIN, 0 };
		int64_t left = timeout_ms < 0 ? -1 : until - now_ms();
		int got;

		if (bucket->n_lost) {
			answer_lost(bucket);
			*answer = &bucket->answer;
			return 1;
		}
		got = bucket->fd < 0 ? 0 : take_message(bucket);
		if (got > 0) {
			*answer = &bucket->answer;
			return 1;
		}
		if (got < 0) {
			lose_child(bucket);
			continue;
		}
		if (bucket->n_outstanding == 0 && timeout_ms < 0)
			return 0;
		if (timeout_ms >= 0 && left <= 0)
			return 0;
		poll(&waiting, 1, (int)left);
	}
}

int d9__bucket_fd(const struct d9__bucket *bucket)
{
	return bucket->fd;
}

size_t d9__bucket_outstanding(const struct d9__bucket *bucket)
{
	return bucket->n_outstanding;
}

/* Close our end and wait for an idle child to end by itself, which it does then. */
static void let_go(const struct d9__bucket *bucket)
{
	struct pollfd ending = { bucket->fd, POLLIN, 0 };

	if (bucket->fd >= 0 && bucket->n_outstanding == 0 && !shutdown(bucket->fd, SHUT_WR))
		poll(&ending, 1, END_MS);
}

void d9__bucket_free(struct d9__bucket *bucket)
{
	if (!bucket)
		return;
	let_go(bucket);
	reap(bucket);
	forget_answer(bucket);
	json_object_put(bucket->options);
	free(bucket->program);
	free(bucket->url);
	free(bucket);
}
