/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/generated.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include <dial9/loop.h>

#include "segment/modules.h"

/*
 * Distinct addresses of a kind that are told apart; later ones share a name.  What lives long comes early;
 * bindings make closures for one call, too, each at an address of its own.
 */
#define NUMBERED 8u

static struct {
	pthread_mutex_t lock; /* protects the rest; a leaf */
	struct {
		const void *callbacks[NUMBERED];
		unsigned n;
	} kinds[D9__TASK_KINDS];
} numbered = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* How a callback of |kind| is called for; "" where its kind tells nothing of it. */
static const char *word_of(unsigned kind)
{
	static const char *const words[D9__TASK_KINDS] = {
		[D9_TASK_IO] = "io ",	    [D9_TASK_TIMER] = "timer ", [D9_TASK_SIGNAL] = "signal ",
		[D9_TASK_IDLE] = "idle ",   [D9_TASK_CHILD] = "child ",
	};

	return words[kind] ? words[kind] : "";
}

const char *d9__language_of(const char *module)
{
	/* The first that fits: "libpython3.11.so.1.0", "_gi.cpython-311-x86_64-linux-gnu.so", "corelgilua51.so". */
	static const struct {
		const char *part, *language;
	} runtimes[] = { { "python", "python" }, { "pypy", "python" }, { "lua", "lua" },
			 { "ruby", "ruby" },	 { "perl", "perl" },   { "libmozjs", "javascript" },
			 { "gjs", "javascript" }, { "libnode", "node" }, { "guile", "guile" },
			 { "libjvm", "java" },	 { "mono", "mono" },   { "libphp", "php" } };
	size_t len = strcspn(module, "+");
	char name[256];

	if (len >= sizeof(name))
		return NULL;
	memcpy(name, module, len);
	name[len] = '\0';
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		if (strstr(name, runtimes[i].part))
			return runtimes[i].language;
	}
	return strcmp(name, "node") && strcmp(name, "nodejs") ? NULL : "node";
}

const char *d9__generated_by(void)
{
	/* Where the main program is mapped. */
	const void *main_program = (const void *)getauxval(AT_PHDR);
	char module[256];

	if (!main_program || d9__module_name_of(main_program, module, sizeof(module)) <= 0)
		return NULL;
	return d9__language_of(module);
}

/* From 1 on; 0: there are more than are told apart. */
static unsigned number_of(const void *callback, unsigned kind)
{
	unsigned i = 0;

	pthread_mutex_lock(&numbered.lock);
	while (i < numbered.kinds[kind].n && numbered.kinds[kind].callbacks[i] != callback)
		i++;
	if (i == numbered.kinds[kind].n && i < NUMBERED)
		numbered.kinds[kind].callbacks[numbered.kinds[kind].n++] = callback;
	pthread_mutex_unlock(&numbered.lock);
	return i < NUMBERED ? i + 1 : 0;
}

/* The language of |site|, or of the program; else the module of |site|, in |module|; NULL: nothing is known. */
static const char *maker_of(const void *site, char *module, size_t size)
{
	const char *language = NULL;
	bool placed = site && d9__module_name_of(site, module, size) > 0 && strncmp(module, "0x", 2) != 0;

	if (placed)
		language = d9__language_of(module);
	if (!language)
		language = d9__generated_by();
	/* Some other compiler's or library's: the module that registered it says whose it is. */
	if (!language && placed) {
		module[strcspn(module, "+")] = '\0';
		language = module;
	}
	return language;
}

int d9__generated_name(const void *callback, const void *site, unsigned kind, char *buf, size_t size, bool *shared)
{
	char module[256];
	const char *maker = maker_of(site, module, sizeof(module));
	unsigned number = 1;
	int len = (int)strlen(buf);

	*shared = false;
	if (!maker)
		return len;
	/* The list of modules may have been made since it was looked at for |callback|. */
	len = d9__module_name_of(callback, buf, size);
	if (len > 0 && strncmp(buf, "0x", 2) != 0)
		return len;
	/* An idle task runs once as a rule, and is made anew for the next time. */
	if (kind != D9_TASK_IDLE)
		number = number_of(callback, kind);
	*shared = kind == D9_TASK_IDLE || !number;
	if (number > 1)
		len = snprintf(buf, size, "%s %scallback %u", maker, word_of(kind), number);
	else
		len = snprintf(buf, size, number ? "%s %scallback" : "other %s %scallbacks", maker, word_of(kind));
	return len < (int)size ? len : (int)size - 1;
}

void d9__generated_fork_prepare(void)
{
	pthread_mutex_lock(&numbered.lock);
}

void d9__generated_fork_parent(void)
{
	pthread_mutex_unlock(&numbered.lock);
}
