/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/page.h"
#include "analyze/report.h"
#include "analyze/report_sections.h"
#include "analyze/units.h"

#define EVIDENCE_INDENT 4

static void put_header(struct d9__page *page, const struct d9__analysis *a)
{
	uint64_t start_ns = d9__analysis_start_ns(a), end_ns = d9__analysis_end_ns(a);
	struct d9__units wall = d9__units_wall_short(d9__analysis_wall_ns(a, start_ns));
	const char *service = d9__metadata_value(&a->metadata, "service");
	char *line;

	if (asprintf(&line, "%s%s%s event%s in %zu segment%s, %s%s%s",
		     service ? service : "", service ? ": " : "", d9__units_count(a->events).text,
		     a->events == 1 ? "" : "s", a->n_segments, a->n_segments == 1 ? "" : "s",
		     d9__units_ns(end_ns - start_ns).text,
		     wall.text[0] ? " from " : ", no wall-clock time", wall.text) < 0)
		return;
	d9__page_put(page, D9__BOLD, "dial9 report  ");
	d9__page_wrap(page, line, (unsigned)strlen("dial9 report  "), 2);
	free(line);
	if (a->n_process_numbers > 1)
		d9__page_printf(page, "  %u processes: worker and task ids are each one's own\n",
				a->n_process_numbers);
}

/* Whether the trace says what its hooks could see. */
static bool tells_hooks(const struct d9__metadata *metadata)
{
	const char *middle;
	size_t len;

	for (size_t i = 0; i < metadata->n; i++)
		if (d9__metadata_key_is(metadata->items[i].key, "loop.", ".capabilities", &middle,
					&len))
			return true;
	return false;
}

static void put_data_state(struct d9__page *page, const struct d9__report *report)
{
	const struct d9__findings *findings = report->findings;

	if (findings->n && findings->items[0]->first)
		return;
	d9__page_wrap(page,
		      tells_hooks(&report->analysis->metadata)
			      ? "data is complete: no event lost, no segment damaged, all hooks took "
				"hold"
			      : "data is complete: no event lost, no segment damaged; the trace does "
				"not say which hooks took hold",
		      0, 0);
}

static void put_evidence(struct d9__page *page, const struct d9__analysis *a,
			 const struct d9__evidence *evidence)
{
	struct d9__units wall = d9__units_wall_clock(d9__analysis_wall_ns(a, evidence->at_ns));
	char place[256] = "";
	int n = 0;

	if (evidence->at_ns)
		n = snprintf(place, sizeof(place), "%s%s%s%s  ",
			     d9__units_offset(d9__analysis_start_ns(a), evidence->at_ns).text,
			     wall.text[0] ? " (" : "", wall.text, wall.text[0] ? ")" : "");
	if (evidence->has_worker)
		snprintf(place + n, sizeof(place) - (size_t)n, "worker %llu  ",
			 (unsigned long long)d9__id_of(evidence->worker));
	d9__page_printf(page, "%*s%s", EVIDENCE_INDENT, "", place);
	d9__page_wrap(page, evidence->text, EVIDENCE_INDENT + (unsigned)strlen(place),
		      EVIDENCE_INDENT + 2);
}

static void put_finding(struct d9__page *page, const struct d9__analysis *a,
			const struct d9__finding *finding)
{
	static const enum d9__page_color colors[D9__SEVERITIES] = { D9__RED, D9__YELLOW, D9__CYAN };
	static const char *const labels[D9__SEVERITIES] = { "CRITICAL", "WARNING", "INFO" };
	const char *label = labels[finding->severity];

	putc('\n', page->out);
	d9__page_put(page, colors[finding->severity], label);
	d9__page_printf(page, " %s: ", finding->check);
	d9__page_wrap(page, finding->message,
		      (unsigned)(strlen(label) + strlen(finding->check) + 3), 2);
	for (size_t i = 0; i < finding->n_evidence; i++)
		put_evidence(page, a, &finding->evidence[i]);
	d9__page_put(page, D9__FAINT, "  what to do: ");
	d9__page_wrap(page, finding->advice, (unsigned)strlen("  what to do: "), 4);
}

static void put_findings(struct d9__page *page, const struct d9__report *report)
{
	const struct d9__findings *findings = report->findings;

	if (findings->n == 0) {
		d9__page_section(page, "No findings");
		return;
	}
	d9__page_printf(page, "\n");
	d9__page_put(page, D9__BOLD, "Findings");
	d9__page_printf(page, "  %zu critical, %zu warning%s, %zu info\n",
			findings->by_severity[D9__CRITICAL], findings->by_severity[D9__WARNING],
			findings->by_severity[D9__WARNING] == 1 ? "" : "s",
			findings->by_severity[D9__INFO]);
	for (size_t i = 0; i < findings->n; i++)
		put_finding(page, report->analysis, findings->items[i]);
}

int d9__report_text(const struct d9__report *report, const struct d9__report_style *style,
		    FILE *out)
{
	struct d9__page page = { .out = out, .width = style->width, .color = style->color,
				 .utf8 = style->utf8 };

	put_header(&page, report->analysis);
	put_data_state(&page, report);
	put_findings(&page, report);
	d9__report_sections(report, style, &page);
	return page.err;
}
