/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/heap.h"
#include "analyze/metadata.h"
#include "report/report_heap.h"
#include "text/units.h"

#define PATH_FRAMES 4

static uint64_t whole(double number)
{
	return number > 0 ? (uint64_t)(number + 0.5) : 0;
}

static struct d9__heap_site *sites_of(const struct d9__analysis *a, size_t *n)
{
	return d9__heap_sites(&a->heap, d9__metadata_value(&a->metadata, "program"), n);
}

/* ---- text ---- */

static void put_bytes(struct d9__grid *grid, double bytes)
{
	d9__grid_cell(grid, d9__units_bytes(whole(bytes)).text, 0);
}

static void put_count(struct d9__grid *grid, double count)
{
	d9__grid_cell(grid, d9__units_count(whole(count)).text, 0);
}

static void put_site(struct d9__grid *grid, const struct d9__heap_site *site, bool live)
{
	const struct d9__heap_sum *sum = live ? &site->live : &site->allocated;

	put_bytes(grid, sum->bytes);
	put_count(grid, sum->count);
	d9__grid_cell(grid, d9__units_count(sum->samples).text, 0);
	d9__grid_cell(grid, d9__heap_site_name(site).text, 0);
	d9__grid_cell(grid, d9__heap_site_path(site, PATH_FRAMES).text, 0);
}

static void put_sites(const struct d9__heap_site *sites, size_t n, size_t rows, bool live, struct d9__page *page)
{
	struct d9__grid grid = { .n_columns = 0 };
	size_t shown = 0;

	d9__grid_column(&grid, live ? "LIVE AT THE END" : "ALLOCATED", false, false);
	d9__grid_column(&grid, "BLOCKS", false, false);
	d9__grid_column(&grid, "SAMPLES", false, false);
	d9__grid_column(&grid, "SITE", true, false);
	d9__grid_column(&grid, "CALLED BY WAY OF", true, true);
	d9__grid_spare(&grid, (const char *const[]){ "SAMPLES", "BLOCKS", NULL });
	for (size_t i = 0; i < n && shown < rows; i++) {
		if (live && !sites[i].live.samples)
			break;
		put_site(&grid, &sites[i], live);
		shown++;
	}
	d9__grid_print(&grid, page);
	if (!live && n > shown)
		d9__page_line(page, "and %s more sites (--top %zu shows all)", d9__units_count(n - shown).text, n);
}

static void put_callers(const struct d9__heap *heap, size_t rows, struct d9__page *page)
{
	struct d9__grid grid = { .n_columns = 0 };
	size_t n;
	struct d9__heap_caller *callers = d9__heap_callers(heap, &n);
	char way[512];

	if (!callers) {
		page->err = n ? -ENOMEM : page->err;
		return;
	}
	d9__grid_column(&grid, "ALLOCATED", false, false);
	d9__grid_column(&grid, "PER CALL", false, false);
	d9__grid_column(&grid, "SAMPLES", false, false);
	d9__grid_column(&grid, "IN CALLS OF", true, true);
	for (size_t i = 0; i < n && i < rows; i++) {
		const struct d9__heap_caller *caller = &callers[i];

		put_bytes(&grid, caller->allocated.bytes);
		put_bytes(&grid, caller->callback->calls ? caller->allocated.bytes / (double)caller->callback->calls : 0);
		d9__grid_cell(&grid, d9__units_count(caller->allocated.samples).text, 0);
		d9__grid_cell(&grid, d9__callback_way(caller->callback, way, sizeof(way)), 0);
	}
	d9__grid_print(&grid, page);
	free(callers);
}

static int by_allocated(const void *left, const void *right)
{
	const struct d9__heap_site *a = left, *b = right;

	if (a->allocated.bytes != b->allocated.bytes)
		return a->allocated.bytes < b->allocated.bytes ? 1 : -1;
	return (a->stack->number > b->stack->number) - (a->stack->number < b->stack->number);
}

static void put_sums(const struct d9__analysis *a, struct d9__page *page)
{
	const struct d9__heap *heap = &a->heap;

	d9__page_line(page,
		      "about %s allocated in %s blocks, from %s sample%s, one in %s on average",
		      d9__units_bytes(whole(heap->allocated.bytes)).text,
		      d9__units_count(whole(heap->allocated.count)).text,
		      d9__units_count(heap->allocated.samples).text,
		      heap->allocated.samples == 1 ? "" : "s",
		      d9__units_bytes(heap->rate ? heap->rate : D9__HEAP_RATE).text);
	if (heap->followed)
		d9__page_line(page, "about %s of it live at the end, in %s blocks", d9__units_bytes(whole(heap->live.bytes)).text,
			      d9__units_count(whole(heap->live.count)).text);
	else
		d9__page_line(page, "what was freed was not recorded (DIAL9_MEMORY_TRACK_LIVESET)");
	if (a->losses.dropped_allocs)
		d9__page_line(page, "%s samples were lost: there is more", d9__units_count(a->losses.dropped_allocs).text);
	if (a->losses.dropped_frees || heap->evicted)
		d9__page_line(page, "%s frees were lost, and %s allocations followed no further: less is live than it seems",
			      d9__units_count(a->losses.dropped_frees).text, d9__units_count(heap->evicted).text);
}

void d9__report_heap(const struct d9__analysis *a, size_t rows, struct d9__page *page)
{
	size_t n;
	struct d9__heap_site *sites = sites_of(a, &n);

	if (!sites) {
		page->err = n ? -ENOMEM : page->err;
		return;
	}
	d9__page_section(page, "Memory");
	put_sums(a, page);
	if (a->heap.live.samples)
		put_sites(sites, n, rows, true, page);
	qsort(sites, n, sizeof(*sites), by_allocated);
	put_sites(sites, n, rows, false, page);
	free(sites);
	put_callers(&a->heap, rows, page);
}

/* ---- JSON ---- */

static void put_sum(struct d9__json *json, const char *key, const struct d9__heap_sum *sum)
{
	d9__json_open(json, key, '{');
	d9__json_u64(json, "bytes", whole(sum->bytes));
	d9__json_u64(json, "blocks", whole(sum->count));
	d9__json_u64(json, "samples", sum->samples);
	d9__json_close(json, '}');
}

static void put_stack(struct d9__json *json, const struct d9__heap_stack *stack)
{
	d9__json_open(json, "stack", '[');
	for (size_t i = 0; stack->names && i < stack->n; i++)
		d9__json_string(json, NULL, stack->names[i].function);
	d9__json_close(json, ']');
}

static void put_json_site(struct d9__json *json, const struct d9__heap *heap, const struct d9__heap_site *site)
{
	const struct d9__frame_name *name = site->stack->names ? &site->stack->names[site->frame] : NULL;

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "name", d9__heap_site_name(site).text);
	d9__json_string(json, "function", name ? name->function : NULL);
	d9__json_string(json, "file", name ? name->file : NULL);
	d9__json_u64(json, "line", name ? name->line : 0);
	put_sum(json, "allocated", &site->allocated);
	put_sum(json, "live", &site->live);
	d9__json_bool(json, "grows", d9__heap_site_grows(heap, site));
	put_stack(json, site->stack);
	d9__json_close(json, '}');
}

static int put_json_callers(struct d9__json *json, const struct d9__heap *heap)
{
	size_t n;
	struct d9__heap_caller *callers = d9__heap_callers(heap, &n);
	char way[1024];

	d9__json_open(json, "callbacks", '[');
	for (size_t i = 0; callers && i < n; i++) {
		d9__json_open(json, NULL, '{');
		d9__json_string(json, "way", d9__callback_way(callers[i].callback, way, sizeof(way)));
		d9__json_string(json, "location", callers[i].callback->location);
		put_sum(json, "allocated", &callers[i].allocated);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	free(callers);
	return callers || !n ? 0 : -ENOMEM;
}

int d9__report_json_heap(struct d9__json *json, const struct d9__analysis *a)
{
	const struct d9__heap *heap = &a->heap;
	size_t n;
	struct d9__heap_site *sites = sites_of(a, &n);
	int err;

	if (!sites) {
		d9__json_null(json, "memory");
		return n ? -ENOMEM : 0;
	}
	d9__json_open(json, "memory", '{');
	d9__json_u64(json, "rate_bytes", heap->rate ? heap->rate : D9__HEAP_RATE);
	put_sum(json, "allocated", &heap->allocated);
	put_sum(json, "live", &heap->live);
	d9__json_bool(json, "frees_recorded", heap->followed);
	d9__json_u64(json, "frees", heap->frees);
	d9__json_u64(json, "evicted", heap->evicted);
	d9__json_open(json, "sites", '[');
	for (size_t i = 0; i < n; i++)
		put_json_site(json, heap, &sites[i]);
	d9__json_close(json, ']');
	err = put_json_callers(json, heap);
	d9__json_close(json, '}');
	free(sites);
	return err;
}
