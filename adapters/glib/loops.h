/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of contexts and loops, for calls that came by a name that the preload library exports.
 */

#pragma once

#include <dial9/export.h>

struct _GMainContext;
struct _GMainLoop;

D9_API struct _GMainContext *d9__hook_g_main_context_default(void);
D9_API struct _GMainContext *d9__hook_g_main_context_new(void);
D9_API struct _GMainContext *d9__hook_g_main_context_new_with_flags(unsigned flags);
D9_API struct _GMainLoop *d9__hook_g_main_loop_new(struct _GMainContext *context, int running);
