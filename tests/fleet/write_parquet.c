/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables with what is hard about Parquet, for readers of others:
 *
 *	write_parquet DIRECTORY
 *
 * writes NAME.parquet for each, and beside it NAME.jsonl, the rows that a reader has to find in it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/parquet_file.h"

/* One that is being written, both ways. */
struct both {
	struct d9__parquet *file;
	FILE *bytes, *lines;
	const struct d9__parquet_column *columns;
	size_t n, column;
};

static int write_bytes(void *file, const void *bytes, size_t len)
{
	return fwrite(bytes, 1, len, file) == len ? 0 : -5;
}

static FILE *create(const char *folder, const char *name, const char *suffix)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
	file = fopen(path, "w");
	if (!file)
		exit(1);
	return file;
}

static struct both begin(const char *folder, const char *name, const struct d9__parquet_column *columns, size_t n)
{
	struct both both = { .columns = columns, .n = n };

	both.bytes = create(folder, name, "parquet");
	both.lines = create(folder, name, "jsonl");
	if (d9__parquet_open(columns, n, write_bytes, both.bytes, &both.file))
		exit(1);
	return both;
}

static void end(struct both *both)
{
	if (d9__parquet_close(both->file) || fclose(both->bytes) || fclose(both->lines))
		exit(1);
}

/* The name of the next column, and what stands before it. */
static void put_key(struct both *both)
{
	fprintf(both->lines, "%s\"%s\":", both->column ? "," : "{", both->columns[both->column].name);
	if (++both->column == both->n)
		both->column = 0;
}

static void row(struct both *both)
{
	if (d9__parquet_row(both->file))
		exit(1);
	fputs("}\n", both->lines);
}

/* Numbers stand as texts: those of JSON are too small. */
static void i64(struct both *both, int64_t value)
{
	put_key(both);
	fprintf(both->lines, "\"%" PRId64 "\"", value);
	d9__parquet_i64(both->file, value);
}

static void boolean(struct both *both, bool value)
{
	put_key(both);
	fputs(value ? "true" : "false", both->lines);
	d9__parquet_bool(both->file, value);
}

/* |text| needs no escape in JSON. */
static void text(struct both *both, const char *value)
{
	put_key(both);
	fprintf(both->lines, "\"%s\"", value);
	d9__parquet_string(both->file, value);
}

static void null(struct both *both)
{
	put_key(both);
	fputs("null", both->lines);
	d9__parquet_null(both->file);
}

static const struct d9__parquet_column all[] = {
	{ "number", D9__PARQUET_I64, true }, { "time", D9__PARQUET_TIME, true },
	{ "text", D9__PARQUET_TEXT, true },  { "flag", D9__PARQUET_BOOL, true },
};

#define N_ALL (sizeof(all) / sizeof(all[0]))

static void write_empty(const char *folder)
{
	struct both both = begin(folder, "empty", all, N_ALL);

	end(&both);
}

static void write_missing(const char *folder)
{
	struct both both = begin(folder, "missing", all, N_ALL);

	for (unsigned i = 0; i < 1000; i++) {
		for (size_t k = 0; k < N_ALL; k++)
			null(&both);
		row(&both);
	}
	end(&both);
}

/* Values at the ends of their types, and an empty text. */
static void write_extremes(const char *folder)
{
	static const int64_t numbers[] = { INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MIN + 1 };
	struct both both = begin(folder, "extremes", all, N_ALL);

	for (unsigned i = 0; i < 6; i++) {
		i64(&both, numbers[i]);
		i64(&both, (int64_t)i * 86400000000 - 1);
		text(&both, i ? "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" : "");
		boolean(&both, i & 1);
		row(&both);
	}
	end(&both);
}

/* More rows than a group and a page hold; of some columns few values, of others as many as rows; and missing ones in runs. */
static void write_many(const char *folder)
{
	static const struct d9__parquet_column columns[] = {
		{ "id", D9__PARQUET_I64, false },      { "one", D9__PARQUET_I64, false },    { "few", D9__PARQUET_I64, true },
		{ "runs", D9__PARQUET_I64, false },    { "name", D9__PARQUET_TEXT, false },  { "unique", D9__PARQUET_TEXT, true },
		{ "flag", D9__PARQUET_BOOL, false },
	};
	struct both both = begin(folder, "many", columns, sizeof(columns) / sizeof(columns[0]));
	char name[64];

	for (int64_t i = 0; i < 2 * D9__PARQUET_GROUP_ROWS + 3; i++) {
		i64(&both, i * i * 1000003 - 5);
		i64(&both, -7);
		if (i / 7 % 3)
			i64(&both, i * 2654435761 % 1000);
		else
			null(&both);
		i64(&both, i / 1000 % 17);
		snprintf(name, sizeof(name), "callback_%" PRId64, i * 40507 % 300);
		text(&both, name);
		snprintf(name, sizeof(name), "task %" PRId64, i);
		if (i % 2)
			text(&both, name);
		else
			null(&both);
		boolean(&both, i % 3 == 0);
		row(&both);
	}
	end(&both);
}

/* Texts so long that a row group ends early, and that a dictionary of them would be large. */
static void write_long(const char *folder)
{
	static const struct d9__parquet_column columns[] = { { "id", D9__PARQUET_I64, false }, { "text", D9__PARQUET_TEXT, false } };
	struct both both = begin(folder, "long", columns, 2);
	char *value = malloc((1 << 20) + 1);

	for (int i = 0; value && i < 200; i++) {
		memset(value, 'a' + i % 40 % 26, 1 << 20);
		snprintf(value, 16, "%d", i % 40);
		value[strlen(value)] = '.';
		value[(1 << 20) - i % 40 * 1000] = '\0';
		i64(&both, i);
		text(&both, value);
		row(&both);
	}
	free(value);
	end(&both);
}

/* Bytes that are no UTF-8, in values and in the file's own metadata. */
static void write_broken(const char *folder)
{
	static const struct d9__parquet_column columns[] = { { "text", D9__PARQUET_TEXT, false } };
	struct both both = begin(folder, "broken", columns, 1);

	d9__parquet_metadata(both.file, "host", "a\xff" "b");
	d9__parquet_text(both.file, "a\xff\xc3(\xed\xa0\x80" "b", 8);
	fputs("{\"text\":\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" "b\"", both.lines);
	row(&both);
	end(&both);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	write_empty(argv[1]);
	write_missing(argv[1]);
	write_extremes(argv[1]);
	write_many(argv[1]);
	write_long(argv[1]);
	write_broken(argv[1]);
	return 0;
}
