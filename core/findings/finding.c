/* SPDX-License-Identifier: Apache-2.0 */
/* Finding: what checks say, and how they say it. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "findings/finding.h"
#include "text/units.h"

const char *d9__severity_name(enum d9__severity severity)
{
	static const char *const names[D9__SEVERITIES] = { "critical", "warning", "info" };

	return names[severity];
}

uint64_t d9__long_call_ns(const struct d9__worker *worker)
{
	uint64_t ns = 3 * d9__histogram_quantile(&worker->own_calls, 0.99);

	if (ns < D9__STALL_NS)
		return D9__STALL_NS;
	return ns < D9__LONG_ALWAYS_NS ? ns : D9__LONG_ALWAYS_NS;
}

static struct d9__finding *append(struct d9__findings *findings)
{
	struct d9__finding *finding =
		d9__array_grow(findings->items, findings->n) ? calloc(1, sizeof(*finding)) : NULL;

	if (!finding) {
		findings->err = -ENOMEM;
		return NULL;
	}
	findings->items[findings->n++] = finding;
	return finding;
}

struct d9__finding *d9__finding_add(struct d9__findings *findings, enum d9__severity severity,
				    uint64_t impact, const char *advice, const char *format, ...)
{
	struct d9__finding *finding = append(findings);
	va_list args;

	if (!finding)
		return NULL;
	finding->check = findings->check;
	finding->rank = findings->rank;
	finding->place = findings->place;
	finding->about = findings->about;
	finding->severity = severity;
	finding->impact = impact;
	finding->advice = advice;
	findings->by_severity[severity]++;
	va_start(args, format);
	if (vasprintf(&finding->message, format, args) < 0) {
		finding->message = NULL;
		findings->err = -ENOMEM;
	}
	va_end(args);
	return finding;
}

void d9__finding_set_name(struct d9__findings *findings, struct d9__finding *finding,
			  const char *name, size_t len)
{
	if (!finding)
		return;
	finding->name = strndup(name, len);
	if (!finding->name)
		findings->err = -ENOMEM;
}

struct d9__shown_name d9__finding_name(const struct d9__callback *callback)
{
	const char *text = "nothing";
	size_t len = strlen(text);

	if (callback && callback->inner) {
		text = callback->inner->function;
		len = strlen(text);
	} else if (callback) {
		text = d9__callback_name(callback, &len);
	}
	return (struct d9__shown_name){ text, d9__precision(len) };
}

bool d9__finding_same_name(const struct d9__callback *a, const struct d9__callback *b)
{
	struct d9__shown_name left = d9__finding_name(a), right = d9__finding_name(b);

	return left.len == right.len && !memcmp(left.text, right.text, (size_t)left.len);
}

void d9__finding_set_callback(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback)
{
	struct d9__shown_name name = d9__finding_name(callback);

	if (!finding)
		return;
	d9__finding_set_name(findings, finding, name.text, (size_t)name.len);
	finding->callback = callback;
	finding->source = !callback ? NULL : callback->inner ? callback->inner_source : callback->source;
}

static __attribute__((format(printf, 3, 0))) void set_text(struct d9__findings *findings, char **text,
							   const char *format, va_list args)
{
	free(*text);
	if (vasprintf(text, format, args) < 0) {
		*text = NULL;
		findings->err = -ENOMEM;
	}
}

void d9__finding_append(struct d9__findings *findings, struct d9__finding *finding,
			const char *format, ...)
{
	char *more = NULL, *message = NULL;
	va_list args;

	if (!finding || !finding->message)
		return;
	va_start(args, format);
	set_text(findings, &more, format, args);
	va_end(args);
	if (!more || asprintf(&message, "%s %s", finding->message, more) < 0) {
		findings->err = -ENOMEM;
		free(more);
		return;
	}
	free(more);
	free(finding->message);
	finding->message = message;
}

void d9__finding_set_brief(struct d9__findings *findings, struct d9__finding *finding, const char *format, ...)
{
	va_list args;

	if (!finding)
		return;
	va_start(args, format);
	set_text(findings, &finding->brief, format, args);
	va_end(args);
}

void d9__finding_set_machine(struct d9__findings *findings, struct d9__finding *finding, const char *format, ...)
{
	va_list args;

	if (!finding)
		return;
	finding->machine = true;
	va_start(args, format);
	set_text(findings, &finding->brief, format, args);
	va_end(args);
}

void d9__finding_set_effect(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *culprit, const char *format, ...)
{
	va_list args;

	if (!finding)
		return;
	finding->culprit = culprit;
	va_start(args, format);
	set_text(findings, &finding->effect, format, args);
	va_end(args);
}

uint64_t d9__finding_rate(uint64_t n, uint64_t ns)
{
	uint64_t rate = ns ? (uint64_t)((double)n * 1e9 / (double)ns) : 0, unit = 1;

	while (rate / unit >= 100)
		unit *= 10;
	return (rate + unit / 2) / unit * unit;
}

void d9__finding_taken(uint64_t taken_ns, char *buf, size_t size)
{
	buf[0] = '\0';
	if (taken_ns >= D9__MS_NS)
		snprintf(buf, size, " (%s preempted)", d9__units_ns(taken_ns).text);
}

void d9__finding_add_evidence(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__evidence *evidence, const char *format, ...)
{
	struct d9__evidence *place;
	va_list args;

	if (!finding || finding->n_evidence == D9__EVIDENCE_MAX)
		return;
	place = &finding->evidence[finding->n_evidence++];
	*place = evidence ? *evidence : (struct d9__evidence){ 0 };
	if (!finding->task)
		finding->task = place->task;
	va_start(args, format);
	if (vasprintf(&place->text, format, args) < 0) {
		place->text = NULL;
		findings->err = -ENOMEM;
	}
	va_end(args);
}

void d9__finding_explain(struct d9__findings *findings, struct d9__finding *finding,
			 const struct d9__callback *callback)
{
	if (!d9__array_grow(findings->explained, findings->n_explained)) {
		findings->err = -ENOMEM;
		return;
	}
	findings->explained[findings->n_explained++] = (struct d9__explained){ callback, finding };
}

bool d9__finding_is_explained(const struct d9__findings *findings, const struct d9__callback *callback)
{
	for (size_t i = 0; i < findings->n_explained; i++)
		if (findings->explained[i].callback == callback)
			return true;
	return false;
}

bool d9__finding_told(const struct d9__findings *findings, const char *check)
{
	for (size_t i = 0; i < findings->n; i++)
		if (!strcmp(findings->items[i]->check, check))
			return true;
	return false;
}

void d9__finding_release(struct d9__finding *finding)
{
	for (size_t i = 0; i < finding->n_effects; i++)
		d9__finding_release(finding->effects[i]);
	for (size_t i = 0; i < finding->n_evidence; i++)
		free(finding->evidence[i].text);
	free(finding->message);
	free(finding->name);
	free(finding->brief);
	free(finding->figure);
	free(finding->hot);
	free(finding->time);
	free(finding->blocked);
	free(finding->effect);
	free(finding);
}
