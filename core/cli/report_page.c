/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/report_page.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <dial9/reader.h>

#include "cli/cmd.h"
#include "cli/data_path.h"
#include "export/export_sink.h"
#include "report/report.h"
#include "serve/page_file.h"
#include "text/text.h"
#include "tool/trace_input.h"

/* Mail servers take about LARGE; browsers open more, but slowly. */
#define LARGE	  ((uint64_t)25 << 20)
#define TOO_LARGE ((uint64_t)100 << 20)

struct page {
	struct d9__assets assets;
	struct d9__page_segment *segments;
	struct d9__page_data data;
	char *report; /* owned */
	uint64_t written;
	struct d9__sink *sink;
};

static int put(void *context, const void *bytes, size_t len)
{
	struct page *page = context;

	page->written += len;
	return d9__export_sink_write(page->sink, bytes, len);
}

/* How many letters all |paths| begin with, to the slash before the last folder that they share. */
static size_t common_folder(const struct d9__page_segment *segments, size_t n)
{
	const char *first = segments[0].path, *slash = strrchr(first, '/');
	size_t len = slash ? (size_t)(slash - first) : 0;

	for (size_t i = 1; i < n; i++) {
		size_t same = 0;

		while (same < len && segments[i].path[same] == first[same])
			same++;
		if (same == len && segments[i].path[len] == '/')
			continue;
		/* Back to the end of a whole folder. */
		while (same && first[same] != '/')
			same--;
		len = same;
	}
	while (len && first[len - 1] != '/')
		len--;
	return len;
}

static int find_segments(struct page *page, const struct d9_reader *reader)
{
	size_t n = d9_reader_segments(reader), skip;
	struct d9_segment_info info;
	struct stat st;

	page->segments = calloc(n + 1, sizeof(*page->segments));
	if (!page->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (d9_reader_segment(reader, i, &info) || stat(info.path, &st))
			continue;
		page->segments[page->data.n++] = (struct d9__page_segment) {
			.path = info.path,
			.bytes = (uint64_t)st.st_size,
			.modified_ms = (uint64_t)st.st_mtim.tv_sec * 1000 +
				       (uint64_t)st.st_mtim.tv_nsec / 1000000,
		};
	}
	if (!page->data.n)
		return -ENODATA;
	skip = common_folder(page->segments, page->data.n);
	for (size_t i = 0; i < page->data.n; i++)
		page->segments[i].name = page->segments[i].path + skip;
	page->data.segments = page->segments;
	return 0;
}

static int write_report(struct page *page, const struct d9__report *reports, size_t n,
			const struct d9__report_more *more)
{
	FILE *out = open_memstream(&page->report, &page->data.report_len);
	int err = out ? d9__report_json(reports, n, more, out) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	page->data.report = page->report;
	return err;
}

static int refuse_size(uint64_t bytes)
{
	char is[D9__SIZE_LEN], may[D9__SIZE_LEN];

	return d9__cmd_fail("report",
			    "the page would have about %s, more than %s: give fewer segments, save "
			    "a range of it in "
			    "dial9 serve, or add --force",
			    d9__size_text(bytes, is), d9__size_text(TOO_LARGE, may));
}

static int explain(const char *path, int err)
{
	if (err == -ENOTTY)
		return d9__cmd_fail("report",
				    "this is not for a terminal: write to a file or a pipe");
	return d9__cmd_fail("report", "%s: %s", path, strerror(-err));
}

static int write_page(struct page *page, const char *output)
{
	const struct d9__page_segment *culprit = NULL;
	int err = d9__export_sink_open(output, false, &page->sink);
	char size[D9__SIZE_LEN];

	if (err)
		return explain(output, err);
	err = d9__page_file(&page->assets, &page->data, put, page, &culprit);
	if (!err)
		err = d9__export_sink_commit(page->sink);
	else
		d9__export_sink_abandon(page->sink);
	/* A closed pipe is not an error, because its reader may have seen enough. */
	if (err)
		return err == -EPIPE ? D9__EXIT_OK : explain(culprit ? culprit->path : output, err);
	fprintf(stderr, "dial9 report: the page has %s%s\n", d9__size_text(page->written, size),
		page->written > LARGE ? ", which is much to send; fewer segments make it smaller"
				      : "");
	return D9__EXIT_OK;
}

static int load_assets(struct page *page)
{
	char *folder = NULL;
	int err = d9__data_path(&folder);

	if (!err)
		err = d9__assets_load(&page->assets, folder);
	free(folder);
	if (err == -ENOENT)
		return d9__cmd_fail(
			"report",
			"the viewer's files are not there: they are installed as " PKGDATADIR
			"/viewer");
	return err ? d9__cmd_fail("report", "%s", strerror(-err)) : 0;
}

/* Return the last part of |path|, without slashes behind it, in new memory. */
static char *last_part(const char *path)
{
	char *whole = realpath(path, NULL), *part = strdup(basename(whole ? whole : path));

	free(whole);
	return part;
}

int d9__report_page(const struct d9__report_page *options, char **paths,
		    const struct d9_reader *reader, const struct d9__report *reports, size_t n,
		    const struct d9__report_more *more)
{
	struct page page = { 0 };
	char *name = NULL;
	int err, status;

	if (d9__traces_have_pipe(paths))
		return d9__cmd_fail("report", "--html needs files: a pipe can be read only once");
	status = load_assets(&page);
	if (!status) {
		err = find_segments(&page, reader);
		if (!err)
			err = write_report(&page, reports, n, more);
		page.data.name = name = last_part(paths[0]);
		if (!name)
			err = -ENOMEM;
		if (err)
			status = d9__cmd_fail("report", "%s",
					      err == -ENODATA ? "there is no segment any more"
							      : strerror(-err));
	}
	if (!status) {
		uint64_t bytes = d9__page_file_bytes(&page.assets, &page.data);

		status = bytes > TOO_LARGE && !options->force ? refuse_size(bytes)
							      : write_page(&page, options->output);
	}
	free(name);
	free(page.report);
	free(page.segments);
	d9__assets_release(&page.assets);
	return status;
}
