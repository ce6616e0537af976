/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory helper: root's helper of `dial9 record`, which makes the directory of a process that may not make it itself,
 * because it gave up its rights or changed its root, and gives it to the user whom the kernel names as the
 * one that asks.  What is given are open descriptors, so that nothing on the way needs to let that user pass.
 *
 * The process asks once for each directory, over a socket in the abstract name space.  Its name and a secret
 * stand in DIAL9_GIVER, which only the programs that are recorded have.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "segment/namespace.h"

#define D9__DIRECTORY_HELPER_VARIABLE "DIAL9_GIVER"
#define D9__DIRECTORY_HELPER_HALF     32              /* hex digits of the name, and as many of the secret */
#define D9__DIRECTORY_HELPER_TEXT     (2 * D9__DIRECTORY_HELPER_HALF)

/* The one message there is; its answer is an int, 0 or -errno, with two descriptors if 0: directory, lock. */
struct d9__directory_helper_request {
	char secret[D9__DIRECTORY_HELPER_HALF];
	char boot_id[D9__BOOT_ID_MAX];
};

/* The address in |giver|, the variable's value.  Its length, or 0 if it is none. */
socklen_t d9__directory_helper_address(const char *giver, struct sockaddr_un *out);

/*
 * Ask for the directory |ns->boot_id|, or for another name if that is taken.  With one open already, that one
 * becomes this user's.  0 or -errno: then |ns| is as it was.  Blocks for two seconds at most.
 */
int d9__directory_helper_ask(const char *giver, struct d9__namespace *ns, const char *trace_dir, uint64_t clock);
