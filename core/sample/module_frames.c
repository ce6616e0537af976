/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "sample/eh_frame.h"
#include "sample/module_frames.h"

#define SECTION_MAX ((size_t)64 << 20) /* longer ones are cut: their rows would be over any budget */

/* In libraries of distributions .eh_frame is 5 to 8 times as long. */
#define SECTION_PER_HEADER 6

struct walk {
	struct d9__frames_list *list;
	d9__frames_wanted_fn wanted;
	void *arg;
	bool failed;
};

/* What may be read from |address| on: up to the end of the file's part of its segment. */
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
	uintptr_t header;
	size_t readable;

	if (!ph)
		return 0;
	header = info->dlpi_addr + ph->p_vaddr;
	readable = readable_from(info, header);
	if (readable > ph->p_memsz)
		readable = ph->p_memsz;
	module->key.header_size = ph->p_memsz;
	module->address = d9__eh_frame_find((const uint8_t *)header, readable, header);
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
static void take_hash(struct d9__module_frames *module, size_t readable)
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)module->address;
	size_t len = d9__eh_frame_length(bytes, readable);
	uint64_t id[] = { hash_of(bytes, len, 1), hash_of(bytes, len, 2), len };

	static_assert(sizeof(id) <= sizeof(module->key.id), "the hash fits where build-ids do");
	module->key.is_hash = 1;
	module->key.id_len = sizeof(id);
	memcpy(module->key.id, id, sizeof(id));
}

static bool take_copy(struct d9__module_frames *module, size_t readable)
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)module->address;

	module->len = d9__eh_frame_length(bytes, readable);
	/* One byte more: an empty section has a copy, too. */
	module->copy = malloc(module->len + 1);
	if (module->copy)
		memcpy(module->copy, bytes, module->len);
	return module->copy != NULL;
}

static struct d9__module_frames *add_module(struct d9__frames_list *list)
{
	if (list->n == list->capacity) {
		size_t more = list->capacity ? list->capacity * 2 : 32;
		struct d9__module_frames *grown =
			reallocarray(list->module, more, sizeof(*grown));

		if (!grown)
			return NULL;
		list->module = grown;
		list->capacity = more;
	}
	memset(&list->module[list->n], 0, sizeof(*list->module));
	return &list->module[list->n++];
}

static bool take_module(struct walk *walk, const struct dl_phdr_info *info,
			const struct d9__module *described)
{
	struct d9__module_frames *module = add_module(walk->list);
	size_t readable;

	if (!module)
		return false;
	module->low = described->start;
	module->high = described->end;
	module->key.size = module->high - module->low;
	module->key.id_len = described->build_id_len;
	memcpy(module->key.id, described->build_id, described->build_id_len);
	readable = find_section(info, module);
	if (readable && !described->build_id_len)
		take_hash(module, readable);
	if (!readable)
		module->address = 0;
	return !readable ||
	       !walk->wanted(walk->arg, &module->key, module->key.header_size * SECTION_PER_HEADER) ||
	       take_copy(module, readable);
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct d9__module described = { 0 };
	struct walk *walk = arg;

	(void)size;
	walk->list->adds = info->dlpi_adds;
	walk->list->subs = info->dlpi_subs;
	d9__module_describe(&described, info);
	if (described.start < described.end)
		walk->failed = !take_module(walk, info, &described);
	return walk->failed;
}

static int compare_counters(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct d9__frames_list *list = arg;

	(void)size;
	return info->dlpi_adds == list->adds && info->dlpi_subs == list->subs ? 1 : 2;
}

bool d9__frames_changed(const struct d9__frames_list *list)
{
	return d9__modules_walk(compare_counters, (void *)(uintptr_t)list) != 1;
}

static void forget_modules(struct d9__frames_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		d9__frames_drop_copy(&list->module[i]);
	list->n = 0;
}

int d9__frames_list(struct d9__frames_list *list, d9__frames_wanted_fn wanted, void *arg)
{
	struct walk walk = { .list = list, .wanted = wanted, .arg = arg };

	forget_modules(list);
	d9__modules_walk(visit, &walk);
	if (walk.failed)
		forget_modules(list);
	return walk.failed ? -ENOMEM : 0;
}

void d9__frames_drop_copy(struct d9__module_frames *module)
{
	free(module->copy);
	module->copy = NULL;
	module->len = 0;
}

void d9__frames_list_release(struct d9__frames_list *list)
{
	forget_modules(list);
	free(list->module);
	*list = (struct d9__frames_list){ 0 };
}
