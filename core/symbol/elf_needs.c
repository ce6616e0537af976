/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "symbol/elf_needs.h"
#include "symbol/elf_program.h"

/* ---- what the loader would map ---- */

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The loader runs, and a program may name anything as its own. */
static bool is_loader_ours(const char *path, char loader[PATH_MAX])
{
	char own[PATH_MAX];

	return !d9__elf_interpreter(path, loader, PATH_MAX) &&
	       !d9__elf_interpreter("/proc/self/exe", own, sizeof(own)) && is_same_file(loader, own);
}

static int add_need(struct d9__elf_needs *needs, const char *name, const char *path)
{
	struct d9__elf_need *need;

	if (!d9__array_grow(needs->items, needs->n))
		return -ENOMEM;
	need = &needs->items[needs->n++];
	*need = (struct d9__elf_need){ strdup(name), path ? strdup(path) : NULL };
	return need->name && (need->path || !path) ? 0 : -ENOMEM;
}

/* The loader gives up at the first that it does not find. */
static int take_error(struct d9__elf_needs *needs, char *name)
{
	name[strcspn(name, ":")] = '\0';
	return add_need(needs, name, NULL);
}

/* "\tNAME => PATH (0xADDRESS)", "\tPATH (0xADDRESS)", "PROGRAM: ... libraries: NAME: why". */
static int take_line(struct d9__elf_needs *needs, char *line)
{
	static const char error[] = ": error while loading shared libraries: ";
	char *found = strstr(line, error), *name = line + strspn(line, " \t"), *arrow = strstr(name, " => ");
	char *path = arrow ? arrow + 4 : name, *end = strstr(path, " (0x");

	if (found)
		return take_error(needs, found + sizeof(error) - 1);
	if (arrow)
		*arrow = '\0';
	if (end)
		*end = '\0';
	return arrow || *path == '/' ? add_need(needs, name, path) : 0;
}

static int start_loader(const char *loader, const char *path, int out, pid_t *pid)
{
	char *argv[] = { (char *)loader, (char[]) { "--list" }, (char *)path, NULL };
	posix_spawn_file_actions_t actions;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, out, 2);
	err = posix_spawn(pid, loader, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

static int read_list(int fd, struct d9__elf_needs *needs)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int err = in ? 0 : -ENOMEM;

	while (in && !err && (len = getline(&line, &size, in)) > 0) {
		line[len - (line[len - 1] == '\n')] = '\0';
		err = take_line(needs, line);
	}
	free(line);
	if (in)
		fclose(in);
	else
		close(fd);
	return err;
}

int d9__elf_needs_list(const char *path, struct d9__elf_needs *out)
{
	struct d9__elf_needs needs = { 0 };
	char loader[PATH_MAX];
	int fds[2], err, status = 0;
	pid_t pid;

	if (!is_loader_ours(path, loader))
		return -ENOTSUP;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	err = start_loader(loader, path, fds[1], &pid);
	close(fds[1]);
	if (err) {
		close(fds[0]);
		return err;
	}
	err = read_list(fds[0], &needs);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!err && !needs.n && status)
		err = -ENOEXEC;
	if (err)
		d9__elf_needs_release(&needs);
	else
		*out = needs;
	return err;
}

void d9__elf_needs_release(struct d9__elf_needs *needs)
{
	for (size_t i = 0; i < needs->n; i++) {
		free(needs->items[i].name);
		free(needs->items[i].path);
	}
	free(needs->items);
	*needs = (struct d9__elf_needs){ 0 };
}

/* ---- functions ---- */

static bool has_function(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name, bool defined)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; data && i < n && i <= INT_MAX; i++) {
		const char *text;

		if (!gelf_getsym(data, (int)i, &symbol) || (symbol.st_shndx != SHN_UNDEF) != defined ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		text = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (text && !strcmp(text, name))
			return true;
	}
	return false;
}

static bool knows(const char *path, const char *name, bool defined)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf_Scn *section = NULL;
	bool found = false;
	GElf_Shdr header;
	Elf *elf;

	if (fd < 0)
		return false;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && !found && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB))
			found = has_function(elf, section, &header, name, defined);
	elf_end(elf);
	close(fd);
	return found;
}

bool d9__elf_defines(const char *path, const char *name)
{
	return knows(path, name, true);
}

bool d9__elf_calls(const char *path, const char *name)
{
	return knows(path, name, false);
}
