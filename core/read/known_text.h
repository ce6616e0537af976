/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <dial9/reader.h>

/* d9_event_known() as a text; an empty one if it has no value, or one that the trace never defined. */
struct d9_text d9__known_text(const struct d9_event *event, unsigned k);
