/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first screen of a report: what is wrong and what to do, a line for each finding, what followed
 * from it, advice as far as there is room, and the callbacks that took most of the time.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/report_parts.h"
#include "text/page.h"
#include "text/units.h"

/* Findings that have a line of their own at most, and the worst, of which all is told. */
#define FINDINGS_MAX 8
#define FINDINGS_WHOLE 2

/* Rows that the table has at least beside further findings; it gives way to the worst. */
#define ROWS_MIN 3

/* Of so many findings, each may have two lines of advice; of more, the first alone. */
#define ADVICE_IN_TWO 3

/* Lines of a table before its rows, and the one that says how many more there are. */
#define TABLE_LINES 4

/* On narrower pages the latter takes two. */
#define TABLE_COLUMNS 50

/* Names take at most a third of the width, or so much. */
#define NAME_PART 3
#define NAME_MIN  18

/* The parts of a finding here, in the order in which they stand. */
enum part {
	PART_LINE,
	PART_TIME,
	PART_HOT,
	PART_GAIN,
	PART_EFFECTS,
	PART_ADVICE,
	PARTS
};

struct shown {
	const struct d9__report_finding *item;
	char *parts[PARTS]; /* NULL: nothing to say */
	unsigned lines[PARTS];
	bool wanted[PARTS];
};

struct first {
	const struct d9__report_all *all;
	struct d9__page *page;
	struct d9__report_finding *items; /* of all processes, worst first */
	size_t n, n_graver; /* all; critical ones, warnings, and what tells of the data */
	struct shown shown[FINDINGS_MAX];
	size_t n_shown;
	size_t mark_width, pid_width, name_width;
	const struct d9__finding *machine; /* it was short of CPU; NULL: not */
	bool places; /* where loops at their limit are has room, too */
};

/* ---- what a finding says ---- */

static bool is_graver(const struct d9__finding *finding)
{
	return finding->about == D9__ABOUT_DATA || finding->severity < D9__INFO;
}

static const char *mark_of(const struct d9__finding *finding)
{
	static const char *const marks[D9__SEVERITIES] = { "!!", "!", "-" };

	return marks[finding->severity];
}

static const char *name_of(const struct d9__finding *finding)
{
	if (finding->name)
		return finding->name;
	return finding->about == D9__ABOUT_DATA || finding->about == D9__ABOUT_RECORDING ?
		       "data" :
		       finding->check;
}

/* Its brief, else the first clause of the message, without the name that stands in front of it. */
static char *brief_of(const struct d9__finding *finding)
{
	const char *text = finding->message, *name = finding->name;
	const char *end;

	if (finding->brief)
		return strdup(finding->brief);
	if (name && !strncmp(text, name, strlen(name)) && text[strlen(name)] == ' ')
		text += strlen(name) + 1;
	end = strstr(text, "; ");
	if (!end)
		end = strstr(text, ". ");
	if (!end)
		end = text + strlen(text) - (*text && text[strlen(text) - 1] == '.');
	return strndup(text, (size_t)(end - text));
}

/* As many sentences of |text| as fit in |columns|, and the first in any case: what to do is never
 * cut.  NULL: out of memory. */
static char *whole_sentences(const char *text, size_t columns)
{
	size_t end = 0, at = 0;

	while (text[at] && (!end || at < columns)) {
		at += strcspn(text + at, ".");
		at += text[at] == '.';
		if ((text[at] == ' ' || !text[at]) && (!end || at <= columns))
			end = at;
	}
	return strndup(text, end ? end : at);
}

/* ---- parts ---- */

/* Printing goes to memory until it is known how many lines there are. */
static FILE *begin_part(struct d9__page *page, char **text, size_t *size)
{
	FILE *out = page->out, *memory = open_memstream(text, size);

	if (memory)
		page->out = memory;
	else
		page->err = -ENOMEM;
	return memory ? out : NULL;
}

/* Lines of a terminal that |text| takes, which may have colours. */
static unsigned count_lines(const struct d9__page *page, const char *text)
{
	unsigned lines = 0, column = 0;

	for (; *text; text++) {
		if (*text == '\033') {
			text += strcspn(text, "m");
			continue;
		}
		/* The bytes of a character behind its first take no column. */
		column += ((unsigned char)*text & 0xc0) != 0x80;
		if (*text != '\n')
			continue;
		lines += column > 1 ? (column - 2) / page->width + 1 : 1;
		column = 0;
	}
	return lines;
}

static void end_part(struct d9__page *page, FILE *before, char **text, unsigned *lines)
{
	if (fclose(page->out) || !*text)
		page->err = -ENOMEM;
	page->out = before;
	*lines = *text ? count_lines(page, *text) : 0;
}

static void pad_to(struct d9__page *page, size_t used, size_t width)
{
	if (used < width)
		d9__page_printf(page, "%*s", (int)(width - used), "");
}

/* "! render  blocks the loop 40 ms, 20 of 20 calls          hello.c:52" */
static void put_line(struct first *first, const struct d9__report_finding *item)
{
	static const enum d9__page_color colors[D9__SEVERITIES] = { D9__RED, D9__YELLOW, D9__CYAN };
	const struct d9__finding *finding = item->finding;
	struct d9__page *page = first->page;
	const char *mark = mark_of(finding), *source = finding->source;
	const char *pid = d9__report_pid(item->report->analysis);
	char *name = d9__page_shorten(page, name_of(finding), 0, first->name_width);
	char *brief = brief_of(finding), *text = NULL;
	size_t column = first->mark_width + 1 + first->name_width + 2, used;

	if (!name || !brief)
		goto out;
	d9__page_put(page, colors[finding->severity], mark);
	pad_to(page, strlen(mark), first->mark_width + 1);
	if (first->pid_width) {
		d9__page_put(page, D9__PLAIN, pid);
		pad_to(page, d9__page_columns(page, pid), first->pid_width + 2);
		column += first->pid_width + 2;
	}
	d9__page_put(page, D9__BOLD, name);
	pad_to(page, d9__page_columns(page, name), first->name_width + 2);
	used = column + d9__page_columns(page, brief);
	if (!source || used + 2 + d9__page_columns(page, source) > d9__report_edge(page)) {
		if (asprintf(&text, "%s%s%s%s", brief, source ? " (" : "", source ? source : "",
			     source ? ")" : "") < 0)
			text = NULL;
		else
			d9__page_wrap(page, text, (unsigned)column, D9__REPORT_INDENT);
	} else {
		d9__page_put(page, D9__PLAIN, brief);
		pad_to(page, used, d9__report_edge(page) - d9__page_columns(page, source));
		d9__page_put(page, D9__FAINT, source);
		putc('\n', page->out);
		text = strdup("");
	}
out:
	if (!name || !brief || !text)
		page->err = -ENOMEM;
	free(name);
	free(brief);
	free(text);
}

/* Whether there is any advice to put. */
static bool put_advice(struct first *first, const struct d9__finding *finding, unsigned lines)
{
	struct d9__page *page = first->page;
	size_t columns = (d9__report_edge(page) - D9__REPORT_INDENT) * lines -
			 (lines - 1) * D9__REPORT_INDENT;
	char *text;

	if (!finding->advice || !*finding->advice)
		return false;
	text = whole_sentences(finding->advice, columns);
	d9__page_put(page, D9__FAINT, "  do: ");
	if (text)
		d9__page_wrap(page, text, D9__REPORT_INDENT, D9__REPORT_INDENT);
	else
		page->err = -ENOMEM;
	free(text);
	return true;
}

/* "  so: tick up to 335 ms late, 29 waits over 5 ms" */
static void put_effects(struct first *first, const struct d9__finding *finding)
{
	struct d9__page *page = first->page;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out) {
		page->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < finding->n_effects; i++)
		fprintf(out, "%s%s", i ? ", " : "", finding->effects[i]->effect);
	if (fclose(out))
		page->err = -ENOMEM;
	d9__page_put(page, D9__FAINT, "  so: ");
	if (text)
		d9__page_wrap(page, text, D9__REPORT_INDENT, D9__REPORT_INDENT);
	free(text);
}

/*
 * "  at: 83 % in render_row (svc.c:88)", "time: 62 % on CPU, 38 % blocked": |text|, if there is
 * one; in one line, or |whole|: what a call waited for, and who had it.
 */
static void make_part(struct first *first, struct shown *shown, enum part part, const char *label,
		      const char *text, bool whole)
{
	size_t size;
	FILE *out = text ? begin_part(first->page, &shown->parts[part], &size) : NULL;

	if (!out)
		return;
	d9__report_put_labelled(first->page, label, text, whole);
	end_part(first->page, out, &shown->parts[part], &shown->lines[part]);
}

static void make_parts(struct first *first, struct shown *shown, const struct d9__finding *before)
{
	const struct d9__finding *finding = shown->item->finding;
	char gain[160];
	size_t size;
	FILE *out = begin_part(first->page, &shown->parts[PART_LINE], &size);

	if (!out)
		return;
	put_line(first, shown->item);
	end_part(first->page, out, &shown->parts[PART_LINE], &shown->lines[PART_LINE]);
	make_part(first, shown, PART_TIME, "time: ", finding->time, false);
	make_part(first, shown, PART_HOT,
		  "  at: ", finding->blocked ? finding->blocked : finding->hot,
		  finding->blocked != NULL);
	if (finding->has_gain)
		make_part(first, shown, PART_GAIN,
			  "gain: ", d9__gain_text(&finding->gain, gain, sizeof(gain)), false);
	if (finding->n_effects) {
		out = begin_part(first->page, &shown->parts[PART_EFFECTS], &size);
		if (!out)
			return;
		put_effects(first, finding);
		end_part(first->page, out, &shown->parts[PART_EFFECTS], &shown->lines[PART_EFFECTS]);
	}
	if (before && before->advice == finding->advice)
		return;
	out = begin_part(first->page, &shown->parts[PART_ADVICE], &size);
	if (!out)
		return;
	put_advice(first, finding, before && first->n_shown > ADVICE_IN_TWO ? 1 : 2);
	end_part(first->page, out, &shown->parts[PART_ADVICE], &shown->lines[PART_ADVICE]);
}

/* ---- which findings, and how much of each ---- */

static void measure(struct first *first)
{
	struct d9__page *page = first->page;
	size_t most = page->width / NAME_PART > NAME_MIN ? page->width / NAME_PART : NAME_MIN;

	for (size_t i = 0; i < first->n_shown; i++) {
		const struct d9__report_finding *item = first->shown[i].item;
		size_t mark = strlen(mark_of(item->finding));
		size_t name = d9__page_columns(page, name_of(item->finding));
		size_t pid = d9__page_columns(page, d9__report_pid(item->report->analysis));

		if (mark > first->mark_width)
			first->mark_width = mark;
		if (name > first->name_width)
			first->name_width = name < most ? name : most;
		if (first->all->n > 1 && pid > first->pid_width)
			first->pid_width = pid;
	}
}

static void choose(struct first *first)
{
	for (size_t i = 0; i < first->n; i++) {
		const struct d9__finding *finding = first->items[i].finding;

		if (!is_graver(finding))
			continue;
		if (finding->machine) {
			/* Of several processes', the gravest. */
			if (!first->machine)
				first->machine = finding;
			continue;
		}
		first->n_graver++;
		if (first->n_shown < FINDINGS_MAX)
			first->shown[first->n_shown++].item = &first->items[i];
	}
}

/* Take |part| of |shown| if |*left| lines are enough for it; without its line there is none of it.
 */
static bool take(struct shown *shown, enum part part, unsigned *left)
{
	if (shown->wanted[part])
		return true;
	if (!shown->parts[part] || shown->lines[part] > *left ||
	    (part != PART_LINE && !shown->wanted[PART_LINE]))
		return false;
	shown->wanted[part] = true;
	*left -= shown->lines[part];
	return true;
}

/*
 * Find the worst findings of the program; what is known of the data stands in front of them, and
 * counts only where nothing else is wrong.  Returns how many there are.
 */
static size_t find_worst(struct first *first, struct shown *worst[FINDINGS_WHOLE])
{
	size_t n = 0;

	for (size_t i = 0; i < first->n_shown && n < FINDINGS_WHOLE; i++)
		if (first->shown[i].item->finding->about != D9__ABOUT_DATA)
			worst[n++] = &first->shown[i];
	for (size_t i = 0; i < first->n_shown && n < FINDINGS_WHOLE; i++)
		if (first->shown[i].item->finding->about == D9__ABOUT_DATA)
			worst[n++] = &first->shown[i];
	return n;
}

/*
 * Take the lines up to the worst finding, and what to do about that, however few lines are left;
 * then what there is of the worst, the evidence last.
 */
static void take_worst(struct first *first, unsigned *left)
{
	static const enum part by_worth[] = { PART_LINE,    PART_ADVICE, PART_HOT,
					      PART_EFFECTS, PART_TIME,	 PART_GAIN };
	struct shown *worst[FINDINGS_WHOLE];
	size_t n = find_worst(first, worst);
	unsigned least;

	if (!n)
		return;
	least = worst[0]->lines[PART_ADVICE];
	for (const struct shown *shown = first->shown; shown <= worst[0]; shown++)
		least += shown->lines[PART_LINE];
	if (*left < least)
		*left = least;
	for (struct shown *shown = first->shown; shown <= worst[0]; shown++)
		take(shown, PART_LINE, left);
	take(worst[0], PART_ADVICE, left);
	for (size_t i = 0; i < sizeof(by_worth) / sizeof(by_worth[0]); i++)
		for (size_t j = 0; j < n; j++)
			take(worst[j], by_worth[i], left);
}

/*
 * The worst findings first, for which the table of |table| lines gives way; then a line of each
 * other, what followed from it, and what else to do.  Returns how many lines are left.
 */
static unsigned share(struct first *first, unsigned left, unsigned table)
{
	unsigned kept;
	size_t n = 0;

	take_worst(first, &left);
	kept = left < table ? left : table;
	left -= kept;
	while (n < first->n_shown && take(&first->shown[n], PART_LINE, &left))
		n++;
	first->n_shown = n;
	for (enum part part = PART_TIME; part < PARTS; part++)
		for (size_t i = 0; i < n; i++)
			take(&first->shown[i], part, &left);
	return left + kept;
}

/* How many lines tell all of the worst findings. */
static unsigned worst_lines(struct first *first)
{
	struct shown *worst[FINDINGS_WHOLE];
	unsigned lines = 0;

	for (size_t i = 0, n = find_worst(first, worst); i < n; i++)
		for (enum part part = PART_LINE; part < PARTS; part++)
			lines += worst[i]->lines[part];
	return lines;
}

/* ---- lines ---- */

static void put_headline(struct first *first)
{
	d9__report_headline(first->all, first->items, first->n);
	d9__report_accounts(first->all, first->items, first->n, first->places);
	d9__report_fired(first->all);
}

/* Whether a trigger's line says already that something was wrong. */
static bool any_fired(const struct d9__report_all *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->reports[i].analysis->fired.n)
			return true;
	return false;
}

/* Whether the loops of all processes had so much room that nothing can be wrong with their time. */
static bool have_room(const struct d9__report_all *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!d9__owners_have_room(all->reports[i].analysis,
					  all->reports[i].findings->owners))
			return false;
	return true;
}

/* "nothing wrong found" is said only where that is known. */
static void describe_nothing(const struct first *first, char *buf, size_t size)
{
	const char *where = first->machine ? " in the program" : "";

	if (any_fired(first->all))
		snprintf(buf, size, "nothing else found%s", where);
	else if (have_room(first->all))
		snprintf(buf, size, "nothing wrong found%s", where);
	else
		snprintf(buf, size,
			 "nothing stands out%s: the accounts above tell where the time went",
			 where);
}

/* How many findings have no line here. */
static void put_rest(struct first *first)
{
	size_t hidden = first->n_graver - first->n_shown, notes = 0;
	const char *between = first->n_graver == 0 ? ";" : hidden ? "," : "";
	char graver[128] = "and", lesser[160] = "", line[320];

	for (size_t i = 0; i < first->n; i++)
		notes += !is_graver(first->items[i].finding);
	if (first->n_graver == 0)
		describe_nothing(first, graver, sizeof(graver));
	else if (hidden)
		snprintf(graver, sizeof(graver), "and %s more finding%s", d9__units_count(hidden).text,
			 hidden == 1 ? "" : "s");
	else if (!notes)
		return;
	if (notes)
		snprintf(lesser, sizeof(lesser), "%s %s note%s", between, d9__units_count(notes).text,
			 notes == 1 ? "" : "s");
	snprintf(line, sizeof(line), "%s%s%s", graver, lesser, notes || hidden ? ": --section findings" : "");
	d9__page_wrap(first->page, line, 0, 2);
}

/* "machine short of CPU: loops were ready without one for 21 % of the time", and what to do. */
static void put_machine(struct first *first)
{
	const char *brief = first->machine ? first->machine->brief : NULL, *colon = brief ? strstr(brief, ": ") : NULL;
	char what[128];
	int len;

	if (!colon)
		return;
	len = snprintf(what, sizeof(what), "machine %.*s:", (int)(colon - brief), brief);
	d9__page_put(first->page, D9__YELLOW, what);
	putc(' ', first->page->out);
	d9__page_wrap(first->page, colon + 2, (unsigned)len + 1, 2);
	put_advice(first, first->machine, 1);
}

/* Commands that tell more. */
struct commands {
	struct {
		const char *label;
		char *text; /* owned */
	} items[4];
	size_t n;
};

__attribute__((format(printf, 3, 4))) static void
add_command(struct commands *commands, const char *label, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	commands->items[commands->n].label = label;
	if (vasprintf(&commands->items[commands->n].text, format, args) >= 0)
		commands->n++;
	va_end(args);
}

static void find_commands(const struct first *first, struct commands *commands)
{
	const char *traces = first->all->style->traces ? first->all->style->traces : "TRACE";
	const struct d9__finding *finding = first->n_shown ? first->shown[0].item->finding : NULL;

	add_command(commands, "details: ", "dial9 report -v %s", traces);
	/* The page opens at the first that fired. */
	if (any_fired(first->all))
		add_command(commands, ", what fired: ", "dial9 serve %s", traces);
	if (first->n)
		add_command(commands, ", one finding: ", "dial9 report --finding %td %s",
			    first->n_shown ? first->shown[0].item - first->items + 1 : 1, traces);
	if (finding && finding->task) {
		const struct d9__analysis *a = first->shown[0].item->report->analysis;

		add_command(commands, ", picture: ", "dial9 diagram --task %llu -o task.svg %s",
			    (unsigned long long)finding->task,
			    first->all->n > 1 ? a->processes->items[a->process].folder : traces);
	}
}

/* On one line if they fit, else a line each, so that each can be copied. */
static void put_details(struct first *first)
{
	struct d9__page *page = first->page;
	struct commands commands = { .n = 0 };
	size_t columns = 0;
	bool one;

	find_commands(first, &commands);
	for (size_t i = 0; i < commands.n; i++)
		columns += strlen(commands.items[i].label) +
			   d9__page_columns(page, commands.items[i].text);
	one = columns <= page->width;
	for (size_t i = 0; i < commands.n; i++) {
		d9__page_put(page, D9__FAINT, one || !i ? commands.items[i].label : "         ");
		d9__page_put(page, D9__PLAIN, commands.items[i].text);
		if (!one || i + 1 == commands.n)
			putc('\n', page->out);
		free(commands.items[i].text);
	}
}

/* Print the part below the findings. */
static void put_end(struct first *first)
{
	put_rest(first);
	put_machine(first);
	put_details(first);
}

static void put_findings(struct first *first)
{
	for (size_t i = 0; i < first->n_shown; i++)
		for (enum part part = PART_LINE; part < PARTS; part++)
			if (first->shown[i].wanted[part])
				fputs(first->shown[i].parts[part], first->page->out);
}

static unsigned table_lines(const struct first *first)
{
	return TABLE_LINES + (first->page->width < TABLE_COLUMNS);
}

static void put_table(struct first *first, unsigned left)
{
	const struct d9__report_all *all = first->all;
	unsigned fixed = table_lines(first);
	size_t rows = left > fixed ? left - fixed : 0;

	if (!rows)
		return;
	if (rows > all->style->top)
		rows = all->style->top;
	if (all->n > 1) {
		struct d9__ranked_process *ranked = d9__report_rank(all);

		if (ranked)
			d9__report_processes(all, ranked, rows);
		free(ranked);
	} else if (all->first->timeline.n == 0) {
		d9__report_threads(all->reports, all->style, first->page, rows);
	} else {
		d9__report_callbacks(all->reports, all->style, first->page, rows);
	}
}

/* |text| and how many lines it has. */
struct measured {
	char *text;
	unsigned lines;
};

static struct measured measured(struct first *first, void (*put)(struct first *first))
{
	struct measured m = { NULL, 0 };
	size_t size;
	FILE *out = begin_part(first->page, &m.text, &size);

	if (!out)
		return m;
	put(first);
	end_part(first->page, out, &m.text, &m.lines);
	return m;
}

static void put_measured(struct first *first, struct measured *m)
{
	if (m->text)
		fputs(m->text, first->page->out);
	free(m->text);
	*m = (struct measured){ NULL, 0 };
}

void d9__report_first(const struct d9__report_all *all)
{
	struct first first = { .all = all, .page = all->page, .places = true };
	struct measured header, end;
	unsigned left = all->style->lines, fixed;

	first.items = d9__reports_findings(all->reports, all->n, &first.n);
	if (!first.items) {
		all->page->err = -ENOMEM;
		return;
	}
	choose(&first);
	measure(&first);
	for (size_t i = 0; i < first.n_shown; i++)
		make_parts(&first, &first.shown[i], i ? first.shown[i - 1].item->finding : NULL);
	header = measured(&first, put_headline);
	end = measured(&first, put_end);
	/* The worst findings are told whole before that. */
	if (header.lines + end.lines + 2 + worst_lines(&first) > left) {
		first.places = false;
		free(header.text);
		header = measured(&first, put_headline);
	}
	/*
	 * One line for what is left out, if something will be; one that less(1) wants to spare before it ends by
	 * itself, in which the command stands that was typed.
	 */
	fixed = header.lines + end.lines + 2;
	left = share(&first, left > fixed ? left - fixed : 0, table_lines(&first) + ROWS_MIN);
	free(end.text);
	end = measured(&first, put_end);
	put_measured(&first, &header);
	put_findings(&first);
	put_measured(&first, &end);
	put_table(&first, left);
	for (size_t i = 0; i < FINDINGS_MAX; i++)
		for (enum part part = PART_LINE; part < PARTS; part++)
			free(first.shown[i].parts[part]);
	free(first.items);
}
