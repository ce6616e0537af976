/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "report/columns.h"

const struct d9__column *d9__column_headed(const struct d9__column *columns, const char *heading)
{
	for (; d9__column_is(columns); columns++)
		if (columns->heading && !strcmp(columns->heading, heading))
			return columns;
	return NULL;
}

struct d9__value d9__column_value(const struct d9__column *column, const void *row)
{
	const void *base = column->inside ? *(const void *const *)row : row;
	const char *member = (const char *)base + column->at;
	struct d9__value value = { .is = true };
	const struct d9__known *known;
	const struct d9_text *text;

	switch (column->type) {
	case D9__OF_U64:
	case D9__OF_I64:
		value.n = *(const uint64_t *)member;
		break;
	case D9__OF_U32:
		value.n = *(const uint32_t *)member;
		break;
	case D9__OF_KNOWN:
		known = (const struct d9__known *)member;
		value.is = known->is;
		value.n = known->n;
		break;
	case D9__OF_DOUBLE:
		memcpy(&value.share, member, sizeof(value.share));
		value.is = value.share >= 0;
		break;
	case D9__OF_BOOL:
		value.n = *(const bool *)member;
		break;
	case D9__OF_STRING:
		memcpy(&value.text, member, sizeof(value.text)); /* a const char *, or a char * */
		value.is = value.text != NULL;
		value.len = value.text ? strlen(value.text) : 0;
		break;
	case D9__OF_TEXT:
		text = (const struct d9_text *)member;
		value.text = text->data;
		value.is = value.text != NULL;
		value.len = text->len;
		break;
	}
	return value;
}

static void put_json(struct d9__json *json, const struct d9__column *column, const void *row)
{
	struct d9__value value = d9__column_value(column, row);

	if (!value.is)
		d9__json_null(json, column->key);
	else if (value.text)
		d9__json_text(json, column->key, value.text, value.len);
	else if (column->type == D9__OF_DOUBLE)
		d9__json_double(json, column->key, value.share);
	else if (column->type == D9__OF_BOOL)
		d9__json_bool(json, column->key, value.n != 0);
	else if (column->type == D9__OF_I64)
		d9__json_i64(json, column->key, (int64_t)value.n);
	else
		d9__json_u64(json, column->key, value.n);
}

void d9__columns_json(struct d9__json *json, const struct d9__column *columns, const char *after,
		      const void *row)
{
	bool begun = !after;

	for (; d9__column_is(columns); columns++) {
		if (!columns->key)
			continue;
		if (begun && columns->unit == D9__AS_OBJECT)
			return;
		if (begun)
			put_json(json, columns, row);
		begun |= after && !strcmp(columns->key, after);
	}
}
