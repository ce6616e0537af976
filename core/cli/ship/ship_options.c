/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/ship/ship_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <dial9/error.h>

#include "base/store_name.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/ship/config_file.h"
#include "ship/shipper.h"
#include "tool/args.h"

#define USUAL_PREFIX	 "dial9-traces"
#define ALONE		 0x1000 /* bit of a key: not for a file of configuration */
#define MAX_RATE_AT_LEAST 1024

enum key {
	KEY_TO = 256,
	KEY_ENDPOINT,
	KEY_REGION,
	KEY_PROFILE,
	KEY_CA,
	KEY_ALLOW_HTTP,
	KEY_ONCE,
	KEY_DEADLINE,
	KEY_SERVICE,
	KEY_INSTANCE,
	KEY_PARALLEL,
	KEY_STAGE,
	KEY_RAW,
	KEY_EVERY,
	KEY_COMPRESS,
	KEY_LAYOUT,
	KEY_SSE,
	KEY_SSE_KEY,
	KEY_MAX_RATE,
	KEY_MD5,
	KEY_MAX_DISK,
	KEY_FROM_RINGS,
	KEY_KEEP_EMPTY,
	KEY_CONFIG = ALONE,
	KEY_DRY_RUN,
	KEY_EXPLAIN,
	KEY_STATUS,
	KEY_JSON,
	KEY_LINK,
	KEY_EXPIRES,
};

static const struct d9__opt opts[] = {
	{ KEY_TO, "to", "URL", "s3://BUCKET[/PREFIX], where objects go [DIAL9_S3_BUCKET]" },
	{ KEY_FROM_RINGS, "from-rings", NULL, "where recorders of this user say: DIAL9_S3_BUCKET" },
	{ KEY_CONFIG, "config", "FILE", "with lines OPTION = VALUE; read again on SIGHUP" },
	{ KEY_ENDPOINT, "endpoint", "URL", "address of a store that is not AWS" },
	{ KEY_REGION, "region", "NAME", "of the bucket [environment, profile, asked of the bucket]" },
	{ KEY_PROFILE, "profile", "NAME", "of the AWS configuration files [AWS_PROFILE, default]" },
	{ KEY_CA, "ca", "FILE", "certificates to trust, PEM [AWS_CA_BUNDLE, the system's]" },
	{ KEY_ALLOW_HTTP, "allow-http", NULL, "plain http to other machines" },
	{ KEY_ONCE, "once", NULL, "what is sealed now, then end" },
	{ KEY_EVERY, "every", "DURATION", "without --once: how often to look at all [10s]" },
	{ KEY_DEADLINE, "deadline", "DURATION", "end then, whatever is left" },
	{ KEY_MAX_DISK, "max-disk", "BYTES", "what dead processes may leave here, oldest removed first [4G]" },
	{ KEY_KEEP_EMPTY, "keep-empty", NULL, "leave directories of dead processes that are all stored" },
	{ KEY_DRY_RUN, "dry-run", NULL, "print keys, send nothing" },
	{ KEY_EXPLAIN, "explain", NULL, "with --dry-run: names of what would leave, instead" },
	{ KEY_LINK, "link", "KEY", "print an address by which KEY is fetched without credentials" },
	{ KEY_EXPIRES, "expires", "DURATION", "of --link, a week at most [1h]" },
	{ KEY_STATUS, "status", NULL, "what is stored, waits and was refused; sends nothing" },
	{ KEY_JSON, "json", NULL, "the status as JSON" },
	{ KEY_SERVICE, "service", "NAME", "in keys [as recorded]" },
	{ KEY_INSTANCE, "instance", "NAME", "in keys [the host's name]" },
	{ KEY_LAYOUT, "key-layout", "NAME", "of keys: hive, original-0.4 [hive]" },
	{ KEY_PARALLEL, "parallel", "N", "uploads at once, 1 to 16 [2]" },
	{ KEY_MAX_RATE, "max-rate", "BYTES", "a second, of all uploads [no limit]" },
	{ KEY_SSE, "sse", "KIND", "encryption there: AES256, aws:kms [as the bucket has it]" },
	{ KEY_SSE_KEY, "sse-key", "ID", "of aws:kms [the account's]" },
	{ KEY_MD5, "md5", NULL, "send Content-MD5, for stores that check nothing else" },
	{ KEY_STAGE, "stage", "STAGE", "as in dial9 process: symbolize, redact:NAMES, scrub or a program; or parquet; may be repeated [symbolize]" },
	{ KEY_RAW, "raw", NULL, "no stages: segments as they were recorded" },
	{ KEY_COMPRESS, "compress", "KIND", "of what is sent: gzip, for readers that know no other" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "ship",
	.synopsis = "--to s3://BUCKET[/PREFIX]|--from-rings [--once] DIR...",
	.text = "Send sealed segments and dumps to an object store.  DIR is a trace directory, or\n"
		"one that holds such; what the store has confirmed is removed from it.  Named\n"
		"files are sent and kept.  Without --once it goes on until SIGTERM.  Credentials\n"
		"are found as AWS programs find them.\n"
		"Exit status: 0 all is stored; 1 something is left, and a line tells why;\n"
		"2 bad usage.\n",
	.opts = opts,
};

/* ---- one option, wherever it stands ---- */

/* An option and where it was given: |args| has the words for messages. */
struct given {
	struct d9__ship_options *options;
	const struct d9__args *args;
	bool *staged; /* this source has named stages, which take the place of those of the one before */
};

static bool refuse(const struct given *given, const char *what)
{
	d9__cmd_fail(given->args->usage->command, "--%s is %s, not '%s'", given->args->name, what, given->args->value);
	return false;
}

static bool take_parallel(const struct given *given)
{
	uint64_t n;

	if (!d9__args_u64(given->args, &n))
		return false;
	if (!n || n > D9__SHIPPER_PARALLEL_MAX)
		return refuse(given, "1 to 16");
	given->options->parallel = (unsigned)n;
	return true;
}

static void replace_stages(const struct given *given)
{
	if (*given->staged)
		return;
	d9__stages_release(&given->options->stages);
	given->options->stages.tables = false;
	given->options->raw = false;
	*given->staged = true;
}

static bool take_stage(const struct given *given)
{
	char why[512];
	int err;

	replace_stages(given);
	err = d9__stages_add(&given->options->stages, given->args->value, why, sizeof(why));
	if (err)
		d9__cmd_fail(given->args->usage->command, "--stage: %s", err == -ENOMEM ? d9_strerror(err) : why);
	return !err;
}

static bool take_layout(const struct given *given)
{
	given->options->what.original_keys = !strcmp(given->args->value, "original-0.4");
	return given->options->what.original_keys || !strcmp(given->args->value, "hive") || refuse(given, "hive or original-0.4");
}

static bool take_compress(const struct given *given)
{
	given->options->what.gzip = true;
	return !strcmp(given->args->value, "gzip") || refuse(given, "gzip");
}

static bool take_rate(const struct given *given)
{
	uint64_t *rate = &given->options->store.max_rate;

	return d9__args_bytes(given->args, rate) && (*rate >= MAX_RATE_AT_LEAST || refuse(given, "1K or more"));
}

static bool take_sse(const struct given *given)
{
	given->options->store.sse = given->args->value;
	return !strcmp(given->args->value, "AES256") || !strcmp(given->args->value, "aws:kms") ||
	       refuse(given, "AES256 or aws:kms");
}

static const char **text_of(struct d9__ship_options *options, int key)
{
	switch (key) {
	case KEY_TO:
		return &options->to;
	case KEY_ENDPOINT:
		return &options->store.endpoint;
	case KEY_REGION:
		return &options->store.region;
	case KEY_PROFILE:
		return &options->store.profile;
	case KEY_CA:
		return &options->store.ca;
	case KEY_SERVICE:
		return &options->what.service;
	case KEY_INSTANCE:
		return &options->what.instance;
	case KEY_LINK:
		return &options->link;
	case KEY_SSE_KEY:
		return &options->store.sse_key;
	case KEY_CONFIG:
		return &options->config;
	default:
		return NULL;
	}
}

static bool *flag_of(struct d9__ship_options *options, int key)
{
	switch (key) {
	case KEY_ALLOW_HTTP:
		return &options->store.allow_http;
	case KEY_ONCE:
		return &options->once;
	case KEY_DRY_RUN:
		return &options->what.dry_run;
	case KEY_EXPLAIN:
		return &options->explain;
	case KEY_STATUS:
		return &options->status;
	case KEY_JSON:
		return &options->json;
	case KEY_RAW:
		return &options->raw;
	case KEY_FROM_RINGS:
		return &options->from_rings;
	case KEY_KEEP_EMPTY:
		return &options->keep_empty;
	case KEY_MD5:
		return &options->store.md5;
	default:
		return NULL;
	}
}

/* With a value that is not just kept. */
static bool take_value(const struct given *given, int key)
{
	switch (key) {
	case KEY_DEADLINE:
		return d9__args_duration_ns(given->args, &given->options->deadline_ns);
	case KEY_EXPIRES:
		return d9__args_duration_ns(given->args, &given->options->expires_ns);
	case KEY_EVERY:
		return d9__args_duration_ns(given->args, &given->options->every_ns);
	case KEY_MAX_DISK:
		return d9__args_bytes(given->args, &given->options->max_disk);
	case KEY_PARALLEL:
		return take_parallel(given);
	case KEY_STAGE:
		return take_stage(given);
	case KEY_LAYOUT:
		return take_layout(given);
	case KEY_COMPRESS:
		return take_compress(given);
	case KEY_MAX_RATE:
		return take_rate(given);
	default:
		return take_sse(given);
	}
}

static bool take(const struct given *given, int key)
{
	const char **text = text_of(given->options, key);
	bool *flag = flag_of(given->options, key);

	if (key == KEY_RAW)
		replace_stages(given);
	if (text)
		*text = given->args->value;
	else if (flag)
		*flag = true;
	return text || flag || take_value(given, key);
}

/* ---- from a file ---- */

struct of_file {
	struct d9__ship_options *options;
	bool staged;
};

static int word(const char *text)
{
	static const char *const words[] = { "no", "false", "off", "0", "yes", "true", "on", "1" };

	for (int i = 0; i < 8; i++)
		if (!strcasecmp(text, words[i]))
			return i >= 4;
	return -1;
}

static bool take_flag(const struct given *given, const struct d9__opt *opt)
{
	int on = word(given->args->value);

	if (on < 0)
		return refuse(given, "yes or no");
	return on ? take(given, opt->key) : (*flag_of(given->options, opt->key) = false, true);
}

static const struct d9__opt *find(const char *name)
{
	const struct d9__opt *opt = opts;

	while (opt->name && strcmp(opt->name, name) != 0)
		opt++;
	return opt->name ? opt : NULL;
}

static bool take_line(void *arg, const char *where, const char *key, const char *value)
{
	struct of_file *file = arg;
	const struct d9__opt *opt = find(key);
	char command[560];
	struct d9__usage here = { .command = command };
	struct d9__args args = { .usage = &here, .name = key, .value = value };
	const struct given given = { file->options, &args, &file->staged };

	snprintf(command, sizeof(command), "ship: %s", where);
	if (!opt)
		d9__cmd_fail(command, "unknown key '%s'; keys are the long options of dial9 ship --help", key);
	else if (opt->key >= ALONE)
		d9__cmd_fail(command, "'%s' is for the command line alone", key);
	else if (!*value)
		d9__cmd_fail(command, "'%s' has no value", key);
	else
		return opt->value ? take(&given, opt->key) : take_flag(&given, opt);
	return false;
}

/* ---- from the environment ---- */

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static bool take_environment(struct d9__ship_options *options)
{
	const char *bucket = variable("DIAL9_S3_BUCKET"), *prefix = variable("DIAL9_S3_PREFIX");

	if (variable("DIAL9_S3_ENDPOINT"))
		options->store.endpoint = variable("DIAL9_S3_ENDPOINT");
	if (variable("DIAL9_S3_REGION"))
		options->store.region = variable("DIAL9_S3_REGION");
	if (!bucket)
		return true;
	if (asprintf(&options->named, "s3://%s/%s", bucket, prefix ? prefix : USUAL_PREFIX) < 0) {
		options->named = NULL;
		d9__cmd_fail("ship", "out of memory");
		return false;
	}
	options->to = options->named;
	return true;
}

/* ---- all of them ---- */

static int take_command_line(struct d9__ship_options *options, int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	bool staged = false;
	const struct given given = { options, &args, &staged };
	int key;

	while ((key = d9__args_next(&args)) > 0)
		if (!take(&given, key))
			return D9__ARGS_ERROR;
	return key ? key : args.first;
}

/* Find --config first, because the command line's other options override the file's. */
static int find_config(int argc, char **argv, const char **config)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	int key;

	while ((key = d9__args_next(&args)) > 0)
		if (key == KEY_CONFIG)
			*config = args.value;
	return key;
}

int d9__ship_options_read(struct d9__ship_options *options, int argc, char **argv)
{
	struct of_file file = { .options = options };
	int result;

	*options = (struct d9__ship_options) { .parallel = 2,
					       .every_ns = 10 * D9__SECOND_NS,
					       .expires_ns = 3600 * D9__SECOND_NS };
	d9__stages_init(&options->stages);
	result = find_config(argc, argv, &options->config);
	if (result < 0)
		return result;
	if (options->config && !d9__config_file_read("ship", options->config, take_line, &file, &options->file))
		return D9__ARGS_ERROR;
	return take_environment(options) ? take_command_line(options, argc, argv) : D9__ARGS_ERROR;
}

/* ---- where to ---- */

static int check_prefix(const char *prefix)
{
	if (d9__is_key_prefix(prefix))
		return 0;
	return d9__cmd_fail("ship", "--to: a prefix has parts of A-Z a-z 0-9 . _ - =, none of them . or .., and 256 bytes at most, not '%s'", prefix);
}

int d9__ship_options_take_to(struct d9__ship_options *options)
{
	static const char scheme[] = "s3://";
	const char *at, *slash;
	size_t len;

	if (!options->to)
		return d9__cmd_fail("ship", "say where to: --to s3://BUCKET/PREFIX, or DIAL9_S3_BUCKET; see dial9 help ship");
	at = options->to + strlen(scheme);
	if (strncmp(options->to, scheme, strlen(scheme)) || !*at || *at == '/')
		return d9__cmd_fail("ship", "--to is s3://BUCKET or s3://BUCKET/PREFIX, not '%s'", options->to);
	slash = strchr(at, '/');
	options->bucket = slash ? strndup(at, (size_t)(slash - at)) : strdup(at);
	options->prefix = strdup(slash ? slash + 1 : "");
	if (!options->bucket || !options->prefix)
		return d9__cmd_fail("ship", "out of memory");
	len = strlen(options->prefix);
	while (len && options->prefix[len - 1] == '/')
		options->prefix[--len] = '\0';
	options->what.prefix = options->prefix;
	options->store.bucket = options->bucket;
	return check_prefix(options->prefix);
}

/* ---- what belongs together ---- */

int d9__ship_options_check(struct d9__ship_options *options)
{
	char why[512];

	if (options->raw && (options->stages.n || options->stages.tables))
		return d9__cmd_fail("ship", "--raw and --stage exclude each other");
	if (options->explain && !options->what.dry_run)
		return d9__cmd_fail("ship", "--explain tells what --dry-run would send: say both");
	if (options->store.sse_key && (!options->store.sse || strcmp(options->store.sse, "aws:kms") != 0))
		return d9__cmd_fail("ship", "--sse-key is of --sse aws:kms");
	if (!options->raw && !options->stages.n && d9__stages_add(&options->stages, "symbolize", why, sizeof(why)))
		return d9__cmd_fail("ship", "out of memory");
	options->once |= options->deadline_ns != 0;
	options->store.parallel = options->parallel;
	return d9__ship_options_take_to(options);
}

void d9__ship_options_release(struct d9__ship_options *options)
{
	d9__stages_release(&options->stages);
	free(options->bucket);
	free(options->prefix);
	free(options->named);
	free(options->file);
}
