/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrappers of the calls that can block.  A call that returns twice, or looks at its caller's frame, is none of them.
 * Calls with variable arguments get as many as there are at the most, from the same registers.
 */
#include "config.h"

#include "block/calls.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/hot.h"
#include "block/call.h"

#ifndef F_OFD_SETLKW
#define F_OFD_SETLKW F_SETLKW
#endif

/* A call of descriptor |fd|, which |counted| counts, too, for the task that runs. */
#define IO_CALL(type, function, label, counted, params, ...)                                       \
	static type(*real_##function) params;                                                      \
                                                                                                   \
	static D9__HOT type hook_##function params                                                 \
	{                                                                                          \
		uint64_t begin_ns = d9__block_begin();                                             \
		type result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                        \
                                                                                                   \
		if (__builtin_expect(begin_ns != 0, 0))                                            \
			D9__BLOCK_END(begin_ns, label, D9__BLOCK_REAL(real_##function), fd);       \
		if (__builtin_expect(d9__block_counts(), 0))                                       \
			counted;                                                                   \
		return result;                                                                     \
	}

/* A look with MSG_PEEK takes nothing; the queue of errors has no end. */
static inline void count_read(int fd, int64_t result, bool asks, int flags)
{
	if (__builtin_expect(result > 0 && !(flags & MSG_PEEK), 1))
		d9__task_io_moved(d9__self.thread, D9__IO_READS, fd, (uint64_t)result);
	else
		d9__task_io_count(d9__self.thread, D9__IO_READS, fd, result,
				  result == 0 && asks && !(flags & MSG_ERRQUEUE));
}

static bool has_room(const struct iovec *iov, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (iov[i].iov_len)
			return true;
	return false;
}

/* The program's own tables are looked at only where the kernel has read them, too. */
static inline void count_readv(int fd, int64_t result, const struct iovec *iov, int n)
{
	count_read(fd, result, result == 0 && has_room(iov, (size_t)n), 0);
}

static bool asks(const struct msghdr *msg)
{
	return has_room(msg->msg_iov, msg->msg_iovlen);
}

static uint64_t bytes_of(const struct mmsghdr *msgs, int64_t n)
{
	uint64_t bytes = 0;

	for (int64_t i = 0; i < n; i++)
		bytes += msgs[i].msg_len;
	return bytes;
}

static void count_recvmmsg(int fd, int64_t result, const struct mmsghdr *msgs, int flags)
{
	int64_t bytes = (int64_t)bytes_of(msgs, result);

	if (result <= 0)
		count_read(fd, result, false, flags);
	else
		count_read(fd, bytes, !bytes && asks(&msgs[0].msg_hdr), flags);
}

static inline void count_write(int fd, int64_t result, uint64_t bytes)
{
	if (__builtin_expect(result >= 0, 1))
		d9__task_io_moved(d9__self.thread, D9__IO_WRITES, fd, bytes);
	else
		d9__task_io_count(d9__self.thread, D9__IO_WRITES, fd, result, false);
}

static inline void count_accept(int fd, int64_t result)
{
	d9__task_io_count(d9__self.thread, D9__IO_ACCEPTS, fd, result, false);
}

#define READ(n, flags)	       count_read(fd, result, (n) != 0, flags)
#define READV(iov, n)	       count_readv(fd, result, iov, n)
#define READMSG(msg, flags)    count_read(fd, result, result == 0 && asks(msg), flags)
#define READMMSG(msgs, flags)  count_recvmmsg(fd, result, msgs, flags)
#define WRITE		       count_write(fd, result, (uint64_t)result)
#define WRITEMMSG(msgs)	       count_write(fd, result, bytes_of(msgs, result))
#define ACCEPT		       count_accept(fd, result)

typedef struct hostent *host_t;
typedef char *text_t;

/*
 * The first half are calls that loop libraries make only where they may well wait; the others are the loop's own work on
 * descriptors that do not block.  Names of the C library's checked and 64-bit variants come behind the plain ones.
 */
#define RARE(X) \
	X(int, open, "open", -1, (const char *path, int flags, mode_t mode), path, flags, mode) \
	X(int, open64, "open", -1, (const char *path, int flags, mode_t mode), path, flags, mode) \
	X(int, __open_2, "open", -1, (const char *path, int flags), path, flags) \
	X(int, __open64_2, "open", -1, (const char *path, int flags), path, flags) \
	X(int, openat, "openat", -1, (int at, const char *path, int flags, mode_t mode), at, path, flags, mode) \
	X(int, openat64, "openat", -1, (int at, const char *path, int flags, mode_t mode), at, path, flags, mode) \
	X(int, __openat_2, "openat", -1, (int at, const char *path, int flags), at, path, flags) \
	X(int, __openat64_2, "openat", -1, (int at, const char *path, int flags), at, path, flags) \
	X(int, creat, "creat", -1, (const char *path, mode_t mode), path, mode) \
	X(int, creat64, "creat", -1, (const char *path, mode_t mode), path, mode) \
	X(int, fsync, "fsync", fd, (int fd), fd) \
	X(int, fdatasync, "fdatasync", fd, (int fd), fd) \
	X(int, syncfs, "syncfs", fd, (int fd), fd) \
	X(int, sync_file_range, "sync_file_range", fd, (int fd, off_t at, off_t n, unsigned flags), fd, at, n, flags) \
	X(int, msync, "msync", -1, (void *at, size_t n, int flags), at, n, flags) \
	X(int, fallocate, "fallocate", fd, (int fd, int mode, off_t at, off_t n), fd, mode, at, n) \
	X(int, fallocate64, "fallocate", fd, (int fd, int mode, off_t at, off_t n), fd, mode, at, n) \
	X(int, posix_fallocate, "fallocate", fd, (int fd, off_t at, off_t n), fd, at, n) \
	X(int, posix_fallocate64, "fallocate", fd, (int fd, off_t at, off_t n), fd, at, n) \
	X(int, ftruncate, "ftruncate", fd, (int fd, off_t n), fd, n) \
	X(int, ftruncate64, "ftruncate", fd, (int fd, off_t n), fd, n) \
	X(int, rename, "rename", -1, (const char *from, const char *to), from, to) \
	X(int, renameat, "rename", -1, (int a, const char *from, int b, const char *to), a, from, b, to) \
	X(int, renameat2, "rename", -1, \
	  (int a, const char *from, int b, const char *to, unsigned flags), a, from, b, to, flags) \
	X(int, unlink, "unlink", -1, (const char *path), path) \
	X(int, unlinkat, "unlink", -1, (int at, const char *path, int flags), at, path, flags) \
	X(int, getaddrinfo, "getaddrinfo", -1, \
	  (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out), node, \
	  service, hints, out) \
	X(int, getnameinfo, "getnameinfo", -1, \
	  (const struct sockaddr *addr, socklen_t len, char *host, socklen_t host_len, char *service, \
	  socklen_t service_len, int flags), addr, len, host, host_len, service, service_len, flags) \
	X(host_t, gethostbyname, "gethostbyname", -1, (const char *name), name) \
	X(host_t, gethostbyname2, "gethostbyname", -1, (const char *name, int family), name, family) \
	X(host_t, gethostbyaddr, "gethostbyaddr", -1, (const void *addr, socklen_t len, int type), addr, len, type) \
	X(int, gethostbyname_r, "gethostbyname", -1, \
	  (const char *name, struct hostent *host, char *buf, size_t size, struct hostent **out, int *err), name, \
	  host, buf, size, out, err) \
	X(unsigned, sleep, "sleep", -1, (unsigned seconds), seconds) \
	X(int, usleep, "usleep", -1, (useconds_t us), us) \
	X(int, nanosleep, "nanosleep", -1, (const struct timespec *length, struct timespec *left), length, left) \
	X(int, clock_nanosleep, "nanosleep", -1, \
	  (clockid_t clock, int flags, const struct timespec *length, struct timespec *left), clock, flags, length, \
	  left) \
	X(pid_t, waitpid, "waitpid", -1, (pid_t pid, int *status, int options), pid, status, options) \
	X(pid_t, wait, "wait", -1, (int *status), status) \
	X(pid_t, wait3, "wait3", -1, (int *status, int options, struct rusage *usage), status, options, usage) \
	X(pid_t, wait4, "wait4", -1, \
	  (pid_t pid, int *status, int options, struct rusage *usage), pid, status, options, usage) \
	X(int, waitid, "waitid", -1, (idtype_t type, id_t id, siginfo_t *info, int options), type, id, info, options) \
	X(int, flock, "flock", fd, (int fd, int operation), fd, operation) \
	X(int, lockf, "lockf", fd, (int fd, int command, off_t n), fd, command, n) \
	X(int, lockf64, "lockf", fd, (int fd, int command, off_t n), fd, command, n) \
	X(int, pthread_join, "pthread_join", -1, (pthread_t thread, void **out), thread, out) \
	X(int, sem_wait, "sem_wait", -1, (sem_t *sem), sem) \
	X(int, sem_timedwait, "sem_timedwait", -1, (sem_t *sem, const struct timespec *until), sem, until) \
	X(int, sem_clockwait, "sem_clockwait", -1, \
	  (sem_t *sem, clockid_t clock, const struct timespec *until), sem, clock, until) \
	X(int, system, "system", -1, (const char *command), command)

#define RARE_IO(X) \
	X(ssize_t, pread, "pread", READ(n, 0), \
	  (int fd, void *buf, size_t n, off_t at), fd, buf, n, at) \
	X(ssize_t, pread64, "pread", READ(n, 0), \
	  (int fd, void *buf, size_t n, off_t at), fd, buf, n, at) \
	X(ssize_t, __pread_chk, "pread", READ(n, 0), \
	  (int fd, void *buf, size_t n, off_t at, size_t size), fd, buf, n, at, size) \
	X(ssize_t, __pread64_chk, "pread", READ(n, 0), \
	  (int fd, void *buf, size_t n, off_t at, size_t size), fd, buf, n, at, size) \
	X(ssize_t, preadv, "preadv", READV(iov, n), \
	  (int fd, const struct iovec *iov, int n, off_t at), fd, iov, n, at) \
	X(ssize_t, preadv64, "preadv", READV(iov, n), \
	  (int fd, const struct iovec *iov, int n, off_t at), fd, iov, n, at) \
	X(ssize_t, pwrite, "pwrite", WRITE, \
	  (int fd, const void *buf, size_t n, off_t at), fd, buf, n, at) \
	X(ssize_t, pwrite64, "pwrite", WRITE, \
	  (int fd, const void *buf, size_t n, off_t at), fd, buf, n, at) \
	X(ssize_t, pwritev, "pwritev", WRITE, \
	  (int fd, const struct iovec *iov, int n, off_t at), fd, iov, n, at) \
	X(ssize_t, pwritev64, "pwritev", WRITE, \
	  (int fd, const struct iovec *iov, int n, off_t at), fd, iov, n, at)

#define USUAL_IO(X) \
	X(ssize_t, read, "read", READ(n, 0), (int fd, void *buf, size_t n), fd, buf, n) \
	X(ssize_t, __read_chk, "read", READ(n, 0), \
	  (int fd, void *buf, size_t n, size_t size), fd, buf, n, size) \
	X(ssize_t, readv, "readv", READV(iov, n), \
	  (int fd, const struct iovec *iov, int n), fd, iov, n) \
	X(ssize_t, write, "write", WRITE, (int fd, const void *buf, size_t n), fd, buf, n) \
	X(ssize_t, writev, "writev", WRITE, (int fd, const struct iovec *iov, int n), fd, iov, n) \
	X(ssize_t, sendfile, "sendfile", WRITE, \
	  (int fd, int from, off_t *at, size_t n), fd, from, at, n) \
	X(ssize_t, sendfile64, "sendfile", WRITE, \
	  (int fd, int from, off_t *at, size_t n), fd, from, at, n) \
	X(int, accept, "accept", ACCEPT, \
	  (int fd, struct sockaddr *addr, socklen_t *len), fd, addr, len) \
	X(int, accept4, "accept", ACCEPT, \
	  (int fd, struct sockaddr *addr, socklen_t *len, int flags), fd, addr, len, flags) \
	X(ssize_t, recv, "recv", READ(n, flags), \
	  (int fd, void *buf, size_t n, int flags), fd, buf, n, flags) \
	X(ssize_t, __recv_chk, "recv", READ(n, flags), \
	  (int fd, void *buf, size_t n, size_t size, int flags), fd, buf, n, size, flags) \
	X(ssize_t, recvfrom, "recvfrom", READ(n, flags), \
	  (int fd, void *buf, size_t n, int flags, struct sockaddr *addr, socklen_t *len), \
	  fd, buf, n, flags, addr, len) \
	X(ssize_t, __recvfrom_chk, "recvfrom", READ(n, flags), \
	  (int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr, \
	  socklen_t *len), \
	  fd, buf, n, size, flags, addr, len) \
	X(ssize_t, recvmsg, "recvmsg", READMSG(msg, flags), \
	  (int fd, struct msghdr *msg, int flags), fd, msg, flags) \
	X(int, recvmmsg, "recvmmsg", READMMSG(msgs, flags), \
	  (int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *timeout), \
	  fd, msgs, n, flags, timeout) \
	X(ssize_t, send, "send", WRITE, \
	  (int fd, const void *buf, size_t n, int flags), fd, buf, n, flags) \
	X(ssize_t, sendto, "sendto", WRITE, \
	  (int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr, \
	  socklen_t len), \
	  fd, buf, n, flags, addr, len) \
	X(ssize_t, sendmsg, "sendmsg", WRITE, \
	  (int fd, const struct msghdr *msg, int flags), fd, msg, flags) \
	X(int, sendmmsg, "sendmmsg", WRITEMMSG(msgs), \
	  (int fd, struct mmsghdr *msgs, unsigned n, int flags), fd, msgs, n, flags)

#define USUAL(X) \
	X(int, connect, "connect", fd, \
	  (int fd, const struct sockaddr *addr, socklen_t len), fd, addr, len) \
	X(int, poll, "poll", -1, (struct pollfd *fds, nfds_t n, int timeout), fds, n, timeout) \
	X(int, __poll_chk, "poll", -1, \
	  (struct pollfd *fds, nfds_t n, int timeout, size_t size), fds, n, timeout, size) \
	X(int, ppoll, "ppoll", -1, \
	  (struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask), fds, n, timeout, \
	  mask) \
	X(int, __ppoll_chk, "ppoll", -1, \
	  (struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t size), fds, n, \
	  timeout, mask, size) \
	X(int, select, "select", -1, \
	  (int n, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout), n, read, write, except, \
	  timeout) \
	X(int, pselect, "pselect", -1, \
	  (int n, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout, \
	  const sigset_t *mask), n, read, write, except, timeout, mask) \
	X(int, epoll_wait, "epoll_wait", fd, \
	  (int fd, struct epoll_event *events, int n, int timeout), fd, events, n, timeout) \
	X(int, epoll_pwait, "epoll_wait", fd, \
	  (int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask), fd, events, n, timeout, \
	  mask)

/*
 * stdio writes and reads inside the C library, where no wrapper is.  Functions for single letters
 * are left out, as programs call them in a row; printf() and fprintf() are in prints.c.
 */
#define STREAMS(X)                                                                                 \
	X(int, fflush, (FILE * stream), stream)                                                    \
	X(int, fputs, (const char *text, FILE *stream), text, stream)                              \
	X(size_t, fwrite, (const void *data, size_t size, size_t n, FILE *stream), data, size, n,  \
	  stream)                                                                                  \
	X(int, vfprintf, (FILE * stream, const char *format, va_list args), stream, format, args)  \
	X(int, __vfprintf_chk, (FILE * stream, int flag, const char *format, va_list args),        \
	  stream, flag, format, args)                                                              \
	X(text_t, fgets, (char *line, int size, FILE *stream), line, size, stream)                 \
	X(text_t, __fgets_chk, (char *line, size_t room, int size, FILE *stream), line, room,      \
	  size, stream)                                                                            \
	X(size_t, fread, (void *data, size_t size, size_t n, FILE *stream), data, size, n, stream) \
	X(size_t, __fread_chk, (void *data, size_t room, size_t size, size_t n, FILE *stream),     \
	  data, room, size, n, stream)                                                             \
	X(ssize_t, getline, (char **line, size_t *size, FILE *stream), line, size, stream)         \
	X(ssize_t, getdelim, (char **line, size_t *size, int end, FILE *stream), line, size, end,  \
	  stream)                                                                                  \
	X(ssize_t, __getdelim, (char **line, size_t *size, int end, FILE *stream), line, size,     \
	  end, stream)

/*
 * Streams of popen() that are open, the first few: who reads them waits for a child.  Only
 * addresses, which pclose() and fclose() take out again.
 */
static _Atomic(FILE *) children[16];

static void note_child(FILE *stream)
{
	for (unsigned i = 0; stream && i < sizeof(children) / sizeof(children[0]); i++) {
		FILE *none = NULL;

		/* relaxed: an address, behind which nothing is read */
		if (atomic_compare_exchange_strong_explicit(&children[i], &none, stream,
							    memory_order_relaxed,
							    memory_order_relaxed))
			return;
	}
}

static void forget_child(FILE *stream)
{
	for (unsigned i = 0; stream && i < sizeof(children) / sizeof(children[0]); i++) {
		FILE *known = stream;

		if (atomic_load_explicit(&children[i], memory_order_relaxed) == stream)
			atomic_compare_exchange_strong_explicit(&children[i], &known, NULL,
								memory_order_relaxed,
								memory_order_relaxed);
	}
}

/* |function| as programs write it: "fgets" of "__fgets_chk"; of a child's stream by what it waits
 * for. */
static const char *name_of(const FILE *stream, const char *function)
{
	for (unsigned i = 0; i < sizeof(children) / sizeof(children[0]); i++)
		if (stream && atomic_load_explicit(&children[i], memory_order_relaxed) == stream)
			return "popen stream";
	if (!strcmp(function, "__fgets_chk"))
		return "fgets";
	if (!strcmp(function, "__fread_chk"))
		return "fread";
	if (!strcmp(function, "__vfprintf_chk"))
		return "vfprintf";
	return !strcmp(function, "__getdelim") ? "getline" : function;
}

/* A program that waits for its first call to be recorded is not started by what it prints. */
#define STREAM_CALL(type, function, params, ...)                                                   \
	static type(*real_##function) params;                                                      \
                                                                                                   \
	static type hook_##function params                                                         \
	{                                                                                          \
		uint64_t begin_ns = d9__block_is_inside() ? d9__block_begin() : 0;                 \
		type result;                                                                       \
                                                                                                   \
		if (__builtin_expect(!begin_ns, 1))                                                \
			return D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                       \
		result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                             \
		D9__BLOCK_END(begin_ns, name_of(stream, #function),                                \
			      D9__BLOCK_REAL(real_##function), -1);                                \
		return result;                                                                     \
	}

static FILE *(*real_popen)(const char *command, const char *mode);

static FILE *hook_popen(const char *command, const char *mode)
{
	uint64_t begin_ns = d9__block_begin();
	FILE *result = D9__BLOCK_REAL(real_popen)(command, mode);

	if (begin_ns)
		D9__BLOCK_END(begin_ns, "popen", D9__BLOCK_REAL(real_popen), -1);
	note_child(result);
	return result;
}

/* A stream that ends is no child's any more when its memory may be another one's. */
#define CLOSE_CALL(function)                                                                       \
	static int (*real_##function)(FILE * stream);                                              \
                                                                                                   \
	static int hook_##function(FILE *stream)                                                   \
	{                                                                                          \
		uint64_t begin_ns = d9__block_is_inside() ? d9__block_begin() : 0;                 \
		int result;                                                                        \
                                                                                                   \
		forget_child(stream);                                                              \
		result = D9__BLOCK_REAL(real_##function)(stream);                                  \
		if (begin_ns)                                                                      \
			D9__BLOCK_END(begin_ns, #function, D9__BLOCK_REAL(real_##function), -1);   \
		return result;                                                                     \
	}

STREAMS(STREAM_CALL)
CLOSE_CALL(pclose)
CLOSE_CALL(fclose)
RARE(D9__BLOCK_CALL)
RARE_IO(IO_CALL)
USUAL_IO(IO_CALL)
USUAL(D9__BLOCK_CALL)

/* Of fcntl() two commands wait; its argument is a number or a pointer. */
#define FCNTL(function)                                                                            \
	static int (*real_##function)(int fd, int command, void *argument);                        \
                                                                                                   \
	static int hook_##function(int fd, int command, void *argument)                            \
	{                                                                                          \
		bool waits = command == F_SETLKW || command == F_OFD_SETLKW;                       \
		uint64_t begin_ns = waits ? d9__block_begin() : 0;                                 \
		int result;                                                                        \
                                                                                                   \
		if (__builtin_expect(!begin_ns, 1))                                                \
			return D9__BLOCK_REAL(real_##function)(fd, command, argument);             \
		result = D9__BLOCK_REAL(real_##function)(fd, command, argument);                   \
		D9__BLOCK_END(begin_ns, "fcntl", D9__BLOCK_REAL(real_##function), fd);             \
		return result;                                                                     \
	}

FCNTL(fcntl)
FCNTL(fcntl64)

#define HOOK(type, function, ...)                                                                  \
	{ .name = #function, .replacement = (void *)hook_##function, .real = (void *)&real_##function, \
	  .place = D9__GOT_IN_OTHERS | D9__GOT_SCOPE },

const struct d9__got_hook d9__call_hooks[] = {
	RARE(HOOK) RARE_IO(HOOK) USUAL_IO(HOOK) USUAL(HOOK) STREAMS(HOOK) HOOK(int, fcntl)
	HOOK(int, fcntl64) HOOK(FILE *, popen) HOOK(int, pclose) HOOK(int, fclose)
};

#define COUNT(...) +1
_Static_assert(RARE(COUNT) RARE_IO(COUNT) == D9__CALL_HOOKS_RARE,
	       "the rest is the loop's own work");
_Static_assert(sizeof(d9__call_hooks) == D9__CALL_HOOKS * sizeof(d9__call_hooks[0]), "all of them");
