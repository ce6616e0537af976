/* SPDX-License-Identifier: Apache-2.0 */
/* Text of traces in SVG: escaped for XML, and so that a terminal obeys nothing of it (text/shown.h). */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Write |text|. */
void d9__svg_text(FILE *out, const char *text);

/*
 * Write |text|, or as much as fits into |max| characters before two dots; nothing if that says too
 * little.
 */
void d9__svg_text_fitting(FILE *out, const char *text, size_t max);
