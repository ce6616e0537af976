/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/report_job.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COMMANDS_MAX 64 /* waiting reports; a second request for the same one costs none */

const struct d9__child_options d9__report_limits = { .seconds = 600,
						     .bytes_max = (size_t)512 << 20 };

struct waiter {
	d9__child_done *done;
	void *context;
	uint64_t identity;
	char **argv; /* of the command; owned, and each; NULL: one before waits for the same */
	struct waiter *next;
};

struct d9__report_job {
	struct event_base *base;
	struct waiter *waiters; /* the first that came first */
	size_t n_commands;
	struct d9__child *child; /* NULL: none runs */
	uint64_t running, known; /* identities */
	char *json;		 /* of |known|; owned, NULL: none */
	size_t len;
};

char **d9__report_command(char *const *paths)
{
	static const char *const head[] = { "report", "--json", "--symbols", "--" };
	size_t n_head = sizeof(head) / sizeof(head[0]), n = 0;
	char **argv;

	while (paths[n])
		n++;
	argv = calloc(n_head + n + 1, sizeof(*argv));
	for (size_t i = 0; argv && i < n_head + n; i++) {
		argv[i] = strdup(i < n_head ? head[i] : paths[i - n_head]);
		if (!argv[i]) {
			d9__report_command_free(argv);
			return NULL;
		}
	}
	return argv;
}

void d9__report_command_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

struct d9__report_job *d9__report_job_new(struct event_base *base)
{
	struct d9__report_job *job = calloc(1, sizeof(*job));

	if (job)
		job->base = base;
	return job;
}

/* Answer the requests that wait for |identity|. */
static void answer(struct d9__report_job *job, uint64_t identity, struct d9__child_answer *said)
{
	struct waiter **at = &job->waiters, *waiter;

	while ((waiter = *at)) {
		if (waiter->identity != identity) {
			at = &waiter->next;
			continue;
		}
		*at = waiter->next;
		job->n_commands -= waiter->argv != NULL;
		waiter->done(waiter->context, said);
		d9__report_command_free(waiter->argv);
		free(waiter);
	}
}

static void on_done(void *context, struct d9__child_answer *said);

static int start(struct d9__report_job *job, const struct waiter *waiter)
{
	job->running = waiter->identity;
	return d9__child_start(job->base, (const char *const *)waiter->argv, &d9__report_limits,
			       on_done, job, &job->child);
}

static void on_done(void *context, struct d9__child_answer *said)
{
	struct d9__report_job *job = context;
	struct d9__child_answer failed = { .why = "no process can be started" };

	job->child = NULL;
	free(job->json);
	job->json = said->out;
	job->len = said->len;
	job->known = job->running;
	answer(job, job->running, said);
	said->out = NULL;
	while (job->waiters && start(job, job->waiters))
		answer(job, job->waiters->identity, &failed);
}

static bool is_awaited(const struct d9__report_job *job, uint64_t identity)
{
	for (const struct waiter *waiter = job->waiters; waiter; waiter = waiter->next)
		if (waiter->identity == identity)
			return true;
	return false;
}

/* Give |waiter| the command for |paths|, and start it if none runs. */
static int command(struct d9__report_job *job, struct waiter *waiter, char *const *paths)
{
	if (job->n_commands == COMMANDS_MAX)
		return -EBUSY;
	waiter->argv = d9__report_command(paths);
	if (!waiter->argv)
		return -ENOMEM;
	return job->child ? 0 : start(job, waiter);
}

int d9__report_job_ask(struct d9__report_job *job, char *const *paths, uint64_t identity,
		       d9__child_done *done, void *context)
{
	struct waiter *waiter, **last = &job->waiters;
	int err;

	if (job->json && job->known == identity) {
		done(context, &(struct d9__child_answer) { .out = job->json, .len = job->len });
		return 0;
	}
	waiter = calloc(1, sizeof(*waiter));
	if (!waiter)
		return -ENOMEM;
	*waiter = (struct waiter) { .done = done, .context = context, .identity = identity };
	err = is_awaited(job, identity) ? 0 : command(job, waiter, paths);
	if (err) {
		d9__report_command_free(waiter->argv);
		free(waiter);
		return err;
	}
	while (*last)
		last = &(*last)->next;
	*last = waiter;
	job->n_commands += waiter->argv != NULL;
	return 0;
}

void d9__report_job_free(struct d9__report_job *job)
{
	struct d9__child_answer ended = { .why = "the server has ended" };

	if (!job)
		return;
	d9__child_free(job->child);
	while (job->waiters)
		answer(job, job->waiters->identity, &ended);
	free(job->json);
	free(job);
}
