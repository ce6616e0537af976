/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial9-store: the child of `dial9 ship` and `dial9 serve` that talks to an object store.  Its stdin is
 * the socket of ship/bucket.h; it has no options, writes nothing to its outputs, and ends with its parent.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ship/bucket.h"
#include "ship/job.h"
#include "ship/message.h"
#include "ship/session.h"

#define SOCKET       STDIN_FILENO
#define IDLE_MS      60000
#define MESSAGES_MAX 64 /* taken before transfers get their turn */

static struct d9__session session;
static struct d9__job *jobs; /* in the order of their arrival */

/* Send |answer|, which is freed, and free |job|.  False: the parent has gone. */
static bool finish(struct d9__job *job, struct json_object *answer)
{
	struct d9__job **place = &jobs;
	int pass = job->operation == D9__LIST ? job->fd : -1;
	int err = answer ? d9__message_send(SOCKET, answer, pass) : -ENOMEM;

	json_object_put(answer);
	while (*place != job)
		place = &(*place)->next;
	*place = job->next;
	d9__job_free(&session, job);
	return err != -EPIPE && err != -ECONNRESET;
}

static bool start_waiting(void)
{
	struct d9__job *job, *next;
	unsigned running = 0;

	for (job = jobs; job; job = job->next)
		running += job->started;
	for (job = jobs; job && running < session.parallel; job = next) {
		struct json_object *answer;

		next = job->next;
		if (job->started)
			continue;
		answer = d9__job_start(&session, job);
		if (!answer)
			running++;
		else if (!finish(job, answer))
			return false;
	}
	return true;
}

static bool cancel(struct json_object *message)
{
	uint64_t token = d9__message_number(message, "token");
	struct d9__job *job = jobs;

	json_object_put(message);
	while (job && job->token != token)
		job = job->next;
	return !job || finish(job, d9__job_answer(&session, job, D9__BUCKET_RETRY, "Cancelled", "cancelled"));
}

static bool add_job(struct json_object *message, int fd)
{
	struct d9__job *job = d9__job_new(message, fd), **end = &jobs;

	if (!job)
		return false;
	while (*end)
		end = &(*end)->next;
	*end = job;
	return true;
}

/* Read the requests that came since; false: the end. */
static bool take_messages(void)
{
	for (unsigned i = 0; i < MESSAGES_MAX; i++) {
		struct json_object *message;
		int fd = -1, got = d9__message_receive(SOCKET, false, &message, &fd);

		if (got == -EAGAIN)
			return true;
		if (got <= 0)
			return false;
		if (!(strcmp(d9__message_text(message, "op", ""), "cancel") ? add_job(message, fd) : cancel(message)))
			return false;
	}
	return true;
}

static bool advance_ended(void)
{
	CURLMsg *ended;
	int left;

	while ((ended = curl_multi_info_read(session.multi, &left))) {
		int code = (int)ended->data.result;
		struct d9__job *job = NULL;
		struct json_object *answer;

		if (ended->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(ended->easy_handle, CURLINFO_PRIVATE, (char **)&job);
		answer = d9__job_advance(&session, job, code);
		if (answer && !finish(job, answer))
			return false;
	}
	return true;
}

static void serve(void)
{
	struct curl_waitfd parent = { .fd = SOCKET, .events = CURL_WAIT_POLLIN };
	int running;

	do {
		parent.revents = 0;
		curl_multi_perform(session.multi, &running);
		if (!advance_ended() || !start_waiting())
			return;
		/* Returns at once if a transfer was just started. */
		if (curl_multi_poll(session.multi, &parent, 1, IDLE_MS, NULL))
			return;
	} while (take_messages());
}

/* Answer the first message; false: the session cannot be. */
static bool open_session(void)
{
	struct json_object *options, *answer = json_object_new_object();
	char why[512] = "", url[1024];
	int fd = -1, err;

	if (!answer || d9__message_receive(SOCKET, true, &options, &fd) <= 0)
		return false;
	if (fd >= 0)
		close(fd);
	err = d9__session_start(&session, options, why, sizeof(why));
	if (err) {
		d9__message_add_text(answer, "error", why);
	} else {
		snprintf(url, sizeof(url), "%s://%s%s/%s", session.address.scheme,
			 session.address.aws && !*session.region ? "s3.amazonaws.com" : session.address.host,
			 session.address.base, session.address.bucket);
		json_object_object_add(answer, "ready", json_object_new_boolean(true));
		d9__message_add_text(answer, "url", url);
	}
	if (d9__message_send(SOCKET, answer, -1))
		err = -EPIPE;
	json_object_put(answer);
	return !err;
}

/* Keep this user's other processes out: no ptrace, no /proc/PID/environ, no core. */
static void close_up(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	/*
	 * Leave signals from a terminal or systemd to the parent, which may want to finish first.
	 * This process ends when the parent does.
	 */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
}

int main(void)
{
	int type = 0;
	socklen_t len = sizeof(type);
	bool opened;

	close_up();
	if (getsockopt(SOCKET, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_SEQPACKET) {
		fputs("dial9-store: it is started by dial9 ship and dial9 serve\n", stderr);
		return 2;
	}
	fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	opened = open_session();
	if (opened)
		serve();
	while (jobs) {
		struct d9__job *next = jobs->next;

		d9__job_free(&session, jobs);
		jobs = next;
	}
	d9__session_end(&session);
	curl_global_cleanup();
	return opened ? 0 : 1;
}
