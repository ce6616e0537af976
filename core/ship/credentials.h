/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: of the first source that yields, in the order that AWS's own tools have: environment,
 * web identity (EKS), profile (credential_process included), container endpoint, instance metadata
 * (IMDSv2).
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/secrets.h"

#define D9__CREDENTIALS_EARLY 600 /* seconds before they expire that new ones are looked for */

struct d9__credentials {
	const char *profile; /* NULL: AWS_PROFILE, "default" */
	const char *region;  /* of STS, where the environment names none */
	const char *ca;	     /* certificates to trust; NULL: the system's */
	struct d9__secrets *secrets;
	bool have;
	bool from_environment; /* they are taken out of it when they are read */
};

/*
 * Find them, or find them again if |have|.  Returns 0, or -ENOENT with one line in |why| that names
 * each source and its fault, and never a value.
 */
int d9__credentials_find(struct d9__credentials *credentials, char *why, size_t why_size);

/* True if it is time to find them again. */
bool d9__credentials_are_old(const struct d9__credentials *credentials);
