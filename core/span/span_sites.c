/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/span_filter.h"
#include "record/arguments.h"
#include "ring/event_types.h"
#include "ring/names.h"
#include "span/open_spans.h"
#include "span/span_sites.h"

static _Atomic(struct d9__span_site_type *) all_types;
static _Atomic(uint32_t) mistake_names[D9__SPAN_MISTAKES];

/* Interning takes a lock: not where the mistake is made. */
static void intern_mistakes(void)
{
	static const char *const texts[D9__SPAN_MISTAKES] = {
		[D9__SPAN_EXIT_WITHOUT_ENTER] = "exit without enter",
		[D9__SPAN_CLOSE_WHILE_ENTERED] = "close while entered",
		[D9__SPAN_ENTER_AFTER_CLOSE] = "enter after close",
		[D9__SPAN_EXIT_AFTER_CLOSE] = "exit after close",
		[D9__SPAN_CLOSE_TWICE] = "close twice",
	};

	for (unsigned i = 0; i < D9__SPAN_MISTAKES; i++)
		atomic_store_explicit(&mistake_names[i], d9__name_intern(texts[i], strlen(texts[i])),
				      memory_order_relaxed);
}

uint32_t d9__span_mistake_name(enum d9__span_mistake mistake)
{
	return atomic_load_explicit(&mistake_names[mistake], memory_order_relaxed);
}

static uint32_t intern(const char *text)
{
	return text && *text ? d9__name_intern(text, strlen(text)) : D9__NAME_EMPTY;
}

static const char *level_text(uint32_t level)
{
	static const char *const texts[] = { "", "error", "warn", "info", "debug", "trace" };

	return texts[level <= D9_SPAN_TRACE ? level : 0];
}

static int check_site(const struct d9_span_site *site)
{
	if (!site->name || !*site->name || site->n_fields > D9_SPAN_FIELDS_MAX ||
	    site->level < D9_SPAN_ERROR || site->level > D9_SPAN_TRACE)
		return -EINVAL;
	return d9__fields_check(site->fields, site->n_fields);
}

/* Fields with names that outlive the descriptor, in |texts|. */
static void copy_fields(struct d9__field *fields, char *texts, const struct d9_span_site *site)
{
	for (size_t i = 0; i < site->n_fields; i++) {
		const struct d9_field *field = &site->fields[i];

		strcpy(texts, field->name);
		fields[i] = (struct d9__field){ texts, d9__field_wire_type(field->type), field->unit,
						field->kind };
		texts += strlen(texts) + 1;
	}
}

/* The rest of the events' names: "target::name:file:line". */
static int register_site(struct d9__span_site_type *type, const struct d9_span_site *site)
{
	struct d9__field fields[D9_SPAN_FIELDS_MAX];
	char origin[768];
	int n = snprintf(origin, sizeof(origin), "%s%s%s:%s:%u", site->target ? site->target : "",
			 site->target && *site->target ? "::" : "", site->name,
			 site->file ? site->file : "", site->line);

	if (n < 0 || (size_t)n >= sizeof(origin))
		return -E2BIG;
	copy_fields(fields, type->texts, site);
	type->name = intern(site->name);
	type->type.origin = intern(origin);
	type->type.target = intern(site->target);
	type->type.file = intern(site->file);
	type->type.level = intern(level_text(site->level));
	type->type.line = site->line;
	return d9__span_type_register(&type->type, origin, fields, (uint16_t)site->n_fields);
}

/* Fields need no look, because they follow from the types of events. */
static bool is_same(const struct d9__span_site_type *a, const struct d9__span_site_type *b)
{
	return a->type.enter == b->type.enter && a->type.exit == b->type.exit &&
	       a->name == b->name && a->type.target == b->type.target &&
	       a->type.file == b->type.file && a->type.level == b->type.level &&
	       a->type.line == b->type.line;
}

/* |type| in the list of all, or, freeing it, one that is the same. */
static struct d9__span_site_type *keep_type(struct d9__span_site_type *type)
{
	/* acquire: pairs with the exchange below.  Two threads may add the same: no harm. */
	struct d9__span_site_type *first = atomic_load_explicit(&all_types, memory_order_acquire);

	for (struct d9__span_site_type *other = first; other; other = other->next)
		if (is_same(type, other)) {
			d9__free(type);
			return other;
		}
	do
		type->next = first;
	while (!atomic_compare_exchange_weak_explicit(&all_types, &first, type,
						      memory_order_acq_rel, memory_order_acquire));
	return type;
}

static int make_type(struct d9_span_site *site)
{
	size_t texts = 1;
	struct d9__span_site_type *type;
	int err = check_site(site);

	for (size_t i = 0; !err && i < site->n_fields; i++)
		texts += strlen(site->fields[i].name) + 1;
	if (!err)
		err = d9__event_types_init();
	if (err)
		return err;
	intern_mistakes();
	d9__open_spans_start();
	type = d9__calloc(1, sizeof(*type) + texts);
	if (!type)
		return -ENOMEM;
	err = register_site(type, site);
	if (err)
		d9__free(type);
	else /* release: pairs with the acquire where it is read */
		__atomic_store_n(&site->d9__type, keep_type(type), __ATOMIC_RELEASE);
	return err;
}

int d9__span_site_resolve(struct d9_span_site *site)
{
	int saved = errno, err = 0;
	const uint32_t *word;

	if (__atomic_load_n(&site->d9__on, __ATOMIC_RELAXED) == &d9_span_unseen) {
		err = check_site(site);
		word = err ? NULL : d9__span_filter_word(site->target ? site->target : "", site->level);
		if (!err && !word)
			err = -ENOMEM;
		/* release: the word is initialised; readers follow the pointer, which orders them */
		if (!err)
			__atomic_store_n(&site->d9__on, word, __ATOMIC_RELEASE);
	}
	if (!err && d9_span_on(site) && !d9__span_site_type(site))
		err = make_type(site);
	errno = saved;
	return err;
}

int d9_span_site_register(struct d9_span_site *site)
{
	int saved = errno, err = d9__span_site_resolve(site);

	if (!err && !d9__span_site_type(site))
		err = make_type(site);
	errno = saved;
	return err;
}
