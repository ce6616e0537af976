/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/own_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/sandbox.h"

static _Atomic(bool) refused; /* process_vm_readv(), by a filter */
static _Atomic(bool) trusted;

void d9__own_memory_trust(bool trust)
{
	atomic_store_explicit(&trusted, trust, memory_order_relaxed);
}

/* Open the file at each read, because then no descriptor of it has to be kept. */
static ssize_t read_by_file(uintptr_t address, void *out, size_t len)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, out, len, (off_t)address);

	if (fd >= 0)
		close(fd);
	return n;
}

static ssize_t read_by_call(uintptr_t address, void *out, size_t len)
{
	struct iovec to = { out, len }, from = { (void *)address, len };
	ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		atomic_store_explicit(&refused, true, memory_order_relaxed);
	return n;
}

/* A short answer may be the end of a page that was there. */
static size_t read_all(uintptr_t address, void *out, size_t len)
{
	size_t got = 0;

	while (got < len) {
		bool by_call = !atomic_load_explicit(&refused, memory_order_relaxed);
		ssize_t n = by_call ? read_by_call(address + got, (char *)out + got, len - got) :
				      read_by_file(address + got, (char *)out + got, len - got);

		if (n <= 0 && (!by_call || !atomic_load_explicit(&refused, memory_order_relaxed)))
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	return got;
}

size_t d9__own_memory_read(uintptr_t address, void *out, size_t len)
{
	int saved = errno;
	size_t n = len;

	if (d9__sandbox_is_shut() || atomic_load_explicit(&trusted, memory_order_relaxed))
		memcpy(out, (const void *)address, len);
	else
		n = read_all(address, out, len);
	errno = saved;
	return n;
}

const struct dl_phdr_info *d9__own_headers_read(struct d9__own_headers *copy, const struct dl_phdr_info *info)
{
	size_t n = info->dlpi_phnum < D9__OWN_HEADERS_MAX ? info->dlpi_phnum : D9__OWN_HEADERS_MAX;
	size_t len = n * sizeof(copy->headers[0]);

	if (d9__own_memory_read((uintptr_t)info->dlpi_phdr, copy->headers, len) < len)
		return NULL;
	copy->info = *info;
	copy->info.dlpi_phdr = copy->headers;
	copy->info.dlpi_phnum = (ElfW(Half))n;
	return &copy->info;
}
