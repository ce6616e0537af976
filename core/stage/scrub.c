/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/field_type.h>
#include <dial9/reader.h>

#include "analyze/texts.h"
#include "base/array.h"
#include "base/table.h"
#include "format/encoder.h"
#include "read/catalogue.h"
#include "read/stack_role.h"
#include "stage/scrub.h"
#include "stage/scrub_plan.h"

#define SITE_MARK    " @ "
#define WORD_MAX     48
#define VALUE_MAX    256
#define MODULES_MAX  30000u
#define MODULE_BYTES (UINT64_C(1) << 31)
#define STEP	     16u /* between addresses: one before and one behind is of the same call */
#define OUTSIDE	     UINT64_C(0x7f0000000000)
#define KERNEL	     UINT64_C(0xffffffff80000000)

struct module {
	uint64_t base, start, size; /* as recorded */
	char *name;		    /* of its file */
	uint64_t to;		    /* the replacement of |base| and |start| */
	uint64_t n;		    /* addresses in it */
};

struct d9__scrub {
	/* Of all segments. */
	struct d9__texts texts; /* that have stand-ins, by number */
	struct d9__texts kept[D9__SCRUB_KEPT];
	bool sorted;
	size_t n_addresses;

	/* Of one process. */
	char *folder; /* of its segments */
	struct d9__table addresses;
	struct module *modules;
	size_t n_modules;
	uint64_t n_outside, n_kernel;

	/* Of the event at hand. */
	const struct module *module; /* that it tells of */
	bool is_place;		     /* the text names a place */

	char *text; /* the latest answer */
	uint8_t *frame;
	size_t frame_max;
};

/* The prefix of a text's number. */
static const char *const prefixes[] = { "text", "span", "loop", "thread", "name", "target", "trigger" };

struct d9__scrub *d9__scrub_new(void)
{
	return calloc(1, sizeof(struct d9__scrub));
}

static void forget_process(struct d9__scrub *scrub)
{
	d9__table_release(&scrub->addresses);
	for (size_t i = 0; i < scrub->n_modules; i++)
		free(scrub->modules[i].name);
	free(scrub->modules);
	free(scrub->folder);
	scrub->modules = NULL;
	scrub->folder = NULL;
	scrub->n_modules = scrub->n_outside = scrub->n_kernel = 0;
}

void d9__scrub_free(struct d9__scrub *scrub)
{
	if (!scrub)
		return;
	forget_process(scrub);
	d9__texts_release(&scrub->texts);
	for (size_t i = 0; i < D9__SCRUB_KEPT; i++)
		d9__texts_release(&scrub->kept[i]);
	free(scrub->text);
	free(scrub->frame);
	free(scrub);
}

/* Begin a segment.  Without memory for its folder's name, it counts as of a process of its own. */
void d9__scrub_begin(struct d9__scrub *scrub, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (scrub->folder && strlen(scrub->folder) == len && !memcmp(scrub->folder, path, len))
		return;
	forget_process(scrub);
	scrub->folder = strndup(path, len);
}

static int keep(struct d9__scrub *scrub, enum d9__scrub_kept what, const char *text, size_t len)
{
	uint32_t number;

	scrub->sorted = false;
	return d9__texts_number(&scrub->kept[what], text, len, &number);
}

__attribute__((format(printf, 2, 3))) static int answer(struct d9__scrub *scrub, const char *fmt, ...)
{
	va_list args;
	int n;

	free(scrub->text);
	va_start(args, fmt);
	n = vasprintf(&scrub->text, fmt, args);
	va_end(args);
	if (n >= 0)
		return 0;
	scrub->text = NULL;
	return -ENOMEM;
}

/* ---- addresses ---- */

static struct module *module_at(struct d9__scrub *scrub, uint64_t address)
{
	/* Search from the latest on, because a module may be loaded where another one was. */
	for (size_t i = scrub->n_modules; i--;)
		if (address - scrub->modules[i].start < scrub->modules[i].size)
			return &scrub->modules[i];
	return NULL;
}

static uint64_t new_address(struct d9__scrub *scrub, uint64_t address)
{
	struct module *module = module_at(scrub, address);

	scrub->n_addresses++;
	if (module && module->n < MODULE_BYTES / STEP - 2)
		return module->to + ++module->n * STEP;
	if (d9__address_is_kernel(address))
		return KERNEL + ++scrub->n_kernel * STEP;
	return OUTSIDE + ++scrub->n_outside * STEP;
}

static uint64_t known_address(const struct d9__scrub *scrub, uint64_t address)
{
	return (uint64_t)(uintptr_t)d9__table_find(&scrub->addresses, address);
}

/*
 * Map an address; a call and its return address, which are equal or next to each other, stay as far
 * apart.
 */
static int map_address(struct d9__scrub *scrub, uint64_t address, uint64_t *out)
{
	uint64_t near;

	*out = address ? known_address(scrub, address) : 0;
	if (*out || !address)
		return 0;
	if ((near = known_address(scrub, address + 1)) != 0)
		*out = near - 1;
	else if ((near = known_address(scrub, address - 1)) != 0)
		*out = near + 1;
	else
		*out = new_address(scrub, address);
	return d9__table_add(&scrub->addresses, address, (void *)(uintptr_t)*out);
}

int d9__scrub_number(struct d9__scrub *scrub, uint8_t how, uint64_t value, uint64_t *out)
{
	switch (how) {
	case D9__SCRUB_ADDRESS:
		return map_address(scrub, value, out);
	case D9__SCRUB_MODULE_START:
		*out = scrub->module->to;
		return 0;
	case D9__SCRUB_MODULE_SIZE:
		*out = MODULE_BYTES;
		return 0;
	default:
		*out = value;
		return 0;
	}
}

/* ---- modules ---- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * True if the name of a file shows nothing of the program, because the file comes with the system,
 * dial9 or an event loop.
 */
static bool is_public(const char *path)
{
	static const char *const folders[] = { "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/" };
	static const char *const names[] = { "libdial9", "libevent", "libev.", "libglib-", "libgio-", "libgobject-",
					     "linux-vdso", "[" };
	const char *name = base_name(path);

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (begins(path, folders[i]) && strstr(name, ".so"))
			return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (begins(name, names[i]))
			return true;
	return false;
}

/* Make the replacement of a file's name, which may be a library's; in |scrub->text|. */
static int name_module(struct d9__scrub *scrub, const char *name, size_t len)
{
	uint32_t number;
	int err;

	if (d9__texts_find(&scrub->kept[D9__SCRUB_LIBRARIES], name, len, &number))
		return answer(scrub, "%.*s", (int)len, name);
	err = d9__texts_number(&scrub->texts, name, len, &number);
	if (err)
		return err;
	return memmem(name, len, ".so", 3) ? answer(scrub, "library-%" PRIu32 ".so", number + 1)
					   : answer(scrub, "program-%" PRIu32, number + 1);
}

static int add_module(struct d9__scrub *scrub, const struct module *module, const char *path)
{
	const char *name = base_name(path);
	struct module *added;
	int err;

	err = is_public(path) ? keep(scrub, D9__SCRUB_LIBRARIES, name, strlen(name)) : 0;
	for (size_t i = scrub->n_modules; !err && i--;)
		if (scrub->modules[i].start == module->start && scrub->modules[i].size == module->size &&
		    !strcmp(scrub->modules[i].name, name))
			return 0;
	if (err || scrub->n_modules == MODULES_MAX)
		return err;
	if (!d9__array_grow(scrub->modules, scrub->n_modules))
		return -ENOMEM;
	added = &scrub->modules[scrub->n_modules];
	*added = *module;
	added->to = (uint64_t)(scrub->n_modules + 1) << 32;
	added->name = strdup(name);
	if (!added->name)
		return -ENOMEM;
	scrub->n_modules++;
	return 0;
}

/* Return the module whose file has that name and that |offset| lies in. */
static const struct module *module_of(const struct d9__scrub *scrub, const char *name, size_t len, uint64_t offset)
{
	for (size_t i = scrub->n_modules; i--;) {
		const struct module *module = &scrub->modules[i];

		if (!strncmp(module->name, name, len) && !module->name[len] &&
		    module->base + offset - module->start < module->size)
			return module;
	}
	return NULL;
}

/* ---- the event at hand ---- */

/* Read a field that needs no decoder; false: it is of another type. */
static bool pass(struct d9__cursor *in, const struct d9__field_definition *field, uint64_t *number, const uint8_t **text,
		 uint32_t *len)
{
	uint8_t byte;

	*text = NULL;
	if (field->optional)
		return false;
	switch (field->type) {
	case D9_FIELD_VARINT:
		return d9__cursor_varint(in, number) == 1;
	case D9_FIELD_BOOL:
	case D9_FIELD_U8:
		return d9__cursor_u8(in, &byte);
	case D9_FIELD_STRING:
		return d9__cursor_blob(in, text, len);
	default:
		return false;
	}
}

/*
 * Read the module in |frame|, with its |*path|, for free(3); false: a recorder writes it in another
 * way.
 */
static bool read_module(const struct d9__frame *frame, struct module *out, char **path)
{
	const struct d9_schema *schema = frame->schema;
	struct d9__cursor in = { frame->payload, frame->end, 0 };
	const uint8_t *text;
	uint64_t number = 0;
	uint32_t len = 0;

	*out = (struct module) { 0 };
	*path = NULL;
	for (uint32_t i = 0; i < schema->n_fields && !*path; i++) {
		if (!pass(&in, &schema->fields[i], &number, &text, &len))
			return false;
		if (!strcmp(schema->fields[i].name, "base"))
			out->base = number;
		else if (!strcmp(schema->fields[i].name, "start"))
			out->start = number;
		else if (!strcmp(schema->fields[i].name, "size"))
			out->size = number;
		else if (!strcmp(schema->fields[i].name, "path") && text)
			*path = strndup((const char *)text, len);
	}
	return *path;
}

int d9__scrub_learn(struct d9__scrub *scrub, const struct d9__frame *frame)
{
	struct module module;
	char *path;
	int err = 0;

	if (frame->schema->kind != D9_EVENT_MODULE)
		return 0;
	if (read_module(frame, &module, &path))
		err = add_module(scrub, &module, path);
	free(path);
	return err;
}

static bool is_at_nothing(const struct d9__frame *frame)
{
	struct d9__cursor in = { frame->payload, frame->end, 0 };
	const uint8_t *text;
	uint64_t address = 1;
	uint32_t len;

	return frame->schema->known[D9_SYMBOL_ADDR] == 0 &&
	       pass(&in, &frame->schema->fields[0], &address, &text, &len) && !address;
}

bool d9__scrub_event(struct d9__scrub *scrub, const struct d9__frame *event)
{
	struct module module;
	char *path;

	scrub->is_place = event->schema->kind == D9_EVENT_SYMBOL && is_at_nothing(event);
	if (event->schema->kind != D9_EVENT_MODULE)
		return true;
	scrub->module = read_module(event, &module, &path) ? module_at(scrub, module.start) : NULL;
	free(path);
	return scrub->module;
}

/* ---- texts ---- */

static int stand_in(struct d9__scrub *scrub, const char *prefix, const char *text, size_t len)
{
	uint32_t number;
	int err = len ? d9__texts_number(&scrub->texts, text, len, &number) : 0;

	return err ? err : len ? answer(scrub, "%s-%" PRIu32, prefix, number + 1) : answer(scrub, "%s", "");
}

static bool is_of(const char *text, size_t len, const char *chars)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr(chars, text[i]))
			return false;
	return true;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS	"0123456789"

static int word(struct d9__scrub *scrub, const char *text, size_t len)
{
	if (!len || len > WORD_MAX || !is_of(text, len, LETTERS DIGITS "_ -()"))
		return stand_in(scrub, prefixes[0], text, len);
	return keep(scrub, D9__SCRUB_WORDS, text, len) ? -ENOMEM : answer(scrub, "%.*s", (int)len, text);
}

/* Return the length of |text| without a path that a script compiler appends to a name. */
static size_t without_path(const char *text, size_t len)
{
	static const char *const marks[] = { " /", ":/", " file:", "(/", " ./", " ../" };
	size_t end = len;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *at = memmem(text, end, marks[i], strlen(marks[i]));

		if (at)
			end = (size_t)(at - text);
	}
	return end;
}

/*
 * True for a role by which a recorder names a callback inside a loop library: "bufferevent read",
 * "python timer callback 2".
 */
static bool is_role(const char *text, size_t len)
{
	static const char *const beginnings[] = {
		"bufferevent ", "evhttp ", "evdns ", "evbuffer ", "listener accept", "socket listener accept", "signal pipe",
		"child source", "python ", "loopexit", "common timeouts", "wake-up by another thread",
	};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (len >= strlen(beginnings[i]) && !memcmp(text, beginnings[i], strlen(beginnings[i])))
			return len <= WORD_MAX && is_of(text, len, LETTERS DIGITS " -");
	return false;
}

static bool is_hex(const char *text, size_t len)
{
	return len && len <= 16 && is_of(text, len, DIGITS "abcdefABCDEF");
}

/*
 * Return the number of the hexadecimal digits at the beginning of |text|, which has no zero byte
 * behind it.
 */
static uint64_t hex_of(const char *text, size_t len)
{
	char digits[17];
	size_t n = 0;

	while (n < len && n < sizeof(digits) - 1 && is_hex(text + n, 1))
		n++;
	memcpy(digits, text, n);
	digits[n] = '\0';
	return strtoull(digits, NULL, 16);
}

/* "0x7f01", "server+0x1a2b0", a role, or the name of a function with its file and its line. */
static int half_place(struct d9__scrub *scrub, const char *text, size_t len)
{
	const char *plus = memmem(text, len, "+0x", 3);
	size_t name_len = plus ? (size_t)(plus - text) : 0;
	const struct module *module;
	uint64_t address, offset;
	uint32_t number;
	char *name;
	int err;

	if (len > 2 && !memcmp(text, "0x", 2) && is_hex(text + 2, len - 2)) {
		err = map_address(scrub, hex_of(text + 2, len - 2), &address);
		return err ? err : answer(scrub, "0x%" PRIx64, address);
	}
	if (is_role(text, len))
		return word(scrub, text, len);
	if (!plus || !is_hex(plus + 3, len - name_len - 3))
		return stand_in(scrub, "place", text, len);
	offset = hex_of(plus + 3, len - name_len - 3);
	module = module_of(scrub, text, name_len, offset);
	err = module ? map_address(scrub, module->base + offset, &address)
		     : d9__texts_number(&scrub->texts, text, len, &number);
	if (!err) {
		offset = module ? address - module->to : ((uint64_t)number + 1) * STEP;
		err = name_module(scrub, text, name_len);
	}
	if (err)
		return err;
	name = scrub->text;
	scrub->text = NULL;
	err = answer(scrub, "%s+0x%" PRIx64, name, offset);
	free(name);
	return err;
}

/* "[kernel] 0xffffffff8123" and the like, of an address without a function. */
static int unknown_function(struct d9__scrub *scrub, const char *text, size_t len)
{
	const char *end = memchr(text, ']', len), *hex = memmem(text, len, "0x", 2);
	uint64_t address = 0;

	if (!end || !is_of(text + 1, (size_t)(end - text) - 1, LETTERS "- "))
		return answer(scrub, "[unknown]");
	if (hex && map_address(scrub, hex_of(hex + 2, len - (size_t)(hex + 2 - text)), &address))
		return -ENOMEM;
	return hex ? answer(scrub, "%.*s] 0x%" PRIx64, (int)(end - text), text, address) :
		     answer(scrub, "%.*s]", (int)(end - text), text);
}

static bool is_mere_place(const char *text, size_t len)
{
	const char *plus = memmem(text, len, "+0x", 3);
	size_t skip = plus ? (size_t)(plus - text) + 3 : 2;

	return (plus || (len > 2 && !memcmp(text, "0x", 2))) && is_hex(text + skip, len - skip);
}

/* Keep a function's name up to a path behind it; a place or an unknown function gets a stand-in. */
static int function(struct d9__scrub *scrub, const char *text, size_t len)
{
	if (len && text[0] == '[')
		return unknown_function(scrub, text, len);
	if (is_mere_place(text, len))
		return half_place(scrub, text, len);
	len = without_path(text, len);
	if (!len || text[0] == '/' || text[0] == '.' || memmem(text, len, "0x", 2))
		return answer(scrub, "[unknown]");
	return keep(scrub, D9__SCRUB_FUNCTIONS, text, len) ? -ENOMEM : answer(scrub, "%.*s", (int)len, text);
}

static int place(struct d9__scrub *scrub, const char *text, size_t len)
{
	const char *at = memmem(text, len, SITE_MARK, strlen(SITE_MARK));
	size_t half = at ? (size_t)(at - text) : len, rest;
	char *first;
	int err = half_place(scrub, text, half);

	if (err || !at)
		return err;
	first = scrub->text;
	scrub->text = NULL;
	rest = len - half - strlen(SITE_MARK);
	err = half_place(scrub, at + strlen(SITE_MARK), rest);
	if (!err) {
		char *second = scrub->text;

		scrub->text = NULL;
		err = answer(scrub, "%s" SITE_MARK "%s", first, second);
		free(second);
	}
	free(first);
	return err;
}

static int path_of_module(struct d9__scrub *scrub, const char *text, size_t len)
{
	const char *slash = memrchr(text, '/', len);
	size_t skip = slash ? (size_t)(slash - text) + 1 : 0;

	return name_module(scrub, text + skip, len - skip);
}

/*
 * True for a name that dial9 gives to its own threads, and for "main", which a loop without a name
 * has.
 */
static bool is_ours(const char *prefix, const char *text, size_t len)
{
	if (!strcmp(prefix, "thread"))
		return len > 6 && !memcmp(text, "dial9-", 6);
	return !strcmp(prefix, "loop") && len == 4 && !memcmp(text, "main", 4);
}

static int name_text(struct d9__scrub *scrub, const char *prefix, const char *text, size_t len)
{
	if (is_ours(prefix, text, len))
		return word(scrub, text, len);
	/* A callback that the program gave no name: "server+0x1a2b0 @ server+0x9f04". */
	return memmem(text, len, "+0x", 3) ? place(scrub, text, len) : stand_in(scrub, prefix, text, len);
}

static int replace(struct d9__scrub *scrub, uint8_t how, const char *text, size_t len)
{
	if (scrub->is_place && (how == D9__SCRUB_FUNCTION || how == D9__SCRUB_FILE))
		how = D9__SCRUB_PLACE;
	switch (how) {
	case D9__SCRUB_MODULE_PATH:
		return path_of_module(scrub, text, len);
	case D9__SCRUB_FUNCTION:
		return function(scrub, text, len);
	case D9__SCRUB_FILE:
		return answer(scrub, "%s", "");
	case D9__SCRUB_PLACE:
		return place(scrub, text, len);
	case D9__SCRUB_WORD:
		return word(scrub, text, len);
	default:
		return name_text(scrub, prefixes[how - D9__SCRUB_TEXT], text, len);
	}
}

int d9__scrub_text(struct d9__scrub *scrub, uint8_t how, const char *text, size_t len, const char **out, size_t *out_len)
{
	int err = replace(scrub, how, text, len);

	*out = err ? NULL : scrub->text;
	*out_len = err ? 0 : strlen(scrub->text);
	return err;
}

/* ---- metadata ---- */

static bool is_one_of(const char *text, const char *const *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(text, all[i]))
			return true;
	return false;
}

/*
 * True if the metadata |key| may stay: facts of the recorder and the machine that name no user and
 * no place.  The program's own never stay.
 */
static bool leaves(const char *key)
{
	static const char *const all[] = {
		"boot_id", "callsites.unknown", "cpu.backend", "cpu.profile.frequency_hz", "cpu.sample_hz", "cpu.threads",
		"dial9-c.version", "dump.id", "dumps.evicted", "log.dropped", "memory.sample_rate_bytes", "names.other", "pid",
		"process.available_parallelism", "processes.cloned", "recorder.ended", "recorder.mode", "recorder.sandboxed", "recovered",
		"ring.fallback", "ring.limit", "ring.not_renamed", "sched.switch_duty", "sched.wait_sample_rate", "system.cgroup_cpus",
		"system.cpus_online", "system.memory_bytes", "system.page_bytes", "task_dump.idle_threshold_ms", "tasks.forgotten",
		"tokio.local_queue", "tokio.poll_coverage",
	};
	static const char *const of_loops[] = {
		"capabilities", "degraded", "loops_dropped", "method", "polls_unbound", "refused", "slots_foreign",
		"slots_refused", "stubs_full", "tables_unpatchable", "unseen", "version",
	};
	static const char *const libraries[] = { "loop.libevent.", "loop.libev.", "loop.glib." };

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (begins(key, libraries[i]))
			return is_one_of(key + strlen(libraries[i]), of_loops, sizeof(of_loops) / sizeof(of_loops[0]));
	return begins(key, "segment.") || begins(key, "source.") || is_one_of(key, all, sizeof(all) / sizeof(all[0]));
}

/*
 * Return how much of a value is kept: up to a colon, because an error text behind it may name
 * anything, as in "off: /proc/self/task: permission denied".
 */
static size_t kept_of(const char *key, const char *value, size_t len)
{
	const char *colon = memchr(value, ':', len);

	if (colon && !begins(key, "segment."))
		len = (size_t)(colon - value);
	if (len > VALUE_MAX || !is_of(value, len, LETTERS DIGITS "_ -=,.+()") || memmem(value, len, ".so", 3))
		return 0;
	return len;
}

static int pair_of_runtime(struct d9__scrub *scrub, const char *name_of, const char *value, char **out_key, char **out_value)
{
	int err = name_text(scrub, "loop", name_of, strlen(name_of));

	if (!err && asprintf(out_key, "runtime.%s", scrub->text) < 0)
		*out_key = NULL;
	*out_value = is_of(value, strlen(value), DIGITS ",") ? strdup(value) : strdup("");
	return err || !*out_key || !*out_value ? -ENOMEM : 1;
}

static int make_pair(struct d9__scrub *scrub, const char *key, const char *value, char **out_key, char **out_value)
{
	if (begins(key, "runtime."))
		return pair_of_runtime(scrub, key + strlen("runtime."), value, out_key, out_value);
	if (!leaves(key) || !is_of(key, strlen(key), LETTERS DIGITS "_.-"))
		return 0;
	*out_key = strdup(key);
	*out_value = strndup(value, kept_of(key, value, strlen(value)));
	return *out_key && *out_value ? 1 : -ENOMEM;
}

int d9__scrub_pair(struct d9__scrub *scrub, const char *key, size_t key_len, const char *value, size_t value_len,
		   char **out_key, char **out_value)
{
	char *own_key = strndup(key, key_len), *own_value = strndup(value, value_len);
	int made = -ENOMEM;

	*out_key = *out_value = NULL;
	if (own_key && own_value)
		made = make_pair(scrub, own_key, own_value, out_key, out_value);
	free(own_key);
	free(own_value);
	if (made == 1 && (answer(scrub, "%s=%s", *out_key, *out_value) ||
			  keep(scrub, D9__SCRUB_METADATA, scrub->text, strlen(scrub->text))))
		made = -ENOMEM;
	if (made == 1)
		return 1;
	free(*out_key);
	free(*out_value);
	*out_key = *out_value = NULL;
	return made;
}

/* ---- definitions ---- */

static int name_type(struct d9__scrub *scrub, const struct d9_schema *schema)
{
	const char *known;
	bool prefix;

	for (size_t i = 0; schema->kind != D9_EVENT_CUSTOM && (known = d9__catalogue_name(i, &prefix)) != NULL; i++) {
		uint32_t number;
		size_t len = strlen(known);

		if (!prefix && !strcmp(schema->name, known))
			return keep(scrub, D9__SCRUB_TYPES, known, len) ? -ENOMEM : answer(scrub, "%s", known);
		if (!prefix || !begins(schema->name, known))
			continue;
		if (d9__texts_number(&scrub->texts, schema->name + len, strlen(schema->name + len), &number))
			return -ENOMEM;
		return answer(scrub, "%sspan-%" PRIu32, known, number + 1);
	}
	return stand_in(scrub, "event", schema->name, strlen(schema->name));
}

static int name_field(struct d9__scrub *scrub, const struct d9_schema *schema, uint32_t i)
{
	const char *field = schema->fields[i].name;

	if (d9__scrub_keeps_name(schema, i))
		return answer(scrub, "%s", field);
	return stand_in(scrub, "field", field, strlen(field));
}

/* Room for |len| bytes of the frame behind |at|; NULL: out of memory. */
static uint8_t *room(struct d9__scrub *scrub, size_t at, size_t len)
{
	return d9__array_reserve(scrub->frame, &scrub->frame_max, at, len) ? scrub->frame + at
									   : NULL;
}

/* |text| with its length, as definitions have it. */
static int put_name(struct d9__scrub *scrub, size_t *at, const char *text, size_t behind)
{
	size_t len = strlen(text);
	uint8_t *p = room(scrub, *at, 2 + len + behind);

	if (!p)
		return -ENOMEM;
	d9__wire_put_bytes(d9__wire_put_u16(p, (uint16_t)len), text, len);
	*at += 2 + len;
	return 0;
}

int d9__scrub_definition(struct d9__scrub *scrub, const struct d9_schema *schema, uint16_t type_id, const uint8_t **out,
			 size_t *len)
{
	size_t at = 3;
	uint8_t *p = room(scrub, 0, at);
	int err = p ? name_type(scrub, schema) : -ENOMEM;

	if (!err) {
		*p = D9__WIRE_SCHEMA;
		d9__wire_put_u16(p + 1, type_id);
		err = put_name(scrub, &at, scrub->text, 3);
	}
	if (!err) {
		scrub->frame[at] = schema->has_timestamp;
		d9__wire_put_u16(scrub->frame + at + 1, (uint16_t)schema->n_fields);
		at += 3;
	}
	for (uint32_t i = 0; !err && i < schema->n_fields; i++) {
		err = name_field(scrub, schema, i);
		if (!err)
			err = put_name(scrub, &at, scrub->text, 1);
		if (!err)
			scrub->frame[at++] = (uint8_t)(schema->fields[i].type | (schema->fields[i].optional ? D9__WIRE_OPTIONAL : 0));
	}
	*out = scrub->frame;
	*len = at;
	return err;
}

static int put_annotation(struct d9__scrub *scrub, size_t *at, const struct d9__annotation_definition *annotation)
{
	size_t value_len = strlen(annotation->value);
	uint8_t *p = room(scrub, *at, 2);
	int err = p ? 0 : -ENOMEM;

	if (!err) {
		d9__wire_put_u16(p, (uint16_t)annotation->field);
		*at += 2;
		err = put_name(scrub, at, annotation->key, 4 + value_len);
	}
	if (!err) {
		d9__wire_put_text(scrub->frame + *at, annotation->value, value_len);
		*at += 4 + value_len;
	}
	return err;
}

int d9__scrub_annotations(struct d9__scrub *scrub, const struct d9_schema *schema, uint16_t type_id, const uint8_t **out,
			  size_t *len)
{
	size_t at, head;
	uint16_t n = 0;
	uint8_t *p = room(scrub, 0, 1 + D9__VARINT_MAX + 2);
	int err = p ? 0 : -ENOMEM;

	*len = 0;
	if (err)
		return err;
	*p = D9__WIRE_ANNOTATIONS;
	head = (size_t)(d9__varint_put(p + 1, type_id) - p);
	at = head + 2;
	for (uint32_t a = 0; !err && a < schema->n_annotations && n < UINT16_MAX; a++)
		if (d9__scrub_is_vocabulary(&schema->annotations[a])) {
			err = put_annotation(scrub, &at, &schema->annotations[a]);
			n++;
		}
	d9__wire_put_u16(scrub->frame + head, n);
	*out = scrub->frame;
	*len = n ? at : 0;
	return err;
}

/* ---- what has left ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The numbers of texts are not used any more. */
const char *d9__scrub_kept(struct d9__scrub *scrub, enum d9__scrub_kept what, size_t i)
{
	for (size_t k = 0; !scrub->sorted && k < D9__SCRUB_KEPT; k++)
		if (scrub->kept[k].n)
			qsort(scrub->kept[k].items, scrub->kept[k].n, sizeof(char *), compare);
	scrub->sorted = true;
	return i < scrub->kept[what].n ? scrub->kept[what].items[i] : NULL;
}

void d9__scrub_stand_ins(const struct d9__scrub *scrub, size_t *texts, size_t *addresses)
{
	*texts = scrub->texts.n;
	*addresses = scrub->n_addresses;
}
