/* SPDX-License-Identifier: Apache-2.0 */
/* Message: one JSON object a datagram, perhaps with a descriptor, between dial9 and dial9-store. */

#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

/* Send |object|; |pass| is duplicated into the other process, -1: none.  0, -EMSGSIZE: it is longer
 * than D9__BUCKET_MESSAGE_MAX, or an error of sendmsg(2) (-EPIPE: the other end is closed). */
int d9__message_send(int fd, struct json_object *object, int pass);

/* 1 with |*object|, owned, and |*passed|, owned or -1; 0: the other end is closed; -EPROTO: that was no
 * such object; or an error of recvmsg(2): -EAGAIN where |wait| is false and nothing is there. */
int d9__message_receive(int fd, bool wait, struct json_object **object, int *passed);

/* Return a field; if it is missing or of another type, the default. */
const char *d9__message_text(struct json_object *object, const char *name, const char *otherwise);
uint64_t d9__message_number(struct json_object *object, const char *name);

/* Does nothing with NULL, so that a caller needs to check the object only once, at the end. */
void d9__message_add_text(struct json_object *object, const char *name, const char *text); /* NULL: not */
void d9__message_add_number(struct json_object *object, const char *name, uint64_t number); /* 0: not */
