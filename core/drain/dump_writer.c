/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "drain/dump_writer.h"

#include <stdint.h>
#include <sys/stat.h>

#include "ring/clock.h"

bool d9__dump_is_own(const struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	const struct d9__writer *own = maker->own;
	struct stat a, b;

	return !dump->dir[0] || (own->has_dir && !fstat(own->ns.parent_fd, &a) &&
				 !stat(dump->dir, &b) && a.st_dev == b.st_dev &&
				 a.st_ino == b.st_ino);
}

static void begin(struct d9__dump_writer *w, const struct d9__dump_maker *maker, struct d9__namespace *to)
{
	struct d9__writer *writer = &w->writer;

	d9__writer_init(writer, maker->options, maker->own->ns.boot_id, &w->counters);
	writer->ns = *to;
	*to = (struct d9__namespace){ .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 };
	writer->kind = D9_WRITER_SINGLE;
	writer->has_dir = true;
	d9__retention_release(&writer->ret);
	d9__retention_init(&writer->ret, UINT64_MAX, UINT64_MAX, UINT64_MAX);
}

int d9__dump_writer_open(struct d9__dump_writer *w, const struct d9__dump_maker *maker,
			 struct d9__namespace *to)
{
	begin(w, maker, to);
	return d9__namespace_scan(&w->writer.ns, &w->writer.ret);
}

int d9__dump_writer_open_beside(struct d9__dump_writer *w, const struct d9__dump_maker *maker)
{
	struct d9__namespace to;
	int err = d9__namespace_share(&to, &maker->own->ns);

	if (err)
		return err;
	begin(w, maker, &to);
	w->writer.ret.next_index = maker->own->ret.next_index++;
	return 0;
}

void d9__dump_writer_close(struct d9__dump_writer *w, const struct d9__dump_maker *maker)
{
	struct d9__writer_counters *all = maker->own->counters;

	if (w->writer.has_dir)
		d9__writer_close(&w->writer, d9__clock_mono_ns());
	atomic_fetch_add_explicit(&all->bytes_written,
				  atomic_load_explicit(&w->counters.bytes_written, memory_order_relaxed),
				  memory_order_relaxed);
}
