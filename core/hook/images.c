/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "hook/elf_module.h"
#include "hook/images.h"
#include "hook/patch_lock.h"
#include "segment/modules.h"

/* ---- which modules belong to the library ---- */

/* The patch lock keeps forks out.  Where the loader must not be asked, it shows nothing. */
static int walk(int (*each)(struct dl_phdr_info *info, size_t len, void *arg), void *arg)
{
	return d9__modules_may_walk() ? dl_iterate_phdr(each, arg) : 0;
}

struct refresh {
	struct d9__images *images;
	bool seen[D9__IMAGES_MAX];
};

static void publish_range(struct d9__image *image, uintptr_t low, uintptr_t high)
{
	/* release: pairs with the acquire of |high| in d9__images_contain() */
	atomic_store_explicit(&image->high, 0, memory_order_release);
	atomic_store_explicit(&image->low, low, memory_order_release);
	atomic_store_explicit(&image->high, high, memory_order_release);
}

static struct d9__image *find_image(struct d9__images *images, uintptr_t base, uintptr_t dynamic)
{
	unsigned n = atomic_load_explicit(&images->n, memory_order_relaxed);

	for (unsigned i = 0; i < n; i++) {
		if (images->image[i].base == base && images->image[i].dynamic == dynamic)
			return &images->image[i];
	}
	return NULL;
}

/* A place at the end keeps the loader's order; one of an unmapped module will do. */
static struct d9__image *add_image(struct d9__images *images)
{
	unsigned n = atomic_load_explicit(&images->n, memory_order_relaxed);

	if (n < D9__IMAGES_MAX) {
		/* release: pairs with the acquire in d9__images_contain(); the range is empty yet */
		atomic_store_explicit(&images->n, n + 1, memory_order_release);
		return &images->image[n];
	}
	for (unsigned i = 0; i < n; i++) {
		if (atomic_load_explicit(&images->image[i].high, memory_order_relaxed) == 0)
			return &images->image[i];
	}
	return NULL;
}

static int refresh_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct refresh *refresh = arg;
	struct d9__elf_module mod;
	struct d9__image *image;

	(void)len;
	if (!info->dlpi_name || !d9__elf_file_is(info->dlpi_name, refresh->images->names) ||
	    !d9__elf_module_init(&mod, info))
		return 0;
	image = find_image(refresh->images, mod.base, mod.dynamic);
	if (!image) {
		image = add_image(refresh->images);
		if (!image)
			return 0;
		image->base = mod.base;
		image->dynamic = mod.dynamic;
		image->handle = NULL;
		publish_range(image, mod.low, mod.high);
	}
	refresh->seen[image - refresh->images->image] = true;
	return 0;
}

static unsigned drop_unmapped(struct refresh *refresh)
{
	unsigned n = atomic_load_explicit(&refresh->images->n, memory_order_relaxed), n_mapped = 0;

	for (unsigned i = 0; i < n; i++) {
		struct d9__image *image = &refresh->images->image[i];

		if (refresh->seen[i]) {
			n_mapped++;
			continue;
		}
		atomic_store_explicit(&image->high, 0, memory_order_release);
		image->base = image->dynamic = UINTPTR_MAX;
	}
	return n_mapped;
}

/* ---- keep what was found ---- */

struct pin {
	uintptr_t base, dynamic;
	char path[PATH_MAX];
};

static int copy_path(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct pin *pin = arg;
	struct d9__elf_module mod;

	(void)len;
	if (info->dlpi_addr != pin->base || !d9__elf_module_init(&mod, info) ||
	    mod.dynamic != pin->dynamic || strlen(mod.path) >= sizeof(pin->path))
		return 0;
	strcpy(pin->path, mod.path);
	return 1;
}

/* The next image without a handle, its path copied: its module may go away any moment. */
static struct d9__image *next_unpinned(struct d9__images *images, unsigned *from, struct pin *pin)
{
	struct d9__image *found = NULL;

	d9__patch_lock();
	for (; !found && *from < atomic_load_explicit(&images->n, memory_order_relaxed); ++*from) {
		struct d9__image *image = &images->image[*from];

		if (image->handle || atomic_load_explicit(&image->high, memory_order_relaxed) == 0)
			continue;
		pin->base = image->base;
		pin->dynamic = image->dynamic;
		if (walk(copy_path, pin) == 1)
			found = image;
	}
	d9__patch_unlock();
	return found;
}

static void *open_pinned(const struct pin *pin)
{
	void *handle = dlopen(pin->path, RTLD_NOLOAD | RTLD_LAZY);
	struct link_map *map = NULL;

	if (handle && (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 ||
		       (uintptr_t)map->l_ld != pin->dynamic)) {
		dlclose(handle); /* another module of that path by now */
		handle = NULL;
	}
	return handle;
}

/* Not under our lock: dlopen() waits for a constructor that may be on its way to it. */
static void pin_images(struct d9__images *images)
{
	struct pin pin;
	struct d9__image *image;

	for (unsigned from = 0; (image = next_unpinned(images, &from, &pin)) != NULL;) {
		void *handle = open_pinned(&pin), *extra = handle;

		d9__patch_lock();
		if (handle && !image->handle && image->dynamic == pin.dynamic) {
			image->handle = handle;
			extra = NULL;
		}
		d9__patch_unlock();
		if (extra)
			dlclose(extra);
	}
}

static unsigned count_mapped(const struct d9__images *images)
{
	unsigned n = atomic_load_explicit(&images->n, memory_order_relaxed), n_mapped = 0;

	for (unsigned i = 0; i < n; i++)
		n_mapped += atomic_load_explicit(&images->image[i].high, memory_order_relaxed) != 0;
	return n_mapped;
}

unsigned d9__images_refresh(struct d9__images *images)
{
	int saved_errno = errno;
	struct refresh refresh = { .images = images };
	unsigned n_mapped;

	if (!d9__modules_may_walk())
		return count_mapped(images);
	d9__patch_lock();
	walk(refresh_module, &refresh);
	n_mapped = drop_unmapped(&refresh);
	d9__patch_unlock();
	if (n_mapped)
		pin_images(images);
	errno = saved_errno;
	return n_mapped;
}

/* ---- functions ---- */

struct search {
	struct d9__images *images;
	struct d9__image_symbol *symbols;
	size_t n;
};

static int search_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct search *search = arg;
	struct d9__elf_module mod;

	(void)len;
	if (!info->dlpi_name || !d9__elf_file_is(info->dlpi_name, search->images->names) ||
	    !d9__elf_module_init(&mod, info))
		return 0;
	/* The walk is in scope order: what an earlier image defines stays. */
	for (size_t i = 0; i < search->n; i++) {
		if (!search->symbols[i].address)
			search->symbols[i].address =
				d9__elf_module_define(&mod, search->symbols[i].name);
	}
	return 0;
}

void d9__images_resolve_all(struct d9__images *images, struct d9__image_symbol *symbols, size_t n)
{
	int saved_errno = errno;
	struct search search = { .images = images, .symbols = symbols, .n = n };

	for (size_t i = 0; i < n; i++) {
		void *found = images->scope_first ? dlsym(RTLD_DEFAULT, symbols[i].name) : NULL;

		symbols[i].in_scope = d9__images_contain(images, found);
		symbols[i].address = symbols[i].in_scope ? found : NULL;
	}
	d9__patch_lock();
	walk(search_module, &search);
	d9__patch_unlock();
	errno = saved_errno;
}

void *d9__images_resolve(struct d9__images *images, const char *name)
{
	struct d9__image_symbol symbol = { .name = name };

	d9__images_resolve_all(images, &symbol, 1);
	return symbol.address;
}

/* ---- modules by address ---- */

struct holder {
	uintptr_t addr;
	const char *name;
	struct d9__module_range range;
	bool found;
	void *definition;
};

static int is_holder(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct holder *holder = arg;
	struct d9__elf_module mod;

	(void)len;
	if (!d9__elf_module_init(&mod, info) || !d9__elf_module_holds(&mod, holder->addr))
		return 0;
	holder->found = true;
	holder->range = (struct d9__module_range){ mod.low, mod.high };
	if (holder->name)
		holder->definition = d9__elf_module_define(&mod, holder->name);
	return 1;
}

bool d9__module_range_of(const void *addr, struct d9__module_range *out)
{
#ifdef HAVE__DL_FIND_OBJECT
	struct dl_find_object object;

	/* Lock-free, where dl_iterate_phdr() takes the loader's lock. */
	if (_dl_find_object((void *)(uintptr_t)addr, &object) != 0)
		return false;
	out->low = (uintptr_t)object.dlfo_map_start;
	out->high = (uintptr_t)object.dlfo_map_end;
	return true;
#else
	struct holder holder = { .addr = (uintptr_t)addr };

	walk(is_holder, &holder);
	if (holder.found)
		*out = holder.range;
	return holder.found;
#endif
}

static int read_unloads(struct dl_phdr_info *info, size_t len, void *arg)
{
	(void)len;
	*(uint64_t *)arg = info->dlpi_subs;
	return 1;
}

uint64_t d9__module_unloads(void)
{
	uint64_t unloads = 0;

	d9__patch_lock();
	walk(read_unloads, &unloads);
	d9__patch_unlock();
	return unloads;
}

void *d9__module_definition(const void *addr, const char *name)
{
	struct holder holder = { .addr = (uintptr_t)addr, .name = name };

	d9__patch_lock();
	walk(is_holder, &holder);
	d9__patch_unlock();
	return holder.definition;
}

static int is_next_definition(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct holder *holder = arg;
	struct d9__elf_module mod;

	(void)len;
	if (!d9__elf_module_init(&mod, info))
		return 0;
	if (d9__elf_module_holds(&mod, holder->addr))
		holder->found = true;
	else if (holder->found)
		holder->definition = d9__elf_module_define(&mod, holder->name);
	return holder->definition != NULL;
}

void *d9__module_next_definition(const void *self, const char *name)
{
	struct holder holder = { .addr = (uintptr_t)self, .name = name };

	d9__patch_lock();
	walk(is_next_definition, &holder);
	d9__patch_unlock();
	return holder.definition;
}
