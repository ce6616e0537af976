/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/field_type.h>

#include "base/trigger_text.h"
#include "stage/redact_rules.h"
#include "stage/scrub.h"
#include "stage/scrub_plan.h"

int d9__redact_rules_scrub(struct d9__redact_rules *rules)
{
	*rules = (struct d9__redact_rules) { .scrub = d9__scrub_new() };
	return rules->scrub ? 0 : -ENOMEM;
}

int d9__redact_rules_parse(struct d9__redact_rules *rules, const char *text)
{
	char *next, *glob;

	*rules = (struct d9__redact_rules) { .text = strdup(text) };
	if (!rules->text)
		return -ENOMEM;
	for (next = rules->text; (glob = strsep(&next, ",")) != NULL;) {
		if (!*glob || rules->n == D9__REDACT_GLOBS_MAX)
			return -EINVAL;
		rules->globs[rules->n++] = glob;
	}
	return 0;
}

/* All are tried, so that each one that matches something is known to. */
static bool matches(struct d9__redact_rules *rules, const char *name, size_t len)
{
	bool any = false;

	for (size_t i = 0; i < rules->n; i++) {
		if (!d9__trigger_glob(rules->globs[i], name, len))
			continue;
		rules->matched[i]++;
		any = true;
	}
	return any;
}

/* |a| "." |b|, which are at most 65,535 bytes each, in new memory. */
static char *join(const char *a, const char *b, size_t b_len, size_t *len)
{
	size_t a_len = strlen(a);
	char *name = malloc(a_len + 1 + b_len);

	if (!name)
		return NULL;
	memcpy(name, a, a_len);
	name[a_len] = '.';
	memcpy(name + a_len + 1, b, b_len);
	*len = a_len + 1 + b_len;
	return name;
}

/* Out of memory counts as a match: nothing leaves for want of it. */
static bool matches_below(struct d9__redact_rules *rules, const char *above, const char *name,
			  size_t name_len)
{
	size_t len;
	char *joined = join(above, name, name_len, &len);
	bool any = !joined || matches(rules, joined, len);

	free(joined);
	return any;
}

static enum d9__redact_field field_plan(struct d9__redact_rules *rules,
					const struct d9_schema *schema, uint32_t i)
{
	const struct d9__field_definition *field = &schema->fields[i];

	if (matches_below(rules, schema->name, field->name, strlen(field->name)))
		return D9__REDACT_EMPTY;
	return field->type == D9_FIELD_STRING_MAP ? D9__REDACT_KEYS : D9__REDACT_LEAVE;
}

struct d9__redact_plan *d9__redact_plan(struct d9__redact_rules *rules,
					const struct d9_schema *schema)
{
	struct d9__redact_plan *plan;

	if (rules->scrub)
		return d9__scrub_plan(schema);
	plan = calloc(1, sizeof(*plan) + schema->n_fields);
	if (!plan)
		return NULL;
	plan->drop = matches(rules, schema->name, strlen(schema->name));
	for (uint32_t i = 0; !plan->drop && i < schema->n_fields; i++)
		plan->fields[i] = (uint8_t)field_plan(rules, schema, i);
	return plan;
}

bool d9__redact_key(struct d9__redact_rules *rules, const struct d9_schema *schema, uint32_t field,
		    const char *key, size_t len)
{
	const char *name = schema->fields[field].name;
	size_t above_len;
	char *above = join(schema->name, name, strlen(name) + 1, &above_len);
	bool any = !above || matches_below(rules, above, key, len);

	free(above);
	return any;
}

void d9__redact_rules_release(struct d9__redact_rules *rules)
{
	free(rules->text);
	d9__scrub_free(rules->scrub);
	*rules = (struct d9__redact_rules) { 0 };
}
