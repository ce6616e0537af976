/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <time.h>

#include "record/clock.h"
#include "record/dead_peers.h"
#include "record/peers.h"

#define ASK_NS UINT64_C(1000000000)

static uint64_t own_cpu_ns(void)
{
	struct timespec ts = { 0, 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

void d9__dead_peers_begin(struct d9__dead_peers *peers, bool curious)
{
	peers->curious = curious;
	peers->looking = false;
	peers->asked_ns = 0;
}

static void begin_look(struct d9__dead_peers *peers, const struct d9__writer *writer,
		       const char *trace_dir, uint64_t now_ns)
{
	uint64_t before = own_cpu_ns();

	if (!peers->curious || !writer->has_dir || now_ns - peers->asked_ns < ASK_NS)
		return;
	peers->asked_ns = now_ns;
	if (!d9__peers_due(writer->ns.parent_fd, d9__clock_real_ns()))
		return;
	peers->curious = false;
	peers->looking = !d9__recover_begin(&peers->recover, trace_dir, D9__RECOVER_PRUNE);
	peers->looked_ns = own_cpu_ns() - before;
}

static void end_look(struct d9__dead_peers *peers, struct d9__writer *writer)
{
	uint64_t before = own_cpu_ns();

	peers->looking = false;
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
	end_look(peers, writer);
}

void d9__dead_peers_end(struct d9__dead_peers *peers, struct d9__writer *writer,
			const char *trace_dir, uint64_t now_ns)
{
	begin_look(peers, writer, trace_dir, now_ns);
	if (peers->looking)
		end_look(peers, writer);
}
