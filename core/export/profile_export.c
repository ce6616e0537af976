/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "export/export_sink.h"
#include "export/profile_export.h"
#include "text/fail.h"

/* ---- options ---- */

void d9__profile_options_init(struct d9__profile_options *options)
{
	*options = (struct d9__profile_options){ .wanted = { .to_ns = UINT64_MAX } };
}

static const char *const by_words[] = { [D9__PROFILE_BY_CALLBACK] = "callback", [D9__PROFILE_BY_WORKER] = "worker",
					[D9__PROFILE_BY_THREAD] = "thread", [D9__PROFILE_BY_SPAN] = "span" };
static const char *const weight_words[] = { [D9__PROFILE_WEIGHT_SAMPLES] = "samples", [D9__PROFILE_WEIGHT_NS] = "ns",
					    [D9__PROFILE_WEIGHT_BYTES] = "bytes" };

/* Which of |words|, some of which may be NULL, the option's value is; below 0 after a line: none. */
static int word_of(const struct d9__args *args, const char *const *words, size_t n)
{
	char known[128] = "";

	for (size_t i = 0; i < n; i++) {
		if (!words[i])
			continue;
		if (!strcmp(args->value, words[i]))
			return (int)i;
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", known[0] ? ", " : "", words[i]);
	}
	d9__cmd_fail(args->usage->command, "no --%s '%s'; there are %s", args->name, args->value, known);
	return -1;
}

static int kind_of(const struct d9__args *args)
{
	const char *words[D9__PROFILE_KINDS];

	for (size_t i = 0; i < D9__PROFILE_KINDS; i++)
		words[i] = d9__profile_kinds[i].word;
	return word_of(args, words, D9__PROFILE_KINDS);
}

bool d9__profile_options_take(struct d9__profile_options *options, const struct d9__args *args, int key)
{
	struct d9__profile_filter *wanted = &options->wanted;
	int word;

	options->given = args->name;
	switch (key) {
	case D9__PROFILE_KIND:
		word = kind_of(args);
		wanted->kind = (enum d9__profile_kind)word;
		return word >= 0;
	case 'w':
		wanted->has_worker = true;
		return d9__args_u64(args, &wanted->worker);
	case D9__PROFILE_CALLBACK:
		wanted->callback = args->value;
		return true;
	case D9__PROFILE_SPAN:
		wanted->span = args->value;
		return true;
	case D9__PROFILE_LOOP:
		wanted->loop = args->value;
		return true;
	case D9__PROFILE_BY:
		word = word_of(args, by_words, sizeof(by_words) / sizeof(by_words[0]));
		wanted->by = (enum d9__profile_by)word;
		return word >= 0;
	case D9__PROFILE_WEIGHT:
		word = word_of(args, weight_words, sizeof(weight_words) / sizeof(weight_words[0]));
		wanted->weight = (enum d9__profile_weight)word;
		return word >= 0;
	case D9__PROFILE_OWN_FRAMES:
		wanted->own_frames = true;
		return true;
	case D9__PROFILE_MIN_DURATION:
		return d9__args_duration_ns(args, &wanted->min_ns);
	case D9__PROFILE_FROM:
		return d9__args_duration_ns(args, &wanted->from_ns);
	default:
		return d9__args_duration_ns(args, &wanted->to_ns);
	}
}

/* ---- the file ---- */

static ssize_t write_to_sink(void *sink, const char *bytes, size_t len)
{
	int err = d9__export_sink_write(sink, bytes, len);

	if (!err)
		return (ssize_t)len;
	errno = -err;
	return -1;
}

/* Write |profile| into |sink| in the format of |target|.  0 or -errno. */
static int fill(struct d9__sink *sink, struct d9__profile *profile, const struct d9__profile_target *target)
{
	FILE *out = fopencookie(sink, "w", (cookie_io_functions_t){ .write = write_to_sink });
	int err;

	if (!out)
		return -ENOMEM;
	err = target->write(profile, out);
	/* The sink keeps its first error, and tells it when it is committed. */
	if (fclose(out) && !err)
		err = d9__export_sink_write(sink, "", 0);
	return err;
}

static int explain_output(const char *command, const char *path, int err)
{
	if (err == -ENOTTY)
		return d9__cmd_fail(command, "this is not for a terminal; give a file with -o");
	return d9__cmd_fail(command, "%s: %s", path, strerror(-err));
}

static int write_file(const char *command, struct d9__profile *profile, const struct d9__profile_target *target)
{
	struct d9__sink *sink;
	char share[128];
	int status, err = d9__export_sink_open(target->path, target->gzip, &sink);

	if (err)
		return explain_output(command, target->path, err);
	d9__profile_share(profile, share, sizeof(share));
	if (share[0])
		d9__cmd_fail(command, "%s", share);
	err = fill(sink, profile, target);
	status = d9__profile_close(profile, command, err == -ENOMEM ? err : 0);
	if (err == -ENOMEM) {
		d9__export_sink_abandon(sink);
		return status;
	}
	err = d9__export_sink_commit(sink);
	return err && err != -EPIPE ? explain_output(command, target->path, err) : status;
}

int d9__profile_export(const char *command, char **paths, const struct d9__profile_options *options,
		       const struct d9__profile_target *target)
{
	struct d9__profile profile = { .wanted = options->wanted, .raw = options->raw };
	struct d9__profile_calls calls = { 0 };
	int status;

	/* Samples know which spans they were taken in, calls do not; and bytes have no place in a chart of time. */
	if (target->calls && !options->wanted.span &&
	    (options->wanted.kind == D9__PROFILE_KIND_CPU || options->wanted.kind == D9__PROFILE_KIND_OFF_CPU))
		d9__profile_calls_want(&calls, &profile);
	if (options->wanted.from_ns > options->wanted.to_ns)
		return d9__cmd_fail(command, "--to is earlier than --from");
	status = d9__profile_read(&profile, command, paths);
	if (!status)
		status = write_file(command, &profile, target);
	d9__profile_release(&profile);
	d9__profile_calls_release(&calls);
	return status;
}
