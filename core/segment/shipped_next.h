/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The number above those of all segments that have left the directory |dir_fd| by way of a shipper, as its list .shipped has it
 * (ship/shipped.h); 0: none has.  Under the number of one that was sent another would take its place in the store.
 */
uint64_t d9__shipped_next(int dir_fd);
