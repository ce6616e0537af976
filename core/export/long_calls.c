/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/budget.h"
#include "base/array.h"
#include "export/long_calls.h"
#include "text/fail.h"
#include "tool/progress.h"
#include "tool/trace_input.h"

struct search {
	struct d9__long_calls *calls;
	uint64_t min_ns;
};

static void on_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	const struct search *search = context;
	struct d9__long_calls *calls = search->calls;

	if (calls->err || piece->end_ns < piece->start_ns || piece->end_ns - piece->start_ns < search->min_ns ||
	    !d9__budget_take(D9__KEPT_CALLS, 2 * sizeof(*calls->items)))
		return;
	if (!d9__array_grow(calls->items, calls->n)) {
		calls->err = -ENOMEM;
		return;
	}
	calls->items[calls->n++] = (struct d9__long_call){ worker->id, piece->start_ns, piece->end_ns };
}

static int compare(const void *left, const void *right)
{
	const struct d9__long_call *a = left, *b = right;

	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int read_all(struct d9__analysis *analysis, struct d9_reader *reader)
{
	struct d9__progress progress;
	const struct d9_event *event;
	int err = 0;

	d9__progress_init(&progress);
	while (!err && (event = d9__traces_next(reader, &progress, &err)))
		err = d9__analysis_event(analysis, event);
	d9__progress_clear(&progress);
	/* It ends the calls that are still open, too. */
	return err ? err : d9__analysis_finish(analysis, reader);
}

int d9__long_calls_find(struct d9__long_calls *calls, uint64_t min_ns, const char *command, char **paths,
			const struct d9__processes *processes)
{
	struct search search = { calls, min_ns };
	struct d9__analysis analysis = { .processes = processes, .on_piece = on_piece, .on_piece_context = &search };
	struct d9_reader *reader = NULL;
	int err, status;

	if (d9__traces_have_pipe(paths))
		return d9__cmd_fail(command, "a trace is read twice for --min-duration: give it as a file");
	status = d9__traces_open(command, paths, &reader);
	if (status)
		return status;
	err = read_all(&analysis, reader);
	if (!err)
		err = calls->err;
	if (calls->n)
		qsort(calls->items, calls->n, sizeof(calls->items[0]), compare);
	d9__analysis_release(&analysis);
	d9_reader_free(reader);
	return err == -ENOMEM ? d9__cmd_fail(command, "out of memory") : 0;
}

bool d9__long_calls_have(const struct d9__long_calls *calls, uint64_t worker, uint64_t ns)
{
	const struct d9__long_call wanted = { .worker = worker, .start_ns = ns };
	size_t low = 0, high = calls->n;

	/* Behind the last one that begins at |ns| or before. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&calls->items[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && calls->items[low - 1].worker == worker && ns <= calls->items[low - 1].end_ns;
}

void d9__long_calls_release(struct d9__long_calls *calls)
{
	free(calls->items);
}
