/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of an address: a function at work, and what kind of address it is. */

#pragma once

#include <stdint.h>

#define D9__SYMBOL_DEPTH_MAX 64 /* frames of one address */

/* One frame.  Texts are terminated and live as long as what gave the answer. */
struct d9__symbol {
	const char *function; /* NULL: unknown */
	const char *file;     /* without folders; NULL: unknown */
	const char *path;     /* the same as the compiler wrote it, or NULL */
	const char *module;   /* base name ("memcached"), or NULL: no module is known there */
	uint64_t offset;      /* into the module: address - load bias */
	unsigned line;	      /* 0: unknown */
};

enum d9__address_role {
	D9__EXECUTING, /* the instruction at it was running: the innermost address of a sample */
	D9__RETURN,    /* the instruction behind a call, and the call is meant: all other addresses of a stack */
	D9__ENTRY,     /* the beginning of a function whose pointer was passed: its declaration is meant */
};
