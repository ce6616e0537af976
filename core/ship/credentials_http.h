/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials over HTTP: of STS for a web identity token, of a container endpoint, of instance
 * metadata. */

#pragma once

#include "ship/credentials.h"

/* Each returns 0; -ENOENT: the source is absent, |why| is unchanged; or -EINVAL with |why|. */
int d9__credentials_of_web_identity(struct d9__credentials *credentials, char *why,
				    size_t why_size);
int d9__credentials_of_container(struct d9__credentials *credentials, char *why, size_t why_size);
int d9__credentials_of_instance(struct d9__credentials *credentials, char *why, size_t why_size);
