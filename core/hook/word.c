/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hook/word.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/maps.h"
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

/* Permissions of the page that holds |addr|; -1 if the kernel does not tell. */
static int permissions_of(uintptr_t addr)
{
	struct d9__mapping mapping;
	struct d9__maps maps;
	int found = -1;

	if (!d9__maps_open(&maps))
		return -1;
	while (found < 0 && d9__maps_next(&maps, &mapping))
		if (addr >= mapping.low && addr < mapping.high)
			found = mapping.prot;
	d9__maps_close(&maps);
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
