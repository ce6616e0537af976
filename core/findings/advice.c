/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "findings/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot.h"
#include "findings/check_parts.h"

/* ---- where it sleeps ---- */

#define LOCKS                                                                                      \
	" futex: pthread_mutex_lock pthread_mutex_timedlock pthread_mutex_clocklock "              \
	"pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_timedrdlock "                  \
	"pthread_rwlock_timedwrlock "
/* Locks, and all else that threads wait for each other with. */
#define FUTEXES " futex futex_wait futex_wait_queue futex_wait_queue_me "
#define CONDITIONS                                                                                 \
	" pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait sem_wait sem_timedwait " \
	"sem_clockwait "
#define READS                                                                                      \
	" read readv pread preadv recv recvfrom recvmsg recvmmsg pipe_read "                       \
	"unix_stream_read_generic "
#define WRITES                                                                                     \
	" write writev pwrite pwritev send sendto sendmsg sendmmsg sendfile splice pipe_write "
#define STREAM_READS	" fgets fread getline getdelim "
#define STREAM_WRITES	" fflush fclose fputs fwrite printf fprintf vfprintf "
#define CONNECTS	" connect accept accept4 inet_stream_connect "
#define WAITS_FOR_CHILD " wait wait3 wait4 waitpid waitid do_wait system pclose popen "
#define LOOKS_UP_NAME	" getaddrinfo getnameinfo gethostbyname gethostbyaddr "
#define WAITS_FOR_DISK	" fdatasync fsync sync syncfs sync_file_range msync "
#define SLEEPS                                                                                     \
	" sleep usleep nanosleep clock_nanosleep pause sigsuspend hrtimer_nanosleep "

/*
 * They start a child, and sleep until it has a CPU and has loaded its program: the first by sharing
 * the memory with it until then, as posix_spawn() does by clone(); GLib's by a pipe.
 */
#define SHARES_MEMORY " clone clone3 kernel_clone wait_for_vfork_done "
#define STARTS_CHILD                                                                               \
	" posix_spawn posix_spawnp vfork g_subprocess_new g_subprocess_newv "                      \
	"g_subprocess_launcher_spawn g_subprocess_launcher_spawnv g_spawn_async "                  \
	"g_spawn_async_with_fds g_spawn_async_with_pipes g_spawn_async_with_pipes_and_fds "        \
	"g_spawn_command_line_async "

/* These end without any other thread or process that would have to run. */
#define NEEDS_NOBODY WAITS_FOR_DISK SLEEPS

/* They come back at once, and are asked again by who waits for another thread. */
#define ASKS_FOR_LOCK " pthread_spin_lock pthread_spin_trylock pthread_mutex_trylock "
#define ASKS_FOR_TURN " sched_yield pthread_yield thrd_yield g_thread_yield "

struct remedy {
	const char *names; /* between spaces */
	const char *advice;
	const char *library; /* NULL: any */
};

/*
 * By the name in front of the parenthesis, by which programs call the system call, or by that of
 * the kernel's function.  Of several lines the first is taken whose loop library is the trace's.
 */
static const struct remedy slept[] = {
	{ LOCKS, "Hold the lock for a few instructions only, never across a system call: it waits "
		 "for the thread "
		 "that has it." },
	{ FUTEXES,
	  "Hold a lock for a few instructions only, never across a system call; for a result (a "
	  "future, a latch, a condition) do not wait, but let the other thread hand it over by a "
	  "queue and wake the loop (eventfd, event_active(), ev_async, g_idle_add()): it waits for "
	  "another thread, for what is not known." },
	{ CONDITIONS,
	  "Let the other thread hand the result over by a queue and wake the loop (eventfd, "
	  "event_active(), ev_async, g_idle_add()): it waits for another thread to come so far." },
	{ " pthread_join pthread_timedjoin_np pthread_tryjoin_np thrd_join ",
	  "Have the thread hand the result over and wake the loop at its end (event_active(), "
	  "ev_async, g_idle_add()), "
	  "and join it then, or never (pthread_detach()): it waits for the end of a thread." },
	{ WAITS_FOR_DISK, "Do it in a thread, and answer when that has told the loop; join several "
			  "into one; or let the kernel "
			  "write when it likes, if that may be lost. It waits for the disk." },
	{ SLEEPS, "Set a timer, return, and go on in the timer's callback: it sleeps, and its loop "
		  "with it." },
	{ " poll ppoll select pselect epoll_wait sigwait do_sys_poll do_select ep_poll ",
	  "Give the descriptors to the loop (event_new(), ev_io, g_unix_fd_add()) and a timer for "
	  "the longest "
	  "time, or call what ends in ..._async(), and return: it waits for them itself, by "
	  "poll(), a synchronous "
	  "call (getaddrinfo(), ..._sync()) or a loop of its own." },
	{ READS, "Make the descriptor non-blocking (O_NONBLOCK) and read when the loop says that "
		 "it is ready; files have "
		 "no such state, so read them in a thread. It reads what has not come yet, from a "
		 "peer or a child." },
	{ WRITES, "Make the descriptor non-blocking (O_NONBLOCK) and keep what does not fit until "
		  "it is writable; files "
		  "have no such state, so write them in a thread. It writes to what is full, as "
		  "descriptors 1 and 2 are "
		  "if nobody reads the log, or to a slow disk." },
	{ STREAM_READS,
	  "Read the descriptor when the loop says that it is readable (fileno(), O_NONBLOCK), and "
	  "files in a thread: stdio waits in it for what has not come yet." },
	{ STREAM_WRITES,
	  "Write in a thread, or keep lines in memory and write() them when the loop says that the "
	  "descriptor takes them (O_NONBLOCK, but not below stdio, which loses what does not fit): "
	  "stdio waits in it for who reads the log, or for a slow disk." },
	{ CONNECTS, "Make the socket non-blocking (O_NONBLOCK) before, and let the loop tell when "
		    "it is ready: it waits for "
		    "the peer." },
	{ WAITS_FOR_CHILD,
	  "Let the loop tell of the child's end by an event on SIGCHLD (evsignal_new()), whose "
	  "callback asks waitpid() "
	  "with WNOHANG: this one waits for a child.",
	  "libevent" },
	{ WAITS_FOR_CHILD,
	  "Let the loop tell of the child's end by a watcher for it (ev_child_start() on the "
	  "default loop), whose "
	  "callback has its status: this one waits for a child.",
	  "libev" },
	{ WAITS_FOR_CHILD,
	  "Let the loop tell of the child's end by g_child_watch_add(), or "
	  "g_subprocess_wait_async() of a GSubprocess, "
	  "instead of g_spawn_sync() and the like: this one waits for a child.",
	  "glib" },
	{ WAITS_FOR_CHILD, "Let the loop tell of the child's end (evsignal_new() on SIGCHLD, "
			   "ev_child, g_child_watch_add()): it waits for "
			   "a child." },
	{ SHARES_MEMORY STARTS_CHILD,
	  "Let a small helper process, forked early and asked by a socket, start the children, or "
	  "keep a pool of workers instead of a child for each job: the caller sleeps until its "
	  "child has a CPU and has loaded its program, longer on a loaded machine, from a slow "
	  "disk, and where fork() has much memory to copy." },
	{ LOOKS_UP_NAME,
	  "Let the loop wait for the answer: evdns_getaddrinfo(), or "
	  "bufferevent_socket_connect_hostname() with an "
	  "evdns_base. It asks name servers, which may take seconds.",
	  "libevent" },
	{ LOOKS_UP_NAME,
	  "Let the loop wait for the answer: g_resolver_lookup_by_name_async(), or a "
	  "GSocketClient. It asks name servers, "
	  "which may take seconds.",
	  "glib" },
	{ LOOKS_UP_NAME, "Look names up in a thread, or by a library that fits into the loop "
			 "(c-ares): it asks name servers, which may "
			 "take seconds." },
	{ " flock lockf fcntl locks_lock_inode_wait ",
	  "Ask without waiting (LOCK_NB, F_SETLK) and try again by a timer, or lock in a thread: "
	  "another process "
	  "holds the lock on the file." },
	{ " mmap munmap mremap mprotect madvise brk vm_mmap_pgoff __vm_munmap "
	  "rwsem_down_read_slowpath "
	  "rwsem_down_write_slowpath ",
	  "Keep memory and use it again, here and in the other threads, or change mappings in "
	  "small "
	  "pieces: threads of one process take turns to map, to unmap and to have new pages, and "
	  "it waits for its turn." },
	{ " open openat creat access stat readdir rename unlink mkdir ftruncate fallocate close "
	  "copy_file_range ",
	  "Keep files open, and do such work in a thread: it waits for a file system." },
};

static const char read_again[] = "Return where a read says EAGAIN, and go on when the loop says "
				 "that the descriptor is readable: it asks again "
				 "and again for what has not come.";
static const char write_again[] = "Wait for writability (EV_WRITE, G_IO_OUT): keep what the "
				  "descriptor does not take, return where a write says "
				  "EAGAIN, and go on when the loop says that it is writable. It "
				  "tries again and again meanwhile.";

/* ---- where it computes, by the function outside of the program that it calls ---- */

static const struct remedy computed[] = {
	{ " fork vfork Fork clone clone3 forkpty daemon ",
	  "Start children by posix_spawn(): fork() copies the tables of all the memory that the "
	  "process has, and the more "
	  "that is the longer the loop stands. Or fork early, and have that child start others." },
	{ " clock_gettime gettimeofday time timespec_get ",
	  "Take the loop's time (event_base_gettimeofday_cached(), ev_now(), g_source_get_time()), "
	  "or set a timer where "
	  "it waits for a moment: it asks for the time again and again." },
	{ " malloc calloc realloc free aligned_alloc posix_memalign g_malloc g_malloc0 g_free "
	  "g_slice_alloc g_slice_free1 malloc_trim ",
	  "Allocate less: keep objects and buffers for the next time, or take one block for many "
	  "(an arena), and free it at once." },
	{ " SSL_do_handshake SSL_accept SSL_connect SSL_read SSL_write gnutls_handshake "
	  "EVP_PKEY_sign EVP_PKEY_sign_message_final EVP_DigestSign EVP_DigestSignFinal RSA_sign "
	  "RSA_private_encrypt ",
	  "Have clients resume sessions (tickets, a cache), take an ECDSA key instead of RSA, or "
	  "let "
	  "a thread or a proxy in front shake hands: a handshake signs with the private key." },
	{ ASKS_FOR_LOCK,
	  "Hold the lock for a few instructions only, or give the loop a copy of its own: another "
	  "thread has the lock, and the CPU is busy with asking for it again and again." },
	{ ASKS_FOR_TURN,
	  "Let the other thread hand the result over by a queue and wake the loop (eventfd, "
	  "event_active(), ev_async, g_idle_add()): it asks again and again whether another "
	  "thread has come so far." },
};

/* Whether the call at |place|, "fdatasync(7)", is among |names|. */
static bool is_among(const char *place, const char *names)
{
	size_t len = strcspn(place, "( ");
	char name[64];

	snprintf(name, sizeof(name), " %.*s ", (int)(len < 48 ? len : 48), place);
	return len && strstr(names, name);
}

void d9__finding_asleep(const char *place, char *buf, size_t size)
{
	static const char futex[] = "futex: ";

	if (!strncmp(place, futex, strlen(futex)))
		snprintf(buf, size, "waiting for %.64s", place + strlen(futex));
	else if (is_among(place, SHARES_MEMORY))
		snprintf(buf, size, "in posix_spawn()");
	else
		snprintf(buf, size, "in %.64s", place);
}

/*
 * Whether |callback|'s calls have the loop wait for a child.  GLib's tasks, which are told when
 * they run first, have no maker: there are about as many of them as calls.
 */
static bool makes_child_watches(const struct d9__callbacks *callbacks,
				const struct d9__callback *callback)
{
	uint64_t its = 0, unknown = 0;
	char kinds[64];

	for (size_t i = 0; i < callbacks->n; i++) {
		const struct d9__callback *made = callbacks->items[i];

		if (strcmp(d9__callback_kinds(callbacks, made, kinds, sizeof(kinds)), "child") != 0)
			continue;
		if (made->maker == callback)
			its += made->spawned;
		else if (!made->maker)
			unknown += made->spawned;
	}
	return (its && 2 * its >= callback->calls) ||
	       (unknown && 2 * unknown >= callback->calls && unknown <= 2 * callback->calls);
}

/*
 * Whether |place| is a read that the program did not make, as none of |callback|'s was told:
 * GLib's, of the pipe by which its child says that it could load its program.
 */
static bool is_read_of_library(const struct d9__analysis *a, const struct d9__callback *callback,
			       const char *place)
{
	const char *blocking = d9__metadata_value(&a->metadata, "source.blocking");
	struct d9__blocked_site *sites;
	bool told = false;
	size_t n;

	if (!is_among(place, " read pipe_read ") || !blocking || strcmp(blocking, "on") != 0)
		return false;
	sites = d9__blocked_sites(&a->blocked, callback, &n);
	for (size_t i = 0; sites && i < n; i++)
		told |= is_among(sites[i].calls.function, READS);
	free(sites);
	return !told;
}

const char *d9__advice_starts_child(const struct d9__findings *findings,
				    const struct d9__callback *callback, const char *place)
{
	const char *call = d9__hot_called(callback);
	bool found = call && is_among(call, STARTS_CHILD);

	if (is_among(place, SHARES_MEMORY))
		return found ? call : "posix_spawn";
	if (is_among(place, STARTS_CHILD))
		return place;
	if (place[0] && !is_read_of_library(findings->analysis, callback, place))
		return NULL;
	if (found)
		return call;
	return makes_child_watches(&findings->analysis->callbacks, callback) ? "" : NULL;
}

bool d9__advice_is_io(const char *function)
{
	return is_among(function, READS WRITES CONNECTS STREAM_READS STREAM_WRITES);
}

static const char *find(const struct d9__findings *findings, const struct remedy *remedies,
			size_t n, const char *place)
{
	const struct d9__metadata *metadata = &findings->analysis->metadata;

	for (size_t i = 0; i < n; i++)
		if (is_among(place, remedies[i].names) &&
		    (!remedies[i].library || d9__metadata_is_only(metadata, remedies[i].library)))
			return remedies[i].advice;
	return NULL;
}

const char *d9__advice_child(const struct d9__findings *findings)
{
	return find(findings, slept, sizeof(slept) / sizeof(slept[0]), "posix_spawn");
}

/* Where a call says EAGAIN its descriptor is non-blocking already. */
const char *d9__advice_slept(const struct d9__findings *findings,
			     const struct d9__callback *callback, const char *place)
{
	struct d9__io io = d9__callback_io(callback);

	if (io.again && is_among(place, READS) && io.reads >= io.writes)
		return read_again;
	if (io.again && is_among(place, WRITES) && io.writes >= io.reads)
		return write_again;
	return find(findings, slept, sizeof(slept) / sizeof(slept[0]), place);
}

const char *d9__advice_sleeps(bool pages)
{
	if (pages)
		return "Have the pages read before they are needed (posix_fadvise(), madvise(), or "
		       "a thread that reads "
		       "the file), or keep them in memory (mlock()): what the callback touches is "
		       "in a file that is "
		       "mapped, or in swap, and its loop waits for the disk.";
	return "Let the loop wait instead (an event for the answer, a timer for the pause), or "
	       "move it "
	       "to a thread: it sleeps inside the callback, and its loop with it.";
}

bool d9__finding_looks_starved(const struct d9__findings *findings, const struct d9__stall *stall,
			       const char *place)
{
	return d9__stall_is_blocked(stall) &&
	       d9__stall_slept_ns(stall) <= d9__ready_longest_ns(findings->analysis) &&
	       !is_among(place, NEEDS_NOBODY);
}

/* ---- what samples found ---- */

static const char *in_kernel(const struct d9__callback *callback)
{
	struct d9__io io = d9__callback_io(callback);

	if (2 * io.again >= d9__io_calls(&io) && io.again)
		return io.writes > io.reads ? write_again : read_again;
	return "Do large reads and writes in a thread, and join small system calls: it computes, "
	       "and most of that in the "
	       "kernel. strace -c -p PID counts the calls.";
}

static const char *of_library(const struct d9__findings *findings,
			      const struct d9__callback *callback)
{
	if (d9__callback_is_glib(callback))
		return "Look at what is connected to the object, or put a span (dial9-span(3)) "
		       "around your part to "
		       "name it: this is GLib's own and may call yours (handlers of signals, "
		       "methods of D-Bus "
		       "objects, callbacks of asynchronous calls), which cannot be told apart "
		       "here.";
	if (strstr(callback->location, "TLS handshake"))
		return find(findings, computed, sizeof(computed) / sizeof(computed[0]),
			    "SSL_do_handshake");
	return "Look at what it does for you (large reads and writes, many headers, name "
	       "resolution), at filters, log and memory functions it calls: it is the loop "
	       "library's own, and what it calls of yours is told apart where that is recorded.";
}

bool d9__advice_asks_again(const struct d9__callback *callback)
{
	const char *call = d9__hot_called(callback);

	return call && is_among(call, ASKS_FOR_LOCK ASKS_FOR_TURN);
}

const char *d9__advice_computes(const struct d9__findings *findings,
				const struct d9__callback *callback)
{
	const char *call = d9__hot_called(callback);
	struct d9__io io = d9__callback_io(callback);

	if (!call)
		return NULL;
	if (io.again && 2 * io.again >= d9__io_calls(&io)) {
		if (is_among(call, WRITES))
			return write_again;
		if (is_among(call, READS))
			return read_again;
	}
	return find(findings, computed, sizeof(computed) / sizeof(computed[0]), call);
}

const char *d9__advice_long(const struct d9__findings *findings,
			    const struct d9__callback *callback, enum d9__stall_verdict verdict,
			    bool preempted)
{
	const char *advice = d9__advice_computes(findings, callback);

	if (preempted)
		return "Run fewer programs on this machine, give it more cores or this program a "
		       "higher priority, "
		       "and leave the callback as it is: the kernel ran something else in the "
		       "middle of it, as it "
		       "seems.";
	if (callback->internal && !callback->inner)
		return of_library(findings, callback);
	if (verdict != D9__STALL_OFF_CPU && advice)
		return advice;
	if (verdict != D9__STALL_OFF_CPU && d9__finding_is_in_kernel(callback))
		return in_kernel(callback);
	switch (verdict) {
	case D9__STALL_COMPUTING:
		return "Cut the work into pieces that yield to the loop, or move it to a thread: "
		       "it computes.";
	case D9__STALL_OFF_CPU:
		return "Make the call in it that waits asynchronous, or move it to a thread. If "
		       "there is none, the "
		       "kernel ran something else in the middle of it (see short of CPU).";
	default:
		return "Cut it into pieces, or move it to a thread; the trace does not tell "
		       "whether it computes or "
		       "waits.";
	}
}
