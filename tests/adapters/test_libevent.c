/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/libevent.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "support/d9_test.h"

#define OUR_ERRNO 4242

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static const void *table_of(const struct event_base *base)
{
	return *(const void *const *)(const void *)base;
}

static void test_attach_of_nothing_is_the_callers_mistake(void)
{
	CU_ASSERT_EQUAL(d9_event_base_attach(NULL), -EINVAL);
	CU_ASSERT_EQUAL(d9_event_base_attach_named(NULL, "loop"), -EINVAL);
}

/* The first test that attaches: before it there is nothing to tell. */
static void test_capabilities_are_empty_until_the_first_attach(void)
{
	struct event_base *base = event_base_new();
	char text[256], cut[8];

	CU_ASSERT_EQUAL(d9_event_base_capabilities(NULL, 0), 0);
	CU_ASSERT_EQUAL(d9_event_base_attach(base), 0);

	CU_ASSERT_EQUAL(d9_event_base_capabilities(text, sizeof(text)), (int)strlen(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "poll=full"));
	CU_ASSERT_EQUAL(d9_event_base_capabilities(cut, sizeof(cut)), (int)strlen(text));
	CU_ASSERT_EQUAL(strlen(cut), sizeof(cut) - 1);
	event_base_free(base);
}

static void test_attach_twice_is_the_same_as_once(void)
{
	struct event_base *base = event_base_new();
	const void *table;

	CU_ASSERT_EQUAL(d9_event_base_attach_named(base, "first"), 0);
	table = table_of(base);
	CU_ASSERT_EQUAL(d9_event_base_attach_named(base, "second"), 0);

	CU_ASSERT_PTR_EQUAL(table_of(base), table);
	event_base_free(base);
}

static void test_attach_keeps_errno(void)
{
	struct event_base *base = event_base_new();

	errno = OUR_ERRNO;
	d9_event_base_attach(base);

	CU_ASSERT_EQUAL(errno, OUR_ERRNO);
	event_base_free(base);
}

static void test_object_that_is_no_base_is_refused_and_not_written(void)
{
	static uintptr_t object[512], copy[512];

	object[0] = copy[0] = (uintptr_t)object;

	CU_ASSERT_EQUAL(d9_event_base_attach((struct event_base *)(void *)object), -ENOTSUP);
	CU_ASSERT_EQUAL(memcmp(object, copy, sizeof(object)), 0);
}

static void test_attached_base_keeps_its_method_and_features(void)
{
	struct event_base *plain = event_base_new(), *base = event_base_new();

	d9_event_base_attach(base);

	CU_ASSERT_PTR_NOT_EQUAL(table_of(base), table_of(plain));
	CU_ASSERT_PTR_EQUAL(event_base_get_method(base), event_base_get_method(plain));
	CU_ASSERT_EQUAL(event_base_get_features(base), event_base_get_features(plain));
	event_base_free(base);
	event_base_free(plain);
}

static void test_reinit_leaves_the_base_attached(void)
{
	struct event_base *base = event_base_new();
	const void *table;

	d9_event_base_attach(base);
	table = table_of(base);

	CU_ASSERT_EQUAL(event_reinit(base), 0);
	CU_ASSERT_PTR_EQUAL(table_of(base), table);
	event_base_free(base);
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* More bases than the registry holds at once, one after the other. */
static void test_bases_come_and_go_without_end(void)
{
	size_t heap = 0;
	unsigned fds = 0;

	for (int i = 0; i < 10000; i++) {
		struct event_base *base = event_base_new();

		if (d9_event_base_attach(base)) {
			CU_FAIL("a base could not be attached");
			event_base_free(base);
			return;
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
		event_base_free(base);
		if (i == 5000) {
			heap = d9_test_heap();
			fds = open_descriptors();
		}
	}
	CU_ASSERT_EQUAL(open_descriptors(), fds);
	/* The recorder's own thread packs meanwhile. */
	CU_ASSERT(SANITIZED || d9_test_heap() < heap + (1 << 20));
}

static _Atomic(bool) forked;

static void *attach_until_forked(void *arg)
{
	while (!forked) {
		struct event_base *base = event_base_new();

		d9_event_base_attach(base);
		event_base_free(base);
	}
	return arg;
}

/* An attach takes locks of the recorder under those of the adapter: a fork has to as well. */
static void test_fork_beside_a_thread_that_attaches_does_not_wait_for_ever(void)
{
	pthread_t thread;
	int failed = 0;

	pthread_create(&thread, NULL, attach_until_forked, NULL);
	alarm(120);
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();
		int status = -1;

		if (!pid)
			_exit(0);
		failed += pid < 0 || waitpid(pid, &status, 0) != pid || status;
	}
	alarm(0);
	forked = true;
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(failed, 0);
}

static void do_nothing(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static void test_getter_gives_the_callback_back_though_a_stub_stands_in_for_it(void)
{
	struct event_base *base = event_base_new();
	struct event *event = event_new(base, -1, 0, do_nothing, NULL);

	CU_ASSERT_NOT_EQUAL(event->ev_evcallback.evcb_cb_union.evcb_callback, do_nothing);
	CU_ASSERT_EQUAL(event_get_callback(event), do_nothing);
	event_free(event);
	event_base_free(base);
}

static void test_callback_that_is_null_stays_null(void)
{
	struct event_base *base = event_base_new();
	struct event *event = event_new(base, -1, 0, NULL, NULL);

	CU_ASSERT(event->ev_evcallback.evcb_cb_union.evcb_callback == NULL);
	event_free(event);
	event_base_free(base);
}

static CU_TestInfo tests[] = {
	{ "attach of nothing is the caller's mistake",
	  test_attach_of_nothing_is_the_callers_mistake },
	{ "capabilities are empty until the first attach",
	  test_capabilities_are_empty_until_the_first_attach },
	{ "attach twice is the same as once", test_attach_twice_is_the_same_as_once },
	{ "attach keeps errno", test_attach_keeps_errno },
	{ "object that is no base is refused and not written",
	  test_object_that_is_no_base_is_refused_and_not_written },
	{ "attached base keeps its method and features",
	  test_attached_base_keeps_its_method_and_features },
	{ "reinit leaves the base attached", test_reinit_leaves_the_base_attached },
	{ "bases come and go without end", test_bases_come_and_go_without_end },
	{ "fork beside a thread that attaches does not wait for ever",
	  test_fork_beside_a_thread_that_attaches_does_not_wait_for_ever },
	{ "getter gives the callback back though a stub stands in for it",
	  test_getter_gives_the_callback_back_though_a_stub_stands_in_for_it },
	{ "callback that is null stays null", test_callback_that_is_null_stays_null },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("libevent", tests);
}
