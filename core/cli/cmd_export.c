/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "analyze/processes.h"
#include "cli/args.h"
#include "cli/cmd.h"
#include "cli/export_sink.h"
#include "cli/progress.h"
#include "cli/raw_segment.h"
#include "cli/trace_input.h"

static const struct d9__opt opts[] = {
	{ 'f', "format", "F", "trc (plain TRC 1) or trc.gz [by the end of FILE, else trc]" },
	{ 'o', "output", "FILE", "write to FILE, - for standard output; needed" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "export",
	.synopsis = "[--format F] -o FILE TRACE...",
	.text = "Write a trace as one file that other programs open.\n"
		"trc, trc.gz: all segments in one, for the original dial9's viewer and tools.\n",
	.opts = opts,
};

struct options {
	const char *output;
	bool has_format, gzip;
};

static bool set_format(const struct d9__args *args, struct options *options)
{
	options->has_format = true;
	options->gzip = !strcmp(args->value, "trc.gz");
	if (options->gzip || !strcmp(args->value, "trc"))
		return true;
	d9__cmd_fail("export", "--format wants trc or trc.gz, not '%s'", args->value);
	return false;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t len = strlen(text), tail = strlen(suffix);

	return len >= tail && !strcmp(text + len - tail, suffix);
}

/* ---- which segments, in which order ---- */

struct segments {
	struct d9__raw_segment *items;
	size_t n;
	uint64_t total_bytes, done_bytes;
	uint64_t frames; /* copied */
};

static int compare_segments(const void *a, const void *b)
{
	const struct d9__raw_segment *x = a, *y = b;

	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int open_segment(struct segments *segments, const char *path)
{
	struct d9__raw_segment *segment;
	char *why;
	int err;

	segment = reallocarray(segments->items, segments->n + 1, sizeof(*segment));
	if (!segment)
		return d9__cmd_fail("export", "out of memory");
	segments->items = segment;
	segment += segments->n;
	err = d9__raw_segment_open(segment, path, &why);
	if (err) {
		int status = why ? d9__cmd_fail("export", "%s", why) :
				   d9__cmd_fail("export", "%s: %s", path, strerror(-err));

		d9__raw_segment_release(segment);
		free(why);
		return status;
	}
	segment->place = segments->n;
	segments->total_bytes += segment->input.size_bytes;
	segments->n++;
	return 0;
}

/* The reader knows directories and names, but would eat the beginning of a pipe. */
static int open_segments(char **paths, struct d9_reader *reader, struct segments *segments)
{
	struct d9_segment_info info;
	int status = 0;

	for (size_t i = 0; !status && i < d9_reader_segments(reader); i++)
		if (!d9_reader_segment(reader, i, &info))
			status = open_segment(segments, info.path);
	for (; !status && *paths; paths++)
		if (d9__path_is_pipe(*paths))
			status = open_segment(segments, *paths);
	if (segments->n)
		qsort(segments->items, segments->n, sizeof(*segments->items), compare_segments);
	return status;
}

static void release_segments(struct segments *segments)
{
	for (size_t i = 0; i < segments->n; i++)
		d9__raw_segment_release(&segments->items[i]);
	free(segments->items);
}

/* Of |paths|, what can be read more than once. */
static char **without_pipes(char **paths)
{
	size_t n = 0;
	char **files;

	while (paths[n])
		n++;
	files = calloc(n + 1, sizeof(*files));
	n = 0;
	for (; files && *paths; paths++)
		if (!d9__path_is_pipe(*paths))
			files[n++] = *paths;
	return files;
}

/*
 * One file is one process: ids of workers and tasks are each one's own, and viewers could not
 * tell them apart.
 */
static int refuse_several(const struct d9_reader *reader)
{
	struct d9__processes processes = { 0 };
	int status = 0;

	if (d9__processes_find(&processes, reader))
		status = d9__cmd_fail("export", "out of memory");
	else if (processes.n > 1)
		status = d9__cmd_fail("export",
				      "%zu processes wrote this, and one file holds one: export them "
				      "one by one, first %s, last %s",
				      processes.n, processes.items[0].folder,
				      processes.items[processes.n - 1].folder);
	d9__processes_release(&processes);
	return status;
}

/* ---- the command ---- */

/*
 * The frames as they are: every batch brings all it needs, so segments one after the other are a
 * stream.  Of a batch cut short, its whole frames.
 */
static int copy_segment(struct segments *segments, struct d9__raw_segment *segment,
			struct d9__sink *sink, struct d9__progress *progress)
{
	struct d9__frame frame;
	int err;

	while ((err = d9__raw_segment_next(segment, &frame)) == 1) {
		err = d9__sink_write(sink, frame.start, (size_t)(frame.end - frame.start));
		if (err)
			return err;
		segments->frames++;
		if (d9__progress_due(progress))
			d9__progress_draw(progress,
					  segments->done_bytes + d9__raw_segment_stored(segment),
					  segments->total_bytes);
	}
	segments->done_bytes += segment->input.size_bytes;
	return err;
}

static int copy_all(struct segments *segments, struct d9__sink *sink)
{
	struct d9__progress progress;
	int status = D9__EXIT_OK;
	size_t n = 0; /* that have less than they should */

	d9__progress_init(&progress);
	for (size_t i = 0; i < segments->n; i++) {
		struct d9__raw_segment *segment = &segments->items[i];
		int err = copy_segment(segments, segment, sink, &progress);

		d9__progress_clear(&progress);
		if (err)
			return err;
		/* One that is being written ends anywhere. */
		if ((segment->err || (segment->cut && !ends_with(segment->input.path, ".active"))) &&
		    n++ < D9__SHORT_TOLD)
			d9__cmd_fail("export", "%s: %s; everything before it was exported",
				     segment->path, segment->message);
		if (segment->err)
			status = D9__EXIT_USAGE;
		d9__raw_segment_release(segment);
	}
	d9__traces_more_short("export", n);
	return status;
}

static int explain_output(const char *path, int err)
{
	if (err == -ENOTTY)
		return d9__cmd_fail("export", "a trace is not for a terminal; give a file with -o");
	return d9__cmd_fail("export", "%s: %s", path, strerror(-err));
}

static int export(const struct options *options, struct segments *segments)
{
	struct d9__sink *sink;
	int err, status;

	err = d9__sink_open(options->output, options->gzip, &sink);
	if (err)
		return explain_output(options->output, err);
	status = copy_all(segments, sink);
	if (status == D9__EXIT_OK && !segments->frames)
		status = d9__cmd_fail("export", "nothing has been written to this trace yet");
	/* Nothing readable in the input: no file rather than an empty one. */
	if (status < 0 || (status && !segments->frames))
		d9__sink_abandon(sink);
	else
		err = d9__sink_commit(sink);
	err = status < 0 ? status : err;
	if (err && err != -EPIPE)
		return explain_output(options->output, err);
	return status < 0 ? D9__EXIT_OK : status;
}

static int run(char **paths, const struct options *options)
{
	char **files = without_pipes(paths);
	struct segments segments = { 0 };
	struct d9_reader *reader = NULL;
	int status;

	if (!files)
		return d9__cmd_fail("export", "out of memory");
	status = *files || !*paths ? d9__traces_open("export", files, &reader) : 0;
	if (!status && !reader && d9_reader_new(&reader))
		status = d9__cmd_fail("export", "out of memory");
	if (!status)
		status = refuse_several(reader);
	if (!status)
		status = open_segments(paths, reader, &segments);
	if (!status)
		status = export(options, &segments);
	release_segments(&segments);
	d9_reader_free(reader);
	free(files);
	return status;
}

int d9__cmd_export(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { 0 };
	int key;

	while ((key = d9__args_next(&args)) > 0) {
		if (key == 'o')
			options.output = args.value;
		else if (!set_format(&args, &options))
			return D9__EXIT_USAGE;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (!options.output)
		return d9__cmd_fail("export", "where to? give -o FILE, - for standard output");
	if (!options.has_format)
		options.gzip = ends_with(options.output, ".gz");
	return run(argv + args.first, &options);
}
