/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints all that a program can see of itself: descriptors, signal dispositions and mask, errno after
 * calls of libevent, the environment of a child, its child's descriptors.
 *
 *	unnoticed [STATUS]
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

static int calls;

/*
 * Below 200: above lies one of dial9's per loop thread, close-on-exec and gone in a forked child, from
 * which it reads the thread's CPU and run-queue time.
 */
static void print_descriptors(const char *when, int below)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char fds[1024] = { 0 };

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir) &&
		    atoi(entry->d_name) < (int)sizeof(fds))
			fds[atoi(entry->d_name)] = 1;
	if (dir)
		closedir(dir);
	printf("%s: descriptors", when);
	for (int i = 0; i < below; i++)
		if (fds[i])
			printf(" %d", i);
	printf("\n");
}

static void print_signals(void)
{
	struct sigaction action;
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int sig = 1; sig < 65; sig++) {
		if (sigaction(sig, NULL, &action) < 0)
			continue;
		if (action.sa_handler != SIG_DFL || sigismember(&mask, sig))
			printf("signal %d: %s%s\n", sig,
			       action.sa_handler == SIG_IGN ? "ignored" : action.sa_handler == SIG_DFL ?
			       "default" : "handled", sigismember(&mask, sig) ? ", blocked" : "");
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	printf("call %d, errno %d\n", ++calls, errno);
	errno = 40 + calls;
}

static void print_child(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		print_descriptors("child", 1024);
		fflush(stdout);
		_exit(3);
	}
	waitpid(child, &status, 0);
	printf("child: status %d\n", WEXITSTATUS(status));
	fflush(stdout);
	if (system("ls /proc/self/fd | tr '\\n' ' '") != 0)
		printf("system() failed\n");
	printf("\n");
}

int main(int argc, char **argv)
{
	const struct timeval soon = { .tv_usec = 2000 };
	struct event_base *base;
	struct event *timer;

	print_descriptors("start", 200);
	print_signals();
	errno = 33;
	base = event_base_new();
	printf("base made, errno %d, method %s\n", errno, event_base_get_method(base));
	timer = event_new(base, -1, EV_PERSIST, on_timer, NULL);
	event_add(timer, &soon);
	while (calls < 5) {
		errno = 34;
		printf("loop %d, errno %d\n", event_base_loop(base, EVLOOP_ONCE), errno);
	}
	print_descriptors("running", 200);
	print_child();
	event_free(timer);
	event_base_free(base);
	print_descriptors("end", 200);
	print_signals();
	fprintf(stderr, "done\n");
	return argc > 1 ? atoi(argv[1]) : 0;
}
