/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/export_sink.h"
#include "cli/profile_export.h"

/* ---- options ---- */

void d9__profile_options_init(struct d9__profile_options *options)
{
	*options = (struct d9__profile_options){ .wanted = { .to_ns = UINT64_MAX } };
}

static bool take_kind(const struct d9__args *args, enum d9__profile_kind *kind)
{
	char known[128] = "";

	for (size_t i = 0; d9__profile_kinds[i].word; i++) {
		if (!strcmp(args->value, d9__profile_kinds[i].word)) {
			*kind = (enum d9__profile_kind)i;
			return true;
		}
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "",
			 d9__profile_kinds[i].word);
	}
	d9__cmd_fail(args->usage->command, "no kind '%s'; there are %s", args->value, known);
	return false;
}

bool d9__profile_options_take(struct d9__profile_options *options, const struct d9__args *args, int key)
{
	struct d9__profile_filter *wanted = &options->wanted;

	options->given = args->name;
	switch (key) {
	case D9__PROFILE_KIND:
		return take_kind(args, &wanted->kind);
	case 'w':
		wanted->has_worker = true;
		return d9__args_u64(args, &wanted->worker);
	case D9__PROFILE_CALLBACK:
		wanted->callback = args->value;
		return true;
	case D9__PROFILE_SPAN:
		wanted->span = args->value;
		return true;
	case D9__PROFILE_FROM:
		return d9__args_duration_ns(args, &wanted->from_ns);
	default:
		return d9__args_duration_ns(args, &wanted->to_ns);
	}
}

/* ---- the file ---- */

static ssize_t write_to_sink(void *sink, const char *bytes, size_t len)
{
	int err = d9__sink_write(sink, bytes, len);

	if (!err)
		return (ssize_t)len;
	errno = -err;
	return -1;
}

/* What |target| writes of |profile| goes into |sink|.  0 or -errno. */
static int fill(struct d9__sink *sink, struct d9__profile *profile, const struct d9__profile_target *target)
{
	FILE *out = fopencookie(sink, "w", (cookie_io_functions_t){ .write = write_to_sink });
	int err;

	if (!out)
		return -ENOMEM;
	err = target->write(profile, out);
	/* The sink keeps its first error, and tells it when it is committed. */
	if (fclose(out) && !err)
		err = d9__sink_write(sink, "", 0);
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
	int status, err = d9__sink_open(target->path, target->gzip, &sink);

	if (err)
		return explain_output(command, target->path, err);
	err = fill(sink, profile, target);
	status = d9__profile_close(profile, command, err == -ENOMEM ? err : 0);
	if (err == -ENOMEM) {
		d9__sink_abandon(sink);
		return status;
	}
	err = d9__sink_commit(sink);
	return err && err != -EPIPE ? explain_output(command, target->path, err) : status;
}

int d9__profile_export(const char *command, char **paths, const struct d9__profile_options *options,
		       const struct d9__profile_target *target)
{
	struct d9__profile profile = { .wanted = options->wanted };
	int status;

	if (options->wanted.from_ns > options->wanted.to_ns)
		return d9__cmd_fail(command, "--to is earlier than --from");
	status = d9__profile_read(&profile, command, paths);
	if (!status)
		status = write_file(command, &profile, target);
	d9__profile_release(&profile);
	return status;
}
