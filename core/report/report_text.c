/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/report_parts.h"
#include "text/page.h"
#include "text/units.h"

#define EVIDENCE_INDENT 4

/* Of one check and severity, so many are told with their evidence; others have a line each. */
#define FINDINGS_IN_FULL 3

/* Of several processes, how many get all their tables. */
#define PROCESSES_IN_FULL 3

static void put_header(struct d9__report_all *all)
{
	uint64_t start_ns = d9__analysis_start_ns(all->first), events = 0;
	uint64_t end_ns = d9__reports_end_ns(all->reports, all->n);
	struct d9__units wall = d9__units_wall_short(d9__analysis_wall_ns(all->first, start_ns));
	const char *program = d9__report_program(all->first);
	char processes[48] = "", *line;
	size_t segments = 0;

	for (size_t i = 0; i < all->n; i++) {
		events += all->reports[i].analysis->events;
		segments += all->reports[i].analysis->n_segments;
	}
	if (all->n > 1)
		snprintf(processes, sizeof(processes), "%zu processes, ", all->n);
	if (asprintf(&line, "%s%s%s%s event%s in %zu segment%s, %s%s%s", all->n == 1 ? program : "",
		     all->n == 1 && *program ? ": " : "", processes, d9__units_count(events).text,
		     events == 1 ? "" : "s", segments, segments == 1 ? "" : "s",
		     d9__units_ns(end_ns - start_ns).text,
		     wall.text[0] ? " from " : ", no wall-clock time", wall.text) < 0)
		return;
	d9__page_put(all->page, D9__BOLD, "dial9 report  ");
	d9__page_wrap(all->page, line, (unsigned)strlen("dial9 report  "), 2);
	free(line);
}

static void put_data_state(struct d9__report_all *all)
{
	bool hooks = true;
	size_t killed = 0;
	char *line;

	for (size_t i = 0; i < all->n; i++) {
		killed += d9__analysis_was_killed(all->reports[i].analysis);
		if (all->reports[i].findings->n && all->reports[i].findings->items[0]->about == D9__ABOUT_DATA)
			return;
		hooks = hooks && d9__report_tells_hooks(&all->reports[i].analysis->metadata);
	}
	if (asprintf(&line, "data is complete%s: no event lost, no segment damaged%s",
		     !killed	   ? ""
		     : all->n == 1 ? " until the program was " D9__KILLED
				   : " until the end of each, also of those that were " D9__KILLED,
		     hooks ? ", all hooks took hold"
			   : "; the trace does not say which hooks took hold") < 0) {
		all->page->err = -ENOMEM;
		return;
	}
	d9__page_wrap(all->page, line, 0, 0);
	free(line);
}

static void put_evidence(struct d9__report_all *all, const struct d9__analysis *a,
			 const struct d9__evidence *evidence)
{
	struct d9__page *page = all->page;
	struct d9__units wall = d9__units_wall_clock(d9__analysis_wall_ns(a, evidence->at_ns));
	char place[256] = "";
	int n = 0;

	if (evidence->at_ns)
		n = snprintf(place, sizeof(place), "%s%s%s%s  ",
			     d9__units_offset(d9__analysis_start_ns(all->first), evidence->at_ns).text,
			     wall.text[0] ? " (" : "", wall.text, wall.text[0] ? ")" : "");
	if (evidence->has_worker)
		snprintf(place + n, sizeof(place) - (size_t)n, "worker %llu  ",
			 (unsigned long long)evidence->worker);
	d9__page_printf(page, "%*s%s", EVIDENCE_INDENT, "", place);
	d9__page_wrap(page, evidence->text, EVIDENCE_INDENT + (unsigned)strlen(place),
		      EVIDENCE_INDENT + 2);
}

/* "server 4711", where there are several. */
static char *label_of(const struct d9__report_all *all, const struct d9__analysis *a)
{
	char *label;

	if (all->n == 1)
		return strdup("");
	if (asprintf(&label, "[%s%s%s] ", d9__report_program(a), *d9__report_program(a) ? " " : "",
		     d9__report_pid(a)) < 0)
		return NULL;
	return label;
}

/* Print the effects of |finding|, which have no finding of their own because it is their cause. */
static void put_effects(struct d9__report_all *all, const struct d9__analysis *a, const struct d9__finding *finding)
{
	for (size_t i = 0; i < finding->n_effects; i++) {
		const struct d9__finding *effect = finding->effects[i];

		d9__page_put(all->page, D9__FAINT, "  so: ");
		d9__page_wrap(all->page, effect->message, (unsigned)strlen("  so: "), 4);
		for (size_t j = 0; j < effect->n_evidence; j++)
			put_evidence(all, a, &effect->evidence[j]);
	}
}

static void put_time(struct d9__report_all *all, const struct d9__finding *finding)
{
	if (!finding->time)
		return;
	d9__page_put(all->page, D9__FAINT, "  time: ");
	d9__page_wrap(all->page, finding->time, (unsigned)strlen("  time: "), 4);
}

static void put_gain(struct d9__report_all *all, const struct d9__finding *finding)
{
	char text[160];

	if (!finding->has_gain)
		return;
	d9__page_put(all->page, D9__FAINT, "  without it: ");
	d9__page_wrap(all->page, d9__gain_text(&finding->gain, text, sizeof(text)), (unsigned)strlen("  without it: "), 4);
}

static void put_hot(struct d9__report_all *all, const struct d9__finding *finding)
{
	if (finding->blocked) {
		d9__page_put(all->page, D9__FAINT, "  blocked: ");
		d9__page_wrap(all->page, finding->blocked, (unsigned)strlen("  blocked: "), 4);
	}
	if (!finding->hot)
		return;
	d9__page_put(all->page, D9__FAINT, "  on the CPU: ");
	d9__page_wrap(all->page, finding->hot, (unsigned)strlen("  on the CPU: "), 4);
}

static void put_advice(struct d9__report_all *all, const struct d9__finding *finding,
		       const struct d9__finding *before)
{
	bool again = before && before->advice == finding->advice;

	d9__page_put(all->page, D9__FAINT, "  what to do: ");
	d9__page_wrap(all->page, again ? "as above" : finding->advice,
		      (unsigned)strlen("  what to do: "), 4);
}

/* |before|: the one above it, or NULL.  With its evidence if |full|. */
static void put_finding(struct d9__report_all *all, const struct d9__report_finding *item, size_t number,
			const struct d9__finding *before, bool full)
{
	static const enum d9__page_color colors[D9__SEVERITIES] = { D9__RED, D9__YELLOW, D9__CYAN };
	static const char *const labels[D9__SEVERITIES] = { "CRITICAL", "WARNING", "INFO" };
	const struct d9__finding *finding = item->finding;
	const struct d9__analysis *a = item->report->analysis;
	const char *severity = labels[finding->severity];
	struct d9__page *page = all->page;
	char *label = label_of(all, a), *line, place[32];

	snprintf(place, sizeof(place), "%zu ", number);
	if (!label || asprintf(&line, "%s%s", label, finding->message) < 0) {
		page->err = -ENOMEM;
		free(label);
		return;
	}
	if (full)
		d9__page_gap(page);
	d9__page_put(page, D9__FAINT, place);
	d9__page_put(page, colors[finding->severity], severity);
	d9__page_printf(page, " %s: ", finding->check);
	d9__page_wrap(page, line,
		      (unsigned)(strlen(place) + strlen(severity) + strlen(finding->check) + 3), 2);
	for (size_t i = 0; full && i < finding->n_evidence; i++)
		put_evidence(all, a, &finding->evidence[i]);
	if (full) {
		put_time(all, finding);
		put_hot(all, finding);
		put_gain(all, finding);
		put_effects(all, a, finding);
		put_advice(all, finding, before);
	}
	free(line);
	free(label);
}

static bool are_alike(const struct d9__finding *a, const struct d9__finding *b)
{
	return a->rank == b->rank && a->severity == b->severity;
}

/* All of one check and severity, |n| of them, the first being |number|; |before|: what stands above. */
static void put_alike(struct d9__report_all *all, const struct d9__report_finding *items, size_t n,
		      size_t number, const struct d9__finding *before)
{
	size_t most = all->style->top > FINDINGS_IN_FULL ? all->style->top : FINDINGS_IN_FULL;

	for (size_t i = 0; i < n && i < most; i++) {
		if (i == FINDINGS_IN_FULL)
			putc('\n', all->page->out);
		put_finding(all, &items[i], number + i, before, i < FINDINGS_IN_FULL);
		before = items[i].finding;
	}
	if (n > most)
		d9__page_line(all->page, "and %s more of %s (--top %zu shows all)",
			      d9__units_count(n - most).text, items[0].finding->check, n);
}

static void put_count(struct d9__report_all *all, const struct d9__report_finding *sorted, size_t n)
{
	size_t by_severity[D9__SEVERITIES] = { 0 };

	if (!n) {
		d9__page_section(all->page, "No findings");
		return;
	}
	for (size_t i = 0; i < n; i++)
		by_severity[sorted[i].finding->severity]++;
	d9__page_gap(all->page);
	d9__page_put(all->page, D9__BOLD, "Findings");
	d9__page_printf(all->page, "  %s critical, %s warning%s, %s info\n",
			d9__units_count(by_severity[D9__CRITICAL]).text,
			d9__units_count(by_severity[D9__WARNING]).text,
			by_severity[D9__WARNING] == 1 ? "" : "s",
			d9__units_count(by_severity[D9__INFO]).text);
}

/* All of them, or those |of_data| alone, which come first. */
static void put_findings(struct d9__report_all *all, bool of_data)
{
	size_t n, most = 0;
	struct d9__report_finding *sorted = d9__reports_findings(all->reports, all->n, &n);

	if (!sorted) {
		all->page->err = -ENOMEM;
		return;
	}
	while (most < n && (!of_data || sorted[most].finding->about == D9__ABOUT_DATA))
		most++;
	if (!of_data)
		put_count(all, sorted, n);
	for (size_t i = 0, alike; i < most; i += alike) {
		for (alike = 1; i + alike < most; alike++)
			if (!are_alike(sorted[i].finding, sorted[i + alike].finding))
				break;
		put_alike(all, &sorted[i], alike, i + 1, i ? sorted[i - 1].finding : NULL);
	}
	free(sorted);
}

/* ---- several processes ---- */

static void put_tables_of(struct d9__report_all *all, const struct d9__report *report)
{
	const struct d9__analysis *a = report->analysis;
	char *label = label_of(all, a);

	if (label) {
		label[strlen(label) - 2] = '\0';
		d9__page_gap(all->page);
		d9__page_put(all->page, D9__BOLD, "==== ");
		d9__page_put(all->page, D9__BOLD, label + 1);
		d9__page_put(all->page, D9__BOLD, " ====");
		d9__page_printf(all->page, "  times from %s\n",
				d9__units_offset(d9__analysis_start_ns(all->first),
						 d9__analysis_start_ns(a)).text);
	} else {
		all->page->err = -ENOMEM;
	}
	free(label);
	d9__report_sections(report, all->style, all->page);
}

/* A table of all, and each one's tables for the worst few. */
static void put_several(struct d9__report_all *all)
{
	struct d9__ranked_process *ranked = d9__report_rank(all);

	if (!ranked)
		return;
	d9__report_processes(all, ranked, all->n);
	d9__page_line(all->page, "dial9 report with one of the folders above tells more about one process");
	for (size_t i = 0; i < all->n && i < PROCESSES_IN_FULL; i++)
		put_tables_of(all, ranked[i].report);
	if (all->n > PROCESSES_IN_FULL) {
		d9__page_printf(all->page, "\n");
		d9__page_line(all->page,
			      "tables of the %zu other processes: dial9 report with one of the "
			      "folders above",
			      all->n - PROCESSES_IN_FULL);
	}
	free(ranked);
}

static void put_footer(struct d9__report_all *all)
{
	bool quantiles = false;

	for (size_t i = 0; i < all->n; i++)
		quantiles = quantiles || all->reports[i].analysis->timeline.n ||
			    all->reports[i].n_spans;
	if (!quantiles)
		return;
	d9__page_printf(all->page, "\n");
	d9__page_line(all->page,
		      "P50, P90 and P99 are nearest rank, from histograms, within %.1f %%; LONGEST "
		      "is exact.",
		      100 * D9__HISTOGRAM_ERROR);
}

/* Number style->finding of all, with the commands that show more of it. */
static void put_one(struct d9__report_all *all)
{
	size_t n;
	struct d9__report_finding *sorted = d9__reports_findings(all->reports, all->n, &n);

	if (!sorted)
		all->page->err = -ENOMEM;
	else if (all->style->finding <= n)
		put_finding(all, &sorted[all->style->finding - 1], all->style->finding, NULL, true);
	free(sorted);
}

static void put_full(struct d9__report_all *all)
{
	put_header(all);
	put_data_state(all);
	put_findings(all, false);
	if (all->n == 1)
		d9__report_sections(all->reports, all->style, all->page);
	else
		put_several(all);
	put_footer(all);
}

/* Print the sections that were asked for by name. */
static void put_sections(struct d9__report_all *all)
{
	unsigned sections = all->style->sections;

	if (sections & D9__SECTION_DATA) {
		all->page->fresh = false;
		put_header(all);
		put_data_state(all);
		if (!(sections & D9__SECTION_FINDINGS))
			put_findings(all, true);
	}
	if (sections & D9__SECTION_FINDINGS)
		put_findings(all, false);
	if (!(sections & ~(D9__SECTION_DATA | D9__SECTION_FINDINGS)))
		return;
	if (all->n == 1)
		d9__report_sections(all->reports, all->style, all->page);
	else
		put_several(all);
}

int d9__report_text(const struct d9__report *reports, size_t n,
		    const struct d9__report_style *style, FILE *out)
{
	struct d9__page page = { .out = out, .width = style->width, .color = style->color,
				 .utf8 = style->utf8 };
	struct d9__report_all all = { reports, n, d9__reports_first(reports, n), style, &page };

	page.fresh = style->finding || style->sections;
	if (style->finding)
		put_one(&all);
	else if (style->sections)
		put_sections(&all);
	else if (style->full)
		put_full(&all);
	else
		d9__report_first(&all);
	return page.err;
}
