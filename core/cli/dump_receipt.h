/* SPDX-License-Identifier: Apache-2.0 */
/* Dump receipt: the proof that a shipper has stored a dump of `dial9 dump`. */

#pragma once

#include <stdint.h>

/*
 * Wait until the segment |path| is in the list of shipped ones, for |timeout_ns|, then print its
 * key.  Returns an exit status, with one line on stderr unless that is 0.
 */
int d9__dump_receipt(const char *path, uint64_t timeout_ns);
