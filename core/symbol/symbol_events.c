/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "symbol/symbol_events.h"
#include "read/known_text.h"

static int learn_module(struct d9__symbols *symbols, const struct d9_event *event)
{
	struct d9_text path = d9__known_text(event, D9_MODULE_PATH);
	struct d9_text build_id = d9__known_text(event, D9_MODULE_BUILD_ID);
	struct d9__module module = {
		.base = d9_event_known_u64(event, D9_MODULE_BASE, 0),
		.start = d9_event_known_u64(event, D9_MODULE_START, 0),
		.size = d9_event_known_u64(event, D9_MODULE_SIZE, 0),
		.path = path.data,
		.path_len = path.len,
		.build_id = build_id.data,
		.build_id_len = build_id.len,
	};

	return d9__symbols_module_add(symbols, &module);
}

static int learn_row(struct d9__symbols *symbols, const struct d9_event *event)
{
	struct d9_text name = d9__known_text(event, D9_SYMBOL_NAME);
	struct d9_text file = d9__known_text(event, D9_SYMBOL_SOURCE_FILE);

	if (d9_event_known_u64(event, D9_SYMBOL_INLINE_DEPTH, 0))
		return 0;
	return d9__symbols_row_add(symbols, d9_event_known_u64(event, D9_SYMBOL_ADDR, 0), name.data, name.len,
				   file.data, file.len,
				   (unsigned)d9_event_known_u64(event, D9_SYMBOL_SOURCE_LINE, 0));
}

int d9__symbols_learn(struct d9__symbols *symbols, const struct d9_event *event)
{
	if (symbols && event->kind == D9_EVENT_MODULE)
		return learn_module(symbols, event);
	return symbols && event->kind == D9_EVENT_SYMBOL ? learn_row(symbols, event) : 0;
}
