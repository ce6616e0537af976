/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 scrub`: copy a trace for strangers.  Symbols are written into it first, then scrub removes
 * texts that can hold the program's data.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/artefact.h"
#include "cli/cmd.h"
#include "cli/cmd_symbolize.h"
#include "cli/sealed.h"
#include "stage/claim.h"
#include "stage/program.h"
#include "stage/scrub.h"
#include "stage/stages.h"
#include "text/text.h"
#include "text/units.h"
#include "tool/args.h"

enum key { KEY_EXPLAIN = 256 };

static const struct d9__opt opts[] = {
	{ 'o', "output", "DIR", "a new directory for the copy" },
	{ KEY_EXPLAIN, "explain", NULL, "write nothing but a list of every text that would leave" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "scrub",
	.synopsis = "-o DIR|--explain TRACE...",
	.text = "Copy sealed segments so that strangers can look at them: times, structure,\n"
		"functions and findings stay; texts, paths, addresses and the program's own\n"
		"numbers do not.  Equal texts have equal stand-ins.  TRACE is not touched.\n"
		"Exit status: 0 done; 1 a segment is not in the copy, and a line tells why;\n"
		"2 bad usage, or nothing to work on.\n",
	.opts = opts,
};

struct scrub {
	const char *output; /* NULL: none */
	bool explain;
	struct d9__sealed segments;
	struct d9__stages stages;
	int top;	    /* of the copy; or where files without a name are made */
	int dir;	    /* of the process at hand, in it */
	const char *folder; /* of that process, borrowed from |segments| */
	size_t folder_len;
	size_t n_processes, n_copied, n_failed;
	uint64_t bytes;
};

static void tell(void *context, const char *path, const char *stage, const char *what)
{
	const char *end = strstr(what, "; left as it is");

	(void)context;
	d9__cmd_fail("scrub", "%s: %s%s%.*s; it is not in the copy", path, stage ? stage : "", stage ? ": " : "",
		     (int)(end ? (size_t)(end - what) : strlen(what)), what);
}

/* ---- where to ---- */

static bool is_empty(const char *path)
{
	/* Fails unless the directory is empty. */
	return !rmdir(path) && !mkdir(path, 0700);
}

static int open_output(struct scrub *scrub)
{
	const char *tmp = getenv("TMPDIR");
	const char *path = scrub->explain ? (tmp && *tmp ? tmp : "/tmp") : scrub->output;

	if (!scrub->explain && mkdir(path, 0700) && (errno != EEXIST || !is_empty(path)))
		return d9__cmd_fail("scrub", "%s: %s", path,
				    errno == ENOTEMPTY ? "it is there, and not empty" : strerror(errno));
	scrub->top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return scrub->top < 0 ? d9__cmd_fail("scrub", "%s: %s", path, strerror(errno)) : 0;
}

/*
 * Give each process a folder with a number for a name, because the original name may hold the
 * host's.
 */
static int enter_process(struct scrub *scrub, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	char name[32];

	if (scrub->n_processes && len == scrub->folder_len && !memcmp(path, scrub->folder, len))
		return 0;
	scrub->folder = path;
	scrub->folder_len = len;
	scrub->n_processes++;
	if (scrub->explain)
		return 0;
	if (scrub->dir >= 0)
		close(scrub->dir);
	snprintf(name, sizeof(name), "process-%zu", scrub->n_processes);
	if (mkdirat(scrub->top, name, 0700))
		return -errno;
	scrub->dir = openat(scrub->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return scrub->dir < 0 ? -errno : 0;
}

/* Whatever it was called, and packed as it was. */
static void name_segment(const struct scrub *scrub, const struct d9__claim *claim, char *out, size_t size)
{
	const char *suffix = strrchr(claim->name, '.');
	uint64_t index;

	if (d9__artefact_of(claim->name, &index) != D9__ARTEFACT_SEGMENT)
		index = scrub->n_copied;
	if (!suffix || (strcmp(suffix, ".zst") != 0 && strcmp(suffix, ".gz") != 0))
		suffix = "";
	snprintf(out, size, "trace.%" PRIu64 ".bin%s", index, suffix);
}

/* ---- one segment ---- */

static int put(struct scrub *scrub, const struct d9__claim *claim, int fd)
{
	char name[D9__SEGMENT_NAME_MAX];
	struct stat st;
	int err;

	if (scrub->explain)
		return 0;
	name_segment(scrub, claim, name, sizeof(name));
	err = d9__claim_put(claim, fd, name);
	if (!err && !fstat(fd, &st))
		scrub->bytes += (uint64_t)st.st_size;
	return err;
}

/*
 * Run the stages on one segment and copy the result.  A segment that they do not change has been
 * scrubbed before and is copied as it is.
 */
static int copy(struct scrub *scrub, const struct d9__claim *claim, bool *told)
{
	int fd = claim->fd, err = 0;

	switch (d9__stages_run(&scrub->stages, claim, true, &fd)) {
	case D9__STAGES_REPLACED:
		err = put(scrub, claim, fd);
		close(fd);
		break;
	case D9__STAGES_SAME:
		err = put(scrub, claim, claim->fd);
		break;
	case D9__STAGES_DROPPED: /* no event is left */
		break;
	default:
		*told = true;
		err = -EBADMSG;
		break;
	}
	return err;
}

static void run_one(struct scrub *scrub, const char *path)
{
	struct d9__claim claim;
	bool told = false;
	int err = enter_process(scrub, path);

	if (!err)
		err = d9__claim_open_copy(&claim, path, scrub->explain ? scrub->top : scrub->dir);
	if (!err) {
		err = copy(scrub, &claim, &told);
		d9__claim_release(&claim);
	}
	scrub->n_copied += !err;
	scrub->n_failed += err != 0;
	if (err && !told)
		d9__cmd_fail("scrub", "%s: %s; it is not in the copy", path,
			     err == -EINVAL ? "it is no file" : d9_strerror(err));
}

/* ---- what has left ---- */

static struct d9__text_out out;

static void list(struct d9__scrub *scrub, enum d9__scrub_kept what, const char *head)
{
	const char *text;
	size_t n = 0;

	while (d9__scrub_kept(scrub, what, n))
		n++;
	d9__text_string(&out, head);
	d9__text_string(&out, " (");
	d9__text_u64(&out, n);
	d9__text_string(&out, ")\n");
	for (size_t i = 0; (text = d9__scrub_kept(scrub, what, i)) != NULL; i++) {
		d9__text_string(&out, "  ");
		d9__text_escaped(&out, text, strlen(text));
		d9__text_char(&out, '\n');
	}
}

static int explain(struct d9__scrub *scrub)
{
	size_t texts, addresses;

	d9__text_init(&out, STDOUT_FILENO);
	d9__scrub_stand_ins(scrub, &texts, &addresses);
	list(scrub, D9__SCRUB_FUNCTIONS, "Functions");
	list(scrub, D9__SCRUB_LIBRARIES, "Libraries of the system");
	list(scrub, D9__SCRUB_WORDS, "The recorder's own words");
	list(scrub, D9__SCRUB_METADATA, "Metadata");
	list(scrub, D9__SCRUB_TYPES, "Types of events");
	d9__text_string(&out, "Numbers\n"
			      "  times, and how long, how much and how many in the recorder's events\n"
			      "  of the program's own events those that an annotation calls a measure\n"
			      "Stand-ins, which tell what is equal and nothing else\n"
			      "  ");
	d9__text_u64(&out, texts);
	d9__text_string(&out, " texts, ");
	d9__text_u64(&out, addresses);
	d9__text_string(&out, " addresses\n");
	return d9__text_finish(&out, "scrub");
}

static int sum_up(const struct scrub *scrub)
{
	char line[128];

	if (scrub->segments.n_active)
		fprintf(stderr, "dial9 scrub: %zu more %s still being written: dial9 rotate seals them\n", scrub->segments.n_active,
			scrub->segments.n_active > 1 ? "are" : "is");
	if (scrub->explain)
		return explain(scrub->stages.items[1].rules.scrub);
	d9__text_init(&out, STDOUT_FILENO);
	snprintf(line, sizeof(line), "%zu segment%s of %zu process%s, %s, in ", scrub->n_copied, scrub->n_copied == 1 ? "" : "s",
		 scrub->n_processes, scrub->n_processes == 1 ? "" : "es", d9__units_bytes(scrub->bytes).text);
	d9__text_string(&out, line);
	d9__text_escaped(&out, scrub->output, strlen(scrub->output));
	d9__text_string(&out, "; --explain lists what leaves\n");
	return d9__text_finish(&out, "scrub");
}

/* ---- the command ---- */

static int prepare(struct scrub *scrub, char **paths)
{
	char why[256];
	int status = 0;

	if (!scrub->output == !scrub->explain)
		return d9__cmd_fail("scrub", "say where the copy goes, -o DIR, or --explain; see dial9 help scrub");
	if (!*paths)
		return d9__cmd_fail("scrub", "name a directory, segments or a dump's manifest; see dial9 help scrub");
	if (d9__stages_add(&scrub->stages, "symbolize", why, sizeof(why)) ||
	    d9__stages_add(&scrub->stages, "scrub", why, sizeof(why)))
		return d9__cmd_fail("scrub", "out of memory");
	for (; !status && *paths; paths++)
		status = d9__sealed_add(&scrub->segments, "scrub", *paths);
	return status ? status : open_output(scrub);
}

static int run(struct scrub *scrub, char **paths)
{
	int status = prepare(scrub, paths);

	if (status)
		return status;
	scrub->stages.on_error = D9__STAGE_ERROR_KEEP;
	scrub->stages.symbolize = d9__symbolize_to_stdout;
	scrub->stages.tell = tell;
	d9__program_guard();
	for (size_t i = 0; i < scrub->segments.files.n; i++)
		run_one(scrub, scrub->segments.files.paths[i]);
	status = sum_up(scrub);
	if (!status && scrub->segments.missing)
		status = D9__EXIT_USAGE;
	return status ? status : scrub->n_failed ? D9__EXIT_FINDING : D9__EXIT_OK;
}

int d9__cmd_scrub(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct scrub scrub = { .top = -1, .dir = -1 };
	int key, status;

	d9__stages_init(&scrub.stages);
	while ((key = d9__args_next(&args)) > 0) {
		if (key == KEY_EXPLAIN)
			scrub.explain = true;
		else
			scrub.output = args.value;
	}
	status = key ? d9__args_exit(key) : run(&scrub, argv + args.first);
	if (scrub.dir >= 0)
		close(scrub.dir);
	if (scrub.top >= 0)
		close(scrub.top);
	d9__sealed_release(&scrub.segments);
	d9__stages_release(&scrub.stages);
	return status;
}
