/* SPDX-License-Identifier: Apache-2.0 */
/* Dump receipt: that a shipper has stored what `dial9 dump` made. */

#pragma once

#include <stdint.h>

/*
 * Until the segment |path| stands in the list of what was shipped, for |timeout_ns|; then its key is printed.  An exit
 * status, with one line on stderr unless that is 0.
 */
int d9__dump_receipt(const char *path, uint64_t timeout_ns);
