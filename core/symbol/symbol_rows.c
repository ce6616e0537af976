/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "read/known_text.h"
#include "symbol/demangle.h"
#include "symbol/symbol_rows.h"

#define TABLE_BYTES (3 * sizeof(struct d9__table_entry)) /* a place in a table */

static bool begins_with(const char *name, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && !memcmp(name, prefix, strlen(prefix));
}

bool d9__symbol_rows_is_mere_place(const char *name, size_t len)
{
	const char *plus = len ? memrchr(name, '+', len) : NULL;
	size_t digits = plus ? len - (size_t)(plus - name) : 0;

	if (begins_with(name, len, "[kernel] 0x") || begins_with(name, len, "[symbolize-failed] "))
		return true;
	if (digits < 4 || plus[1] != '0' || plus[2] != 'x')
		return false;
	for (const char *c = plus + 3; c < name + len; c++)
		if (!*c || !strchr("0123456789abcdef", *c))
			return false;
	return true;
}

static size_t newest_of(const struct d9__symbol_rows *rows, uint64_t address)
{
	return (size_t)(uintptr_t)d9__table_find(&rows->by_address, address);
}

static bool has_depth(const struct d9__symbol_rows *rows, uint64_t address, uint64_t depth)
{
	for (size_t i = newest_of(rows, address); i; i = rows->items[i - 1].next)
		if (rows->items[i - 1].depth == depth)
			return true;
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

static struct d9__symbol read_symbol(struct d9__answers *answers, const struct d9_event *event, const struct d9_text *name)
{
	struct d9_text path = d9__known_text(event, D9_SYMBOL_SOURCE_FILE);
	struct d9__symbol symbol = { .function = d9__answers_text(answers, name->data, name->len),
				     .path = d9__answers_text(answers, path.data, path.len),
				     .line = (unsigned)d9_event_known_u64(event, D9_SYMBOL_SOURCE_LINE, 0) };
	char *plain = symbol.function ? d9__demangle(symbol.function) : NULL;

	if (plain)
		symbol.function = d9__answers_text(answers, plain, strlen(plain));
	free(plain);
	symbol.file = base_name(symbol.path);
	return symbol;
}

int d9__symbol_rows_learn(struct d9__symbol_rows *rows, struct d9__answers *answers, const struct d9_event *event)
{
	uint64_t address = d9_event_known_u64(event, D9_SYMBOL_ADDR, 0);
	uint64_t depth = d9_event_known_u64(event, D9_SYMBOL_INLINE_DEPTH, 0);
	struct d9_text name = d9__known_text(event, D9_SYMBOL_NAME);
	struct d9__row *row;
	size_t newest;

	/* Rows at address 0 are no symbols: analyze/spawn_texts.h. */
	if (!address || !name.len || depth >= D9__SYMBOL_DEPTH_MAX || d9__symbol_rows_is_mere_place(name.data, name.len) ||
	    has_depth(rows, address, depth) || rows->n == UINT32_MAX - 1 ||
	    !d9__budget_take(D9__KEPT_SYMBOLS, TABLE_BYTES + 2 * sizeof(*row)))
		return 0;
	if (!d9__array_grow(rows->items, rows->n))
		return -ENOMEM;
	row = &rows->items[rows->n];
	newest = newest_of(rows, address);
	*row = (struct d9__row){ .symbol = read_symbol(answers, event, &name), .depth = (uint32_t)depth,
				 .next = (uint32_t)newest };
	if (newest)
		d9__table_remove(&rows->by_address, address);
	rows->n++;
	return d9__table_add(&rows->by_address, address, (void *)(uintptr_t)rows->n);
}

size_t d9__symbol_rows_find(const struct d9__symbol_rows *rows, uint64_t address, struct d9__symbol frames[D9__SYMBOL_DEPTH_MAX],
		     bool *placed)
{
	const struct d9__row *by_depth[D9__SYMBOL_DEPTH_MAX] = { NULL };
	size_t n = 0;

	*placed = false;
	for (size_t i = newest_of(rows, address); i; i = rows->items[i - 1].next)
		by_depth[rows->items[i - 1].depth] = &rows->items[i - 1];
	for (size_t depth = D9__SYMBOL_DEPTH_MAX; depth--;) {
		if (!by_depth[depth])
			continue;
		frames[n] = by_depth[depth]->symbol;
		*placed = *placed || frames[n].path;
		n++;
	}
	return n;
}

void d9__symbol_rows_release(struct d9__symbol_rows *rows)
{
	free(rows->items);
	d9__table_release(&rows->by_address);
	*rows = (struct d9__symbol_rows){ 0 };
}
