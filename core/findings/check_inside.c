/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of calls, by the thread's own figures: where they sleep, what they compute. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/stalls.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* ---- where it sleeps ---- */

#define WAITS_FOR_CHILD " wait wait3 wait4 waitpid waitid do_wait system pclose popen "
#define LOOKS_UP_NAME	" getaddrinfo getnameinfo gethostbyname gethostbyaddr "
#define WAITS_FOR_DISK	" fdatasync fsync sync syncfs sync_file_range msync "
#define SLEEPS		" sleep usleep nanosleep clock_nanosleep pause sigsuspend hrtimer_nanosleep "

/* These end without any other thread or process that would have to run. */
#define NEEDS_NOBODY WAITS_FOR_DISK SLEEPS

/*
 * Advice by the name in front of the parenthesis, by which programs call the system call, or by that of the kernel's
 * function.  Of several lines the first is taken whose loop library is the trace's.
 */
static const struct {
	const char *names; /* between spaces */
	const char *advice;
	const char *library; /* NULL: any */
} remedies[] = {
	{ " futex: futex futex_wait futex_wait_queue futex_wait_queue_me ",
	  "Hold locks for a few instructions only, never across a system call; hand results over by a queue and "
	  "wake the loop (eventfd, ev_async, g_idle_add), instead of waiting for them. It waits for another "
	  "thread: for a lock, a condition, or its end." },
	{ WAITS_FOR_DISK,
	  "Do it in a thread, and answer when that has told the loop; join several into one; or let the kernel "
	  "write when it likes, if that may be lost. It waits for the disk." },
	{ SLEEPS,
	  "Set a timer, return, and go on in the timer's callback: it sleeps, and its loop with it." },
	{ " poll ppoll select pselect epoll_wait sigwait do_sys_poll do_select ep_poll ",
	  "Give the descriptors to the loop (event_new(), ev_io, g_unix_fd_add()) and a timer for the longest "
	  "time, or call what ends in ..._async(), and return: it waits for them itself, by poll(), a synchronous "
	  "call (getaddrinfo(), ..._sync()) or a loop of its own." },
	{ " read readv pread preadv recv recvfrom recvmsg recvmmsg pipe_read unix_stream_read_generic ",
	  "Make the descriptor non-blocking and read when the loop says that it is ready; files have no such "
	  "state, so read them in a thread. It reads what has not come yet, from a peer or a child (popen())." },
	{ " write writev pwrite pwritev send sendto sendmsg sendmmsg sendfile splice pipe_write ",
	  "Make the descriptor non-blocking and keep what does not fit until it is writable; files have no such "
	  "state, so write them in a thread. It writes to what is full, as descriptors 1 and 2 are if nobody reads "
	  "the log, or to a slow disk." },
	{ " connect accept inet_stream_connect ",
	  "Make the socket non-blocking before, and let the loop tell when it is ready: it waits for the peer." },
	{ WAITS_FOR_CHILD,
	  "Let the loop tell of the child's end by an event on SIGCHLD (evsignal_new()), whose callback asks waitpid() "
	  "with WNOHANG: this one waits for a child.", "libevent" },
	{ WAITS_FOR_CHILD,
	  "Let the loop tell of the child's end by a watcher for it (ev_child_start() on the default loop), whose "
	  "callback has its status: this one waits for a child.", "libev" },
	{ WAITS_FOR_CHILD,
	  "Let the loop tell of the child's end by g_child_watch_add(), or g_subprocess_wait_async() of a GSubprocess, "
	  "instead of g_spawn_sync() and the like: this one waits for a child.", "glib" },
	{ WAITS_FOR_CHILD,
	  "Let the loop tell of the child's end (evsignal_new() on SIGCHLD, ev_child, g_child_watch_add()): it waits for "
	  "a child." },
	{ LOOKS_UP_NAME,
	  "Let the loop wait for the answer: evdns_getaddrinfo(), or bufferevent_socket_connect_hostname() with an "
	  "evdns_base. It asks name servers, which may take seconds.", "libevent" },
	{ LOOKS_UP_NAME,
	  "Let the loop wait for the answer: g_resolver_lookup_by_name_async(), or a GSocketClient. It asks name servers, "
	  "which may take seconds.", "glib" },
	{ LOOKS_UP_NAME,
	  "Look names up in a thread, or by a library that fits into the loop (c-ares): it asks name servers, which may "
	  "take seconds.", NULL },
	{ " flock lockf fcntl locks_lock_inode_wait ",
	  "Ask without waiting (LOCK_NB, F_SETLK) and try again by a timer, or lock in a thread: another process "
	  "holds the lock on the file." },
	{ " open openat creat access stat readdir rename unlink mkdir ftruncate fallocate close copy_file_range ",
	  "Keep files open, and do such work in a thread: it waits for a file system." },
};

/* Whether the call at |place|, "fdatasync(7)", is among |names|. */
static bool is_among(const char *place, const char *names)
{
	size_t len = strcspn(place, "( ");
	char name[64];

	snprintf(name, sizeof(name), " %.*s ", (int)(len < 48 ? len : 48), place);
	return len && strstr(names, name);
}

const char *d9__finding_remedy(const struct d9__findings *findings, const char *place)
{
	const struct d9__metadata *metadata = &findings->analysis->metadata;

	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (is_among(place, remedies[i].names) &&
		    (!remedies[i].library || d9__metadata_is_only(metadata, remedies[i].library)))
			return remedies[i].advice;
	return NULL;
}

bool d9__finding_looks_starved(const struct d9__findings *findings, const struct d9__stall *stall, const char *place)
{
	return d9__stall_is_blocked(stall) && stall->blocked_ns <= d9__ready_longest_ns(findings->analysis) &&
	       !is_among(place, NEEDS_NOBODY);
}

void d9__finding_asleep(const char *place, char *buf, size_t size)
{
	static const char futex[] = "futex: ";

	if (!strncmp(place, futex, strlen(futex)))
		snprintf(buf, size, "waiting for %.64s", place + strlen(futex));
	else
		snprintf(buf, size, "in %.64s", place);
}

void d9__finding_add_places(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *callback)
{
	char text[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < callback->n_asleep && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s (%s calls)", i ? ", " : "",
					 callback->asleep[i].place, d9__units_count(callback->asleep[i].calls).text);
	if (callback->n_asleep)
		d9__finding_add_evidence(findings, finding, NULL, "found asleep in %s", text);
}

/* ---- what it computes ---- */

/* A fault costs a quarter of a microsecond at least: with all of them, one in so many parts of the time. */
#define FAULT_NS   250
#define FAULT_PART 10

/* In a guest of a busy host it costs up to so much; then the kernel's share of the time says what the faults take. */
#define FAULT_MOST_NS 20000

/* So many calls have to have many. */
#define FAULTY_CALLS 3

bool d9__finding_is_in_kernel(const struct d9__callback *callback)
{
	uint64_t cpu_ns = callback->inside.user_ns + callback->inside.system_ns;

	return cpu_ns >= 5 * D9__MS_NS && 10 * callback->inside.system_ns >= 6 * cpu_ns &&
	       2 * cpu_ns >= callback->inside.own_ns;
}

/* Size of a page on the machine that recorded; 4096, as on x86, where the trace does not say it or tells nonsense. */
static uint64_t page_bytes(const struct d9__metadata *metadata)
{
	const char *text = d9__metadata_value(metadata, "system.page_bytes");
	unsigned long long bytes = text ? strtoull(text, NULL, 10) : 0;

	return bytes >= 4096 && bytes <= (1 << 20) ? bytes : 4096;
}

static void page_faults(struct d9__findings *findings, const struct d9__callback *callback)
{
	uint64_t each = callback->inside.faults / callback->inside.calls;
	uint64_t ns = callback->inside.own_ns / callback->inside.calls;
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, ns > 50 * D9__MS_NS ? D9__CRITICAL : D9__WARNING, callback->inside.faults,
		"Keep the buffer for the next call (M_MMAP_THRESHOLD_ and M_TRIM_THRESHOLD_ in mallopt(3) have "
		"malloc keep it), or read in smaller pieces: in each call memory is asked of the kernel, filled "
		"with zeros page by page when it is touched first, and given back, by a large buffer that is "
		"allocated and freed or a mapping that is made and removed.",
		"%.*s has %s page faults a call, %s of memory that is new to it, and takes %s each time: keep the "
		"buffer.",
		name.len, name.text, d9__units_count(each).text,
		d9__units_bytes(page_bytes(&findings->analysis->metadata) * each).text, d9__units_ns(ns).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "%s page faults a call: keep the buffer", d9__units_count(each).text);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence){ .callback = callback,
					.task = callback->n_stalls ? callback->stalls[0].stall->task : 0 },
		"%s faults in %s calls of over 1 ms; %s of their CPU time in the kernel",
		d9__units_count(callback->inside.faults).text, d9__units_count(callback->inside.calls).text,
		d9__units_percent((double)callback->inside.system_ns /
				  (double)(callback->inside.user_ns + callback->inside.system_ns + 1)).text);
	d9__finding_explain(findings, finding, callback);
}

static bool takes_faults(const struct d9__callback *callback)
{
	uint64_t faults = callback->inside.faults, system_ns = callback->inside.system_ns;
	uint64_t cpu_ns = callback->inside.user_ns + system_ns;

	return FAULT_PART * FAULT_NS * faults >= cpu_ns ||
	       (4 * system_ns >= cpu_ns && FAULT_MOST_NS * faults >= system_ns);
}

void d9__check_page_faults(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++) {
		const struct d9__callback *callback = callbacks->items[i];

		if (callback->inside.faulty_calls >= FAULTY_CALLS &&
		    2 * callback->inside.faulty_calls >= callback->inside.calls &&
		    takes_faults(callback) &&
		    !d9__finding_is_explained(findings, callback))
			page_faults(findings, callback);
	}
}
