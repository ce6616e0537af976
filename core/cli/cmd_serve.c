/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/cmd.h"
#include "cli/data_path.h"
#include "cli/segment_summary.h"
#if WITH_LIBEVENT
#include "serve/server.h"
#endif

extern char **environ;

enum key {
	KEY_OPEN = 256,
	KEY_SUMMARY,
};

static const struct d9__opt opts[] = {
	{ 'p', "port", "N", "listen on this port of 127.0.0.1 (one that is free)" },
	{ KEY_OPEN, "open", NULL, "open the address in the desktop's browser" },
	{ KEY_SUMMARY, "summary", NULL, "print what the page of many segments knows of one, as JSON" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "serve",
	.synopsis = "[OPTIONS] TRACE",
	.text = "Show a trace, a directory or a segment, in the browser.  Prints the address, "
		"which holds a secret: who\n"
		"knows it, on this machine, can read the trace.  Ends at SIGINT (Ctrl-C) or "
		"SIGTERM.\n",
	.opts = opts,
};

#if WITH_LIBEVENT
/* The desktop's browser; that there is none is no failure, for the address was printed. */
static void open_browser(const char *url)
{
	char program[] = "xdg-open", *argv[] = { program, (char *)url, NULL };
	int err;

	err = posix_spawnp(&(pid_t) { 0 }, program, NULL, NULL, argv, environ);
	if (err)
		d9__cmd_fail("serve", "cannot start xdg-open: %s", strerror(err));
}

static int run(const struct d9__server_options *options, bool open)
{
	struct d9__server *server = NULL;
	int err = d9__server_new(options, &server);

	if (err == -ENODATA)
		return d9__cmd_fail(
			"serve", "%s: no segments; give a directory that holds trace.*.bin* files",
			options->trace);
	if (err == -EADDRINUSE || err == -EACCES)
		return d9__cmd_fail("serve", "cannot listen on port %u: %s", options->port,
				    strerror(-err));
	if (err)
		return d9__cmd_fail("serve", "%s: %s", options->trace, strerror(-err));
	puts(d9__server_url(server));
	if (fflush(stdout))
		err = -errno;
	if (!err && open)
		open_browser(d9__server_url(server));
	if (!err)
		err = d9__server_run(server);
	d9__server_free(server);
	return err ? d9__cmd_fail("serve", "%s", strerror(-err)) : D9__EXIT_OK;
}

static int serve(const char *trace, uint16_t port, bool open)
{
	char *assets = NULL;
	int err = d9__data_path(&assets), status;

	if (err == -ENOENT)
		return d9__cmd_fail(
			"serve",
			"the viewer's files are not there: they are installed as " PKGDATADIR
			"/viewer");
	if (err)
		return d9__cmd_fail("serve", "%s", strerror(-err));
	status =
		run(&(struct d9__server_options) { .trace = trace, .assets = assets, .port = port },
		    open);
	free(assets);
	return status;
}
#else
static int serve(const char *trace, uint16_t port, bool open)
{
	(void)trace;
	(void)port;
	(void)open;
	return d9__cmd_fail("serve",
			    "this dial9 was built without libevent, whose HTTP server it needs");
}
#endif

static bool parse_port(const struct d9__args *args, uint16_t *out)
{
	uint64_t n;

	if (!d9__args_u64(args, &n))
		return false;
	if (n > UINT16_MAX) {
		d9__cmd_fail("serve", "--port takes 0 to %u", UINT16_MAX);
		return false;
	}
	*out = (uint16_t)n;
	return true;
}

int d9__cmd_serve(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	uint16_t port = 0;
	bool open = false, summary = false;
	int key;

	while ((key = d9__args_next(&args)) > 0) {
		if (key == KEY_OPEN)
			open = true;
		else if (key == KEY_SUMMARY)
			summary = true;
		else if (!parse_port(&args, &port))
			return D9__EXIT_USAGE;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (args.first != argc - 1)
		return d9__cmd_fail(
			"serve",
			args.first == argc
				? "which TRACE? see dial9 serve --help"
				: "one TRACE at a time; a directory may hold several processes");
	signal(SIGPIPE, SIG_IGN);
	if (summary)
		return d9__segment_summary("serve", argv[args.first]);
	return serve(argv[args.first], port, open);
}
