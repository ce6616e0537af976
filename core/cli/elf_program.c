/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/elf_program.h"

/* As the kernel: a script's interpreter may be a script, but not for ever. */
#define SCRIPTS_MAX 4

#if __SIZEOF_POINTER__ == 8
#define OWN_CLASS ELFCLASS64
#else
#define OWN_CLASS ELFCLASS32
#endif

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The file that execvp(3) takes for |command|; false if there is none. */
static bool find_in_path(const char *command, char *path, unsigned size)
{
	const char *dirs = getenv("PATH");

	if (strchr(command, '/')) {
		snprintf(path, size, "%s", command);
		return is_program(path);
	}
	for (const char *dir = dirs ? dirs : "/bin:/usr/bin"; dir;) {
		const char *colon = strchr(dir, ':');
		int len = colon ? (int)(colon - dir) : (int)strlen(dir);

		snprintf(path, size, "%.*s%s%s", len, dir, len ? "/" : "./", command);
		if (is_program(path))
			return true;
		dir = colon ? colon + 1 : NULL;
	}
	return false;
}

/* The interpreter named on the "#!" line |line|; for env(1) the program that env looks for. */
static bool parse_script_line(char *line, char *interpreter, unsigned size)
{
	char *save, *word = strtok_r(line + 2, " \t\n", &save);
	const char *slash = word ? strrchr(word, '/') : NULL;

	if (slash && !strcmp(slash, "/env"))
		do
			word = strtok_r(NULL, " \t\n", &save);
		while (word && (*word == '-' || strchr(word, '=')));
	if (!word)
		return false;
	snprintf(interpreter, size, "%s", word);
	return true;
}

static bool is_machine_ours(const GElf_Ehdr *header)
{
#if defined(__x86_64__)
	unsigned machine = EM_X86_64;
#elif defined(__aarch64__)
	unsigned machine = EM_AARCH64;
#else
	unsigned machine = header->e_machine;
#endif

	return header->e_ident[EI_CLASS] == OWN_CLASS && header->e_machine == machine;
}

/* The segment that names the loader. */
static bool find_loader(Elf *elf, GElf_Phdr *segment)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		n = 0;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, segment) && segment->p_type == PT_INTERP)
			return true;
	return false;
}

static bool has_loader(Elf *elf)
{
	GElf_Phdr segment;

	return find_loader(elf, &segment);
}

int d9__elf_interpreter(const char *path, char *interpreter, unsigned size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = -EBADMSG;
	GElf_Phdr segment;
	Elf *elf;

	if (fd < 0)
		return -errno;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		err = find_loader(elf, &segment) ? 0 : -ENOENT;
	if (!err && segment.p_filesz > size)
		err = -ENAMETOOLONG;
	if (!err && (!segment.p_filesz || pread(fd, interpreter, segment.p_filesz,
						(off_t)segment.p_offset) != (ssize_t)segment.p_filesz))
		err = -EBADMSG;
	if (!err)
		interpreter[segment.p_filesz - 1] = '\0';
	elf_end(elf);
	close(fd);
	return err;
}

/* Whether the kernel would set AT_SECURE for |fd|. */
static bool is_secure(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid()))
		return true;
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static enum d9__preload_fate judge_elf(int fd)
{
	enum d9__preload_fate fate = D9__PRELOAD_WORKS;
	GElf_Ehdr header;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || !gelf_getehdr(elf, &header))
		fate = D9__PRELOAD_UNKNOWN;
	else if (!is_machine_ours(&header))
		fate = D9__PRELOAD_FOREIGN;
	else if (!has_loader(elf))
		fate = D9__PRELOAD_STATIC;
	else if (is_secure(fd))
		fate = D9__PRELOAD_SECURE;
	elf_end(elf);
	return fate;
}

enum d9__preload_fate d9__preload_judge(const char *command, char *path, unsigned size)
{
	char interpreter[PATH_MAX];
	enum d9__preload_fate fate;

	snprintf(interpreter, sizeof(interpreter), "%s", command);
	for (int i = 0; i < SCRIPTS_MAX; i++) {
		char line[256] = "";
		ssize_t n;
		int fd;

		if (!find_in_path(interpreter, path, size))
			return D9__PRELOAD_UNKNOWN;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			return D9__PRELOAD_UNKNOWN;
		n = pread(fd, line, sizeof(line) - 1, 0);
		if (n < 2 || memcmp(line, "#!", 2) != 0) {
			fate = judge_elf(fd);
			close(fd);
			return fate;
		}
		close(fd);
		line[strcspn(line, "\n")] = '\0';
		if (!parse_script_line(line, interpreter, sizeof(interpreter)))
			return D9__PRELOAD_UNKNOWN;
	}
	return D9__PRELOAD_UNKNOWN;
}
