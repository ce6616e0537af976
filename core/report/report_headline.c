/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first line of a report: the program, how long it was recorded, and what is missing of that.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "report/report.h"
#include "report/report_parts.h"
#include "text/page.h"
#include "text/units.h"

static void add_word(char *buf, size_t size, const char *word)
{
	size_t used = strlen(buf);

	if (!strstr(buf, word))
		snprintf(buf + used, size - used, "%s%s", used ? ", " : "", word);
}

/* Add to what is missing that a program was killed: what is "complete" goes as far as that. */
static void add_killed(const struct d9__report_all *all, char *buf, size_t size)
{
	size_t n = 0, used = strlen(buf);

	for (size_t i = 0; i < all->n; i++)
		n += d9__analysis_was_killed(all->reports[i].analysis);
	if (!n)
		return;
	if (!used && all->n == 1)
		snprintf(buf, size, "complete until it was " D9__KILLED);
	else if (all->n == 1)
		snprintf(buf + used, size - used, ", " D9__KILLED);
	else
		snprintf(buf + used, size - used, "%s, %zu " D9__KILLED, used ? "" : "complete", n);
}

/* "complete", or what is missing, in a few words. */
static void describe_data(const struct d9__report_all *all, const struct d9__report_finding *findings, size_t n,
			  char *buf, size_t size)
{
	bool hooks = true;

	buf[0] = '\0';
	for (size_t i = 0; i < all->n; i++) {
		const struct d9__analysis *a = all->reports[i].analysis;

		hooks = hooks && d9__report_tells_hooks(&a->metadata);
		if (!d9__analysis_has_any(a) && !a->beside)
			add_word(buf, size, "nothing recorded");
		if (a->losses.n)
			add_word(buf, size, "events lost");
		for (size_t j = 0; j < a->n_segments; j++) {
			const struct d9__segment_fact *segment = &a->segments[j];

			if (d9__segment_is_damaged(segment->err))
				add_word(buf, size, "damaged");
			else if (segment->err == -ENOENT ||
				 d9__segment_is_unreadable(segment->truncated, segment->active,
							   segment->events))
				add_word(buf, size, "parts missing");
			else if (segment->active || segment->truncated)
				add_word(buf, size, "end missing");
		}
		if (a->unwritten || a->unwritten_ends)
			add_word(buf, size, "parts missing");
	}
	for (size_t i = 0; i < n; i++)
		if (!strcmp(findings[i].finding->check, "degraded-hooks"))
			add_word(buf, size, "some hooks missing");
	for (size_t i = 0; i < n && !buf[0]; i++)
		if (findings[i].finding->about == D9__ABOUT_DATA)
			add_word(buf, size, "incomplete");
	add_killed(all, buf, size);
	if (!buf[0])
		snprintf(buf, size, "complete");
	if (!hooks && !strncmp(buf, "complete", strlen("complete")))
		add_word(buf, size, "hooks not told");
}

/* "  samples cover 35 % of the CPU time": where that is so little that they do not tell where the
 * time went. */
static void describe_share(const struct d9__report_all *all, char *buf, size_t size)
{
	double least = D9__SAMPLED_ENOUGH;

	for (size_t i = 0; i < all->n; i++) {
		double share = d9__analysis_sampled_share(all->reports[i].analysis);

		if (share >= 0 && share < least)
			least = share;
	}
	if (least < D9__SAMPLED_ENOUGH)
		snprintf(buf, size, "  samples cover %s of the CPU time",
			 d9__units_percent(least).text);
}

/* "1.38 s on the CPU in 3 threads, by samples": where no loop ran. */
static void describe_samples(const struct d9__report_all *all, char *buf, size_t size)
{
	uint64_t on_ns = 0;
	size_t threads = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct d9__samples *samples = &all->reports[i].analysis->samples;

		on_ns += samples->on * samples->period_ns;
		threads += samples->threads.n;
	}
	if (threads)
		snprintf(buf, size, "%s on the CPU in %zu thread%s, by samples", d9__units_ns(on_ns).text, threads,
			 threads == 1 ? "" : "s");
}

void d9__report_headline(const struct d9__report_all *all, const struct d9__report_finding *findings, size_t n)
{
	struct d9__page *page = all->page;
	uint64_t start_ns = d9__analysis_start_ns(all->first);
	uint64_t end_ns = d9__reports_end_ns(all->reports, all->n);
	const char *program = d9__report_program(all->first);
	char data[160], busy[160] = "", share[128] = "", processes[48], *line;
	size_t column;

	describe_data(all, findings, n, data, sizeof(data));
	if (!d9__report_has_loops(all))
		describe_samples(all, busy, sizeof(busy));
	describe_share(all, share, sizeof(share));
	snprintf(processes, sizeof(processes), "%zu processes", all->n);
	if (all->n > 1)
		program = processes;
	else if (!*program)
		program = "trace";
	if (asprintf(&line, "%s  %s%s%s%s",
		     d9__units_ns(end_ns > start_ns ? end_ns - start_ns : 0).text, data, share,
		     busy[0] ? "  " : "", busy) < 0) {
		page->err = -ENOMEM;
		return;
	}
	d9__page_put(page, D9__BOLD, program);
	d9__page_put(page, D9__PLAIN, "  ");
	column = d9__page_columns(page, program) + 2;
	if (column + d9__page_columns(page, line) <= page->width) {
		d9__page_put(page, D9__PLAIN, line);
		putc('\n', page->out);
	} else {
		for (char *gap = line; (gap = strstr(gap, "  "));)
			*gap = ',';
		d9__page_wrap(page, line, (unsigned)column, 2);
	}
	free(line);
}

/* "slow fired at 4.97 s: poll 40.2 ms, over 30.0 ms, in on_read; and 2 more" */
static char *describe_fired(const struct d9__analysis *a)
{
	const struct d9__fire *fire = &a->fired.items[0];
	uint64_t start_ns = d9__analysis_start_ns(a);
	char measure[128], more[48] = "", *line;
	const char *name = NULL;
	size_t len = 0;

	d9__fired_measure(fire, &a->metadata, measure, sizeof(measure));
	if (a->fired.n > 1)
		snprintf(more, sizeof(more), "; and %zu more", a->fired.n - 1);
	if (fire->callback)
		name = d9__callback_name(fire->callback, &len);
	if (asprintf(&line, "%s fired at %s%s%s%s%.*s%s", fire->trigger,
		     d9__units_ns(fire->ns > start_ns ? fire->ns - start_ns : 0).text, measure[0] ? ": " : "", measure,
		     name ? ", in " : "", name ? d9__precision(len) : 0, name ? name : "", more) < 0)
		return NULL;
	return line;
}

void d9__report_fired(const struct d9__report_all *all)
{
	struct d9__page *page = all->page;

	for (size_t i = 0; i < all->n; i++) {
		const struct d9__analysis *a = all->reports[i].analysis;
		char *line;

		if (!a->fired.n)
			continue;
		line = describe_fired(a);
		if (!line) {
			page->err = -ENOMEM;
			return;
		}
		d9__page_put(page, D9__BOLD, "trigger ");
		d9__page_wrap(page, line, 8, 8);
		free(line);
	}
}
