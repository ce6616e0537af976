/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/child.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHY_MAX 4096

extern char **environ;

struct d9__child {
	struct event *ended, *time_limit; /* owned */
	d9__child_done *done;
	void *context;
	struct d9__child_options options;
	pid_t pid; /* 0: it has ended */
	int out, err;
};

/* A file without a name: a pipe would have to be read while the process writes. */
static int new_output(void)
{
	char path[] = "/tmp/dial9-serve.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* All of |fd|, terminated; NULL: none, more than |max|, or out of memory. */
static char *read_back(int fd, size_t max, size_t *len)
{
	struct stat st;
	size_t size, done = 0;
	char *data;

	if (fstat(fd, &st) || st.st_size == 0 || (uint64_t)st.st_size > max)
		return NULL;
	size = (size_t)st.st_size;
	data = malloc(size + 1);
	while (data && done < size) {
		ssize_t n = pread(fd, data + done, size - done, (off_t)done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (data)
		data[done] = '\0';
	*len = done;
	return data;
}

/* The first line, without the "dial9 COMMAND: " in front. */
static const char *read_why(int fd, char why[WHY_MAX])
{
	ssize_t n = pread(fd, why, WHY_MAX - 1, 0);
	const char *said;

	why[n > 0 ? n : 0] = '\0';
	why[strcspn(why, "\n")] = '\0';
	said = strncmp(why, "dial9 ", strlen("dial9 ")) ? NULL : strstr(why, ": ");
	return said ? said + strlen(": ") : why;
}

static void finish(struct d9__child *child, int status)
{
	bool whole = WIFEXITED(status) && WEXITSTATUS(status) <= 2;
	struct d9__child_answer answer = { 0 };
	char line[WHY_MAX];
	const char *why = read_why(child->err, line);

	child->pid = 0;
	answer.why = *why ? why : "the process that reads it did not finish";
	if (whole)
		answer.out = read_back(child->out, child->options.bytes_max, &answer.len);
	child->done(child->context, &answer);
	free(answer.out);
	d9__child_free(child);
}

static void on_child(evutil_socket_t signal_number, short what, void *context)
{
	struct d9__child *child = context;
	int status;

	(void)signal_number;
	(void)what;
	if (waitpid(child->pid, &status, WNOHANG) == child->pid)
		finish(child, status);
}

static void on_time_limit(evutil_socket_t fd, short what, void *context)
{
	struct d9__child *child = context;

	(void)fd;
	(void)what;
	kill(child->pid, SIGKILL);
}

static int spawn(struct d9__child *child, const char *const *argv)
{
	const struct d9__child_options *options = &child->options;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		sigemptyset(&none);
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_adddup2(&files, child->out, 1);
		err = posix_spawn_file_actions_adddup2(&files, child->err, 2);
		/* To itself: then it stays open. */
		for (size_t i = 0; i < options->n_fds && !err; i++)
			err = posix_spawn_file_actions_adddup2(&files, options->fds[i],
							       options->fds[i]);
		if (!err && options->directory)
			err = posix_spawn_file_actions_addchdir_np(&files, options->directory);
		if (!err)
			err = posix_spawn(&child->pid, "/proc/self/exe", &files, &attributes,
					  (char *const *)argv, environ);
		if (err)
			child->pid = 0;
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

/* |argv| with the program's name in front, borrowed; NULL: out of memory. */
static const char **with_program(const char *const *argv)
{
	const char **all;
	size_t n = 0;

	while (argv[n])
		n++;
	all = calloc(n + 2, sizeof(*all));
	if (!all)
		return NULL;
	all[0] = "dial9";
	memcpy(all + 1, argv, n * sizeof(*all));
	return all;
}

static int start(struct d9__child *child, struct event_base *base, const char *const *argv)
{
	struct timeval limit = { .tv_sec = child->options.seconds };
	const char **all;
	int err;

	child->out = new_output();
	child->err = new_output();
	if (child->out < 0 || child->err < 0)
		return child->out < 0 ? child->out : child->err;
	child->ended = evsignal_new(base, SIGCHLD, on_child, child);
	child->time_limit = evtimer_new(base, on_time_limit, child);
	if (!child->ended || !child->time_limit || event_add(child->ended, NULL) ||
	    evtimer_add(child->time_limit, &limit))
		return -ENOMEM;
	all = with_program(argv);
	err = all ? spawn(child, all) : -ENOMEM;
	free(all);
	return err;
}

int d9__child_start(struct event_base *base, const char *const *argv,
		    const struct d9__child_options *options, d9__child_done *done, void *context,
		    struct d9__child **out)
{
	struct d9__child *child = calloc(1, sizeof(*child));
	int err;

	if (!child)
		return -ENOMEM;
	*child = (struct d9__child) {
		.done = done, .context = context, .options = *options, .out = -1, .err = -1
	};
	err = start(child, base, argv);
	if (err) {
		d9__child_free(child);
		return err;
	}
	*out = child;
	return 0;
}

void d9__child_free(struct d9__child *child)
{
	if (!child)
		return;
	if (child->pid) {
		kill(child->pid, SIGKILL);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (child->ended)
		event_free(child->ended);
	if (child->time_limit)
		event_free(child->time_limit);
	if (child->out >= 0)
		close(child->out);
	if (child->err >= 0)
		close(child->err);
	free(child);
}
