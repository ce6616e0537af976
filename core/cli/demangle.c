/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libiberty and not __cxa_demangle(): it can leave the parameters out, and it is a static archive, so
 * that neither the C++ library nor anything else is loaded at the start of each command.
 */
#include "config.h"

#include <string.h>

#include "cli/demangle.h"

#ifdef HAVE_LIBIBERTY

#include <demangle.h>

char *d9__demangle(const char *name)
{
	if (strncmp(name, "_Z", 2))
		return NULL;
	return cplus_demangle_v3(name, DMGL_NO_OPTS);
}

#else

char *d9__demangle(const char *name)
{
	(void)name;
	return NULL;
}

#endif
