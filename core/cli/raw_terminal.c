/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/raw_terminal.h"

static struct termios before;
static bool changed, keys;
static volatile sig_atomic_t ended;

static void on_end(int signal)
{
	(void)signal;
	ended = 1;
}

static void take(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/*
 * Set the terminal to raw mode again, because the shell changed it while the process was stopped.
 * tcsetattr(3) is async-signal-safe.
 */
static void on_continue(int signal)
{
	int err = errno;

	(void)signal;
	if (changed)
		take();
	errno = err;
}

void d9__raw_terminal_end(void)
{
	if (changed)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	changed = false;
}

void d9__raw_terminal_begin(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	/* Without SA_RESTART, so that a signal ends the wait. */
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &(struct sigaction){ .sa_handler = on_end }, NULL);
	/* Leave the terminal alone in the background: the foreground job owns it. */
	if (tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &before))
		return;
	keys = changed = true;
	atexit(d9__raw_terminal_end);
	sigaction(SIGCONT, &(struct sigaction){ .sa_handler = on_continue, .sa_flags = SA_RESTART }, NULL);
	take();
}

bool d9__raw_terminal_quits(uint64_t ns)
{
	struct pollfd input = { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN };
	struct timespec left = d9__timespec_of(ns);
	char key = 0;

	if (ended)
		return true;
	if (ppoll(&input, 1, &left, NULL) > 0) {
		/* The terminal may have been closed. */
		if (read(STDIN_FILENO, &key, 1) != 1)
			keys = false;
		return key == 'q' || key == 'Q' || ended;
	}
	return ended;
}
