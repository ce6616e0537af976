/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "analyze/processes.h"
#include "base/array.h"
#include "cli/cmd.h"
#include "cli/raw_segment.h"
#include "export/export_parquet.h"
#include "export/export_partitions.h"
#include "export/export_sink.h"
#include "export/old_spans.h"
#include "export/profile_export.h"
#include "read/catalogue.h"
#include "tool/args.h"
#include "tool/progress.h"
#include "tool/trace_input.h"

enum { RAW_ADDRESSES = 768, PARTITIONS, SEGMENT_KEY, SLOW };

#define SLOW_NS UINT64_C(10000000)

static const struct d9__opt opts[] = {
	{ 'f', "format", "F", "trc (plain TRC 1), trc.gz, folded, speedscope, pprof or parquet [by FILE's end]" },
	{ 'o', "output", "FILE", "write to FILE, - for standard output; needed; of parquet a directory" },
	D9__PROFILE_OPTS,
	{ RAW_ADDRESSES, "raw-addresses", NULL, "of pprof: without names, which it finds itself" },
	{ PARTITIONS, "partitions", NULL, "of parquet: one segment as rows of a fleet's tables" },
	{ SEGMENT_KEY, "segment-key", "KEY", "with --partitions: its key in the store [its file's name]" },
	{ SLOW, "slow", "TIME", "with --partitions: longer calls are rows of slow_polls (10ms)" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "export",
	.synopsis = "[--format F] -o FILE TRACE...",
	.text = "Write a trace as one file that other programs open.\n"
		"trc, trc.gz: all segments in one, for the original dial9's viewer and tools.\n"
		"folded: the stacks of CPU samples, a line each with its count, for flamegraph.pl\n"
		"and others.\n"
		"speedscope, pprof: the same for speedscope and pprof.  These three take the\n"
		"options on samples.\n"
		"parquet: the tables of dial9 query, a file each, for DuckDB, Spark and others.\n",
	.opts = opts,
};

struct options {
	const char *output;
	const struct format *format; /* NULL: not told */
	struct d9__profile_options samples;
	struct d9__partitions partitions;
	bool partitioned;
	const char *given; /* an option on partitions */
};

struct format {
	const char *name;
	const char *suffix; /* of files that are of this format unless told otherwise */
	bool gzip;
	d9__profile_writer *write; /* NULL: a trace is copied, or tables are written */
	bool tables;
};

/*
 * A longer suffix comes before the one it ends in.  A format's first line tells how it is packed by
 * default.
 */
static const struct format formats[] = {
	{ "folded", ".folded", false, d9__export_folded, false },
	{ "folded", ".folded.gz", true, d9__export_folded, false },
	{ "speedscope", ".speedscope.json", false, d9__export_speedscope, false },
	{ "speedscope", ".speedscope.json.gz", true, d9__export_speedscope, false },
	{ "pprof", ".pb.gz", true, d9__export_pprof, false },
	{ "pprof", ".pb", false, d9__export_pprof, false },
	{ "trc", ".trc", false, NULL, false },
	{ "trc", ".bin", false, NULL, false },
	{ "trc.gz", ".trc.gz", true, NULL, false },
	{ "trc.gz", ".bin.gz", true, NULL, false },
	{ "parquet", ".parquet", false, NULL, true },
};

#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

static bool set_format(const struct d9__args *args, struct options *options)
{
	for (size_t i = 0; i < N_FORMATS && !options->format; i++)
		if (!strcmp(formats[i].name, args->value))
			options->format = &formats[i];
	if (options->format)
		return true;
	d9__cmd_fail("export", "--format wants trc, trc.gz, folded, speedscope, pprof or parquet, not '%s'", args->value);
	return false;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t len = strlen(text), tail = strlen(suffix);

	return len >= tail && !strcmp(text + len - tail, suffix);
}

/*
 * Return the format for a name without a suffix, or with ".gz" alone; NULL: it has another suffix.
 */
static const struct format *bare_format(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strchr(name, '.');

	for (size_t i = 0; i < N_FORMATS; i++)
		if (!formats[i].write && (dot ? formats[i].gzip && !strcmp(dot, ".gz") : !formats[i].gzip))
			return &formats[i];
	return NULL;
}

/*
 * --format wins, and the suffix adds compression; without --format the suffix decides.  False, after a line: neither
 * tells a format.
 */
static bool choose_format(struct options *options)
{
	const struct format *told = options->format;

	if (told && !told->write)
		return true;
	options->format = NULL;
	for (size_t i = 0; i < N_FORMATS && !options->format; i++)
		if (ends_with(options->output, formats[i].suffix) && (!told || formats[i].write == told->write))
			options->format = &formats[i];
	if (!options->format)
		options->format = told ? told : bare_format(options->output);
	if (options->format)
		return true;
	d9__cmd_fail("export", "%s: of which format? give --format, or a name that ends in .trc, .bin, .folded, "
		     ".speedscope.json, .pb or one of these and .gz, or in .parquet", options->output);
	return false;
}

/* ---- which segments, in which order ---- */

struct segments {
	struct d9__raw_segment *items;
	size_t n;
	uint64_t total_bytes, done_bytes;
	uint64_t frames; /* copied */
	struct d9__old_spans spans;
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

	if (!d9__array_grow(segments->items, segments->n))
		return d9__cmd_fail("export", "out of memory");
	segment = &segments->items[segments->n];
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

/*
 * Open the segments.  The reader knows directories and names, but would eat the beginning of a
 * pipe.
 */
static int open_segments(char **paths, struct d9_reader *reader, struct segments *segments)
{
	struct d9_segment_info info;
	int status = 0;

	for (size_t i = 0; !status && i < d9_reader_segments(reader); i++)
		if (!d9_reader_segment(reader, i, &info)) {
			if (info.err == -ENOENT)
				d9__cmd_fail("export", "%s", info.message);
			else
				status = open_segment(segments, info.path);
		}
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
	d9__old_spans_release(&segments->spans);
}

/* Return the paths that can be read more than once: all but pipes. */
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

static int refuse_several(const struct d9_reader *reader)
{
	struct d9__processes processes = { 0 };
	int status = d9__processes_find(&processes, reader) ? d9__cmd_fail("export", "out of memory")
							     : d9__traces_refuse_several("export", &processes);

	d9__processes_release(&processes);
	return status;
}

/* ---- the command ---- */

/*
 * Copy the frames, calls as old readers know them: each batch decodes alone, so segments in a row
 * are a stream.  Of a batch cut short, copy the whole frames.
 */
static int copy_segment(struct segments *segments, struct d9__raw_segment *segment,
			struct d9__sink *sink, struct d9__progress *progress)
{
	struct d9__frame frame;
	const uint8_t *bytes;
	size_t len;
	int err;

	while ((err = d9__raw_segment_next(segment, &frame)) == 1) {
		err = d9__old_spans_frame(&segments->spans, &segment->reader.decoder, &frame,
					  &bytes, &len);
		if (!err)
			err = d9__export_sink_write(sink, bytes, len);
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
			d9__cmd_fail("export", "%s: %s; %s", segment->path, segment->message,
				     segment->has_events ? "everything before it was exported"
							 : "nothing in it can be read");
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

	err = d9__export_sink_open(options->output, options->format->gzip, &sink);
	if (err)
		return explain_output(options->output, err);
	status = copy_all(segments, sink);
	if (status == D9__EXIT_OK && !segments->frames)
		status = d9__cmd_fail("export", "nothing has been written to this trace yet");
	/* Nothing in the input is readable: make no file rather than an empty one. */
	if (status < 0 || (status && !segments->frames))
		d9__export_sink_abandon(sink);
	else
		err = d9__export_sink_commit(sink);
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

static bool take_option(const struct d9__args *args, int key, struct options *options)
{
	switch (key) {
	case 'o':
		options->output = args->value;
		return true;
	case 'f':
		return set_format(args, options);
	case RAW_ADDRESSES:
		options->samples.raw = true;
		return true;
	case PARTITIONS:
		options->partitioned = true;
		return true;
	case SEGMENT_KEY:
		options->given = args->name;
		options->partitions.key = args->value;
		return true;
	case SLOW:
		options->given = args->name;
		return d9__args_duration_ns(args, &options->partitions.slow_ns);
	default:
		return d9__profile_options_take(&options->samples, args, key);
	}
}

/* True if the options on samples go with the format; false after a line. */
static bool fit(const struct options *options)
{
	const struct d9__profile_filter *wanted = &options->samples.wanted;
	bool is_pprof = options->format->write == d9__export_pprof;

	if (options->partitioned && !options->format->tables)
		d9__cmd_fail("export", "--partitions is for --format parquet");
	else if (options->given && !options->partitioned)
		d9__cmd_fail("export", "--%s is for --format parquet --partitions", options->given);
	else if (options->format->tables && !strcmp(options->output, "-"))
		d9__cmd_fail("export", "parquet is several files: give a directory with -o");
	else if (options->samples.raw && !is_pprof)
		d9__cmd_fail("export", "--raw-addresses is for --format pprof");
	else if (options->samples.given && !options->format->write)
		d9__cmd_fail("export", "--%s is about samples: not with --format %s", options->samples.given,
			     options->format->name);
	else if (is_pprof && wanted->by)
		d9__cmd_fail("export", "--by is not for pprof, whose samples have labels: go tool pprof -tagroot callback");
	else if (is_pprof && wanted->weight)
		d9__cmd_fail("export", "--weight is not for pprof, which has them all: go tool pprof -sample_index");
	else
		return true;
	return false;
}

static int write_tables(char **paths, struct options *options)
{
	options->partitions.folder = options->output;
	if (options->partitioned)
		return d9__export_partitions(paths, &options->partitions);
#ifdef HAVE_SQLITE
	return d9__export_tables(paths, options->output);
#else
	return d9__cmd_fail("export", "this dial9 was built without SQLite, which --format parquet needs but for --partitions: "
				      "install libsqlite3-dev and build it again");
#endif
}

int d9__cmd_export(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { .partitions = { .slow_ns = SLOW_NS } };
	int key;

	d9__profile_options_init(&options.samples);
	while ((key = d9__args_next(&args)) > 0)
		if (!take_option(&args, key, &options))
			return D9__EXIT_USAGE;
	if (key < 0)
		return d9__args_exit(key);
	if (!options.output)
		return d9__cmd_fail("export", "where to? give -o FILE, - for standard output");
	if (!choose_format(&options) || !fit(&options))
		return D9__EXIT_USAGE;
	if (options.format->tables)
		return write_tables(argv + args.first, &options);
	if (options.format->write)
		return d9__profile_export("export", argv + args.first, &options.samples,
					  &(struct d9__profile_target){
						  .path = options.output,
						  .gzip = options.format->gzip,
						  .write = options.format->write,
						  .calls = options.format->write == d9__export_speedscope });
	return run(argv + args.first, &options);
}
