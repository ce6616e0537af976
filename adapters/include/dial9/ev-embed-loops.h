/* SPDX-License-Identifier: Apache-2.0 */
/* Part of <dial9/ev-embed.h>: loops are attached, run, wait, and end. */

#ifndef DIAL9_EV_EMBED_LOOPS_H
#define DIAL9_EV_EMBED_LOOPS_H

#ifndef DIAL9_EV_EMBED_H
#error "include <dial9/ev-embed.h>"
#endif

/* ---- runs ---- */

/* Code of the program ran before, and will run behind. */
#define D9__EV_UNBATCHED(call)                                                                     \
	do {                                                                                       \
		d9__ev_self.batched = 0;                                                           \
		call;                                                                              \
		d9__ev_self.batched = 0;                                                           \
	} while (0)

D9__EV_API(void, ev_invoke_pending, (EV_P))
{
	D9__EV_UNBATCHED(d9__real_ev_invoke_pending(EV_A));
}

D9__EV_API(void, ev_invoke, (EV_P_ void *w, int revents))
{
	d9__ev_self.direct = w;
	D9__EV_UNBATCHED(d9__real_ev_invoke(EV_A_ w, revents));
	d9__ev_self.direct = NULL;
}

struct d9__ev_run {
	struct d9_loop_run run;
	struct d9__ev_record *running;
	const void *callback;
};

static void d9__ev_leave(struct d9__ev_run *run)
{
	d9_loop_leave(&run->run);
	d9__ev_self.running = run->running;
	d9__ev_self.callback = run->callback;
	d9__ev_self.batched = 0;
}

static int d9__ev_run_recorded(EV_P_ struct d9__ev_record *record, int flags)
{
	__attribute__((cleanup(d9__ev_leave))) struct d9__ev_run run;

	d9_loop_enter(record->loop, &run.run);
	/* Without a callback the rest is what a longjmp() has left. */
	run.running = d9_poll_task() ? d9__ev_self.running : NULL;
	run.callback = run.running ? d9__ev_self.callback : NULL;
	d9__ev_self.running = NULL;
	d9__ev_self.callback = d9__ev_self.direct = NULL;
	d9__ev_self.batched = 0;
	return d9__real_ev_run(EV_A_ flags);
}

D9__EV_API(int, ev_run, (EV_P_ int flags))
{
	struct d9__ev_record *record = d9__ev_record_of(D9__EV_LOOP);

	return record ? d9__ev_run_recorded(EV_A_ record, flags) : d9__real_ev_run(EV_A_ flags);
}

/* libev says here how long it is willing to wait; the backend's errno is for itself. */
static void d9__ev_poll_backend(EV_P_ ev_tstamp timeout)
{
	struct d9__ev_record *record = d9__ev_record_of(D9__EV_LOOP);

	d9_loop_park(record->loop, timeout > 0. ? (int64_t)(timeout * 1e9) : 0);
	record->backend_poll(EV_A_ timeout);
	d9_loop_unpark(record->loop);
	d9__ev_self.batched = 0;
}

/* ---- loops come and go ---- */

static struct d9__ev_record *d9__ev_take_record(void)
{
	static const char taken = 0;
	struct d9__ev_record *record = __atomic_load_n(&d9__ev_records, __ATOMIC_ACQUIRE);

	for (; record; record = record->next) {
		const void *none = NULL;

		if (__atomic_compare_exchange_n(&record->address, &none, (const void *)&taken, 0,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return record;
	}
	record = (struct d9__ev_record *)calloc(1, sizeof(*record));
	if (!record)
		return NULL;
	record->address = &taken;
	record->watchers = (struct d9__ev_watcher *)calloc(D9__EV_WATCHERS, sizeof(*record->watchers));
	if (!record->watchers) {
		free(record);
		return NULL;
	}
	record->next = __atomic_load_n(&d9__ev_records, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&d9__ev_records, &record->next, record, 1,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		continue;
	return record;
}

static void d9__ev_retire(struct d9__ev_record *record)
{
	for (int i = 0; i < D9__EV_CELLS; i++) {
		if (__atomic_load_n(&d9__ev_cells[i].watcher, __ATOMIC_ACQUIRE) &&
		    d9__ev_cells[i].record == record)
			d9__ev_drop_cell(&d9__ev_cells[i]);
	}
	for (unsigned i = 0; i < D9__EV_WATCHERS; i++)
		record->watchers[i].watcher = NULL;
	d9_loop_unregister(record->loop);
	__atomic_store_n(&record->address, (const void *)NULL, __ATOMIC_RELEASE);
}

/* Its cleanup watchers still run.  Another thread may then make a loop at this address. */
D9__EV_API(void, ev_loop_destroy, (EV_P))
{
	struct d9__ev_record *record = d9__ev_record_of(D9__EV_LOOP);
	char text[24];

	d9__real_ev_loop_destroy(EV_A);
	if (!record)
		return;
	if (d9__ev_self.running == record)
		d9__ev_self.running = NULL;
	snprintf(text, sizeof(text), "%lu", d9__ev_internal);
	d9_library_describe("libev", "internal_callbacks", text);
	d9__ev_retire(record);
}

static void d9__ev_describe(EV_P)
{
	char text[64];

	snprintf(text, sizeof(text), "%d.%d", ev_version_major(), ev_version_minor());
	d9_library_describe("libev", "version", text);
	snprintf(text, sizeof(text), "%#x", ev_backend(EV_A));
	d9_library_describe("libev", "backend", text);
	d9_library_describe("libev", "capabilities",
			    d9__ev_ns(1.) ? "mode=embedded,poll=full,park=on,wake=full,spawn=on,"
					    "depth=on,lateness=on,task_end=partial"
					  : "mode=embedded,poll=full,park=on,wake=full,spawn=on,"
					    "depth=on,lateness=off,task_end=partial");
	d9_library_describe("libev", "degraded",
			    d9__ev_ns(1.) ? "" : "libev does not count in CLOCK_MONOTONIC");
}

static int d9__ev_attach(EV_P_ const char *name)
{
	struct d9__ev_record *record;
	int err;

	if (d9__ev_record_of(D9__EV_LOOP))
		return 0;
	record = d9__ev_take_record();
	if (!record)
		return -ENOMEM;
	/* libev may use the address again before the old loop is forgotten: ours it does not. */
	err = d9_loop_register(D9_LIBRARY_LIBEV, record, name, &record->loop);
	if (err) {
		__atomic_store_n(&record->address, (const void *)NULL, __ATOMIC_RELEASE);
		return err;
	}
	record->backend_poll = D9__EV_MEMBER(backend_poll);
	__atomic_store_n(&record->address, (const void *)D9__EV_LOOP, __ATOMIC_RELEASE);
	D9__EV_MEMBER(backend_poll) = d9__ev_poll_backend;
	d9__ev_describe(EV_A);
	return 0;
}

#ifdef EV_API_STATIC
#define D9__EV_ATTACH_DECL static __attribute__((unused))
#else
#define D9__EV_ATTACH_DECL
#endif

/* As <dial9/libev.h> tells. */
D9__EV_ATTACH_DECL int d9_ev_embed_attach_named(struct ev_loop *address, const char *name);
D9__EV_ATTACH_DECL int d9_ev_embed_attach(struct ev_loop *address);

D9__EV_ATTACH_DECL int d9_ev_embed_attach_named(struct ev_loop *address, const char *name)
{
	int saved = errno, err = -EINVAL;
	D9__EV_TAKE(address);

#if EV_MULTIPLICITY
	if (loop && ev_backend(loop))
#else
	if (ev_backend())
#endif
		err = d9__ev_attach(EV_A_ name);
	errno = saved;
	return err;
}

D9__EV_ATTACH_DECL int d9_ev_embed_attach(struct ev_loop *address)
{
	return d9_ev_embed_attach_named(address, NULL);
}

#endif /* DIAL9_EV_EMBED_LOOPS_H */
