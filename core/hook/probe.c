/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hook/probe.h"
#include "record/sandbox.h"

/* ---- reads that cannot fault ---- */

int d9__probe_copy(void *to, const void *from, size_t len)
{
	struct iovec local = { to, len }, remote = { (void *)(uintptr_t)from, len };
	int saved_errno = errno, err = 0;
	ssize_t n;

	if (d9__sandbox_is_shut())
		return -EPERM;
	n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	if (n < 0)
		err = -errno;
	else if ((size_t)n < len)
		err = -EFAULT;
	errno = saved_errno;
	return err;
}

size_t d9__probe_window(const void *object)
{
	size_t size = malloc_usable_size((void *)(uintptr_t)object);

	return size >= D9__PROBE_WINDOW_MIN && size <= D9__PROBE_WINDOW_MAX ? size : 0;
}

size_t d9__probe_readable(const void *object, size_t max)
{
	uintptr_t page = getauxval(AT_PAGESZ), addr = (uintptr_t)object;
	size_t len = 0;

	while (len < max) {
		size_t step = page - (addr + len) % page;
		char byte;

		if (d9__probe_copy(&byte, (const void *)(addr + len), 1) != 0)
			break;
		len += step;
	}
	return len < max ? len : max;
}

/* ---- candidates ---- */

static bool is_candidate(const struct d9__probe *probe, size_t i)
{
	return probe->candidates[i / 64] >> (i % 64) & 1;
}

static void drop_candidate(struct d9__probe *probe, size_t i)
{
	probe->candidates[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

void d9__probe_init(struct d9__probe *probe, const void *object, size_t window, size_t unit)
{
	if (window > D9__PROBE_WINDOW_MAX)
		window = D9__PROBE_WINDOW_MAX;
	*probe = (struct d9__probe){ .object = object, .window = window, .unit = unit };
	if (!object || window < unit || (unit != 4 && unit != 8)) {
		probe->err = -EINVAL;
		return;
	}
	for (size_t i = 0; (i + 1) * unit <= window; i++)
		probe->candidates[i / 64] |= UINT64_C(1) << (i % 64);
}

void d9__probe_keep_if(struct d9__probe *probe,
		       bool (*keep)(const uint8_t *at, size_t len, void *arg), void *arg)
{
	if (!probe->err)
		probe->err = d9__probe_copy(probe->copy, probe->object, probe->window);
	if (probe->err)
		return;
	for (size_t i = 0; (i + 1) * probe->unit <= probe->window; i++) {
		size_t offset = i * probe->unit;

		if (is_candidate(probe, i) &&
		    !keep(probe->copy + offset, probe->window - offset, arg))
			drop_candidate(probe, i);
	}
}

struct bytes {
	const void *bytes;
	size_t len;
};

static bool equals(const uint8_t *at, size_t len, void *arg)
{
	const struct bytes *wanted = arg;

	return len >= wanted->len && memcmp(at, wanted->bytes, wanted->len) == 0;
}

static bool differs(const uint8_t *at, size_t len, void *arg)
{
	const struct bytes *wanted = arg;

	return len >= wanted->len && memcmp(at, wanted->bytes, wanted->len) != 0;
}

void d9__probe_keep_word(struct d9__probe *probe, uintptr_t value)
{
	d9__probe_keep_words(probe, &value, 1);
}

void d9__probe_drop_word(struct d9__probe *probe, uintptr_t value)
{
	struct bytes unwanted = { &value, sizeof(value) };

	d9__probe_keep_if(probe, differs, &unwanted);
}

void d9__probe_keep_words(struct d9__probe *probe, const uintptr_t *values, size_t n)
{
	struct bytes wanted = { values, n * sizeof(*values) };

	d9__probe_keep_if(probe, equals, &wanted);
}

void d9__probe_keep_ints(struct d9__probe *probe, const int *values, size_t n)
{
	struct bytes wanted = { values, n * sizeof(*values) };

	d9__probe_keep_if(probe, equals, &wanted);
}

/* ---- pointer to an array of pointers ---- */

#define ARRAY_MAX 16 /* elements compared */

struct pointer_array {
	void *const *elements;
	unsigned n;
};

static bool points_at_array(const uint8_t *at, size_t len, void *arg)
{
	const struct pointer_array *wanted = arg;
	struct {
		const void *elements;
		unsigned count;
	} header;
	void *elements[ARRAY_MAX];
	const void *target;

	if (len < sizeof(target))
		return false;
	memcpy(&target, at, sizeof(target));
	if (!target || (uintptr_t)target % sizeof(void *) != 0 ||
	    d9__probe_copy(&header, target, sizeof(header)) != 0 || header.count != wanted->n)
		return false;
	return d9__probe_copy(elements, header.elements, wanted->n * sizeof(*elements)) == 0 &&
	       memcmp(elements, wanted->elements, wanted->n * sizeof(*elements)) == 0;
}

void d9__probe_keep_pointer_array(struct d9__probe *probe, void *const *elements, unsigned n)
{
	struct pointer_array wanted = { elements, n };

	if (n == 0 || n > ARRAY_MAX)
		probe->err = -EINVAL;
	d9__probe_keep_if(probe, points_at_array, &wanted);
}

/* ---- result ---- */

int d9__probe_result(const struct d9__probe *probe)
{
	int offset = -ENOENT;

	if (probe->err)
		return probe->err;
	for (size_t i = 0; (i + 1) * probe->unit <= probe->window; i++) {
		if (!is_candidate(probe, i))
			continue;
		if (offset >= 0)
			return -ENOTUNIQ;
		offset = (int)(i * probe->unit);
	}
	return offset;
}
