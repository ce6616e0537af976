/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/dir.h"
#include "segment/files.h"
#include "segment/retention.h"

#define NEW_FILE (O_WRONLY | O_CREAT | O_EXCL)

enum op { OPEN, REMOVE, RENAME, NEWEST };

struct question {
	uint32_t op;
	int32_t flags;
	char name[D9__FILE_NAME_MAX], to[D9__FILE_NAME_MAX];
};

struct answer {
	int32_t result; /* of an opened file 0, and its descriptor comes along */
	uint32_t active;
	uint64_t index;
	char name[D9__FILE_NAME_MAX];
};

static int agent = -1; /* who is asked; -1: nobody needs to be */

/* ---- by our own rights ---- */

static int open_here(int dir_fd, const char *name, int flags)
{
	struct stat st;
	/* Nobody may be at the other end of a pipe. */
	int fd = d9__descriptor_place(openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EPERM;
}

static int newest_here(int dir_fd, struct answer *found)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct d9__dir dir;
	const char *name;

	*found = (struct answer){ .result = 0 };
	if (fd < 0)
		return -errno;
	d9__dir_of(&dir, fd);
	while ((name = d9__dir_next(&dir))) {
		uint64_t index;
		enum d9__artefact what = d9__artefact_of(name, &index);

		if ((what != D9__ARTEFACT_SEGMENT && what != D9__ARTEFACT_ACTIVE) || strlen(name) >= sizeof(found->name) ||
		    (found->name[0] && index < found->index))
			continue;
		strcpy(found->name, name);
		found->index = index;
		found->active = what == D9__ARTEFACT_ACTIVE;
		found->result = 1;
	}
	d9__dir_close(&dir);
	return found->result;
}

/* ---- asking ---- */

/* The descriptor that came with |message|, or -1. */
static int descriptor_of(struct msghdr *message)
{
	struct cmsghdr *part = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
	    part->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(part), sizeof(fd));
	return fd;
}

/* The answer's result, or the descriptor that came with it. */
static int ask(const struct question *question, struct answer *answer)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} room;
	struct iovec data = { answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = room.bytes,
				  .msg_controllen = sizeof(room.bytes) };

	if (send(agent, question, sizeof(*question), MSG_NOSIGNAL) != (ssize_t)sizeof(*question) ||
	    recvmsg(agent, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*answer))
		return -EPIPE;
	if (question->op == OPEN && !answer->result)
		return descriptor_of(&message);
	return answer->result;
}

static int ask_about(enum op op, const char *name, const char *to, int flags)
{
	struct question question = { .op = op, .flags = flags };
	struct answer answer = { .result = 0 };

	if (strlen(name) >= sizeof(question.name) || strlen(to) >= sizeof(question.to))
		return -ENAMETOOLONG;
	strcpy(question.name, name);
	strcpy(question.to, to);
	return ask(&question, &answer);
}

void d9__files_ask(int socket)
{
	agent = socket;
}

/* ---- either way ---- */

int d9__file_open(int dir_fd, const char *name, int flags)
{
	return agent < 0 ? open_here(dir_fd, name, flags) : ask_about(OPEN, name, "", flags);
}

int d9__file_remove(int dir_fd, const char *name)
{
	if (agent >= 0)
		return ask_about(REMOVE, name, "", 0);
	return unlinkat(dir_fd, name, 0) ? -errno : 0;
}

int d9__file_rename(int dir_fd, const char *from, const char *to)
{
	if (agent >= 0)
		return ask_about(RENAME, from, to, 0);
	return renameat(dir_fd, from, dir_fd, to) ? -errno : 0;
}

int d9__file_newest(int dir_fd, char name[D9__FILE_NAME_MAX], uint64_t *index, bool *active)
{
	const struct question question = { .op = NEWEST };
	struct answer answer = { .result = 0 };
	int got = agent < 0 ? newest_here(dir_fd, &answer) : ask(&question, &answer);

	if (got == 1) {
		memcpy(name, answer.name, sizeof(answer.name));
		name[D9__FILE_NAME_MAX - 1] = '\0';
		*index = answer.index;
		*active = answer.active;
	}
	return got;
}

/* ---- answering ---- */

/* Whether |to| is what the open segment |from| is called when it is sealed. */
static bool is_sealed_name(const char *from, const char *to)
{
	size_t len = strlen(to);

	return !strncmp(from, to, len) && !strcmp(from + len, ".active");
}

static int seal(int dir_fd, const struct question *q)
{
	if (!is_sealed_name(q->name, q->to))
		return -EPERM;
	if (!renameat2(dir_fd, q->name, dir_fd, q->to, RENAME_NOREPLACE))
		return 0;
	/* Not every file system can. */
	if (errno != EINVAL || !faccessat(dir_fd, q->to, F_OK, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return renameat(dir_fd, q->name, dir_fd, q->to) ? -errno : 0;
}

static int answer_question(int dir_fd, const struct question *q, uint64_t *created, struct answer *answer)
{
	uint64_t index = 0;
	enum d9__artefact what = d9__artefact_of(q->name, &index);
	bool active = what == D9__ARTEFACT_ACTIVE;
	int got;

	if (q->op == NEWEST)
		return newest_here(dir_fd, answer);
	if (!active && what != D9__ARTEFACT_SEGMENT)
		return -EPERM;
	switch (q->op) {
	case OPEN:
		if (q->flags != O_RDONLY && (!active || (q->flags != O_RDWR && q->flags != NEW_FILE)))
			return -EPERM;
		got = open_here(dir_fd, q->name, q->flags);
		if (got >= 0 && q->flags == NEW_FILE)
			*created = index + 1;
		return got;
	case REMOVE:
		if (!active && *created != index + 1)
			return -EPERM;
		return unlinkat(dir_fd, q->name, 0) ? -errno : 0;
	case RENAME:
		return active ? seal(dir_fd, q) : -EPERM;
	}
	return -EINVAL;
}

static int reply(int socket, struct answer *answer, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} room = { .bytes = "" };
	struct iovec data = { answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *part;

		message.msg_control = room.bytes;
		message.msg_controllen = sizeof(room.bytes);
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*answer) ? 1 : -EPIPE;
}

int d9__files_answer(int socket, int dir_fd, uint64_t *created)
{
	struct answer answer = { .result = 0 };
	struct question question;
	ssize_t n = recv(socket, &question, sizeof(question), MSG_DONTWAIT);
	int got, fd = -1;

	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (n != (ssize_t)sizeof(question))
		return -EBADMSG;
	question.name[sizeof(question.name) - 1] = question.to[sizeof(question.to) - 1] = '\0';
	got = answer_question(dir_fd, &question, created, &answer);
	if (question.op == OPEN && got >= 0)
		fd = got;
	answer.result = fd >= 0 ? 0 : got;
	got = reply(socket, &answer, fd);
	if (fd >= 0)
		close(fd);
	return got;
}
