/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/open_page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFE_MS 60000 /* a browser that starts has read it by then */

extern char **environ;

/* True if only this user, or root, can put a file into |path|. */
static bool is_own(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && !stat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Return the directory for the page, NULL if there is none.  It is not a hidden one at home,
 * because browsers in a sandbox see none of these.
 */
static const char *own_directory(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
	const struct passwd *user;

	if (is_own(runtime))
		return runtime;
	if (is_own(home))
		return home;
	user = getpwuid(geteuid());
	return user && is_own(user->pw_dir) ? user->pw_dir : NULL;
}

static int name_page(struct d9__open_page *page)
{
	const char *directory = own_directory();
	uint64_t number;

	if (!directory)
		return -ENODATA;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -EIO;
	return asprintf(&page->path, "%s/dial9-%016llx.html", directory, (unsigned long long)number) < 0 ? -ENOMEM : 0;
}

static int write_page(const char *path, const char *url)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), len;

	if (fd < 0)
		return -errno;
	len = dprintf(fd,
		      "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
		      "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n<title>dial9</title>\n<a href=\"%s\">dial9</a>\n",
		      url, url);
	if (close(fd) || len < 0) {
		unlink(path);
		return -EIO;
	}
	return 0;
}

/* In the helper: remove |path| after a minute, or when the other end of |until| has been closed. */
static void remove_later(const char *path, int until)
{
	struct pollfd end = { .fd = until };

	setsid(); /* the terminal may go, and its signals are not for this */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	dup2(until, STDIN_FILENO);
	for (int fd = STDOUT_FILENO; fd < 1024; fd++)
		close(fd);
	end.fd = STDIN_FILENO;
	poll(&end, 1, LIFE_MS);
	unlink(path);
}

/* Start the helper detached from this process, so that no process waits for it.  0 or -errno. */
static int start_helper(struct d9__open_page *page)
{
	int ends[2], err = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child == 0) {
		close(ends[1]);
		if (fork() == 0)
			remove_later(page->path, ends[0]);
		_exit(0);
	}
	if (child < 0)
		err = -errno;
	else
		waitpid(child, NULL, 0);
	close(ends[0]);
	if (err)
		close(ends[1]);
	else
		page->until = ends[1];
	return err;
}

static int start_browser(char *path)
{
	char program[] = "xdg-open", *argv[] = { program, path, NULL };

	return -posix_spawnp(&(pid_t) { 0 }, program, NULL, NULL, argv, environ);
}

int d9__open_page(struct d9__open_page *page, const char *url)
{
	int err = name_page(page);

	if (!err)
		err = write_page(page->path, url);
	if (err) {
		free(page->path);
		page->path = NULL;
		return err;
	}
	err = start_helper(page);
	if (!err)
		err = start_browser(page->path);
	if (err)
		d9__open_page_end(page);
	return err;
}

void d9__open_page_end(struct d9__open_page *page)
{
	if (!page->path)
		return;
	unlink(page->path);
	if (page->until > 0)
		close(page->until);
	free(page->path);
	*page = (struct d9__open_page){ 0 };
}
