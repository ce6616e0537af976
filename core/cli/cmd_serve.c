/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/kept_dump.h"
#include "cli/cmd.h"
#include "cli/data_path.h"
#include "cli/segment_summary.h"
#include "serve/server.h"
#include "tool/args.h"
#include "tool/trace_input.h"
#include "watch/live_trace.h"
#if WITH_LIBEVENT
#include "cli/open_page.h"
#endif
#include "cli/serve_bucket.h"

enum key {
	KEY_OPEN = 256,
	KEY_LIVE,
	KEY_PID,
	KEY_LISTEN,
	KEY_SELF_TRACE,
	KEY_SUMMARY,
	KEY_DEMO,
	KEY_LOCAL_DIR,
	KEY_BUCKET,
	KEY_PREFIX,
	KEY_ENDPOINT,
	KEY_REGION,
	KEY_PROFILE,
	KEY_CA,
	KEY_ALLOW_HTTP,
};

static const struct d9__opt opts[] = {
	{ 'p', "port", "N", "listen on this port (one that is free)" },
	{ KEY_LISTEN, "listen", "ADDR", "listen on this address of the machine (127.0.0.1)" },
	{ KEY_LIVE, "live", NULL, "follow what is being written to the directory TRACE" },
	{ KEY_PID, "pid", "PID", "follow what process PID writes; instead of TRACE" },
	{ KEY_DEMO, "demo", NULL, "show recordings of ten small programs with a problem each; instead of TRACE" },
	{ KEY_LOCAL_DIR, "local-dir", "DIR", "the same as TRACE" },
	{ KEY_BUCKET, "bucket", "NAME", "show what dial9 ship stored in this bucket; instead of TRACE" },
	{ KEY_PREFIX, "prefix", "PREFIX", "of a bucket: where in it [all of it]" },
	{ KEY_ENDPOINT, "endpoint", "URL", "of a bucket: address of a store that is not AWS" },
	{ KEY_REGION, "region", "NAME", "of a bucket [environment, profile, asked of the bucket]" },
	{ KEY_PROFILE, "profile", "NAME", "of the AWS configuration files [AWS_PROFILE, default]" },
	{ KEY_CA, "ca", "FILE", "of a bucket: certificates to trust, PEM [AWS_CA_BUNDLE, the system's]" },
	{ KEY_ALLOW_HTTP, "allow-http", NULL, "of a bucket: plain http to other machines" },
	{ KEY_OPEN, "open", NULL, "open the address in the desktop's browser" },
	{ KEY_SELF_TRACE, "self-trace", "DIR", "record the server itself into DIR" },
	{ KEY_SUMMARY, "summary", NULL, "print what the page of many segments knows of one, as JSON" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "serve",
	.synopsis = "[OPTIONS] TRACE",
	.text = "Show a trace, a directory or a segment, or what a bucket holds, in the browser.\n"
		"Prints the address, which holds a secret: who knows it, on this machine, can\n"
		"read the trace.  Ends at SIGINT (Ctrl-C) or SIGTERM.\n",
	.opts = opts,
};

#if WITH_LIBEVENT
/* Ignore a missing browser, because the address was printed. */
static void open_browser(struct d9__open_page *page, const char *url)
{
	int err = d9__open_page(page, url);

	if (err)
		d9__cmd_fail("serve", "no browser was opened: %s; open the address by hand",
			     err == -ENODATA  ? "no home directory that is this user's alone"
			     : err == -ENOENT ? "no xdg-open"
					      : strerror(-err));
}

static int run(const struct d9__server_options *options, bool open)
{
	struct d9__open_page page = { 0 };
	struct d9__server *server = NULL;
	int err = d9__server_new(options, &server);

	if (err == -ENODATA)
		return d9__cmd_fail(
			"serve", "%s: no segments; give a directory that holds trace.*.bin* files",
			options->trace);
	if (err == -EADDRINUSE || err == -EACCES || err == -EADDRNOTAVAIL)
		return d9__cmd_fail("serve", "cannot listen on %s%sport %u: %s",
				    options->listen ? options->listen : "", options->listen ? ", " : "",
				    options->port, strerror(-err));
	if (err)
		return d9__cmd_fail("serve", "%s: %s", options->trace ? options->trace : options->name, strerror(-err));
	puts(d9__server_url(server));
	if (fflush(stdout))
		err = -errno;
	if (!err && open)
		open_browser(&page, d9__server_url(server));
	if (!err)
		err = d9__server_run(server);
	d9__open_page_end(&page);
	d9__server_free(server);
	return err ? d9__cmd_fail("serve", "%s", strerror(-err)) : D9__EXIT_OK;
}

static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", strlen("127.")) || !strcmp(address, "::1");
}

/* dial9 serve refuses a bad manifest with the line that the other commands print. */
static int check_dump(const char *trace)
{
	struct d9__kept_dump dump;
	int status;

	if (!d9__kept_dump_is(trace))
		return 0;
	status = d9__dump_open("serve", trace, &dump);
	if (!status)
		d9__kept_dump_release(&dump);
	return status;
}

/* Serve as |options| say, with the viewer's files. */
static int serve_with_assets(struct d9__server_options *options, bool open)
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
	if (options->listen && !is_loopback(options->listen))
		d9__cmd_fail("serve", "warning: %s is open to other machines: anyone who sees the address on its way "
				      "can read the trace", options->listen);
	options->assets = assets;
	status = run(options, open);
	free(assets);
	return status;
}

static int serve_trace(const char *trace, struct d9__server_options *options, bool open)
{
	int status = check_dump(trace);

	options->trace = trace;
	return status ? status : serve_with_assets(options, open);
}

static int serve_bucket(const struct d9__serve_bucket *bucket, struct d9__server_options *options, bool open)
{
	int status = d9__serve_bucket_open(bucket, &options->source, &options->name);

	return status ? status : serve_with_assets(options, open);
}
#else
static int serve_trace(const char *trace, struct d9__server_options *options, bool open)
{
	(void)trace;
	(void)options;
	(void)open;
	return d9__cmd_fail("serve",
			    "this dial9 was built without libevent, whose HTTP server it needs");
}

static int serve_bucket(const struct d9__serve_bucket *bucket, struct d9__server_options *options, bool open)
{
	return serve_trace(bucket->prefix, options, open);
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

static bool is_address(const char *text)
{
	struct in6_addr address;

	if (inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1)
		return true;
	d9__cmd_fail("serve", "--listen takes an address in digits, as 192.0.2.7 or ::1, not '%s'", text);
	return false;
}

/*
 * True if --live can follow |path|: only a directory, because a single active segment changes its
 * name when it is sealed.
 */
static bool may_follow(const char *path)
{
	struct stat st;

	if (stat(path, &st) || S_ISDIR(st.st_mode))
		return true;
	d9__cmd_fail("serve", "%s: --live follows a directory", path);
	return false;
}

static bool parse_pid(const char *text, pid_t *out)
{
	uint64_t n;

	if (!d9__parse_u64(text, &n) || !n || n > INT_MAX) {
		d9__cmd_fail("serve", "--pid takes the id of a process, not '%s'", text);
		return false;
	}
	*out = (pid_t)n;
	return true;
}

/* Serve the trace that |pid| writes. */
static int follow_process(pid_t pid, struct d9__server_options *options, bool open)
{
	char *trace = d9__live_trace("serve", pid);
	int status = trace ? serve_trace(trace, options, open) : D9__EXIT_USAGE;

	free(trace);
	return status;
}

static int show_demo(struct d9__server_options *options, bool open)
{
	char *data = NULL, *demo = NULL;
	int err = d9__data_path(&data), status;

	if (!err && asprintf(&demo, "%s/demo", data) < 0)
		err = -ENOMEM;
	if (err)
		status = d9__cmd_fail("serve", "no data files: %s; is dial9 installed whole?", strerror(-err));
	else
		status = serve_trace(demo, options, open);
	free(demo);
	free(data);
	return status;
}

/* `dial9 record` does it: this command again, without --self-trace DIR, under the recorder.  Returns only if it cannot. */
static int record_self(const char *dir, int argc, char **argv)
{
	/* --exec keeps the process id, so that signals to this process end the server. */
	static const char *const head[] = { "dial9", "record", "--exec", "-o" };
	const char **all = calloc((size_t)argc + 9, sizeof(*all));
	size_t n = 0;
	char own[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (!all || len <= 0)
		return d9__cmd_fail("serve", "cannot start dial9 record: %s", strerror(all ? errno : ENOMEM));
	own[len] = '\0';
	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		all[n++] = head[i];
	all[n++] = dir;
	all[n++] = "--";
	all[n++] = own;
	/* |dir| is a word or ends one, so the option is found however it was shortened: `--self DIR`. */
	for (int i = 0; i < argc; i++) {
		if (i + 1 < argc && argv[i + 1] == dir)
			i++;
		else if ((uintptr_t)dir - (uintptr_t)argv[i] > strlen(argv[i]))
			all[n++] = argv[i];
	}
	execv(own, (char *const *)all);
	free(all);
	return d9__cmd_fail("serve", "cannot start dial9 record: %s", strerror(errno));
}

struct serve {
	struct d9__server_options options;
	struct d9__serve_bucket bucket;
	const char *self_trace, *local_dir;
	bool open, summary, demo;
	pid_t pid;
};

static void take_bucket_option(const char *value, int key, struct d9__serve_bucket *bucket)
{
	bucket->used = true;
	switch (key) {
	case KEY_BUCKET:
		bucket->store.bucket = value;
		break;
	case KEY_PREFIX:
		bucket->prefix = value;
		break;
	case KEY_ENDPOINT:
		bucket->store.endpoint = value;
		break;
	case KEY_REGION:
		bucket->store.region = value;
		break;
	case KEY_PROFILE:
		bucket->store.profile = value;
		break;
	case KEY_CA:
		bucket->store.ca = value;
		break;
	default:
		bucket->store.allow_http = true;
	}
}

static bool take_option(const struct d9__args *args, int key, struct serve *serve)
{
	switch (key) {
	case KEY_OPEN:
		serve->open = true;
		return true;
	case KEY_LIVE:
		serve->options.live = true;
		return true;
	case KEY_SUMMARY:
		serve->summary = true;
		return true;
	case KEY_DEMO:
		serve->demo = true;
		return true;
	case KEY_SELF_TRACE:
		serve->self_trace = args->value;
		return true;
	case KEY_LISTEN:
		serve->options.listen = args->value;
		return true;
	case KEY_LOCAL_DIR:
		serve->local_dir = args->value;
		return true;
	case KEY_PID:
		return parse_pid(args->value, &serve->pid);
	case 'p':
		return parse_port(args, &serve->options.port);
	default:
		take_bucket_option(args->value, key, &serve->bucket);
		return true;
	}
}

/*
 * Check that exactly one source was given: a bucket, a process or |n_traces| operands.  0, or the
 * status after a line on stderr.
 */
static int check_what(const struct serve *serve, int n_traces)
{
	if (serve->bucket.used && !serve->bucket.store.bucket)
		return d9__cmd_fail("serve", "--prefix, --endpoint, --region, --profile, --ca and --allow-http are of a --bucket");
	if (serve->bucket.used && (serve->pid || n_traces || serve->summary || serve->demo || serve->options.live))
		return d9__cmd_fail("serve", "--bucket is what is shown: it takes no TRACE, --local-dir, --pid, --demo, --live or --summary");
	if (serve->pid && (n_traces || serve->summary))
		return d9__cmd_fail("serve", "%s",
				    serve->summary ? "--summary is of a segment, not of a process"
						   : "--pid PID or a TRACE, not both");
	if (serve->demo && (serve->pid || n_traces || serve->summary || serve->options.live))
		return d9__cmd_fail("serve", "--demo is a trace, and whole: it takes no TRACE, --pid, --live or --summary");
	if (!serve->pid && !serve->demo && !serve->bucket.used && n_traces != 1)
		return d9__cmd_fail(
			"serve",
			!n_traces
				? "which TRACE? see dial9 serve --help"
				: "one TRACE at a time; a directory may hold several processes");
	return 0;
}

static int show(struct serve *serve, const char *trace)
{
	signal(SIGPIPE, SIG_IGN);
	if (serve->summary)
		return d9__segment_summary("serve", trace);
	serve->options.live |= serve->pid != 0;
	if (serve->bucket.used)
		return serve_bucket(&serve->bucket, &serve->options, serve->open);
	if (serve->pid)
		return follow_process(serve->pid, &serve->options, serve->open);
	if (serve->demo)
		return show_demo(&serve->options, serve->open);
	if (serve->options.live && !may_follow(trace))
		return D9__EXIT_USAGE;
	return serve_trace(trace, &serve->options, serve->open);
}

int d9__cmd_serve(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct serve serve = { 0 };
	const char *trace;
	int key, status;

	while ((key = d9__args_next(&args)) > 0)
		if (!take_option(&args, key, &serve))
			return D9__EXIT_USAGE;
	if (key < 0)
		return d9__args_exit(key);
	if (serve.options.listen && !is_address(serve.options.listen))
		return D9__EXIT_USAGE;
	status = check_what(&serve, argc - args.first + (serve.local_dir != NULL));
	if (status)
		return status;
	trace = serve.local_dir ? serve.local_dir : argv[args.first];
	return serve.self_trace ? record_self(serve.self_trace, argc, argv) : show(&serve, trace);
}
