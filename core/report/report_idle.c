/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_idle.h"
#include "text/units.h"

#define STACKS_MAX 100u /* in JSON: the most idle ones */

/* ---- text ---- */

static void put_row(struct d9__grid *grid, const struct d9__idle *idle, const struct d9__idle_stack *stack)
{
	char share[16], text[1024];
	const char *caller, *next;

	snprintf(share, sizeof(share), "%.0f %%", 100 * stack->idle_ns / idle->idle_ns);
	d9__idle_describe(stack, text, sizeof(text));
	/* The caller is worth more than the caller's caller. */
	caller = strstr(text, " < ");
	next = caller ? strstr(caller + 1, " < ") : NULL;
	d9__grid_cell(grid, d9__units_ns((uint64_t)stack->idle_ns).text, 0);
	d9__grid_cell(grid, share, 0);
	d9__grid_cell(grid, d9__units_ns(stack->longest_ns).text, 0);
	d9__grid_cell(grid, d9__units_count(stack->dumps).text, 0);
	d9__grid_cell(grid, text, next ? (size_t)(next - text) : 0);
}

/* Times are of all tasks together. */
void d9__report_idle(const struct d9__idle *idle, size_t rows, struct d9__page *page)
{
	static const char *const titles[] = { "IDLE", "SHARE", "LONGEST", "DUMPS" };
	struct d9__grid grid = { .n_columns = 0 };
	const struct d9__idle_stack **sorted;
	size_t all, n;

	if (!idle->dumps || idle->idle_ns <= 0)
		return;
	sorted = d9__idle_sorted(idle, &all);
	if (!sorted) {
		page->err = -ENOMEM;
		return;
	}
	d9__page_section(page, "Idle tasks by what they wait for");
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		d9__grid_column(&grid, titles[i], false, false);
	d9__grid_column(&grid, "ARMED BY", true, true);
	n = all < rows ? all : rows;
	for (size_t i = 0; i < n; i++)
		put_row(&grid, idle, sorted[i]);
	d9__grid_print(&grid, page);
	if (n < all)
		d9__page_line(page, "and %s more stacks (--top %zu shows all)", d9__units_count(all - n).text, all);
	free(sorted);
}

/* ---- JSON ---- */

static void put_idle_stack(struct d9__json *json, const struct d9__idle_stack *idle)
{
	const struct d9__stack *stack = idle->stack;
	char text[1024];

	d9__idle_describe(idle, text, sizeof(text));
	d9__json_open(json, NULL, '{');
	d9__json_string(json, "armed_by", text);
	d9__json_u64(json, "idle_ns", (uint64_t)idle->idle_ns);
	d9__json_u64(json, "longest_ns", idle->longest_ns);
	d9__json_u64(json, "dumps", idle->dumps);
	d9__json_u64(json, "dumps_kept", idle->kept);
	d9__json_open(json, "addresses", '[');
	for (size_t i = 0; i < stack->n; i++)
		d9__json_u64(json, NULL, stack->addresses[i]);
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

int d9__report_json_idle(struct d9__json *json, const struct d9__idle *idle)
{
	size_t n;
	const struct d9__idle_stack **sorted = d9__idle_sorted(idle, &n);

	if (!sorted)
		return -ENOMEM;
	d9__json_open(json, "idle", '{');
	d9__json_u64(json, "dumps", idle->dumps);
	d9__json_u64(json, "idle_ns", (uint64_t)idle->idle_ns);
	d9__json_open(json, "stacks", '[');
	for (size_t i = 0; i < n && i < STACKS_MAX; i++)
		put_idle_stack(json, sorted[i]);
	d9__json_close(json, ']');
	d9__json_close(json, '}');
	free(sorted);
	return 0;
}
