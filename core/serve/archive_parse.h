/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "serve/archive_parts.h"

/* Make |said| of the summary |text|.  0 with |*out|, -ENOMEM, or -EBADMSG. */
int d9__archived_parse(struct d9__archive *archive, const struct d9__archive_entry *entry,
		       const char *text, size_t len, struct d9__archived **out);

/* Take the facts from the name of |entry|, which has some.  0 with |*out|, or -ENOMEM. */
int d9__archived_listed(const struct d9__archive_entry *entry, struct d9__archived **out);
void d9__archived_free(struct d9__archived *said);
