/* SPDX-License-Identifier: Apache-2.0 */
/* Socket diagnostics: what the kernel tells of listening TCP sockets without a descriptor of them. */

#pragma once

#include <stdint.h>

/* A listening socket. */
struct d9__tcp_listener {
	uint64_t cookie; /* SO_COOKIE */
	uint8_t family;	 /* AF_INET or AF_INET6 */
	uint16_t port;
	uint8_t address[16]; /* local; of AF_INET the first 4 bytes */
};

/* A netlink socket for the next call, or -errno: where there is none, programs cannot be asked about either. */
int d9__sock_diag_open(void);

/*
 * How many connections wait to be accepted, and how many may.  0; -ENOENT: the socket is closed; -errno.  Does not wait.
 */
int d9__sock_diag_ask(int netlink, const struct d9__tcp_listener *listener, uint32_t *pending, uint32_t *limit);
