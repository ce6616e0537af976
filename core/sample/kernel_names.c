/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/heap.h"
#include "base/sort.h"
#include "base/time.h"
#include "record/flush.h"
#include "ring/emit_inl.h"
#include "ring/names.h"
#include "sample/kernel_names.h"
#include "segment/metadata.h"

#define FLIGHT_NS   (10 * D9__SECOND_NS) /* the ring keeps no more for sure */
#define BETWEEN_MAX (60 * D9__SECOND_NS)
#define BITS	    13
#define PLACES	    (1u << BITS)
#define FULL	    (PLACES / 2) /* more addresses stay without names */
#define LONGEST	    512		 /* of a line */

/* An address that was met. */
struct met {
	uint64_t pc;	/* 0: free */
	uint64_t epoch; /* in which its row was told last, + 1; 0: never */
	uint32_t name;	/* handle */
	bool looked_up, known;
};

static struct {
	struct met *met; /* PLACES, by hash; NULL: nothing was met yet */
	uint32_t n, pending;
	uint64_t due_ns, between_ns;
} self;

/* ---- kallsyms ---- */

/* Count the addresses below |start| among |n| ascending |addresses|. */
static size_t below(const uint64_t *addresses, size_t n, uint64_t start)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addresses[middle] < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Behind the hexadecimal digits at |p|, whose value is |out|.  sscanf() would take longer than the kernel does to write them. */
static const char *take_hex(const char *p, uint64_t *out)
{
	for (*out = 0;; p++) {
		unsigned digit = *p >= '0' && *p <= '9' ? (unsigned)(*p - '0') : (unsigned)(*p - 'a') + 10;

		if (digit > 15)
			return p;
		*out = *out << 4 | digit;
	}
}

/* "ffffffff81000000 T _text", "ffffffffc0000000 t f\t[module]".  True if it has an address. */
static bool take_line(const char *line, const uint64_t *addresses, size_t n, struct d9__kernel_symbol *out)
{
	char name[D9__KERNEL_NAME_LEN] = "", module[D9__KERNEL_NAME_LEN] = "";
	uint64_t start;
	const char *type = take_hex(line, &start) + 1;
	size_t first;

	if (!start || type[-1] != ' ' || !*type)
		return false;
	first = strchr("tTwW", *type) ? below(addresses, n, start) : n;
	/* Of those that are not below, the first; others get it in the end, if they have nothing nearer. */
	if (first < n && out[first].start <= start && sscanf(type + 1, "%95s %95s", name, module) >= 1) {
		out[first].start = start;
		snprintf(out[first].name, sizeof(out[first].name), "%.63s%s%.28s", name, module[0] ? " " : "", module);
	}
	return true;
}

/* Give each address the symbol of the one before, unless it has a nearer one. */
static void spread(size_t n, struct d9__kernel_symbol *out)
{
	for (size_t i = 1; i < n; i++)
		if (out[i].start < out[i - 1].start)
			out[i] = out[i - 1];
}

int d9__kallsyms_find(int fd, const uint64_t *addresses, size_t n, struct d9__kernel_symbol *out)
{
	char buf[16384 + 1];
	size_t kept = 0;
	bool any = false;
	ssize_t got;

	memset(out, 0, n * sizeof(*out));
	while ((got = read(fd, buf + kept, sizeof(buf) - 1 - kept)) > 0) {
		char *line = buf, *end;

		kept += (size_t)got;
		buf[kept] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			any |= take_line(line, addresses, n, out);
		}
		kept = strlen(line);
		if (kept > LONGEST)
			kept = 0; /* no line of a kernel's */
		memmove(buf, line, kept);
	}
	if (got < 0)
		return -errno;
	spread(n, out);
	return any ? 0 : -EPERM;
}

/* ---- rows ---- */

/* Changes where what was told may not be found beside what is written next. */
static uint64_t epoch(uint64_t ns)
{
	return d9__flush.flight ? ns / FLIGHT_NS + 1
				: atomic_load_explicit(&d9__flush.counters.sealed, memory_order_relaxed) + 1;
}

static void tell(struct d9__slot *own, struct met *met, uint64_t ns)
{
	const uint32_t handles[] = { met->name, d9__name_intern("kernel", strlen("kernel")) };
	uint32_t ids[2];
	uint8_t *p = d9__emit_begin_named(own, D9__EVENT_SYMBOL, ns, 4 * D9__VARINT_MAX + 8, handles, ids, 2);

	if (!p)
		return;
	p = d9__varint_put(p, met->pc);
	p = d9__varint_put(p, 0);
	p = d9__wire_put_u32(p, ids[0]);
	p = d9__varint_put(p, 0);
	p = d9__wire_put_u32(p, ids[1]);
	d9__emit_end(own, d9__varint_put(p, 0));
	met->epoch = epoch(ns);
}

/* The place of |pc|, which may be free. */
static struct met *place_of(uint64_t pc)
{
	uint32_t i = (uint32_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - BITS));

	while (self.met[i].pc && self.met[i].pc != pc)
		i = (i + 1) % PLACES;
	return &self.met[i];
}

void d9__kernel_names_met(struct d9__slot *own, uint64_t pc, uint64_t ns)
{
	struct met *met;

	if (!self.met && !(self.met = d9__calloc(PLACES, sizeof(*self.met))))
		return;
	met = place_of(pc);
	if (met->known && met->epoch != epoch(ns))
		tell(own, met, ns);
	if (met->pc || self.n == FULL || !pc)
		return;
	met->pc = pc;
	self.n++;
	if (!self.pending++ && !self.due_ns)
		self.due_ns = ns + D9__SECOND_NS;
}

/* ---- looking up ---- */

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* They are looked up once: what cannot be read now will not be readable soon. */
static size_t list_pending(uint64_t *addresses)
{
	size_t n = 0;

	for (uint32_t i = 0; i < PLACES; i++) {
		if (!self.met[i].pc || self.met[i].looked_up)
			continue;
		self.met[i].looked_up = true;
		addresses[n++] = self.met[i].pc;
	}
	self.pending = 0;
	d9__sort(addresses, n, sizeof(*addresses), compare);
	return n;
}

static void take(struct d9__slot *own, uint64_t pc, const struct d9__kernel_symbol *symbol, uint64_t now_ns)
{
	struct met *met = place_of(pc);

	met->known = symbol->start != 0;
	if (!met->known)
		return;
	met->name = d9__name_intern(symbol->name, strlen(symbol->name));
	tell(own, met, now_ns);
}

static void say(int err)
{
	char text[128];

	if (err == -EPERM)
		snprintf(text, sizeof(text),
			 "off: /proc/kallsyms hides its addresses; it takes sysctl kernel.kptr_restrict=0, "
			 "or CAP_SYSLOG");
	else
		snprintf(text, sizeof(text), "off: /proc/kallsyms: %s", d9_strerror(err));
	d9__metadata_set("source.kernel_names", err ? text : "on");
}

static int look_up(struct d9__slot *own, uint64_t *addresses, struct d9__kernel_symbol *symbols, uint64_t now_ns)
{
	size_t n = list_pending(addresses);
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : d9__kallsyms_find(fd, addresses, n, symbols);

	if (fd >= 0)
		close(fd);
	for (size_t i = 0; i < n && !err; i++)
		take(own, addresses[i], &symbols[i], now_ns);
	return err;
}

void d9__kernel_names_look(struct d9__slot *own, uint64_t now_ns, bool last)
{
	struct d9__kernel_symbol *symbols;
	uint64_t *addresses;

	if (!self.pending || (now_ns < self.due_ns && !last))
		return;
	addresses = d9__calloc(self.pending, sizeof(*addresses));
	symbols = d9__calloc(self.pending, sizeof(*symbols));
	if (addresses && symbols)
		say(look_up(own, addresses, symbols, now_ns));
	d9__free(addresses);
	d9__free(symbols);
	self.between_ns = self.between_ns ? 2 * self.between_ns : 2 * D9__SECOND_NS;
	if (self.between_ns > BETWEEN_MAX)
		self.between_ns = BETWEEN_MAX;
	self.due_ns = now_ns + self.between_ns;
}

void d9__kernel_names_renew(void)
{
	d9__free(self.met);
	d9__kernel_names_forget();
}

void d9__kernel_names_forget(void)
{
	memset(&self, 0, sizeof(self));
}
