/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/report_job.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ten million events take a few seconds. */
#define TIME_LIMIT_S 600
#define WHY_MAX	     4096

extern char **environ;

struct waiter {
	d9__report_done *done;
	void *context;
	struct waiter *next;
};

struct d9__report_job {
	struct event *child_ended, *time_limit; /* owned */
	struct waiter *waiters;
	pid_t pid; /* 0: none runs */
	int out, err;
	uint64_t running, known; /* identities of listings */
	char *json;		 /* of |known|; owned, NULL: none */
	size_t len;
};

static void close_outputs(struct d9__report_job *job)
{
	if (job->out >= 0)
		close(job->out);
	if (job->err >= 0)
		close(job->err);
	job->out = job->err = -1;
}

/* A file without a name. */
static int new_output(void)
{
	char path[] = "/tmp/dial9-serve.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* All of |fd|, terminated; NULL: none, or out of memory. */
static char *read_back(int fd, size_t max, size_t *len)
{
	struct stat st;
	size_t size, done = 0;
	char *data;

	if (fstat(fd, &st) || st.st_size == 0)
		return NULL;
	size = (uint64_t)st.st_size < max ? (size_t)st.st_size : max;
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

static void answer_all(struct d9__report_job *job, const char *why)
{
	struct d9__report_answer answer = { .json = job->json, .len = job->len, .why = why };
	struct waiter *waiter;

	while ((waiter = job->waiters)) {
		job->waiters = waiter->next;
		waiter->done(waiter->context, &answer);
		free(waiter);
	}
}

static void finish(struct d9__report_job *job, int status)
{
	size_t len = 0;
	bool whole = WIFEXITED(status) && WEXITSTATUS(status) <= 2;
	char *why;

	job->pid = 0;
	evtimer_del(job->time_limit);
	free(job->json);
	job->json = whole ? read_back(job->out, SIZE_MAX - 1, &job->len) : NULL;
	job->known = job->running;
	why = job->json ? NULL : read_back(job->err, WHY_MAX, &len);
	close_outputs(job);
	answer_all(job, why ? why : "dial9 report did not finish");
	free(why);
}

static void on_child(evutil_socket_t signal_number, short what, void *context)
{
	struct d9__report_job *job = context;
	int status;

	(void)signal_number;
	(void)what;
	if (job->pid && waitpid(job->pid, &status, WNOHANG) == job->pid)
		finish(job, status);
}

static void on_time_limit(evutil_socket_t fd, short what, void *context)
{
	struct d9__report_job *job = context;

	(void)fd;
	(void)what;
	if (job->pid)
		kill(job->pid, SIGKILL);
}

struct d9__report_job *d9__report_job_new(struct event_base *base)
{
	struct d9__report_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->out = job->err = -1;
	job->child_ended = evsignal_new(base, SIGCHLD, on_child, job);
	job->time_limit = evtimer_new(base, on_time_limit, job);
	if (!job->child_ended || !job->time_limit || event_add(job->child_ended, NULL)) {
		d9__report_job_free(job);
		return NULL;
	}
	return job;
}

/* The arguments: all of the directory, or where something in it leads elsewhere, each segment. */
static char **arguments(const struct d9__listing *listing)
{
	static const char *const head[] = { "dial9", "report", "--json", "--" };
	bool each = listing->one || listing->left_out;
	size_t n = sizeof(head) / sizeof(head[0]), paths = each ? listing->n : 1;
	char **argv = calloc(n + paths + 1, sizeof(*argv));
	bool whole = argv;

	for (size_t i = 0; whole && i < n; i++)
		whole = (argv[i] = strdup(head[i]));
	for (size_t i = 0; whole && i < paths; i++)
		whole = asprintf(&argv[n + i], each ? "%s/%s" : "%s", listing->root,
				 each ? listing->items[i].name : "") >= 0;
	if (whole)
		return argv;
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
	return NULL;
}

static int spawn(struct d9__report_job *job, char **argv)
{
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
		posix_spawn_file_actions_adddup2(&files, job->out, 1);
		err = posix_spawn_file_actions_adddup2(&files, job->err, 2);
		if (!err)
			err = posix_spawn(&job->pid, "/proc/self/exe", &files, &attributes, argv,
					  environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

static int start(struct d9__report_job *job, const struct d9__listing *listing)
{
	static const struct timeval limit = { .tv_sec = TIME_LIMIT_S };
	char **argv = arguments(listing);
	int err = -ENOMEM;

	if (argv) {
		job->out = new_output();
		job->err = new_output();
		err = job->out < 0 ? job->out : job->err < 0 ? job->err : spawn(job, argv);
		for (size_t i = 0; argv[i]; i++)
			free(argv[i]);
		free(argv);
	}
	if (err) {
		job->pid = 0;
		close_outputs(job);
		return err;
	}
	job->running = listing->identity;
	evtimer_add(job->time_limit, &limit);
	return 0;
}

int d9__report_job_ask(struct d9__report_job *job, const struct d9__listing *listing,
		       d9__report_done *done, void *context)
{
	struct waiter *waiter;
	int err = 0;

	if (!job->pid && job->json && job->known == listing->identity) {
		done(context, &(struct d9__report_answer) { .json = job->json, .len = job->len });
		return 0;
	}
	waiter = malloc(sizeof(*waiter));
	if (!waiter)
		return -ENOMEM;
	/* What runs may be of a moment ago: whoever asks gets it soon, and the next one gets the
	 * new state. */
	if (!job->pid)
		err = start(job, listing);
	if (err) {
		free(waiter);
		return err;
	}
	*waiter = (struct waiter) { .done = done, .context = context, .next = job->waiters };
	job->waiters = waiter;
	return 0;
}

void d9__report_job_free(struct d9__report_job *job)
{
	if (!job)
		return;
	if (job->pid) {
		kill(job->pid, SIGKILL);
		while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close_outputs(job);
	free(job->json);
	job->json = NULL;
	answer_all(job, "the server has ended");
	if (job->child_ended)
		event_free(job->child_ended);
	if (job->time_limit)
		event_free(job->time_limit);
	free(job);
}
