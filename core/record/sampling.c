/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/ring_file.h"
#include "record/sampling.h"

struct d9__sampling d9__sampling;
struct d9__slot_stack d9__slot_stacks[D9__SLOT_COUNT];
