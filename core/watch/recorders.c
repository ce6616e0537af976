/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "watch/recorders.h"

#include "base/array.h"
#include "base/time.h"
#include "text/fail.h"

#define SHM_DIR		"/dev/shm"
#define BETWEEN_LOOKS	UINT64_C(200000000)
#define STATES		100 /* looks at the states of loops meanwhile */
#define HUNG_AFTER	(5 * D9__SECOND_NS)
#define BLIND_AFTER	(10 * D9__SECOND_NS)
#define RINGS_MAX	1024
#define STEPS_MAX	1000000 /* looks at what may be a ring, in all processes: a second or two */
#define BUSY_SHARE	4 /* a thread that used a quarter of the time works */

struct search {
	struct d9__recorders *found;
	const char *command;
	pid_t pid;
	const char *dir; /* absolute */
	int err;
	bool full; /* out of descriptors, and that was said */
};

/* ---- finding ---- */

static bool is_same(const struct d9__recorder_seen *seen, const struct d9__ring_view *view, const struct stat *st)
{
	if (seen->view.at || view->at)
		return seen->view.at == view->at && seen->view.pid == view->pid;
	return seen->dev == st->st_dev && seen->ino == st->st_ino;
}

/* It was stopped, and nothing is in its ring, which waits for another recorder in that process. */
static bool is_stopped(const struct d9__ring_view *view)
{
	uint32_t state;

	return !d9__ring_view_read(view, D9__RING_HEALTH_AT + offsetof(struct d9__ring_health, state),
				   &state, sizeof(state)) &&
	       state == D9__STATE_STOPPED;
}

static bool is_wanted(const struct search *search, const struct d9__ring_view *view, const struct stat *st)
{
	if ((search->pid && view->pid != search->pid) || is_stopped(view))
		return false;
	if (search->dir && strcmp(view->header.trace_dir, search->dir) != 0)
		return false;
	for (size_t i = 0; i < search->found->n; i++)
		if (is_same(&search->found->list[i], view, st))
			return false;
	return true;
}

static void release_one(struct d9__recorder_seen *recorder)
{
	d9__ring_view_close(&recorder->view);
	free(recorder->ring);
}

/* Takes |view| over.  |ring| is copied. */
static void add(struct search *search, struct d9__ring_view *view, const char *ring)
{
	struct d9__recorders *found = search->found;
	struct stat st = { 0 };
	char *copy;

	if (search->err || fstat(view->fd, &st) || !is_wanted(search, view, &st)) {
		d9__ring_view_close(view);
		return;
	}
	if (found->n == RINGS_MAX) {
		found->rings_left_out++;
		d9__ring_view_close(view);
		return;
	}
	copy = strdup(ring);
	if (!copy || !d9__array_grow(found->list, found->n)) {
		search->err = -ENOMEM;
		free(copy);
		d9__ring_view_close(view);
		return;
	}
	found->list[found->n++] = (struct d9__recorder_seen) {
		.view = *view, .dev = st.st_dev, .ino = st.st_ino, .ring = copy
	};
}

/* Every ring stays open until it has been looked at twice. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void complain(struct search *search, const char *path, int err)
{
	search->found->failed = true;
	/* One line tells it for all that follow. */
	if (!search->command || (err == -EMFILE && search->full))
		return;
	search->full = err == -EMFILE;
	d9__cmd_fail(search->command, "%s: %s", path, d9__ring_view_strerror(err));
}

/* Of another version, and its process is gone.  False: it is for the caller to complain of. */
static bool add_other(struct search *search, int dir, const char *name, const char *folder,
		      const char *path)
{
	struct d9__recorders *found = search->found;
	struct d9__ring_view view;
	uint64_t bytes;
	bool dead;

	if (d9__ring_view_open_other(&view, dir, name))
		return false;
	dead = d9__ring_view_owner(&view) == D9__OWNER_DEAD;
	bytes = d9__ring_view_taken(&view);
	d9__ring_view_close(&view);
	if (!dead || (search->pid && view.pid != search->pid) ||
	    (search->dir && folder != search->dir &&
	     strcmp(view.header.trace_dir, search->dir) != 0))
		return dead;
	if (found->n_others == RINGS_MAX) {
		found->rings_left_out++;
		return true;
	}
	if (!d9__array_grow(found->others, found->n_others) ||
	    !(found->others[found->n_others].path = strdup(path))) {
		search->err = -ENOMEM;
		return true;
	}
	found->others[found->n_others].bytes = bytes;
	found->others[found->n_others++].header = view.header;
	return true;
}

/* A file that ought to be a ring; one that is just gone, or just being made, is none yet. */
static void try_file(struct search *search, int dir, const char *name, const char *folder)
{
	char path[PATH_MAX + 1 + NAME_MAX];
	struct d9__ring_view view;
	int err = d9__ring_view_open(&view, dir, name);

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!err)
		add(search, &view, path);
	else if (err == -EPROTONOSUPPORT && add_other(search, dir, name, folder, path))
		return;
	else if (err != -ENOENT && err != -EAGAIN && !search->pid &&
		 /*
		  * With a directory given, leave it out silently: it is not known to write there.
		  */
		 (!search->dir || folder == search->dir))
		complain(search, path, err);
}

static DIR *open_folder(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !folder)
		close(fd);
	return folder;
}

/* /dev/shm/dial9-UID/BOOT_ID/ring */
static void search_user(struct search *search, int shm, const char *name)
{
	DIR *dir = open_folder(shm, name);
	char path[PATH_MAX];

	for (struct dirent *e; dir && (e = readdir(dir));) {
		int folder;

		if (e->d_name[0] == '.')
			continue;
		folder = openat(dirfd(dir), e->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (folder < 0)
			continue;
		snprintf(path, sizeof(path), SHM_DIR "/%s/%s", name, e->d_name);
		try_file(search, folder, "ring", path);
		close(folder);
	}
	if (dir)
		closedir(dir);
}

static void search_shm(struct search *search)
{
	DIR *shm = opendir(SHM_DIR);
	char own[32];

	snprintf(own, sizeof(own), "dial9-%u", (unsigned)geteuid());
	for (struct dirent *e; shm && (e = readdir(shm));)
		if (geteuid() ? !strcmp(e->d_name, own) : !strncmp(e->d_name, "dial9-", 6))
			search_user(search, dirfd(shm), e->d_name);
	if (shm)
		closedir(shm);
}

/* DIR/BOOT_ID.ring, which DIAL9_RING=disk leaves. */
static void search_disk(struct search *search)
{
	DIR *dir = open_folder(AT_FDCWD, search->dir);

	for (struct dirent *e; dir && (e = readdir(dir));) {
		size_t len = strlen(e->d_name);

		if (len > 5 && !strcmp(e->d_name + len - 5, ".ring"))
			try_file(search, dirfd(dir), e->d_name, search->dir);
	}
	if (dir)
		closedir(dir);
}

/* Its own name for the ring, or what kind it is. */
static void add_process(struct search *search, struct d9__ring_view *view)
{
	char link[64], target[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", view->fd);
	n = view->at ? 0 : readlink(link, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	if (view->at)
		snprintf(target, sizeof(target), "anonymous memory");
	else if (!strncmp(target, "/memfd:", 7))
		snprintf(target, sizeof(target), "memfd");
	add(search, view, target);
}

/* Rings that have no name, or one in a container. */
static void search_processes(struct search *search)
{
	DIR *proc = opendir("/proc");
	uint64_t all = STEPS_MAX;
	struct d9__ring_view view;

	for (struct dirent *e; proc && (e = readdir(proc));) {
		uint64_t steps = D9__RING_VIEW_STEPS < all ? D9__RING_VIEW_STEPS : all, before = steps;
		int err = e->d_name[0] >= '1' && e->d_name[0] <= '9'
				  ? d9__ring_view_find(&view, (pid_t)atoi(e->d_name), &steps)
				  : -ENOENT;

		all -= before - steps;
		search->found->processes_left_out += err == -E2BIG;
		if (!err)
			add_process(search, &view);
	}
	if (proc)
		closedir(proc);
}

static void search_process(struct search *search)
{
	struct d9__ring_view view;
	int err = d9__ring_view_of_process(&view, search->pid);

	if (!err) {
		add_process(search, &view);
		return;
	}
	/* It may have ended and left its ring. */
	search_shm(search);
	if (search->found->n || search->found->n_others)
		return;
	search->found->failed = true;
	if (err == -ESRCH)
		d9__cmd_fail(search->command, "no process %d, and it left no ring", (int)search->pid);
	else if (err == -ENOENT)
		d9__cmd_fail(search->command, "process %d has no recorder", (int)search->pid);
	else
		d9__cmd_fail(search->command, "process %d: %s", (int)search->pid,
			     d9__ring_view_strerror(err));
}

/* The living by process id, then the dead, the latest first. */
static int by_life(const void *a, const void *b)
{
	const struct d9__recorder_seen *x = a, *y = b;
	uint64_t tick_x = x->look.health.tick_ns, tick_y = y->look.health.tick_ns;
	int dead_x = x->owner == D9__OWNER_DEAD, dead_y = y->owner == D9__OWNER_DEAD;

	if (dead_x != dead_y)
		return dead_x - dead_y;
	if (dead_x)
		return (tick_x < tick_y) - (tick_x > tick_y);
	return (x->view.pid > y->view.pid) - (x->view.pid < y->view.pid);
}

int d9__recorders_find(struct d9__recorders *recorders, const char *command, pid_t pid,
		       const char *dir)
{
	char absolute[PATH_MAX];
	struct search search = { .found = recorders, .command = command, .pid = pid };

	*recorders = (struct d9__recorders){ 0 };
	allow_descriptors();
	if (dir) {
		search.dir = realpath(dir, absolute);
		if (!search.dir) {
			recorders->failed = true;
			d9__cmd_fail(command, "%s: %s", dir, strerror(errno));
			return 0;
		}
	}
	if (pid) {
		search_process(&search);
	} else {
		search_shm(&search);
		if (search.dir)
			search_disk(&search);
		search_processes(&search);
	}
	return search.err;
}

void d9__recorders_release(struct d9__recorders *recorders)
{
	for (size_t i = 0; i < recorders->n; i++)
		release_one(&recorders->list[i]);
	for (size_t i = 0; i < recorders->n_others; i++)
		free(recorders->others[i].path);
	free(recorders->list);
	free(recorders->others);
	*recorders = (struct d9__recorders){ 0 };
}

/* ---- looking ---- */

/* CPU time of a thread in ns, and how long it was ready without one; 0 if it is not to be had. */
static void read_thread(pid_t pid, uint32_t tid, uint64_t *cpu_ns, uint64_t *ready_ns)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/schedstat", (int)pid, tid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, cpu_ns, ready_ns) != 2)
		*cpu_ns = *ready_ns = 0;
	if (file)
		fclose(file);
}

static void read_cpu(const struct d9__recorder_seen *recorder, uint64_t *cpu_ns, uint64_t *ready_ns)
{
	for (uint32_t i = 0; i < recorder->look.n_workers; i++)
		read_thread(recorder->view.pid, recorder->look.workers[i].tid, &cpu_ns[i],
			    &ready_ns[i]);
}

static int look_first(struct d9__recorder_seen *recorder)
{
	int err = d9__ring_view_look(&recorder->view, &recorder->look);

	if (err)
		return err;
	recorder->first_ns = recorder->look.mono_ns;
	recorder->first_recorded = recorder->look.recorded;
	read_cpu(recorder, recorder->cpu_ns, recorder->ready_ns);
	return 0;
}

/* Whether the recorder found that |worker|, which is awake and in no callback, computes, and in no
 * function of the program. */
static bool is_in_library(const struct d9__recorder_seen *recorder,
			  const struct d9__ring_worker *worker)
{
	const struct d9__ring_health *health = &recorder->look.health;

	for (uint32_t i = 0; i < health->n_open && i < D9__RING_OPEN_MAX; i++) {
		const struct d9__ring_open *call = &health->open[i];

		if (call->outside && call->worker == worker->id && call->tid == worker->tid)
			return !call->span[0] && call->known && call->running &&
			       worker->last_ns <= call->since_ns;
	}
	return false;
}

/*
 * A worker that used its CPU between the looks, and recorded nothing for long before.  In a wait it
 * is the loop library that goes round.
 */
static bool is_blind(const struct d9__recorder_seen *recorder, uint32_t i, uint64_t elapsed_ns)
{
	const struct d9__ring_worker *worker = &recorder->look.workers[i];

	return worker->state != D9__WORKER_POLLING && worker->state != D9__WORKER_PARKED &&
	       !is_in_library(recorder, worker) &&
	       d9__recorder_age_ns(recorder, worker->last_ns) > BLIND_AFTER &&
	       recorder->cpu_ns[i] > elapsed_ns / BUSY_SHARE;
}

static unsigned judge(struct d9__recorder_seen *recorder, uint64_t elapsed_ns)
{
	const struct d9__ring_health *health = &recorder->look.health;
	unsigned problems = 0;

	if (recorder->lost)
		problems |= D9__PROBLEM_LOSSY;
	if (health->state == D9__STATE_PAUSED)
		problems |= D9__PROBLEM_PAUSED;
	if (recorder->owner == D9__OWNER_DEAD)
		return problems | D9__PROBLEM_DEAD;
	if (recorder->owner == D9__OWNER_SUSPENDED)
		problems |= D9__PROBLEM_SUSPENDED;
	else if (d9__recorder_age_ns(recorder, health->tick_ns) > HUNG_AFTER)
		problems |= D9__PROBLEM_HUNG;
	for (uint32_t i = recorder->look.n_workers; i-- > 0;)
		if ((health->state == D9__STATE_RECORDING || health->state == D9__STATE_FLIGHT) &&
		    is_blind(recorder, i, elapsed_ns)) {
			problems |= D9__PROBLEM_BLIND;
			recorder->blind = i;
		}
	return problems;
}

/* It ended as it should and took its ring along; only we still hold it. */
static bool is_gone(const struct d9__recorder_seen *recorder)
{
	struct stat st;

	return recorder->owner == D9__OWNER_DEAD &&
	       (recorder->view.at || fstat(recorder->view.fd, &st) || st.st_nlink == 0);
}

static uint64_t growth(bool known, uint64_t before, uint64_t now)
{
	return known && now > before ? now - before : 0;
}

/* Whether each loop of |recorder| is awake at this moment. */
static void look_at_states(struct d9__recorder_seen *recorder)
{
	if (recorder->owner == D9__OWNER_DEAD)
		return;
	for (uint32_t i = 0; i < recorder->look.n_workers; i++)
		recorder->awake[i] +=
			d9__ring_view_state(&recorder->view, &recorder->look.workers[i]) !=
			D9__WORKER_PARKED;
	recorder->states++;
}

static int look_again(struct d9__recorder_seen *recorder)
{
	uint64_t cpu_ns[D9__VIEW_WORKERS_MAX] = { 0 }, ready_ns[D9__VIEW_WORKERS_MAX] = { 0 };
	uint64_t elapsed_ns;
	uint32_t n = recorder->look.n_workers;
	int err = d9__ring_view_look(&recorder->view, &recorder->look);

	if (err)
		return err;
	elapsed_ns = recorder->look.mono_ns - recorder->first_ns;
	read_cpu(recorder, cpu_ns, ready_ns);
	for (uint32_t i = 0; i < D9__VIEW_WORKERS_MAX; i++) {
		/* A thread that came or went in between says nothing. */
		bool same = n == recorder->look.n_workers;

		recorder->cpu_ns[i] = growth(same, recorder->cpu_ns[i], cpu_ns[i]);
		recorder->ready_ns[i] = growth(same, recorder->ready_ns[i], ready_ns[i]);
	}
	if (n != recorder->look.n_workers)
		recorder->states = 0;
	if (elapsed_ns && recorder->look.recorded > recorder->first_recorded)
		recorder->per_second =
			(double)(recorder->look.recorded - recorder->first_recorded) *
			(double)D9__SECOND_NS / (double)elapsed_ns;
	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
		recorder->lost += recorder->look.lost[cause];
	recorder->owner = d9__ring_view_owner(&recorder->view);
	recorder->problems = judge(recorder, elapsed_ns);
	return is_gone(recorder) ? -ENOENT : 0;
}

/*
 * Drop the recorders at which |look| fails; without a line if the process ended meanwhile and
 * removed its ring.
 */
static void look_at_all(struct d9__recorders *recorders, const char *command,
			int (*look)(struct d9__recorder_seen *))
{
	struct search search = { .found = recorders, .command = command };
	size_t kept = 0;

	for (size_t i = 0; i < recorders->n; i++) {
		struct d9__recorder_seen *recorder = &recorders->list[i];
		int err = look(recorder);

		if (!err) {
			recorders->list[kept++] = *recorder;
			continue;
		}
		if (!recorder->view.at && err != -ENOENT)
			complain(&search, recorder->ring, err);
		release_one(recorder);
	}
	recorders->n = kept;
}

void d9__recorders_look(struct d9__recorders *recorders, const char *command)
{
	look_at_all(recorders, command, look_first);
	for (unsigned i = 0; recorders->n && i < STATES; i++) {
		nanosleep(&(struct timespec) { 0, BETWEEN_LOOKS / STATES }, NULL);
		for (size_t j = 0; j < recorders->n; j++)
			look_at_states(&recorders->list[j]);
	}
	look_at_all(recorders, command, look_again);
	if (recorders->n)
		qsort(recorders->list, recorders->n, sizeof(*recorders->list), by_life);
}

/* ---- telling ---- */

struct d9__loop_now d9__recorder_loop(const struct d9__recorder_seen *recorder, uint32_t i)
{
	const struct d9__ring_worker *worker = &recorder->look.workers[i];
	uint64_t elapsed_ns = recorder->look.mono_ns - recorder->first_ns;
	uint64_t ready_ns = recorder->ready_ns[i];
	struct d9__loop_now now = { .known = recorder->states && elapsed_ns > ready_ns };
	bool waits = !recorder->awake[i] && worker->state == D9__WORKER_PARKED;

	if (!now.known)
		return now;
	now.awake = (double)recorder->awake[i] / recorder->states;
	now.cpu = (double)recorder->cpu_ns[i] / (double)(elapsed_ns - ready_ns);
	now.cpu = now.cpu < 1 ? now.cpu : 1;
	/* In a wait that burns its loop is awake, too. */
	if (now.awake < now.cpu)
		now.awake = now.cpu;
	if (now.cpu >= 0.5 && (waits || is_in_library(recorder, worker)))
		now.inside_library = now.cpu;
	return now;
}

const char *d9__recorder_library(const struct d9__recorder_seen *recorder)
{
	static const char *const libraries[][2] = { { "loop.libevent.capabilities", "libevent" },
						    { "loop.libev.capabilities", "libev" },
						    { "loop.glib.capabilities", "GLib" } };
	const char *name = NULL;
	size_t len;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (d9__recorder_fact(recorder, libraries[i][0], &len))
			name = name ? "its library" : libraries[i][1];
	return name ? name : "its library";
}

const char *d9__recorders_recover_all(void)
{
	return geteuid() ? "dial9 recover --all" : "dial9 recover --all -o DIR";
}

const char *d9__problem_name(unsigned problems)
{
	static const char *const names[] = { "dead", "hung", "suspended", "paused", "blind", "lossy" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (problems & 1u << i)
			return names[i];
	return "ok";
}

const char *d9__recorder_state_word(const struct d9__recorder_seen *recorder)
{
	static const char *const states[] = { "starting", "recording", "flight", "disabled",
					      "paused", "stopping", "stopped" };
	uint32_t state = recorder->look.health.state;

	if (recorder->problems & ~(unsigned)D9__PROBLEM_LOSSY)
		return d9__problem_name(recorder->problems);
	return state < sizeof(states) / sizeof(states[0]) ? states[state] : "unknown";
}

const char *d9__recorder_fact(const struct d9__recorder_seen *recorder, const char *key, size_t *len)
{
	const char *line = recorder->look.health.facts;
	size_t key_len = strlen(key);

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, key, key_len) != 0 || line[key_len] != '=')
			continue;
		*len = strcspn(line, "\n") - key_len - 1;
		return line + key_len + 1;
	}
	return NULL;
}

const char *d9__recorder_program(const struct d9__recorder_seen *recorder)
{
	static char name[256];
	size_t len;
	const char *path = d9__recorder_fact(recorder, "program", &len);

	if (!path) {
		path = recorder->view.header.service;
		len = strlen(path);
	}
	for (size_t i = len; i-- > 0;)
		if (path[i] == '/') {
			path += i + 1;
			len -= i + 1;
			break;
		}
	if (len >= sizeof(name))
		len = sizeof(name) - 1;
	memcpy(name, path, len);
	name[len] = '\0';
	return name;
}
