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

#include "symbol/elf_program.h"

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

/* The name of the loader that |path| asks for, without links, in |file|; NULL if it asks for none. */
static const char *loader_name(const char *path, char file[PATH_MAX])
{
	char loader[PATH_MAX];
	const char *slash;

	if (d9__elf_interpreter(path, loader, sizeof(loader)))
		return NULL;
	if (!realpath(loader, file))
		strcpy(file, loader);
	slash = strrchr(file, '/');
	return slash ? slash + 1 : file;
}

/* Each C library has a loader of its own, by its own name. */
static bool is_libc_ours(const char *path)
{
	char own_file[PATH_MAX], its_file[PATH_MAX];
	const char *own = loader_name("/proc/self/exe", own_file), *its = loader_name(path, its_file);

	return !own || !its || !strcmp(own, its);
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

/* Instrumented code calls its sanitizer's runtime by these names.  |needed|: only if it is a shared library. */
static const struct {
	const char *init;
	bool needed;
	enum d9__preload_fate fate;
} sanitizers[] = {
	{ "__asan_init", true, D9__PRELOAD_ASAN },
	{ "__hwasan_init", true, D9__PRELOAD_ASAN },
	{ "__tsan_init", false, D9__PRELOAD_TSAN },
	{ "__msan_init", false, D9__PRELOAD_MSAN },
};

static enum d9__preload_fate judge_symbol(const char *name, bool undefined)
{
	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++)
		if (!strcmp(name, sanitizers[i].init) && (undefined || !sanitizers[i].needed))
			return sanitizers[i].fate;
	return D9__PRELOAD_WORKS;
}

static enum d9__preload_fate judge_symbols(Elf *elf)
{
	enum d9__preload_fate fate = D9__PRELOAD_WORKS;
	Elf_Scn *section = NULL;
	Elf_Data *data = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;

	while (!data && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			data = elf_getdata(section, NULL);
	for (int i = 0; data && fate == D9__PRELOAD_WORKS && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);

		if (name)
			fate = judge_symbol(name, symbol.st_shndx == SHN_UNDEF);
	}
	return fate;
}

static enum d9__preload_fate judge_elf(int fd, const char *path)
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
	else if (!is_libc_ours(path))
		fate = D9__PRELOAD_LIBC;
	else
		fate = judge_symbols(elf);
	elf_end(elf);
	return fate;
}

static const struct {
	const char *why, *advice;
} texts[] = {
	[D9__PRELOAD_WORKS] = { "", "" },
	[D9__PRELOAD_STATIC] = { "is statically linked, so nothing can be preloaded into it",
				 "link libdial9-libevent, -libev or -glib and attach its loops" },
	[D9__PRELOAD_SECURE] = { "runs with other privileges (set-user-ID or file capabilities), so the loader "
				 "ignores LD_PRELOAD",
				 "start it as the user it runs as" },
	[D9__PRELOAD_FOREIGN] = { "is for another kind of machine than this dial9", "use a dial9 built for it" },
	[D9__PRELOAD_LIBC] = { "is built for another C library than this dial9, so nothing was preloaded",
			       "use a dial9 built for it" },
	[D9__PRELOAD_ASAN] = { "is built with AddressSanitizer, whose runtime has to be the first library that is "
			       "loaded, so nothing was preloaded",
			       "record a build without it, build it with -static-libasan, or link "
			       "libdial9-libevent, -libev or -glib and attach its loops" },
	[D9__PRELOAD_TSAN] = { "is built with ThreadSanitizer, which takes code that it did not see compiled for "
			       "data races, so nothing was preloaded",
			       "record a build without it" },
	[D9__PRELOAD_MSAN] = { "is built with MemorySanitizer, which takes what code that it did not see compiled "
			       "writes for never written, so nothing was preloaded",
			       "record a build without it" },
	[D9__PRELOAD_UNKNOWN] = { "", "" },
};

const char *d9__preload_why(enum d9__preload_fate fate)
{
	return texts[fate].why;
}

const char *d9__preload_advice(enum d9__preload_fate fate)
{
	return texts[fate].advice;
}

bool d9__preload_is_harmful(enum d9__preload_fate fate)
{
	return fate == D9__PRELOAD_LIBC || fate == D9__PRELOAD_ASAN || fate == D9__PRELOAD_TSAN || fate == D9__PRELOAD_MSAN;
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
			fate = judge_elf(fd, path);
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
