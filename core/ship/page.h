/* SPDX-License-Identifier: Apache-2.0 */
/* Page: one answer to a LIST request, parsed from bytes that are not to be trusted. */

#pragma once

#include <json-c/json.h>
#include <stddef.h>

/*
 * Return {"keys":[[KEY,SIZE,MODIFIED]...],"prefixes":[...],"more":TEXT}, owned.  NULL: the text is
 * not a page, has a key that no store could have, or out of memory.
 */
struct json_object *d9__page_parse(const char *text, size_t len);
