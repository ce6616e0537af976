/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ship/bucket.h"

#define DEPTH_MAX 8

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int d9__message_send(int fd, struct json_object *object, int pass)
{
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	struct iovec part = { (void *)(uintptr_t)text, text ? strlen(text) : 0 };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (!text)
		return -ENOMEM;
	if (part.iov_len > D9__BUCKET_MESSAGE_MAX)
		return -EMSGSIZE;
	if (pass >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr) {
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))
		};
		memcpy(CMSG_DATA(&control.head), &pass, sizeof(pass));
	}
	do
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int passed_with(struct msghdr *message)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static struct json_object *parse(const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *object = NULL;

	if (tokener)
		object = json_tokener_parse_ex(tokener, text, (int)len);
	if (object && (!json_object_is_type(object, json_type_object) ||
		       json_tokener_get_parse_end(tokener) != len)) {
		json_object_put(object);
		object = NULL;
	}
	json_tokener_free(tokener);
	return object;
}

int d9__message_receive(int fd, bool wait, struct json_object **object, int *passed)
{
	static char text[D9__BUCKET_MESSAGE_MAX];
	struct iovec part = { text, sizeof(text) };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	*passed = passed_with(&message);
	if (n == 0)
		return 0;
	*object = message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? NULL : parse(text, (size_t)n);
	if (*object)
		return 1;
	if (*passed >= 0)
		close(*passed);
	return -EPROTO;
}

const char *d9__message_text(struct json_object *object, const char *name, const char *otherwise)
{
	struct json_object *value = json_object_object_get(object, name);

	/* Refuse a text with a zero byte, because C would cut it there. */
	if (!json_object_is_type(value, json_type_string) ||
	    strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value))
		return otherwise;
	return json_object_get_string(value);
}

uint64_t d9__message_number(struct json_object *object, const char *name)
{
	struct json_object *value = json_object_object_get(object, name);
	bool is = json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_boolean);

	return is ? json_object_get_uint64(value) : 0;
}

void d9__message_add_text(struct json_object *object, const char *name, const char *text)
{
	if (object && text)
		json_object_object_add(object, name, json_object_new_string(text));
}

void d9__message_add_number(struct json_object *object, const char *name, uint64_t number)
{
	if (object && number)
		json_object_object_add(object, name, json_object_new_uint64(number));
}
