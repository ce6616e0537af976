/* SPDX-License-Identifier: Apache-2.0 */
/* Accept queues of real sockets: asked by the loop's thread, and by the flush thread while a callback holds it. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/accept_queues.h"
#include "record/sampling.h"
#include "ring/gate.h"
#include "ring/slot.h"
#include "support/d9_test.h"

#define MS	 UINT64_C(1000000)
#define INTERVAL (400 * MS)
#define CLIENTS	 50
#define BACKLOG	 64

static struct d9_loop *loop;
static bool has_diagnostics;

/* ---- sockets ---- */

struct address {
	socklen_t len;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
};

/* A listener on the loopback address of |family|, at any port; -1: the machine has none of that family. */
static int listen_on(int family, struct address *address)
{
	int fd = socket(family, SOCK_STREAM, 0);

	*address = (struct address){ .len = family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4) };
	address->any.sa_family = (sa_family_t)family;
	if (family == AF_INET6)
		address->v6.sin6_addr = in6addr_loopback;
	else
		address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, &address->any, address->len) || listen(fd, BACKLOG) ||
	    getsockname(fd, &address->any, &address->len)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* |n| connections wait for it. */
static void connect_to(const struct address *address, int *clients, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		clients[i] = socket(address->any.sa_family, SOCK_STREAM, 0);
		CU_ASSERT_EQUAL(connect(clients[i], &address->any, address->len), 0);
	}
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

/* ---- a loop ---- */

static void watch(uint64_t key, int fd)
{
	const struct d9_task task = { .key = key, .identity = key, .fd = fd, .kind = D9_TASK_IO };

	CU_ASSERT_EQUAL(d9_task_arm(loop, &task), 0);
}

static void wait_for(uint64_t ns)
{
	d9_loop_park(loop, -1);
	loop_ns += ns;
	d9_loop_unpark(loop);
}

static size_t count_queues(const struct loop_events *events)
{
	return loop_count(events, LOOP_ACCEPT_QUEUE);
}

/* The only event of |events| tells that |pending| wait. */
static void expect_queue(const struct loop_events *events, uint64_t pending, int family)
{
	const struct loop_event *event;

	CU_ASSERT_EQUAL(count_queues(events), 1);
	event = loop_nth(events, LOOP_ACCEPT_QUEUE, 0);
	CU_ASSERT_EQUAL(event->pending, pending);
	CU_ASSERT_EQUAL(event->backlog, BACKLOG);
	CU_ASSERT_EQUAL(event->ip_version, family == AF_INET6 ? 6 : 4);
	CU_ASSERT_NOT_EQUAL(event->cookie, 0);
}

/* ---- tests ---- */

static void ask_behind_a_wait(int family)
{
	int clients[CLIENTS], fd;
	struct address address;

	fd = listen_on(family, &address);
	if (fd < 0)
		return; /* no such family here */
	watch(1, fd);
	connect_to(&address, clients, CLIENTS);
	wait_for(2 * INTERVAL);
	expect_queue(loop_events_collect(), CLIENTS, family);

	/* Not again within the interval. */
	wait_for(INTERVAL - 1);
	CU_ASSERT_EQUAL(count_queues(loop_events_collect()), 0);
	close(accept(fd, NULL, NULL));
	wait_for(1);
	expect_queue(loop_events_collect(), CLIENTS - 1, family);

	close_all(clients, CLIENTS);
	close(fd);
	d9_task_end(D9_LIBRARY_OWN, 1);
	wait_for(2 * INTERVAL);
	CU_ASSERT_EQUAL(count_queues(loop_events_collect()), 0);
}

static void test_a_loop_tells_of_its_queues_behind_a_wait_at_most_once_per_interval(void)
{
	ask_behind_a_wait(AF_INET);
	ask_behind_a_wait(AF_INET6);
}

/* The descriptor's number comes back, of another listener. */
static void test_a_listener_that_was_closed_and_opened_again_is_another_one(void)
{
	const struct loop_events *events;
	struct address address;
	uint64_t first, second;
	int client, fd = listen_on(AF_INET, &address), again;

	watch(2, fd);
	wait_for(2 * INTERVAL);
	events = loop_events_collect();
	CU_ASSERT_EQUAL(count_queues(events), 1);
	first = loop_nth(events, LOOP_ACCEPT_QUEUE, 0)->cookie;

	close(fd);
	again = listen_on(AF_INET, &address);
	CU_ASSERT_EQUAL(again, fd);
	/* Nobody has said that it is watched. */
	wait_for(2 * INTERVAL);
	CU_ASSERT_EQUAL(count_queues(loop_events_collect()), 0);

	watch(3, again);
	connect_to(&address, &client, 1);
	wait_for(2 * INTERVAL);
	events = loop_events_collect();
	expect_queue(events, 1, AF_INET);
	second = loop_nth(events, LOOP_ACCEPT_QUEUE, 0)->cookie;
	CU_ASSERT_NOT_EQUAL(first, second);
	close(client);
	close(again);
	wait_for(2 * INTERVAL);
	loop_events_collect();
}

static void hold_the_loop(int family)
{
	int clients[CLIENTS], fd;
	const struct loop_events *events;
	struct address address;
	struct d9_poll poll = { .loop = loop, .task = { .key = 5, .identity = 5, .fd = -1 } };

	fd = listen_on(family, &address);
	if (fd < 0)
		return;
	watch(4, fd);
	wait_for(2 * INTERVAL);
	loop_events_collect();

	d9_poll_begin(&poll);
	connect_to(&address, clients, CLIENTS);
	/* A second, in which the flush thread looks each tenth of it. */
	for (int i = 0; i < 10; i++) {
		loop_ns += 100 * MS;
		d9__accept_queues_tick();
	}
	events = loop_events_collect();
	CU_ASSERT_EQUAL(count_queues(events), 2);
	for (size_t i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(loop_nth(events, LOOP_ACCEPT_QUEUE, i)->pending, CLIENTS);
		CU_ASSERT_EQUAL(loop_nth(events, LOOP_ACCEPT_QUEUE, i)->backlog, BACKLOG);
		CU_ASSERT_EQUAL(loop_nth(events, LOOP_ACCEPT_QUEUE, i)->worker, 0);
	}
	d9_poll_end(&poll);
	close_all(clients, CLIENTS);
	close(fd);
	/* Closed, and the loop has not waited since. */
	loop_ns += 2 * INTERVAL;
	d9__accept_queues_tick();
	CU_ASSERT_EQUAL(count_queues(loop_events_collect()), 0);
	d9_task_end(D9_LIBRARY_OWN, 4);
}

static void test_queues_are_told_while_a_callback_holds_the_loop(void)
{
	if (!has_diagnostics)
		return;
	hold_the_loop(AF_INET);
	hold_the_loop(AF_INET6);
}

static void test_other_descriptors_are_not_asked(void)
{
	int pair[2], datagrams = socket(AF_INET, SOCK_DGRAM, 0);

	CU_ASSERT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	watch(6, pair[0]);
	watch(7, datagrams);
	watch(8, STDIN_FILENO);
	errno = EAGAIN;
	watch(9, 12345);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	wait_for(2 * INTERVAL);
	CU_ASSERT_EQUAL(count_queues(loop_events_collect()), 0);
	close(pair[0]);
	close(pair[1]);
	close(datagrams);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a loop tells of its queues behind a wait at most once per interval",
		  test_a_loop_tells_of_its_queues_behind_a_wait_at_most_once_per_interval },
		{ "a listener that was closed and opened again is another one",
		  test_a_listener_that_was_closed_and_opened_again_is_another_one },
		{ "queues are told while a callback holds the loop", test_queues_are_told_while_a_callback_holds_the_loop },
		{ "other descriptors are not asked", test_other_descriptors_are_not_asked },
		CU_TEST_INFO_NULL,
	};
	int netlink = socket(AF_NETLINK, SOCK_RAW, 4 /* NETLINK_SOCK_DIAG */);

	has_diagnostics = netlink >= 0;
	if (has_diagnostics)
		close(netlink);
	loop_events_start();
	loop_ns = 1000 * INTERVAL;
	atomic_store(&d9__sampling.accept_queue_ns, INTERVAL);
	d9__gate_set(D9__GATE_ALL | D9__GATE_LISTEN);
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("accept queues", tests);
}
