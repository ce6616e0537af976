#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that may have few descriptors, and need all of them: as many as alone, at the numbers that they get alone.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >few.c <<'END'
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <unistd.h>

static int left = 30;
static const char *how;

/* Until there are no more: how many, and the highest number. */
static void open_all(void)
{
	int fds[4096], n = 0, high = 0;

	while (n < 4096 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0) {
		high = fds[n] > high ? fds[n] : high;
		n++;
	}
	printf("%d descriptors, up to %d\n", n, high);
	while (n)
		close(fds[--n]);
}

static void at_numbers(void)
{
	static const int numbers[] = { 3, 9, 14, 15 };

	for (int i = 0; i < 4; i++) {
		int taken = fcntl(numbers[i], F_GETFD) >= 0;

		if (!taken && dup2(1, numbers[i]) != numbers[i])
			puts("refused");
		if (!taken)
			close(numbers[i]);
		printf("%d %s\n", numbers[i], taken ? "taken" : "free");
	}
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (left % 10 == 0 && !strcmp(how, "all"))
		open_all();
	if (left == 10 && !strcmp(how, "numbers"))
		at_numbers();
	if (left == 10 && !strcmp(how, "lowers")) {
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 16, 16 });
		open_all();
	}
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base;
	struct event *timer;

	how = argv[1];
	/* What was inherited is not counted. */
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
	if (argc > 2)
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)atoi(argv[2]), (rlim_t)atoi(argv[2]) });
	base = event_base_new();
	timer = event_new(base, -1, EV_PERSIST, on_timer, base);
	event_add(timer, &(struct timeval){ 0, 20000 });
	event_base_dispatch(base);
	puts("end");
	return 0;
}
END
cc -g -O2 -w -o few few.c -levent || exit 99

# same LIMIT ARGUMENT...: as alone.
same() {
	limit=$1
	shift
	(ulimit -n "$limit" && ./few "$@") >alone 2>&1
	rm -rf tr
	(ulimit -n "$limit" && "$dial9" record --quiet -o tr -- ./few "$@") >recorded 2>&1
	if cmp -s alone recorded; then
		echo "limit $limit, $*: as alone"
	else
		echo "limit $limit, $*:"
		diff alone recorded
	fi
	"$dial9" info tr | awk '$1 == "PollEndEvent" && $2 == 30 { print "all callbacks" }'
}

for limit in 24 28 32 64 256 400; do
	same $limit all
done
same 24 numbers
same 1024 all 28
same 1024 all 16
same 1024 lowers
finish ''
