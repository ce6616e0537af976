/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets: the one block of memory of dial9-store with credentials.  It is locked, excluded from
 * core files, and wiped before it is filled again.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__SECRET_MAX   256
#define D9__TOKEN_MAX    8192
#define D9__SCRATCH_SIZE 65536

struct d9__secrets {
	char id[D9__SECRET_MAX];
	char secret[D9__SECRET_MAX];
	char token[D9__TOKEN_MAX]; /* "": none */
	int64_t expires; /* epoch seconds; 0: never */
	char scratch[D9__SCRATCH_SIZE]; /* a source's answer while it is read */
};

/* The block, zeroed; NULL: out of memory. */
struct d9__secrets *d9__secrets_new(void);

/* Forget all of it. */
void d9__secrets_wipe(struct d9__secrets *secrets);

/* Take the three; false: one is too long, has control characters, or |id| or |secret| is empty. */
bool d9__secrets_set(struct d9__secrets *secrets, const char *id, const char *secret, const char *token,
		     int64_t expires);

/* Replace secrets in |text| by "***". */
void d9__secrets_hide(const struct d9__secrets *secrets, char *text);

void d9__secrets_free(struct d9__secrets *secrets);
