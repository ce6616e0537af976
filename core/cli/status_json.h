/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 status --json`; the shape is documented in dial9-status(1). */

#pragma once

#include "text/text.h"
#include "watch/recorders.h"

void d9__status_json(struct d9__text_out *out, const struct d9__recorders *recorders);
