/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of sources, for calls that came by a name that the preload library exports. */

#pragma once

#include <dial9/export.h>

struct _GMainContext;
struct _GSource;
struct _GSourceFuncs;

D9_API struct _GSource *d9__hook_g_source_new(struct _GSourceFuncs *funcs, unsigned size);
D9_API unsigned d9__hook_g_source_attach(struct _GSource *source, struct _GMainContext *context);
