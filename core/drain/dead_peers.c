/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "drain/dead_peers.h"
#include "drain/peers.h"
#include "ring/clock.h"
#include "segment/user_callbacks.h"

#define ASK_NS D9__SECOND_NS

static uint64_t own_cpu_ns(void)
{
	struct timespec ts = { 0, 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return d9__timespec_ns(&ts);
}

/* ---- root ---- */

/* Whether the process is root, or can make itself root again; yes, if the kernel does not say. */
static bool is_root(void)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) || !real || !effective || !saved;
}

/* Count the ring of a dead process, and leave it as it is. */
static bool leave(void *arg, const char *boot_id, struct d9__dead_ring *ring, struct d9__recovered *out)
{
	unsigned *left = arg;

	(void)boot_id, (void)ring;
	++*left;
	*out = (struct d9__recovered){ .err = -EACCES };
	return true;
}

/* Only who reads a ring can know that it holds no events, and root reads none. */
static bool is_surely_empty(void *arg, struct d9__dead_ring *ring)
{
	(void)arg, (void)ring;
	return false;
}

static void tell_left(const struct d9__dead_peers *peers, const char *trace_dir)
{
	if (peers->left)
		d9__log(D9_LOG_WARNING, "%u process%s that ended may have left events which are not in the trace, and a "
			"recorder of root's does not read them; write them: dial9 recover %s", peers->left, peers->left == 1 ? "" : "es",
			trace_dir);
	if (peers->recover.hands && peers->recover.pruned)
		d9__log(D9_LOG_WARNING, "%u ring%s of processes that ended removed unread: there were too many",
			peers->recover.pruned, peers->recover.pruned == 1 ? "" : "s");
}

/* ---- looking ---- */

void d9__dead_peers_begin(struct d9__dead_peers *peers, bool curious)
{
	peers->curious = curious;
	peers->looking = false;
	peers->asked_ns = 0;
	peers->left = 0;
	peers->none = (struct d9__recover_hands){ leave, is_surely_empty, &peers->left };
}

static void begin_look(struct d9__dead_peers *peers, const struct d9__writer *writer,
		       const char *trace_dir, uint64_t now_ns)
{
	uint64_t before = own_cpu_ns();
	bool root;

	if (!peers->curious || !writer->has_dir || now_ns - peers->asked_ns < ASK_NS)
		return;
	peers->asked_ns = now_ns;
	if (!d9__peers_due(writer->ns.parent_fd, d9__clock_real_ns()))
		return;
	peers->curious = false;
	root = is_root();
	peers->looking = !d9__recover_begin(&peers->recover, trace_dir,
					    D9__RECOVER_PRUNE | (root ? D9__RECOVER_SPARE : 0));
	peers->recover.hands = root ? &peers->none : NULL;
	peers->looked_ns = own_cpu_ns() - before;
}

static void end_look(struct d9__dead_peers *peers, struct d9__writer *writer, const char *trace_dir)
{
	uint64_t before = own_cpu_ns();

	peers->looking = false;
	tell_left(peers, trace_dir);
	d9__recover_end(&peers->recover);
	d9__writer_collect(writer);
	d9__peers_looked(writer->ns.parent_fd, peers->looked_ns + own_cpu_ns() - before,
			 d9__clock_real_ns());
}

/* One in each tick: our own events must not wait for long. */
void d9__dead_peers_next(struct d9__dead_peers *peers, struct d9__writer *writer,
			 const char *trace_dir, uint64_t now_ns)
{
	uint64_t before;

	begin_look(peers, writer, trace_dir, now_ns);
	if (!peers->looking || !writer->has_dir)
		return;
	before = own_cpu_ns();
	if (d9__recover_next(&peers->recover, NULL) == 1)
		return; /* that was work, not looking */
	peers->looked_ns += own_cpu_ns() - before;
	end_look(peers, writer, trace_dir);
}

void d9__dead_peers_end(struct d9__dead_peers *peers, struct d9__writer *writer,
			const char *trace_dir, uint64_t now_ns)
{
	begin_look(peers, writer, trace_dir, now_ns);
	if (peers->looking)
		end_look(peers, writer, trace_dir);
}

void d9__dead_peers_prune(void)
{
	unsigned left = 0;
	const struct d9__recover_hands none = { leave, is_surely_empty, &left };

	d9__recover_prune(is_root() ? &none : NULL);
}
