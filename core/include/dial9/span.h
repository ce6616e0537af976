/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: named pieces of the program's work, with a beginning, an end and fields. */

#ifndef DIAL9_SPAN_H
#define DIAL9_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/event.h>
#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A span is one piece of work: a request, a query, the parsing of a file.  It is created, entered
 * and left any number of times, on any threads, and closed.  While a thread is inside, the span is
 * busy; from its creation to its close it is otherwise idle.  A descriptor, one per place in the
 * program, says what such spans are called:
 *
 *	static const struct d9_field query_fields[] = {
 *		{ "table", D9_FIELD_POOLED_STRING, NULL, NULL },
 *		{ "rows", D9_FIELD_VARINT, NULL, NULL },
 *	};
 *	static struct d9_span_site query =
 *		D9_SPAN_SITE_WITH(D9_SPAN_INFO, "db", "query", query_fields);
 *
 *	struct d9_span span;
 *
 *	D9_SPAN_CREATE(&span, &query, D9_SPAN_CURRENT, "users");
 *	d9_span_enter(&span);        // in one callback
 *	d9_span_exit(&span);
 *	d9_span_enter(&span);        // in a later one
 *	D9_SPAN_SET(&span, 1, n_rows);
 *	d9_span_exit(&span);
 *	d9_span_close(&span);
 *
 * Work that lies in one block of code takes one line; the span ends where the block is left, by
 * whatever way, an exception included:
 *
 *	D9_SPAN_HERE(D9_SPAN_DEBUG, "db", "parse");
 *
 * Parents.  A span that was entered and not left on a thread is that thread's current span: the
 * innermost one that was entered in the callback that runs, or in one around it, or outside of all
 * callbacks.  What an earlier callback entered and did not leave is not current in a later one.  A
 * span is made with D9_SPAN_CURRENT, with the id of any other span, or with D9_SPAN_ROOT.  A
 * span that is not recorded is the parent of none.  Readers give children the fields of their parents.
 *
 * Rules for all functions here:
 * - They never fail the program: what cannot be recorded is dropped and counted.  errno is unchanged.
 * - Threads: any, before a recorder is started and after it is stopped as well.  Several may be
 *   inside one span at a time; the calls that create, set and close it must not run beside others.
 * - Async-signal-safe for descriptors that were used or registered before, with values that are no
 *   texts for pooled strings.  What a handler records inside the recorder itself is lost and counted.
 * - In a forked child, spans of before the fork are the parent's: nothing is recorded of them.
 * - Wrong order does no harm.  What is left without having been entered, entered, left or closed
 *   after its close, or closed while a thread is inside, is told in the trace as a SpanMisuseEvent.
 *   A span that is never closed ends with the trace.
 */

/** How important a span is; a filter leaves out what is above a level. */
enum d9_span_level {
	D9_SPAN_ERROR = 1,
	D9_SPAN_WARN = 2,
	D9_SPAN_INFO = 3,
	D9_SPAN_DEBUG = 4,
	D9_SPAN_TRACE = 5
};

#define D9_SPAN_FIELDS_MAX 16u
#define D9_SPAN_BYTES_MAX  256u /* of all values of one span, as they are encoded */

/** Parents of a new span, besides ids. */
#define D9_SPAN_ROOT	UINT64_C(0)
#define D9_SPAN_CURRENT UINT64_MAX

/**
 * Where spans are made: a static object, initialised with D9_SPAN_SITE() or D9_SPAN_SITE_WITH().
 * Memory that it points to must live as long as it does.  Members that start with d9__ are the recorder's.
 */
struct d9_span_site {
	const char *name;
	const char *target; /* the part of the program, for filters: "db", "net.http" */
	const char *file;
	uint32_t line;
	uint32_t level; /* enum d9_span_level */
	const struct d9_field *fields;
	size_t n_fields; /* at most D9_SPAN_FIELDS_MAX */
	const uint32_t *d9__on;
	void *d9__type;
};

/** Not to be touched: what a descriptor asks until it was used for the first time. */
extern D9_API uint32_t d9_span_unseen;

/** Initialise a struct d9_span_site without fields. */
#define D9_SPAN_SITE(level, target, name) \
	{ (name), (target), __FILE__, __LINE__, (level), NULL, 0, &d9_span_unseen, NULL }

/** The same with an array of fields; every field is optional. */
#define D9_SPAN_SITE_WITH(level, target, name, fields) \
	{ (name), (target), __FILE__, __LINE__, (level), (fields), \
	  sizeof(fields) / sizeof((fields)[0]), &d9_span_unseen, NULL }

/**
 * One span.  In the caller's memory, which need not be initialised, and must stay where it is from
 * d9_span_create() to d9_span_close().
 */
struct d9_span {
	uint64_t d9__opaque[54];
};

/** Whether spans of |site| are recorded now: one relaxed load. */
static inline bool d9_span_on(const struct d9_span_site *site)
{
	return __atomic_load_n(__atomic_load_n(&site->d9__on, __ATOMIC_RELAXED), __ATOMIC_RELAXED) != 0;
}

/** Make |span| one that is not recorded; every function does nothing with it.  Returns 0. */
static inline int d9_span_none(struct d9_span *span)
{
	span->d9__opaque[0] = 0;
	return 0;
}

/**
 * Create a span; usually through D9_SPAN_CREATE(), which asks first whether it is wanted.
 *
 * @param parent  D9_SPAN_CURRENT, D9_SPAN_ROOT or the id of a span
 * @param values  copied, in the order of the fields; texts are cut and other values left out where
 *                D9_SPAN_BYTES_MAX is reached
 * @param n       may be less than there are fields: the others have no value yet
 *
 * @return 0, also if the span is not recorded; or, with a span that is not recorded,
 *         -EINVAL  the values do not agree with the fields, or the descriptor is malformed
 *         -E2BIG   the descriptor's texts are longer than 700 bytes together
 *         -ENOSPC  over 1900 descriptors
 *         -ENOMEM
 *
 * Since: 0.1
 */
D9_API int d9_span_create(struct d9_span *span, struct d9_span_site *site, uint64_t parent,
			  const struct d9_arg *values, size_t n);

/**
 * Say that this thread is inside |span| from now on.
 *
 * Nests: of several enters on one thread the first and the last exit count.
 *
 * Since: 0.1
 */
D9_API void d9_span_enter(struct d9_span *span);

/** Say that this thread, which has entered |span|, has left it.  Since: 0.1 */
D9_API void d9_span_exit(struct d9_span *span);

/**
 * Say that the work is done.  Writes how long the span took and how much of that it was entered.  The
 * object may be used for another span afterwards.
 *
 * Since: 0.1
 */
D9_API void d9_span_close(struct d9_span *span);

/** d9_span_exit() and d9_span_close() at one moment.  NULL is allowed.  Since: 0.1 */
D9_API void d9_span_end(struct d9_span *span);

/**
 * Set the value of field number |field|, from 0; readers take the latest.
 *
 * @return 0, -EINVAL if there is no such field or it cannot hold that, -E2BIG if there is no room
 *
 * Since: 0.1
 */
D9_API int d9_span_set(struct d9_span *span, size_t field, struct d9_arg value);

/** The id of |span|, as a parent and in the trace; 0: it is not recorded, or closed. */
static inline uint64_t d9_span_id(const struct d9_span *span)
{
	return span->d9__opaque[0] >> 63 ? 0 : span->d9__opaque[0];
}

/** The id of this thread's current span, or 0.  Since: 0.1 */
D9_API uint64_t d9_span_current(void);

/**
 * Describe |site| to the recorder, as its first span would: before signal handlers use it.
 *
 * @return 0, or what d9_span_create() returns
 *
 * Not async-signal-safe.  Since: 0.1
 */
D9_API int d9_span_site_register(struct d9_span_site *site);

/**
 * Say which spans are recorded, from now on.
 *
 * A filter is a list of levels and of TARGET=LEVEL, separated by commas: "info,net=debug,net.tls=off".
 * Levels are off, error, warn, info, debug and trace; spans of a level and of those before it are
 * recorded.  TARGET stands for all targets that begin with it; the longest one decides, a level
 * without a target is for all others.  A recorder that is started takes the filter of its options,
 * "info" if they have none.
 *
 * @return 0, or -EINVAL if |filter| is none, or over 1023 bytes; then nothing changes
 *
 * Threads: any; takes a mutex.  Not async-signal-safe.  Since: 0.1
 */
D9_API int d9_span_filter(const char *filter);

/** Begin a span for a block of code.  The span, or NULL if it is not recorded. */
static inline struct d9_span *d9_span_begin(struct d9_span *span, struct d9_span_site *site,
					    const struct d9_arg *values, size_t n)
{
	if (d9_span_create(span, site, D9_SPAN_CURRENT, values, n) || !span->d9__opaque[0])
		return NULL;
	d9_span_enter(span);
	return span;
}

/** The end of a block, for __attribute__((cleanup)). */
static inline void d9_span_leave(struct d9_span **span)
{
	if (*span)
		d9_span_end(*span);
}

#define D9__SPAN_NAME(prefix)	    D9__SPAN_NAME_AT(prefix, __LINE__)
#define D9__SPAN_NAME_AT(prefix, at) D9__SPAN_JOIN(prefix, at)
#define D9__SPAN_JOIN(a, b)	    a##b

#ifdef __cplusplus
} /* extern "C" */

namespace dial9
{
/** A parent other than the current span: the id of a span, or D9_SPAN_ROOT. */
struct child_of {
	uint64_t id;
	explicit child_of(uint64_t parent) : id(parent) {}
};

/** A span that is closed where its object ends. */
class span
{
public:
	template <typename... A> explicit span(struct d9_span_site &site, const A &...values)
	{
		create(site, D9_SPAN_CURRENT, values...);
	}
	template <typename... A>
	span(child_of parent, struct d9_span_site &site, const A &...values)
	{
		create(site, parent.id, values...);
	}
	~span()
	{
		if (d9_span_id(&object))
			d9_span_close(&object);
	}
	span(const span &) = delete;
	span &operator=(const span &) = delete;

	void enter() { d9_span_enter(&object); }
	void exit() { d9_span_exit(&object); }
	void close() { d9_span_close(&object); }
	uint64_t id() const { return d9_span_id(&object); }
	template <typename T> int set(size_t field, const T &value)
	{
		return d9_span_set(&object, field, d9_arg_from(value));
	}

protected:
	struct d9_span object;

private:
	template <typename... A>
	void create(struct d9_span_site &site, uint64_t parent, const A &...values)
	{
		const struct d9_arg args[] = { d9_arg_from(values)..., d9_absent() };

		d9_span_none(&object);
		if (d9_span_on(&site))
			d9_span_create(&object, &site, parent, args, sizeof...(values));
	}
};

/** Inside a span from here to where this object ends. */
class entered
{
public:
	explicit entered(class span &of) : inside(of) { inside.enter(); }
	~entered() { inside.exit(); }
	entered(const entered &) = delete;
	entered &operator=(const entered &) = delete;

private:
	class span &inside;
};

/** A span for a block of code: created and entered here, left and closed where this object ends. */
class scope : public span
{
public:
	template <typename... A>
	explicit scope(struct d9_span_site &site, const A &...values) : span(site, values...)
	{
		if (object.d9__opaque[0])
			d9_span_enter(&object);
	}
	~scope()
	{
		if (d9_span_id(&object))
			d9_span_end(&object);
	}
};
} /* namespace dial9 */

template <typename... A>
inline int d9_span_create_args(struct d9_span *span, struct d9_span_site *site, uint64_t parent,
			       const A &...values)
{
	const struct d9_arg args[] = { d9_arg_from(values)..., d9_absent() };

	return d9_span_create(span, site, parent, args, sizeof...(values));
}

#define D9_SPAN_CREATE(span, site, parent, ...) \
	(d9_span_on(site) ? d9_span_create_args((span), (site), (parent), __VA_ARGS__) : d9_span_none(span))

#define D9_SPAN_SCOPE(site)	    ::dial9::scope D9__SPAN_NAME(d9__scope_)(*(site))
#define D9_SPAN_SCOPE_WITH(site, ...) ::dial9::scope D9__SPAN_NAME(d9__scope_)(*(site), __VA_ARGS__)

#else /* C */

/** Create a span with 1 to 16 values; for none, d9_span_create(span, site, parent, NULL, 0). */
#define D9_SPAN_CREATE(span, site, parent, ...) \
	(d9_span_on(site) ? d9_span_create((span), (site), (parent), \
					   (const struct d9_arg[]){ D9__ARGS(__VA_ARGS__) }, \
					   D9__COUNT(__VA_ARGS__)) : \
			    d9_span_none(span))

/**
 * A span from here to the end of the block, however that is left: by its end, break, continue,
 * return, goto, and with -fexceptions by cancellation.  A declaration: nothing may jump over it
 * into its block.
 */
#define D9_SPAN_SCOPE(site) D9__SPAN_SCOPE(site, NULL, 0)

/** The same with 1 to 16 values. */
#define D9_SPAN_SCOPE_WITH(site, ...) \
	D9__SPAN_SCOPE(site, ((const struct d9_arg[]){ D9__ARGS(__VA_ARGS__) }), D9__COUNT(__VA_ARGS__))

#define D9__SPAN_SCOPE(site, values, n) \
	struct d9_span D9__SPAN_NAME(d9__object_); \
	struct d9_span *D9__SPAN_NAME(d9__scope_) __attribute__((cleanup(d9_span_leave), unused)) = \
		d9_span_on(site) ? \
			d9_span_begin(&D9__SPAN_NAME(d9__object_), (site), (values), (n)) : NULL

#endif

/** D9_SPAN_SCOPE() with a descriptor of its own, without fields. */
#define D9_SPAN_HERE(level, target, name) \
	static struct d9_span_site D9__SPAN_NAME(d9__site_) = D9_SPAN_SITE(level, target, name); \
	D9_SPAN_SCOPE(&D9__SPAN_NAME(d9__site_))

/** d9_span_set() of a number, bool, text, or what the functions of <dial9/event.h> make. */
#define D9_SPAN_SET(span, field, value) d9_span_set((span), (field), D9_ARG(value))

#endif /* DIAL9_SPAN_H */
