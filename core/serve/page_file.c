/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/page_file.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/json.h"

#define PAGE	    "viewer/index.html"
#define WORKER	    "viewer/worker.js"
#define GUIDE	    "doc/ANALYSIS.md"
#define STYLE_LINK  "<link rel=\"stylesheet\" href=\""
#define STYLES_MAX  8
#define ICON_LINK   "<link rel=\"icon\" href=\""
#define SCRIPT_LINK "<script type=\"module\" src=\""

/* A block in base64 takes 4 MiB, far below a browser's limit for one text. */
#define BLOCK	      ((size_t)3 << 20)
#define BASE64(bytes) (((bytes) + 2) / 3 * 4)
#define HASH_TEXT     (sizeof("sha256-") + BASE64(32))

/* ---- scripts ---- */

struct join {
	const struct d9__assets *assets;
	const struct d9__asset **order; /* each module behind those it imports */
	size_t n;
};

static const char *line_end(const char *line, const char *end)
{
	const char *feed = memchr(line, '\n', (size_t)(end - line));

	return feed ? feed + 1 : end;
}

static bool begins(const char *line, const char *end, const char *with)
{
	return (size_t)(end - line) >= strlen(with) && !memcmp(line, with, strlen(with));
}

/* The module that the line [line, end) of |importer| imports, or NULL. */
static const struct d9__asset *imported(const struct join *join, const struct d9__asset *importer,
					const char *line, const char *end)
{
	const char *last = memrchr(line, '\'', (size_t)(end - line)), *first;
	char name[256];

	first = last ? memrchr(line, '\'', (size_t)(last - line)) : NULL;
	if (!first)
		return NULL;
	first++;
	if (begins(first, last, "../"))
		snprintf(name, sizeof(name), "%.*s", (int)(last - first - 3), first + 3);
	else if (begins(first, last, "./"))
		snprintf(name, sizeof(name), "%.*s/%.*s", (int)strcspn(importer->name, "/"),
			 importer->name, (int)(last - first - 2), first + 2);
	else
		return NULL;
	return d9__assets_find(join->assets, name);
}

/* Put |module| behind those it imports, once, even if modules import each other.  0 or -ENOENT. */
static int visit(struct join *join, const struct d9__asset *module, bool *seen)
{
	const char *end, *next;
	int err = 0;

	if (!module)
		return -ENOENT;
	if (seen[module - join->assets->items])
		return 0;
	seen[module - join->assets->items] = true;
	end = module->data + module->len;
	for (const char *line = module->data; line < end && !err; line = next) {
		next = line_end(line, end);
		if (begins(line, next, "import "))
			err = visit(join, imported(join, module, line, next), seen);
	}
	join->order[join->n++] = module;
	return err;
}

static void write_module(const struct d9__asset *module, FILE *out)
{
	const char *end = module->data + module->len, *next;

	for (const char *line = module->data; line < end; line = next) {
		next = line_end(line, end);
		if (begins(line, next, "import ") || begins(line, next, "export {"))
			continue;
		if (begins(line, next, "export "))
			line += strlen("export ");
		fwrite(line, 1, (size_t)(next - line), out);
	}
}

int d9__page_join(const struct d9__assets *assets, const char *name, char **out, size_t *len)
{
	struct join join = { .assets = assets };
	bool *seen = calloc(assets->n + 1, sizeof(*seen));
	FILE *text = NULL;
	int err = -ENOMEM;

	*out = NULL;
	join.order = calloc(assets->n + 1, sizeof(*join.order));
	if (seen && join.order)
		err = visit(&join, d9__assets_find(assets, name), seen);
	if (!err) {
		text = open_memstream(out, len);
		err = text ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < join.n && !err; i++)
		write_module(join.order[i], text);
	if (text && fclose(text))
		err = -ENOMEM;
	free(join.order);
	free(seen);
	return err;
}

/* ---- the page ---- */

struct page {
	const struct d9__page_data *data;
	d9__page_put *put;
	void *context;
	int err; /* the first one */
	const struct d9__asset *template, *icon, *guide, *styles[STYLES_MAX];
	size_t n_styles, styles_put;
	char *script, *worker; /* owned */
	size_t script_len, worker_len;
	const struct d9__page_segment *culprit;
};

static void put(struct page *page, const void *bytes, size_t len)
{
	if (!page->err && len)
		page->err = page->put(page->context, bytes, len);
}

static void put_text(struct page *page, const char *text)
{
	put(page, text, strlen(text));
}

/* The asset that [line, end) links to. */
static const struct d9__asset *linked(const struct d9__assets *assets, const char *line,
				      const char *end, const char *link)
{
	const char *name = line + strlen(link), *quote = memchr(name, '"', (size_t)(end - name));
	char text[256];

	snprintf(text, sizeof(text), "%.*s", quote ? (int)(quote - name) : 0, name);
	return d9__assets_find(assets, text);
}

/* Find the parts of the page. */
static int prepare(struct page *page, const struct d9__assets *assets)
{
	const struct d9__asset *script = NULL;
	const char *end, *next;
	int err;

	page->template = d9__assets_find(assets, PAGE);
	page->guide = d9__assets_find(assets, GUIDE);
	if (!page->template || !page->guide)
		return -ENOENT;
	end = page->template->data + page->template->len;
	for (const char *line = page->template->data; line < end; line = next) {
		next = line_end(line, end);
		if (begins(line, next, STYLE_LINK) && page->n_styles == STYLES_MAX)
			return -E2BIG;
		if (begins(line, next, STYLE_LINK))
			page->styles[page->n_styles++] = linked(assets, line, next, STYLE_LINK);
		else if (begins(line, next, ICON_LINK))
			page->icon = linked(assets, line, next, ICON_LINK);
		else if (begins(line, next, SCRIPT_LINK))
			script = linked(assets, line, next, SCRIPT_LINK);
	}
	if (!page->n_styles || !page->icon || !script)
		return -ENOENT;
	for (size_t i = 0; i < page->n_styles; i++)
		if (!page->styles[i])
			return -ENOENT;
	err = d9__page_join(assets, script->name, &page->script, &page->script_len);
	return err ? err : d9__page_join(assets, WORKER, &page->worker, &page->worker_len);
}

static void hash_text(struct page *page, const void *bytes, size_t len, char text[HASH_TEXT])
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	if (!EVP_Digest(bytes, len, digest, NULL, EVP_sha256(), NULL) && !page->err)
		page->err = -ENOMEM;
	memcpy(text, "sha256-", strlen("sha256-"));
	EVP_EncodeBlock((unsigned char *)text + strlen("sha256-"), digest, 32);
}

/* Write the policy of the page: its own script and worker may run, and it cannot reach any host. */
static void put_policy(struct page *page)
{
	char hash[HASH_TEXT];

	put_text(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		       "script-src '");
	hash_text(page, page->script, page->script_len, hash);
	put_text(page, hash);
	put_text(page, "'; style-src");
	for (size_t i = 0; i < page->n_styles; i++) {
		put_text(page, " '");
		hash_text(page, page->styles[i]->data, page->styles[i]->len, hash);
		put_text(page, hash);
		put_text(page, "'");
	}
	put_text(page,
		 "; worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'; "
		 "require-trusted-types-for 'script'; trusted-types dial9\">\n"
		 "<meta name=\"referrer\" content=\"no-referrer\">\n");
}

static void put_base64(struct page *page, const unsigned char *bytes, size_t len,
		       unsigned char *text)
{
	put(page, text, (size_t)EVP_EncodeBlock(text, bytes, (int)len));
}

static void put_icon(struct page *page)
{
	unsigned char *text = malloc(BASE64(page->icon->len) + 1);

	if (!text) {
		page->err = page->err ? page->err : -ENOMEM;
		return;
	}
	put_text(page, ICON_LINK "data:image/svg+xml;base64,");
	put_base64(page, (const unsigned char *)page->icon->data, page->icon->len, text);
	put_text(page, "\">\n");
	free(text);
}

/* JSON has '<' in strings only, where it can be escaped: nothing in it ends the element. */
static void put_json(struct page *page, const char *id, const char *json, size_t len)
{
	const char *end = json + len, *next;

	put_text(page, "<script type=\"application/json\" id=\"");
	put_text(page, id);
	put_text(page, "\">");
	for (; json < end; json = next) {
		next = memchr(json, '<', (size_t)(end - json));
		put(page, json, (size_t)((next ? next : end) - json));
		if (next)
			put_text(page, "\\u003c");
		next = next ? next + 1 : end;
	}
	put_text(page, "</script>\n");
}

static size_t blocks_of(const struct d9__page_segment *segment)
{
	return (size_t)((segment->bytes + BLOCK - 1) / BLOCK);
}

static void write_listing(const struct page *page, FILE *out)
{
	const struct d9__page_data *data = page->data;
	struct d9__json json = { .out = out };

	d9__json_open(&json, NULL, '{');
	d9__json_string(&json, "name", data->name);
	d9__json_open(&json, "segments", '[');
	for (size_t i = 0; i < data->n; i++) {
		d9__json_open(&json, NULL, '{');
		d9__json_string(&json, "name", data->segments[i].name);
		d9__json_u64(&json, "bytes", data->segments[i].bytes);
		d9__json_u64(&json, "modified_ms", data->segments[i].modified_ms);
		d9__json_u64(&json, "blocks", blocks_of(&data->segments[i]));
		d9__json_close(&json, '}');
	}
	d9__json_close(&json, ']');
	d9__json_close(&json, '}');
}

static void write_guide(const struct page *page, FILE *out)
{
	struct d9__json json = { .out = out };

	d9__json_open(&json, NULL, '{');
	d9__json_string(&json, "text", page->guide->data);
	d9__json_close(&json, '}');
}

static void put_written(struct page *page, const char *id, void (*write)(const struct page *page, FILE *out))
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (out)
		write(page, out);
	if (out && !fclose(out))
		put_json(page, id, text, len);
	else if (!page->err)
		page->err = -ENOMEM;
	free(text);
}

static void put_segment(struct page *page, const struct d9__page_segment *segment,
			unsigned char *bytes, unsigned char *text)
{
	FILE *in = fopen(segment->path, "re");
	uint64_t left = segment->bytes;
	int err = in ? 0 : -errno;

	while (left && !err && !page->err) {
		size_t len = left < BLOCK ? (size_t)left : BLOCK;

		if (fread(bytes, 1, len, in) < len) {
			err = ferror(in) ? -errno : -ESTALE;
			break;
		}
		put_text(page, "<script type=\"application/vnd.dial9.trace+base64\">");
		put_base64(page, bytes, len, text);
		put_text(page, "</script>\n");
		left -= len;
	}
	if (in)
		fclose(in);
	if (err && !page->err) {
		page->err = err;
		page->culprit = segment;
	}
}

static void put_segments(struct page *page)
{
	unsigned char *bytes = malloc(BLOCK), *text = malloc(BASE64(BLOCK) + 1);

	if (!bytes || !text)
		page->err = page->err ? page->err : -ENOMEM;
	for (size_t i = 0; i < page->data->n && !page->err; i++)
		put_segment(page, &page->data->segments[i], bytes, text);
	free(text);
	free(bytes);
}

/* The report first: a reader has the answer while the trace is still being read. */
static void put_data(struct page *page)
{
	put_written(page, "embedded", write_listing);
	put_json(page, "embedded-report", page->data->report, page->data->report_len);
	put_written(page, "embedded-guide", write_guide);
	put_text(page, "<script type=\"text/plain\" id=\"embedded-worker\">");
	put(page, page->worker, page->worker_len);
	put_text(page, "</script>\n");
	put_segments(page);
	put_text(page, "<script type=\"module\">");
	put(page, page->script, page->script_len);
	put_text(page, "</script>\n");
}

static void put_line(struct page *page, const char *line, const char *end)
{
	if (begins(line, end, STYLE_LINK)) {
		put_text(page, "<style>");
		put(page, page->styles[page->styles_put]->data,
		    page->styles[page->styles_put]->len);
		page->styles_put++;
		put_text(page, "</style>\n");
	} else if (begins(line, end, ICON_LINK)) {
		put_icon(page);
	} else if (!begins(line, end, SCRIPT_LINK)) {
		if (begins(line, end, "</body>"))
			put_data(page);
		put(page, line, (size_t)(end - line));
		if (begins(line, end, "<meta charset"))
			put_policy(page);
	}
}

int d9__page_file(const struct d9__assets *assets, const struct d9__page_data *data,
		  d9__page_put *write, void *context, const struct d9__page_segment **culprit)
{
	struct page page = { .data = data, .put = write, .context = context };
	const char *end, *next;

	page.err = prepare(&page, assets);
	end = page.err ? NULL : page.template->data + page.template->len;
	for (const char *line = page.err ? NULL : page.template->data; line < end && !page.err;
	     line = next) {
		next = line_end(line, end);
		put_line(&page, line, next);
	}
	free(page.script);
	free(page.worker);
	if (culprit)
		*culprit = page.culprit;
	return page.err;
}

uint64_t d9__page_file_bytes(const struct d9__assets *assets, const struct d9__page_data *data)
{
	uint64_t bytes = data->report_len;

	for (size_t i = 0; i < assets->n; i++)
		bytes += assets->items[i].len;
	for (size_t i = 0; i < data->n; i++)
		bytes += BASE64(data->segments[i].bytes);
	return bytes;
}
