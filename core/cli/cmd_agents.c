/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/data_path.h"
#include "text/text.h"
#include "tool/args.h"

#define SKILL_END ".md"
#define SEGMENT   "trace.0.bin.zst"

static const struct d9__opt opts[] = {
	{ 'f', "force", NULL, "skills, toolkit, demo: overwrite files that differ" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "agents",
	.synopsis = "[OPTIONS] [skill NAME | skills DIR | toolkit DIR | demo DIR]",
	.text = "What a coding assistant needs to read traces: guides (skills) and scripts.\n"
		"  dial9 agents              the guides, one line each\n"
		"  dial9 agents skill NAME   print one\n"
		"  dial9 agents skills DIR   write all, as DIR/NAME/SKILL.md\n"
		"  dial9 agents toolkit DIR  write the scripts, for Node, which ask dial9 report\n"
		"  dial9 agents demo DIR     write recordings with a problem each, to try them "
		"on\n",
	.opts = opts,
};

/* Files of a folder, by name. */
struct files {
	char *folder;
	struct dirent **items;
	int n;
};

static int is_file_of_ours(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return end && entry->d_name[0] != '.' &&
	       (!strcmp(end, SKILL_END) || !strcmp(end, ".js") || !strcmp(end, ".json") || !strcmp(end, ".LICENSE"));
}

static void release(struct files *files)
{
	for (int i = 0; i < files->n; i++)
		free(files->items[i]);
	free(files->items);
	free(files->folder);
}

/* The demo's recordings are folders, and its other files have a suffix. */
static int is_recording(const struct dirent *entry)
{
	return !strchr(entry->d_name, '.');
}

/*
 * List the entries of the data folder |name| for which |is_wanted| is true.  Returns 0, else the
 * exit status.
 */
static int open_files(struct files *files, const char *name, int (*is_wanted)(const struct dirent *entry))
{
	char *data = NULL;
	int err = d9__data_path(&data);

	*files = (struct files){ 0 };
	if (!err && asprintf(&files->folder, "%s/%s", data, name) < 0)
		err = -ENOMEM;
	free(data);
	if (err)
		return d9__cmd_fail("agents", "no data files: %s; is dial9 installed whole?", strerror(-err));
	files->n = scandir(files->folder, &files->items, is_wanted, alphasort);
	if (files->n > 0)
		return 0;
	files->n = 0;
	err = d9__cmd_fail("agents", "nothing in %s; is dial9 installed whole?", files->folder);
	release(files);
	return err;
}

/* All of a file, terminated, in new memory; NULL with errno: it cannot be read. */
static char *read_all(const char *path, size_t *len)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	struct stat st;

	if (!in)
		return NULL;
	if (!fstat(fileno(in), &st))
		text = malloc((size_t)st.st_size + 1);
	if (text) {
		*len = fread(text, 1, (size_t)st.st_size, in);
		text[*len] = '\0';
	}
	fclose(in);
	return text;
}

static char *read_item(const struct files *files, int i, size_t *len)
{
	char *path, *text;

	if (asprintf(&path, "%s/%s", files->folder, files->items[i]->d_name) < 0)
		return NULL;
	text = read_all(path, len);
	free(path);
	return text;
}

/* Write the front matter's value of |key|, up to the end of its line. */
static void put_front(struct d9__text_out *out, const char *text, const char *key)
{
	const char *found = strstr(text, key);

	if (found)
		d9__text_wrapped(out, found + strlen(key), strcspn(found + strlen(key), "\n"), 4);
}

static int name_length(const struct files *files, int i)
{
	return (int)(strlen(files->items[i]->d_name) - strlen(SKILL_END));
}

static int print_index(struct d9__text_out *out)
{
	struct files files;
	int status = open_files(&files, "agents", is_file_of_ours);
	size_t len;

	if (status)
		return status;
	d9__text_string(out, "Guides for reading dial9 traces.  Print one: dial9 agents skill NAME.\nBegin with dial9-runtime.\n\n");
	for (int i = 0; i < files.n; i++) {
		char *text = read_item(&files, i, &len);

		d9__text_printf(out, "%.*s\n    ", name_length(&files, i), files.items[i]->d_name);
		if (text)
			put_front(out, text, "\ndescription: ");
		free(text);
	}
	d9__text_string(out, "\nAll of them as files: dial9 agents skills DIR.  Scripts: dial9 agents toolkit DIR.\n"
			     "Traces to try them on: dial9 agents demo DIR.\n");
	release(&files);
	return 0;
}

static int print_skill(struct d9__text_out *out, const char *name)
{
	struct files files;
	int status = open_files(&files, "agents", is_file_of_ours), found = -1;
	char *text;
	size_t len;

	if (status)
		return status;
	for (int i = 0; i < files.n; i++)
		if (!strncmp(files.items[i]->d_name, name, (size_t)name_length(&files, i)) && !name[name_length(&files, i)])
			found = i;
	if (found < 0) {
		release(&files);
		return d9__cmd_fail("agents", "no skill '%s'; dial9 agents names them all", name);
	}
	text = read_item(&files, found, &len);
	if (text)
		d9__text_bytes(out, text, len);
	else
		status = d9__cmd_fail("agents", "cannot read %s: %s", files.items[found]->d_name, strerror(errno));
	free(text);
	release(&files);
	return status;
}

/* ---- files ---- */

static int make_folder(const char *path)
{
	if (!mkdir(path, 0777) || errno == EEXIST)
		return 0;
	return d9__cmd_fail("agents", "cannot make %s: %s", path, strerror(errno));
}

/* True if |path| may be written: it does not exist, or holds |text| already, or |force|. */
static bool may_write(const char *path, const char *text, size_t len, bool force)
{
	size_t other_len = 0;
	char *other = force ? NULL : read_all(path, &other_len);
	bool may = force || (!other && access(path, F_OK)) || (other && other_len == len && !memcmp(other, text, len));

	free(other);
	return may;
}

static int write_file(const char *path, const char *text, size_t len, bool force)
{
	FILE *out;
	bool whole;

	if (!may_write(path, text, len, force))
		return d9__cmd_fail("agents", "%s exists and differs; --force overwrites it", path);
	out = fopen(path, "we");
	if (!out)
		return d9__cmd_fail("agents", "cannot write %s: %s", path, strerror(errno));
	whole = fwrite(text, 1, len, out) == len;
	if (fclose(out) || !whole)
		return d9__cmd_fail("agents", "cannot write %s: %s", path, strerror(errno));
	return 0;
}

/* File |i| below |dir|: as NAME/SKILL.md, or under its own name. */
static int copy(const struct files *files, int i, const char *dir, bool skill, bool force)
{
	size_t len = 0;
	char *text = read_item(files, i, &len), *path = NULL, *folder = NULL;
	int status = 0, n;

	if (!text)
		return d9__cmd_fail("agents", "cannot read %s/%s: %s", files->folder, files->items[i]->d_name, strerror(errno));
	if (skill)
		n = asprintf(&folder, "%s/%.*s", dir, name_length(files, i), files->items[i]->d_name);
	else
		n = asprintf(&path, "%s/%s", dir, files->items[i]->d_name);
	if (n >= 0 && folder) {
		status = make_folder(folder);
		n = asprintf(&path, "%s/SKILL.md", folder);
	}
	if (!status)
		status = n < 0 ? d9__cmd_fail("agents", "out of memory") : write_file(path, text, len, force);
	free(folder);
	free(path);
	free(text);
	return status;
}

static int copy_all(struct d9__text_out *out, const char *name, const char *dir, bool force)
{
	bool skills = !strcmp(name, "agents");
	struct files files;
	int status = open_files(&files, name, is_file_of_ours);

	if (status)
		return status;
	status = make_folder(dir);
	for (int i = 0; i < files.n && !status; i++)
		status = copy(&files, i, dir, skills, force);
	if (!status) {
		d9__text_printf(out, "%d %s in ", files.n, skills ? "skills" : "files");
		d9__text_escaped(out, dir, strlen(dir));
		d9__text_string(
			out,
			skills ? "\n"
			       : "; node DIR/diagnose_long_poll.js TRACE is the first to try\n");
	}
	release(&files);
	return status;
}

/* Copy the segment |from|/|name|/trace.0.bin.zst to the same place below |dir|. */
static int copy_recording(const char *from, const char *name, const char *dir, bool force)
{
	char *source = NULL, *folder = NULL, *path = NULL, *bytes;
	size_t len = 0;
	int status;

	if (asprintf(&source, "%s/%s/" SEGMENT, from, name) < 0 || asprintf(&folder, "%s/%s", dir, name) < 0 ||
	    asprintf(&path, "%s/" SEGMENT, folder) < 0)
		return d9__cmd_fail("agents", "out of memory");
	bytes = read_all(source, &len);
	status = bytes ? make_folder(folder) : d9__cmd_fail("agents", "cannot read %s: %s", source, strerror(errno));
	if (!status)
		status = write_file(path, bytes, len, force);
	free(bytes);
	free(path);
	free(folder);
	free(source);
	return status;
}

static int copy_demo(struct d9__text_out *out, const char *dir, bool force)
{
	struct files files;
	int status = open_files(&files, "demo", is_recording);

	if (status)
		return status;
	status = make_folder(dir);
	for (int i = 0; i < files.n && !status; i++)
		status = copy_recording(files.folder, files.items[i]->d_name, dir, force);
	if (!status) {
		d9__text_printf(out, "%d recordings in ", files.n);
		d9__text_escaped(out, dir, strlen(dir));
		d9__text_string(out, "; dial9 report DIR/web is the first to try\n");
	}
	release(&files);
	return status;
}

static int run(char **operands, int n, bool force)
{
	static struct d9__text_out out;
	int status, written;

	d9__text_init(&out, STDOUT_FILENO);
	if (n == 0)
		status = print_index(&out);
	else if (n == 2 && !strcmp(operands[0], "skill"))
		status = print_skill(&out, operands[1]);
	else if (n == 2 && !strcmp(operands[0], "skills"))
		status = copy_all(&out, "agents", operands[1], force);
	else if (n == 2 && !strcmp(operands[0], "toolkit"))
		status = copy_all(&out, "toolkit", operands[1], force);
	else if (n == 2 && !strcmp(operands[0], "demo"))
		status = copy_demo(&out, operands[1], force);
	else
		status = d9__cmd_fail("agents", "takes skill NAME, skills DIR, toolkit DIR or demo DIR, not '%s%s%s'", operands[0],
				      n > 1 ? " " : "", n > 1 ? operands[1] : "");
	written = d9__text_finish(&out, "agents");
	return status ? status : written;
}

int d9__cmd_agents(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	bool force = false;
	int key;

	while ((key = d9__args_next(&args)) > 0)
		force = true;
	if (key < 0)
		return d9__args_exit(key);
	return run(argv + args.first, argc - args.first, force);
}
