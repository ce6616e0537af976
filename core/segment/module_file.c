/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/module_file.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/maps.h"
#include "base/time.h"

/* Cut off the kernel's remark about a file that was removed or replaced.  True if there was one. */
static bool cut_remark(char *path)
{
	static const char remark[] = " (deleted)";
	size_t len = strlen(path);

	if (len < sizeof(remark) || strcmp(path + len - (sizeof(remark) - 1), remark))
		return false;
	path[len - (sizeof(remark) - 1)] = '\0';
	return true;
}

/* Write the path of the file that is mapped at |address| into |buf|.  False if the kernel does not
 * tell it. */
static bool find_mapped(uintptr_t address, char *buf, size_t size)
{
	struct d9__mapping mapping = { 0 };
	struct d9__maps maps;

	if (!d9__maps_open(&maps))
		return false;
	maps.path = buf;
	maps.path_size = size;
	while (d9__maps_next(&maps, &mapping) && address >= mapping.high)
		continue;
	d9__maps_close(&maps);
	return address >= mapping.low && address < mapping.high && buf[0] == '/';
}

/* Write |path|, which is relative, behind the directory the process is in, if there is such a file.
 * False if not. */
static bool find_from_here(const char *path, char *buf, size_t size)
{
	size_t len;

	if (!getcwd(buf, size))
		return false;
	len = strlen(buf);
	return snprintf(buf + len, size - len, "/%s", path) < (int)(size - len) &&
	       !access(buf, F_OK);
}

static void take_facts(struct d9__module *module, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	module->file_size = (uint64_t)st.st_size;
	module->file_mtime_ns = d9__timespec_ns(&st.st_mtim);
	module->file_inode = st.st_ino;
}

/* True if |path| begins at the root of the file system. */
static bool is_absolute(const char *path)
{
	return path[0] == '/';
}

/* Write the path of the main program into |buf|.  False if the kernel does not tell it. */
static bool find_program(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	return is_absolute(buf);
}

/* Write what is left to call it by: |name|, behind the directory that the process is in if the file
 * is there. */
static void guess_path(const char *name, char *buf, size_t size)
{
	if (is_absolute(name) || !find_from_here(name, buf, size))
		snprintf(buf, size, "%s", name);
}

void d9__module_find_file(struct d9__module *module)
{
	bool is_main = !module->path[0], certain = is_absolute(module->path), replaced = false;
	const char *name = is_main ? (const char *)getauxval(AT_EXECFN) : module->path;
	char buf[PATH_MAX], *path;

	if (module->start == getauxval(AT_SYSINFO_EHDR))
		return;
	if (!certain) {
		certain = is_main ? find_program(buf, sizeof(buf))
				  : find_mapped(module->start, buf, sizeof(buf));
		if (certain)
			replaced = cut_remark(buf);
		else
			guess_path(name ? name : "", buf, sizeof(buf));
		path = d9__strdup(buf);
		if (!path)
			return;
		d9__free(module->path);
		module->path = path;
	}
	/* A guess proves nothing. */
	if (!module->build_id_len && !module->unread && certain && !replaced)
		take_facts(module, module->path);
}
