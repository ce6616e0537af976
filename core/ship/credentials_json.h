/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials in JSON, as a command, a container endpoint and instance metadata answer. */

#pragma once

#include "ship/credentials.h"

/*
 * Take the credentials from |len| bytes of JSON at secrets->scratch; |token| is the name of the
 * token's field.
 */
int d9__credentials_take_json(struct d9__credentials *credentials, size_t len, const char *token,
			      char *why, size_t why_size);

/* Return a time such as 2026-11-29T00:44:55Z in seconds since 1970; 0: it is not a time. */
int64_t d9__credentials_epoch(const char *text);
