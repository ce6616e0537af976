/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 record --on-dump`: run commands for finished dumps.  Notices of inotify only tell that it
 * is time to look, because its queue overflows and new directories race: each look reads all
 * directories of CMD's processes, and one happens by itself once in a while.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/proc.h"
#include "cli/cmd.h"
#include "cli/hook.h"
#include "cli/on_dump.h"
#include "cli/run/record_child.h"
#include "read/folder.h"
#include "stage/words.h"

#define ID_LEN	      26
#define LOOK_MS	      1000 /* between two looks that nothing asked for */
#define RUNNING_MS    20   /* between two looks at a command that runs */
#define HEAD_BYTES    4096 /* of a manifest: its state comes before the fields that can be long */
#define ANCESTORS_MAX 64

struct id {
	char text[ID_LEN + 1];
};

/* The directory of one process. */
struct place {
	char *name;
	bool ours;
	struct id *seen; /* dumps that were handled and whose manifests are still there */
	size_t n_seen;
};

struct d9__on_dump {
	struct d9__on_dump_plan plan;
	pthread_t thread;
	int inotify, wake, done; /* |wake|, |done|: eventfd */
	_Atomic(bool) ending, hurry;

	/* Used by the thread alone. */
	struct place *places;
	size_t n_places;
	char *waiting[D9__ON_DUMP_WAITING + 1]; /* manifests; commands run for the first */
	size_t n_waiting, command;		/* the next one for it */
	bool last;				/* looks: CMD has ended */
	char **argv;				/* of the one that runs */
	struct d9__hook hook;
	struct d9__on_dump_outcome outcome;
};

/* ---- commands ---- */

bool d9__on_dump_add(struct d9__on_dump_commands *commands, const char *text)
{
	const char *fault;
	char **argv;

	if (commands->n == D9__ON_DUMP_COMMANDS) {
		d9__cmd_fail("record", "--on-dump: %d commands at most", D9__ON_DUMP_COMMANDS);
		return false;
	}
	argv = d9__words_split(text, &fault);
	if (!argv) {
		d9__cmd_fail("record", "--on-dump '%s': %s", text, fault);
		return false;
	}
	commands->texts[commands->n] = text;
	commands->argv[commands->n++] = argv;
	return true;
}

void d9__on_dump_release(struct d9__on_dump_commands *commands)
{
	for (size_t i = 0; i < commands->n; i++)
		free(commands->argv[i]);
	commands->n = 0;
}

/* ---- running them ---- */

static void fail(struct d9__on_dump *it, const char *why)
{
	struct d9__on_dump_outcome *outcome = &it->outcome;

	outcome->failed++;
	snprintf(outcome->last, sizeof(outcome->last), "'%s' %s for %s", it->plan.commands->texts[it->command], why,
		 it->waiting[0]);
}

/* On to the next command, or the next dump. */
static void step(struct d9__on_dump *it)
{
	free(it->argv);
	it->argv = NULL;
	if (++it->command < it->plan.commands->n)
		return;
	it->command = 0;
	free(it->waiting[0]);
	memmove(it->waiting, it->waiting + 1, --it->n_waiting * sizeof(it->waiting[0]));
}

/* |words| and |last|, in new memory; the texts are borrowed. */
static char **with_last(char **words, char *last)
{
	size_t n = 0;
	char **argv;

	while (words[n])
		n++;
	argv = calloc(n + 2, sizeof(*argv));
	if (!argv)
		return NULL;
	memcpy(argv, words, n * sizeof(*argv));
	argv[n] = last;
	return argv;
}

static void start(struct d9__on_dump *it)
{
	char why[128];
	int err = -ENOMEM;

	it->argv = with_last(it->plan.commands->argv[it->command], it->waiting[0]);
	it->outcome.runs++;
	if (it->argv)
		err = d9__hook_start(&it->hook, it->argv, it->plan.limit_ns);
	if (!err)
		return;
	snprintf(why, sizeof(why), "could not be run (%s)", strerror(-err));
	fail(it, why);
	step(it);
}

/* False: it goes on running. */
static bool look_at_running(struct d9__on_dump *it)
{
	int status = 0;
	enum d9__hook_state state = d9__hook_look(&it->hook, &status);
	char why[128];

	if (state == D9__HOOK_RUNS)
		return false;
	why[0] = '\0';
	if (state == D9__HOOK_TOO_LONG)
		snprintf(why, sizeof(why), it->outcome.given_up ? "was killed" : "was killed after %.3g s",
			 (double)it->plan.limit_ns / 1e9);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "was ended by %s", strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		snprintf(why, sizeof(why), "exited with %d", WEXITSTATUS(status));
	if (why[0])
		fail(it, why);
	step(it);
	return true;
}

static void run_waiting(struct d9__on_dump *it)
{
	while (it->hook.pid ? look_at_running(it) : it->n_waiting != 0)
		if (!it->hook.pid && it->n_waiting)
			start(it);
}

/* Takes |path| over. */
static void queue(struct d9__on_dump *it, char *path)
{
	if (path && it->n_waiting <= D9__ON_DUMP_WAITING) {
		it->waiting[it->n_waiting++] = path;
		return;
	}
	it->outcome.left_out++;
	free(path);
}

/* ---- finding manifests ---- */

/* "dump.ID.json" */
static bool take_id(const char *name, struct id *out)
{
	size_t len = strlen(name);

	if (len != 5 + ID_LEN + 5 || memcmp(name, "dump.", 5) != 0 || strcmp(name + 5 + ID_LEN, ".json") != 0)
		return false;
	memcpy(out->text, name + 5, ID_LEN);
	out->text[ID_LEN] = '\0';
	return strspn(out->text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ID_LEN;
}

/*
 * True if the manifest |name| will not change any more.  |ended|: its process has ended.  Texts in
 * it hold no newline, so a match behind one was written by the recorder.
 */
static bool is_finished(int dir_fd, const char *name, bool ended)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char head[HEAD_BYTES + 1];
	struct stat st;
	ssize_t n = 0;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		n = read(fd, head, HEAD_BYTES);
	close(fd);
	head[n > 0 ? n : 0] = '\0';
	return strstr(head, "\n  \"state\": \"closed\"") || strstr(head, "\n  \"state\": \"failed\"") ||
	       (ended && strstr(head, "\n  \"state\": \"open\""));
}

static bool has_seen(const struct place *place, const struct id *id)
{
	for (size_t i = place->n_seen; i-- > 0;)
		if (!strcmp(place->seen[i].text, id->text))
			return true;
	return false;
}

static bool add_id(struct id **ids, size_t *n, const struct id *id)
{
	if (!d9__array_grow(*ids, *n))
		return false;
	(*ids)[(*n)++] = *id;
	return true;
}

/* Manifests that are gone are forgotten. */
static void look_into(struct d9__on_dump *it, struct place *place)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", it->plan.dir, place->name), fd;
	struct id *ids = NULL, id;
	const struct dirent *entry;
	size_t n_ids = 0;
	bool ended;
	DIR *stream;

	fd = n < PATH_MAX ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		if (fd >= 0)
			close(fd);
		return;
	}
	/*
	 * Dumps that CMD was killed in have been recovered by now, so an open one is finished, too.
	 */
	ended = it->last && !d9__folder_is_held(fd);
	while ((entry = readdir(stream))) {
		bool old = take_id(entry->d_name, &id) && has_seen(place, &id);
		char *file;

		if (!take_id(entry->d_name, &id) || (!old && !is_finished(fd, entry->d_name, ended)) || !add_id(&ids, &n_ids, &id) || old)
			continue;
		queue(it, asprintf(&file, "%s/%s", path, entry->d_name) < 0 ? NULL : file);
	}
	closedir(stream);
	free(place->seen);
	place->seen = ids;
	place->n_seen = n_ids;
}

/* ---- whose processes ---- */

/* Return the parent of |pid|; 0: unknown. */
static pid_t parent_of(pid_t pid)
{
	struct d9__proc_stat stat;

	return d9__proc_stat_read(&stat, pid) ? (pid_t)d9__proc_stat_field(&stat, D9__STAT_PARENT)
					      : 0;
}

static bool is_another_dial9(pid_t pid)
{
	struct stat own, its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return pid != getpid() && !stat("/proc/self/exe", &own) && !stat(path, &its) && own.st_dev == its.st_dev &&
	       own.st_ino == its.st_ino;
}

/*
 * True if another `dial9 record` writes to the same directory: then it is an ancestor of the
 * process, and this one is not.
 */
static bool is_of_another(const char *name)
{
	const char *dash = strrchr(name, '-');
	pid_t pid = dash ? (pid_t)atol(dash + 1) : 0;
	bool another = false;

	for (int i = 0; i < ANCESTORS_MAX && pid > 1 && pid != getpid(); i++) {
		pid = parent_of(pid);
		another |= pid > 1 && is_another_dial9(pid);
	}
	return another && pid != getpid();
}

static bool is_known(const struct d9__on_dump *it, const char *name)
{
	for (size_t i = 0; i < it->plan.before->n; i++)
		if (!strcmp(it->plan.before->names[i], name))
			return true;
	for (size_t i = 0; i < it->n_places; i++)
		if (!strcmp(it->places[i].name, name))
			return true;
	return false;
}

static void add_place(struct d9__on_dump *it, const char *name)
{
	bool room = d9__array_grow(it->places, it->n_places);
	char path[PATH_MAX];
	char *copy = strdup(name);

	if (!room || !copy ||
	    snprintf(path, sizeof(path), "%s/%s", it->plan.dir, name) >= PATH_MAX) {
		free(copy);
		return;
	}
	it->places[it->n_places++] = (struct place) { .name = copy, .ours = !is_of_another(name) };
	if (it->inotify >= 0 && it->places[it->n_places - 1].ours)
		inotify_add_watch(it->inotify, path, IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
}

static void look(struct d9__on_dump *it)
{
	struct d9__namespaces now;

	if (d9__namespaces_list(it->plan.dir, &now))
		return;
	for (size_t i = 0; i < now.n; i++)
		if (!is_known(it, now.names[i]))
			add_place(it, now.names[i]);
	d9__namespaces_release(&now);
	for (size_t i = 0; i < it->n_places; i++)
		if (it->places[i].ours)
			look_into(it, &it->places[i]);
}

/* ---- the thread ---- */

static void drain(int fd)
{
	char unused[4096];

	while (read(fd, unused, sizeof(unused)) > 0)
		;
}

/* Wait until it is time to look, or until the running command ends. */
static void wait_for_more(struct d9__on_dump *it)
{
	struct pollfd fds[] = { { .fd = it->wake, .events = POLLIN }, { .fd = it->inotify, .events = POLLIN } };
	int ms = it->hook.pid ? RUNNING_MS : LOOK_MS;

	for (int waited = 0; waited < LOOK_MS && poll(fds, 2, ms) == 0; waited += ms)
		if (it->hook.pid && look_at_running(it))
			break;
	drain(it->wake);
	if (it->inotify >= 0)
		drain(it->inotify);
}

/* This process was told to end: count the waiting commands as left out and kill the running one. */
static void give_up(struct d9__on_dump *it)
{
	size_t runs = it->hook.pid != 0;

	it->outcome.given_up = true;
	it->outcome.left_out += it->n_waiting - runs;
	while (it->n_waiting > runs)
		free(it->waiting[--it->n_waiting]);
	it->hook.until_ns = 0;
	it->command = runs ? it->plan.commands->n - 1 : 0;
}

static void *watch(void *arg)
{
	struct d9__on_dump *it = arg;
	bool ending = false;

	while (!ending || it->n_waiting) {
		/*
		 * acquire: pairs with the release of d9__on_dump_end(); the files that CMD left are
		 * visible
		 */
		ending = it->last = atomic_load_explicit(&it->ending, memory_order_acquire);
		look(it);
		if (atomic_load_explicit(&it->hurry, memory_order_relaxed))
			give_up(it);
		run_waiting(it);
		if (!ending || it->n_waiting)
			wait_for_more(it);
	}
	eventfd_write(it->done, 1);
	return NULL;
}

static void release(struct d9__on_dump *it)
{
	for (size_t i = 0; i < it->n_places; i++) {
		free(it->places[i].name);
		free(it->places[i].seen);
	}
	free(it->places);
	if (it->inotify >= 0)
		close(it->inotify);
	if (it->wake >= 0)
		close(it->wake);
	if (it->done >= 0)
		close(it->done);
	free(it);
}

/* Signals are for the thread that waits for CMD. */
static int start_thread(struct d9__on_dump *it)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&it->thread, NULL, watch, it);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

struct d9__on_dump *d9__on_dump_begin(const struct d9__on_dump_plan *plan)
{
	struct d9__on_dump *it = plan->commands->n ? calloc(1, sizeof(*it)) : NULL;
	int err = 0;

	if (!plan->commands->n)
		return NULL;
	if (it) {
		it->plan = *plan;
		it->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		it->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		it->done = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		err = it->wake < 0 || it->done < 0 ? errno : 0;
		/* Without inotify, the looks that happen once in a while find the dumps. */
		if (it->inotify >= 0)
			inotify_add_watch(it->inotify, plan->dir, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
		if (!err)
			err = start_thread(it);
		if (!err)
			return it;
		release(it);
	}
	d9__cmd_fail("record", "--on-dump: nothing is run: %s", strerror(it ? err : ENOMEM));
	return NULL;
}

void d9__on_dump_end(struct d9__on_dump *on_dump, struct d9__on_dump_outcome *out)
{
	struct pollfd done = { .events = POLLIN };

	*out = (struct d9__on_dump_outcome){ .runs = 0 };
	if (!on_dump)
		return;
	done.fd = on_dump->done;
	atomic_store_explicit(&on_dump->ending, true, memory_order_release);
	eventfd_write(on_dump->wake, 1);
	while (poll(&done, 1, 100) <= 0)
		if (d9__record_child_is_to_end() && !atomic_exchange_explicit(&on_dump->hurry, true, memory_order_relaxed))
			eventfd_write(on_dump->wake, 1);
	pthread_join(on_dump->thread, NULL);
	*out = on_dump->outcome;
	release(on_dump);
}

void d9__on_dump_tell(const struct d9__on_dump_outcome *outcome)
{
	char left_out[96] = "", failed[sizeof(outcome->last) + 96] = "";

	if (outcome->failed)
		snprintf(failed, sizeof(failed), "%" PRIu64 " of %" PRIu64 " runs failed, the latest: %s%s", outcome->failed,
			 outcome->runs, outcome->last, outcome->left_out ? "; " : "");
	if (outcome->left_out)
		snprintf(left_out, sizeof(left_out), "nothing was run for %" PRIu64 " dump%s, because %s", outcome->left_out,
			 outcome->left_out == 1 ? "" : "s",
			 outcome->given_up ? "dial9 record was to end" : "too many waited");
	if (outcome->failed || outcome->left_out)
		d9__cmd_fail("record", "--on-dump: %s%s", failed, left_out);
}
