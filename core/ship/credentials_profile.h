/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of a profile in AWS's two files, and of the command that a profile names. */

#pragma once

#include "ship/credentials.h"

/* Returns 0; -ENOENT: there is no such profile, |why| is unchanged; or -EINVAL with |why|. */
int d9__credentials_of_profile(struct d9__credentials *credentials, char *why, size_t why_size);

/* Get the region that the profile names; false: it names none. */
bool d9__credentials_region(const struct d9__credentials *credentials, char *region, size_t size);
