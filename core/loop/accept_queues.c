/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/accept_queues.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/time.h"
#include "loop/sock_diag.h"
#include "loop/spin.h"
#include "record/sampling.h"
#include "record/sandbox.h"
#include "record/source.h"
#include "ring/clock.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "segment/metadata.h"

#define NO_WORKER 255u /* no thread has run its loop yet */

struct listener {
	const struct d9_loop *loop; /* NULL: free */
	int fd;
	uint32_t worker;
	uint64_t inode;
	uint64_t asked_ns; /* latest, by whomever */
	struct d9__tcp_listener socket;
};

/* The lock protects all of it.  Hooks try it for a moment only, because an entry is small, and copied. */
static struct {
	struct d9__spin lock;
	bool is_full; /* a listener found no place */
	uint32_t high;
	struct listener items[D9__LISTENERS_MAX];
} table;

/* ---- what the program's own descriptor tells ---- */

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

static int option_of(int fd, int option)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? 0 : value;
}

static bool read_address(int fd, struct d9__tcp_listener *socket)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = { .any = { .sa_family = AF_UNSPEC } };
	socklen_t len = sizeof(address);

	if (getsockname(fd, &address.any, &len))
		return false;
	socket->family = (uint8_t)address.any.sa_family;
	if (address.any.sa_family == AF_INET) {
		socket->port = ntohs(address.v4.sin_port);
		memcpy(socket->address, &address.v4.sin_addr, sizeof(address.v4.sin_addr));
	} else if (address.any.sa_family == AF_INET6) {
		socket->port = ntohs(address.v6.sin6_port);
		memcpy(socket->address, &address.v6.sin6_addr, sizeof(address.v6.sin6_addr));
	}
	return address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6;
}

static bool describe(int fd, struct listener *listener)
{
	struct stat st;

	if (!option_of(fd, SO_ACCEPTCONN) || option_of(fd, SO_PROTOCOL) != IPPROTO_TCP ||
	    !read_address(fd, &listener->socket) || !(listener->socket.cookie = cookie_of(fd)) || fstat(fd, &st))
		return false;
	listener->fd = fd;
	listener->inode = st.st_ino;
	return true;
}

/* False: the descriptor is closed, or another socket's. */
static bool ask_own(const struct listener *listener, uint32_t *pending, uint32_t *limit)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (cookie_of(listener->fd) != listener->socket.cookie ||
	    getsockopt(listener->fd, IPPROTO_TCP, TCP_INFO, &info, &len) || info.tcpi_state != TCP_LISTEN)
		return false;
	/* Of a listener these two are its queue and the limit of that. */
	*pending = info.tcpi_unacked;
	*limit = info.tcpi_sacked;
	return true;
}

/* ---- the table ---- */

static struct listener *place_locked(const struct listener *listener)
{
	struct listener *free = NULL;

	for (uint32_t i = 0; i < table.high; i++) {
		struct listener *at = &table.items[i];

		if (at->loop && at->socket.cookie == listener->socket.cookie && at->loop == listener->loop)
			return at;
		if (!at->loop && !free)
			free = at;
	}
	if (free || table.high == D9__LISTENERS_MAX)
		return free;
	return &table.items[table.high++];
}

static void keep(const struct listener *listener)
{
	struct listener *at;

	if (!d9__spin_try(&table.lock))
		return;
	at = place_locked(listener);
	if (at)
		*at = *listener;
	else
		table.is_full = true;
	d9__spin_unlock(&table.lock);
}

void d9__accept_queues_watch(struct d9_loop *loop, int fd)
{
	struct listener listener = { .loop = loop, .worker = NO_WORKER };
	int saved = errno;

	if (!d9__sandbox_is_shut() && describe(fd, &listener))
		keep(&listener);
	errno = saved;
}

/* The listeners that were last asked about before |before_ns|; from now on that was at |ns|. */
struct due {
	uint32_t n;
	struct listener items[D9__LISTENERS_MAX];
};

/* |loop|: only of those that it watches, on |worker|; NULL: of all. */
static void collect(struct due *due, const struct d9_loop *loop, uint32_t worker, uint64_t before_ns, uint64_t ns)
{
	due->n = 0;
	if (!d9__spin_try(&table.lock))
		return;
	for (uint32_t i = 0; i < table.high; i++) {
		struct listener *at = &table.items[i];

		if (!at->loop || (loop && at->loop != loop))
			continue;
		if (loop)
			at->worker = worker;
		if (at->asked_ns > before_ns)
			continue;
		at->asked_ns = ns;
		due->items[due->n++] = *at;
	}
	d9__spin_unlock(&table.lock);
}

/* |gone| was closed. */
static void forget(const struct listener *gone)
{
	if (!d9__spin_try(&table.lock))
		return;
	for (uint32_t i = 0; i < table.high; i++)
		if (table.items[i].socket.cookie == gone->socket.cookie)
			table.items[i].loop = NULL;
	d9__spin_unlock(&table.lock);
}

void d9__accept_queues_forget(const struct d9_loop *loop)
{
	d9__spin_lock(&table.lock);
	for (uint32_t i = 0; i < table.high; i++)
		if (table.items[i].loop == loop)
			table.items[i].loop = NULL;
	d9__spin_unlock(&table.lock);
}

void d9__accept_queues_fork_child(void)
{
	atomic_store_explicit(&table.lock.held, false, memory_order_relaxed);
}

/* ---- events ---- */

static void emit(struct d9__slot *slot, uint64_t ns, const struct listener *listener, uint32_t pending, uint32_t limit)
{
	const struct d9__tcp_listener *socket = &listener->socket;
	char address[INET6_ADDRSTRLEN];
	uint8_t *p = d9__emit_begin(slot, D9__EVENT_TCP_ACCEPT_QUEUE, ns, 3 * D9__VARINT_MAX + 4 + sizeof(address) + 11);

	if (!p)
		return;
	inet_ntop(socket->family, socket->address, address, sizeof(address));
	p = d9__varint_put(d9__varint_put(p, socket->cookie), listener->inode);
	*p++ = socket->family == AF_INET6 ? 6 : 4;
	p = d9__wire_put_text(p, address, strlen(address));
	p = d9__wire_put_u16(p, socket->port);
	p = d9__wire_put_u32(d9__wire_put_u32(p, pending), limit);
	d9__emit_end(slot, d9__varint_put(p, listener->worker));
}

static uint64_t before(uint64_t ns)
{
	uint64_t interval_ns = atomic_load_explicit(&d9__sampling.accept_queue_ns, memory_order_relaxed);

	return ns > interval_ns ? ns - interval_ns : 0;
}

static void ask_all_of(struct d9_loop *loop, uint32_t worker, struct d9__slot *slot, uint64_t ns)
{
	uint32_t pending, limit;
	struct due due;

	collect(&due, loop, worker, before(ns), ns);
	for (uint32_t i = 0; i < due.n; i++) {
		if (ask_own(&due.items[i], &pending, &limit))
			emit(slot, ns, &due.items[i], pending, limit);
		else
			forget(&due.items[i]);
	}
}

void d9__accept_queues_ask(struct d9_loop *loop, uint32_t worker, struct d9__slot *slot, uint64_t ns)
{
	int saved = errno;

	if (!d9__sandbox_is_shut())
		ask_all_of(loop, worker, slot, ns);
	errno = saved;
}

/* ---- the flush thread ---- */

static void say(int err)
{
	char text[128] = "on";

	if (err < 0)
		snprintf(text, sizeof(text), "on; but not while a callback holds the loop: %s", d9_strerror(err));
	else if (table.is_full)
		snprintf(text, sizeof(text), "on; of the first %u listeners", D9__LISTENERS_MAX);
	d9__metadata_set("source.accept_queues", text);
}

/* Empty queues are told by loops that run; of others they are nothing to write of. */
static int ask_kernel(struct d9__slot *slot, uint64_t ns, const struct listener *listener, int netlink)
{
	uint32_t pending, limit;
	int err = d9__sock_diag_ask(netlink, &listener->socket, &pending, &limit);

	if (!err && pending)
		emit(slot, ns, listener, pending, limit);
	else if (err == -ENOENT)
		forget(listener);
	return err == -ENOENT ? 0 : err;
}

static int ask_about_silent_loops(struct d9__slot *slot, uint64_t ns)
{
	int netlink, err = 0;
	struct due due;

	collect(&due, NULL, NO_WORKER, before(ns), ns);
	if (!due.n)
		return 0;
	netlink = d9__sock_diag_open();
	for (uint32_t i = 0; i < due.n && netlink >= 0 && !err; i++)
		err = ask_kernel(slot, ns, &due.items[i], netlink);
	if (netlink < 0)
		return netlink;
	close(netlink);
	return err;
}

void d9__accept_queues_tick(void)
{
	static uint64_t said_ns;
	uint64_t ns = d9__clock_mono_ns();
	struct d9__slot *slot;
	int err;

	if (!(d9__gate_word() & D9__GATE_LISTEN) || !(slot = d9__slot_self()))
		return;
	err = ask_about_silent_loops(slot, ns);
	if (!err && ns - said_ns < D9__SECOND_NS)
		return;
	said_ns = ns;
	say(err);
}

void d9__accept_queues_start(void)
{
	d9__tick_add(d9__accept_queues_tick);
}
