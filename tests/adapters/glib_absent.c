/* SPDX-License-Identifier: Apache-2.0 */
/* A program that links the adapter, but no GLib: attach tells, and touches nothing. */

#include "config.h"

#include <errno.h>

#include <dial9/glib.h>

int main(void)
{
	return d9_g_main_context_attach(NULL) != -ENOENT || d9_g_main_context_capabilities(NULL, 0);
}
