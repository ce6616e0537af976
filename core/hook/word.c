/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hook/word.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook/got.h"
#include "hook/patch_lock.h"
#include "record/sandbox.h"

/* An atomic "add nothing" by the kernel. */
enum d9__word_access d9__word_access(uintptr_t *word)
{
	uint32_t key = 0;
	int op = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);

	if (syscall(SYS_futex, &key, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, word, op) >= 0)
		return D9__WORD_WRITABLE;
	return errno == EFAULT ? D9__WORD_READ_ONLY : D9__WORD_UNKNOWN;
}

/* ---- the permissions of a page, from the kernel's list ---- */

struct list {
	int fd;
	size_t at, n;
	char bytes[1024];
};

static int next_byte(struct list *list)
{
	if (list->at == list->n) {
		ssize_t n = read(list->fd, list->bytes, sizeof(list->bytes));

		list->at = 0;
		list->n = n > 0 ? (size_t)n : 0;
	}
	return list->at < list->n ? (unsigned char)list->bytes[list->at++] : -1;
}

/* Reads a hexadecimal number; returns the byte behind it. */
static int next_number(struct list *list, uintptr_t *out)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	int byte;

	*out = 0;
	while ((byte = next_byte(list)) > 0 && (digit = strchr(digits, byte)))
		*out = *out << 4 | (uintptr_t)(digit - digits);
	return byte;
}

/* One line: `low-high rwxp ...`.  False: that was the last. */
static bool next_line(struct list *list, uintptr_t *low, uintptr_t *high, int *prot)
{
	int byte;

	if (next_number(list, low) != '-' || next_number(list, high) != ' ')
		return false;
	*prot = next_byte(list) == 'r' ? PROT_READ : 0;
	*prot |= next_byte(list) == 'w' ? PROT_WRITE : 0;
	*prot |= next_byte(list) == 'x' ? PROT_EXEC : 0;
	while ((byte = next_byte(list)) >= 0 && byte != '\n')
		continue;
	return true;
}

/* Of the page that holds |addr|; -1 if the kernel does not tell. */
static int permissions_of(uintptr_t addr)
{
	struct list list = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	uintptr_t low, high;
	int prot, found = -1;

	if (list.fd < 0)
		return -1;
	while (found < 0 && next_line(&list, &low, &high, &prot)) {
		if (addr >= low && addr < high)
			found = prot;
	}
	close(list.fd);
	return found;
}

/* ---- storing ---- */

static int store_protected(uintptr_t *word, uintptr_t value)
{
	uintptr_t page = getauxval(AT_PAGESZ), low = (uintptr_t)word & ~(page - 1);
	int prot = permissions_of((uintptr_t)word);

	if (prot < 0 || d9__got_protect((void *)low, page, prot | PROT_WRITE))
		return -EPERM;
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	if (!(prot & PROT_WRITE))
		d9__got_protect((void *)low, page, prot);
	return 0;
}

int d9__word_store(uintptr_t *word, uintptr_t value, bool may_protect)
{
	int saved = errno, err = 0;

	if (d9__sandbox_is_shut())
		return -EPERM;
	if (d9__word_access(word) == D9__WORD_WRITABLE) {
		__atomic_store_n(word, value, __ATOMIC_RELEASE);
	} else if (may_protect) {
		d9__patch_lock();
		err = store_protected(word, value);
		d9__patch_unlock();
	} else {
		err = -EPERM;
	}
	errno = saved;
	return err;
}
