/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/own_memory.h"

#include "base/heap.h"
#include "sample/eh_frame.h"
#include "sample/module_frames.h"

#define SECTION_MAX ((size_t)64 << 20) /* longer ones are cut: their rows would be over any budget */

#define HEADER_BYTES 32 /* more than what leads to the section takes */
#define COPY_BYTES   ((size_t)64 << 10) /* at first */

/* In libraries of distributions .eh_frame is 5 to 8 times as long. */
#define SECTION_PER_HEADER 6

struct walk {
	struct d9__frames_list *list;
	d9__frames_wanted_fn wanted;
	void *arg;
	bool failed;
};

/* The bytes that may be read from |address| on: up to the end of the file's part of its segment. */
static size_t readable_from(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_R) && address >= start &&
		    address - start < ph->p_filesz)
			return ph->p_filesz - (address - start);
	}
	return 0;
}

static const ElfW(Phdr) *find_header(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			return &info->dlpi_phdr[i];
	return NULL;
}

/* Where the section begins, and how much of it may be read: 0 if there is none. */
static size_t find_section(const struct dl_phdr_info *info, struct d9__module_frames *module)
{
	const ElfW(Phdr) *ph = find_header(info);
	uint8_t head[HEADER_BYTES];
	uintptr_t header;
	size_t readable;

	if (!ph)
		return 0;
	header = info->dlpi_addr + ph->p_vaddr;
	readable = readable_from(info, header);
	if (readable > ph->p_memsz)
		readable = ph->p_memsz;
	module->key.header_size = ph->p_memsz;
	readable = d9__own_memory_read(header, head, readable < sizeof(head) ? readable : sizeof(head));
	module->address = d9__eh_frame_find(head, readable, header);
	readable = readable_from(info, module->address);
	return readable < SECTION_MAX ? readable : SECTION_MAX;
}

static uint64_t hash_of(const uint8_t *bytes, size_t len, uint64_t hash)
{
	uint64_t word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	for (; len; bytes++, len--)
		hash = (hash ^ *bytes) * UINT64_C(0x100000001b3);
	return hash;
}

/* The section is what tells modules without a build-id apart. */
static void take_hash(struct d9__module_frames *module)
{
	const uint8_t *bytes = module->copy;
	size_t len = module->len;
	uint64_t id[] = { hash_of(bytes, len, 1), hash_of(bytes, len, 2), len };

	static_assert(sizeof(id) <= sizeof(module->key.id), "the hash fits where build-ids do");
	module->key.is_hash = 1;
	module->key.id_len = sizeof(id);
	memcpy(module->key.id, id, sizeof(id));
}

/* Whether what follows the entries says that there are no more. */
static bool is_end(const uint8_t *bytes, size_t len)
{
	uint32_t word;

	if (len < sizeof(word))
		return false;
	memcpy(&word, bytes, sizeof(word));
	return word == 0 || word == UINT32_MAX;
}

/* Its entries tell where it ends, so it is read in pieces; a file that was cut has no entries behind the cut. */
static bool take_copy(struct d9__module_frames *module, size_t readable)
{
	size_t have = 0, size = COPY_BYTES;
	bool whole;

	do {
		size_t wanted = size < readable ? size : readable;
		/* One byte more: an empty section has a copy, too. */
		uint8_t *grown = d9__realloc(module->copy, wanted + 1);

		if (!grown)
			return false;
		module->copy = grown;
		have += d9__own_memory_read(module->address + have, grown + have, wanted - have);
		whole = have == wanted;
		module->len += d9__eh_frame_length(grown + module->len, have - module->len);
		size *= 2;
	} while (whole && have < readable && !is_end(module->copy + module->len, have - module->len));
	return true;
}

/* |array| of |n| elements of |size| bytes with room for another; NULL if there is none. */
static void *grown(void *array, size_t n, size_t *capacity, size_t size)
{
	size_t more = *capacity ? *capacity * 2 : 32;

	if (n < *capacity)
		return array;
	array = d9__reallocarray(array, more, size);
	if (array)
		*capacity = more;
	return array;
}

static struct d9__module_frames *add_module(struct d9__frames_list *list)
{
	struct d9__module_frames *modules =
		grown(list->module, list->n, &list->capacity, sizeof(*list->module));

	if (!modules)
		return NULL;
	list->module = modules;
	memset(&list->module[list->n], 0, sizeof(*list->module));
	return &list->module[list->n++];
}

/* Add the executable segments of the latest module. */
static bool take_code(struct d9__frames_list *list, const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + ph->p_vaddr;
		struct d9__module_code *code;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || !ph->p_memsz)
			continue;
		code = grown(list->code, list->n_code, &list->code_capacity, sizeof(*code));
		if (!code)
			return false;
		list->code = code;
		list->code[list->n_code++] = (struct d9__module_code){ low, low + ph->p_memsz, list->n - 1 };
	}
	return true;
}

static bool take_module(struct walk *walk, const struct dl_phdr_info *info,
			const struct d9__module *described)
{
	struct d9__module_frames *module = add_module(walk->list);
	size_t readable;

	if (!module || !take_code(walk->list, info))
		return false;
	module->low = described->start;
	module->high = described->end;
	module->key.size = module->high - module->low;
	module->key.id_len = described->build_id_len;
	memcpy(module->key.id, described->build_id, described->build_id_len);
	readable = find_section(info, module);
	if (!readable)
		module->address = 0;
	if (readable && !described->build_id_len) {
		if (!take_copy(module, readable))
			return false;
		take_hash(module);
	}
	if (!readable)
		return true;
	if (walk->wanted(walk->arg, &module->key, module->key.header_size * SECTION_PER_HEADER))
		return module->copy || take_copy(module, readable);
	d9__module_frames_drop_copy(module);
	return true;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct d9__module described = { 0 };
	struct d9__own_headers headers;
	const struct dl_phdr_info *readable = d9__own_headers_read(&headers, info);
	struct walk *walk = arg;

	(void)size;
	walk->list->adds = info->dlpi_adds;
	walk->list->subs = info->dlpi_subs;
	if (!readable)
		return 0;
	d9__module_describe(&described, readable);
	if (described.start < described.end)
		walk->failed = !take_module(walk, readable, &described);
	return walk->failed;
}

static int compare_counters(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct d9__frames_list *list = arg;

	(void)size;
	return info->dlpi_adds == list->adds && info->dlpi_subs == list->subs ? 1 : 2;
}

bool d9__module_frames_changed(const struct d9__frames_list *list)
{
	return d9__modules_walk(compare_counters, (void *)(uintptr_t)list) != 1;
}

static void forget_modules(struct d9__frames_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		d9__module_frames_drop_copy(&list->module[i]);
	list->n = list->n_code = 0;
}

int d9__module_frames_list(struct d9__frames_list *list, d9__frames_wanted_fn wanted, void *arg)
{
	struct walk walk = { .list = list, .wanted = wanted, .arg = arg };

	forget_modules(list);
	d9__modules_walk(visit, &walk);
	if (walk.failed)
		forget_modules(list);
	return walk.failed ? -ENOMEM : 0;
}

void d9__module_frames_drop_copy(struct d9__module_frames *module)
{
	d9__free(module->copy);
	module->copy = NULL;
	module->len = 0;
}

void d9__module_frames_list_release(struct d9__frames_list *list)
{
	forget_modules(list);
	d9__free(list->module);
	d9__free(list->code);
	*list = (struct d9__frames_list){ 0 };
}
