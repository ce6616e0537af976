/* SPDX-License-Identifier: Apache-2.0 */
/* Seams: what loop/ needs from the recorder's background half. */

#ifndef D9_LOOP_SEAMS_H
#define D9_LOOP_SEAMS_H

#include "record/metadata.h"
#include "record/modules.h"
#include "record/recorder.h"
#include "record/source.h"

#endif /* D9_LOOP_SEAMS_H */
