/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/sock_diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TCP_LISTEN_STATE 10 /* TCP_LISTEN of the kernel */
#define MESSAGES_MAX	 64 /* of one answer: some 4,000 sockets */

struct request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

int d9__sock_diag_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -errno;
	return fd;
}

static int send_request(int netlink, const struct d9__tcp_listener *listener, uint16_t flags)
{
	struct request request = {
		.head = { .nlmsg_len = sizeof(request),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) },
		.body = { .sdiag_family = listener->family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = 1u << TCP_LISTEN_STATE },
	};
	struct inet_diag_sockid *id = &request.body.id;

	id->idiag_sport = htons(listener->port);
	memcpy(id->idiag_src, listener->address, sizeof(id->idiag_src));
	id->idiag_cookie[0] = (uint32_t)listener->cookie;
	id->idiag_cookie[1] = (uint32_t)(listener->cookie >> 32);
	return send(netlink, &request, sizeof(request), MSG_DONTWAIT) < 0 ? -errno : 0;
}

static bool is_of(const struct inet_diag_msg *found, const struct d9__tcp_listener *listener)
{
	return ((uint64_t)found->id.idiag_cookie[1] << 32 | found->id.idiag_cookie[0]) == listener->cookie &&
	       found->idiag_state == TCP_LISTEN_STATE;
}

/* One message of the answer: 1 if it tells of |listener|, 0 if others may follow, -ENOENT at the end, -errno. */
static int take_message(const struct nlmsghdr *head, const struct d9__tcp_listener *listener, uint32_t *pending,
			uint32_t *limit)
{
	const struct inet_diag_msg *found = NLMSG_DATA(head);
	const struct nlmsgerr *error = NLMSG_DATA(head);

	if (head->nlmsg_type == NLMSG_DONE)
		return -ENOENT;
	if (head->nlmsg_type == NLMSG_ERROR)
		return head->nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) && error->error ? error->error : -EPROTO;
	if (head->nlmsg_len < NLMSG_LENGTH(sizeof(*found)) || !is_of(found, listener))
		return 0;
	*pending = found->idiag_rqueue;
	*limit = found->idiag_wqueue;
	return 1;
}

static int take_answer(int netlink, const struct d9__tcp_listener *listener, uint32_t *pending, uint32_t *limit)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[8192];
	ssize_t n;
	int found = 0;

	for (unsigned i = 0; i < MESSAGES_MAX; i++) {
		const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)bytes;

		/* The kernel answers before send() returns, and then at each call. */
		n = recv(netlink, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0)
			return -errno;
		for (size_t left = (size_t)n; !found && NLMSG_OK(head, left); head = NLMSG_NEXT(head, left))
			found = take_message(head, listener, pending, limit);
		if (found)
			return found;
	}
	return -ENOBUFS;
}

static int ask(int netlink, const struct d9__tcp_listener *listener, uint16_t flags, uint32_t *pending,
	       uint32_t *limit)
{
	int err = send_request(netlink, listener, flags);

	return err ? err : take_answer(netlink, listener, pending, limit);
}

int d9__sock_diag_ask(int netlink, const struct d9__tcp_listener *listener, uint32_t *pending, uint32_t *limit)
{
	int err = ask(netlink, listener, 0, pending, limit);

	/* The kernel found another of its address: several may share it.  Look at all. */
	if (err == -ESTALE || err == -ENOENT)
		err = ask(netlink, listener, NLM_F_DUMP, pending, limit);
	return err < 0 ? err : 0;
}
