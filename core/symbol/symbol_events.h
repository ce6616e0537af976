/* SPDX-License-Identifier: Apache-2.0 */

#ifndef D9_SYMBOL_SYMBOL_EVENTS_H
#define D9_SYMBOL_SYMBOL_EVENTS_H

#include <dial9/reader.h>

#include "symbol/elf_symbols.h"

/* Take |event| into |symbols| if it tells of a module or a symbol; no |symbols|, nothing to do.  0, -ENOMEM. */
int d9__symbols_learn(struct d9__symbols *symbols, const struct d9_event *event);

#endif /* D9_SYMBOL_SYMBOL_EVENTS_H */
