/* SPDX-License-Identifier: Apache-2.0 */
#ifndef D9_CLI_RECOVER_DIR_H
#define D9_CLI_RECOVER_DIR_H

/* What killed processes left of the trace directory |dir| becomes segments; what cannot is told, a line each, as |command|. */
void d9__recover_dir(const char *command, const char *dir);

#endif /* D9_CLI_RECOVER_DIR_H */
