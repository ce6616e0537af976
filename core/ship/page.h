/* SPDX-License-Identifier: Apache-2.0 */
/* Page: what a LIST answered, read from bytes that somebody else wrote. */

#pragma once

#include <json-c/json.h>
#include <stddef.h>

/* {"keys":[[KEY,SIZE,MODIFIED]...],"prefixes":[...],"more":TEXT}, owned; NULL: it is no such page, has
 * a key that no store could have, or out of memory. */
struct json_object *d9__page_parse(const char *text, size_t len);
