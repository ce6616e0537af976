/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own events: what happened, with typed fields, beside what its loops do. */

#ifndef DIAL9_EVENT_H
#define DIAL9_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/error.h>
#include <dial9/export.h>
#include <dial9/field_type.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An event type is a table of fields; emitting gives one argument per field:
 *
 *	static const struct d9_field request_fields[] = {
 *		{ "took", D9_FIELD_VARINT, "us", NULL },
 *		{ "path", D9_FIELD_POOLED_STRING, NULL, NULL },
 *		{ "error", D9_FIELD_STRING | D9_FIELD_OPTIONAL, NULL, NULL },
 *	};
 *	static struct d9_event_type request = D9_EVENT_TYPE("RequestDone", request_fields);
 *
 *	D9_EMIT(&request, took_us, "/index.html", d9_absent());
 *
 * Names of events and fields are free; a field called `worker_id` or `task_id` lets readers find
 * what was running.  Give an event its time by emitting it when it happens.
 *
 * D9_EMIT() takes numbers, bool, text, and what the functions below make.  A pointer to anything
 * else does not compile.  A wrong number of arguments, or one that its field cannot hold, is
 * -EINVAL.  Nothing is recorded then.
 *
 *	field type                        arguments
 *	VARINT U8 U16 U32                 any integer from 0 to what fits
 *	I64                               any integer that fits
 *	F64                               float, double
 *	BOOL                              bool; 0 and 1
 *	STRING                            text, d9_text(), a name; cut at 1024 bytes
 *	POOLED_STRING                     a name; text, which becomes one; cut at 1024 bytes
 *	BYTES                             d9_bytes()
 *	STACK POOLED_STACK                d9_stack()
 *	STRING_MAP LIST MAP               d9_string_map(), d9_list(), d9_map()
 *	any of them | D9_FIELD_OPTIONAL   also d9_absent(), one byte in the trace
 */

#define D9_FIELD_OPTIONAL 0x80u

/** One field of an event type; constant data. */
struct d9_field {
	const char *name;
	unsigned type;    /* enum d9_field_type, maybe | D9_FIELD_OPTIONAL */
	const char *unit; /* "ns", "us", "ms", "s", "bytes", or NULL */
	const char *kind; /* "gauge", "counter", "updown-counter", or NULL */
};

/**
 * An event type.  Static, one per name.  What it points to must last as long as the process; |id|
 * belongs to the recorder.
 */
struct d9_event_type {
	const char *name;
	const struct d9_field *fields;
	size_t n_fields;
	uint32_t id;
};

/** Initialise a struct d9_event_type from its name and an array of fields. */
#define D9_EVENT_TYPE(name, fields) \
	{ (name), (fields), sizeof(fields) / sizeof((fields)[0]), 0 }

/** An interned text: cheap to emit any number of times. */
struct d9_name {
	uint32_t handle;
};

/** Which member of a struct d9_arg holds. */
enum d9_arg_kind {
	D9_ARG_ABSENT = 0,
	D9_ARG_U64,
	D9_ARG_I64,
	D9_ARG_F64,
	D9_ARG_BOOL,
	D9_ARG_TEXT,
	D9_ARG_BYTES,
	D9_ARG_STACK,
	D9_ARG_NAME,
	D9_ARG_LIST,
	D9_ARG_MAP,
	D9_ARG_STRING_MAP
};

/** One argument.  Points to what the caller gave; nothing is kept after the call. */
struct d9_arg {
	enum d9_arg_kind kind;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		bool boolean;
		struct d9_name name;
		struct {
			const void *data; /* bytes, addresses, struct d9_arg, or const char * */
			size_t n;         /* how many of them; pairs in maps */
		} of;
	} u;
};

/**
 * Emit an event of |type| with |n| arguments; usually through D9_EMIT().
 *
 * @param type  registered by the first call
 *
 * @return 0, also if recording is off, or, with nothing recorded,
 *         -EINVAL  the arguments do not agree with the table, or the table is malformed
 *         -E2BIG   longer than 32 KiB
 *         -EAGAIN  no room at the moment; counted as lost
 *         -ENOSPC  over 3800 event types
 *         -ENOMEM
 *
 * Threads: any, inside and outside of loops.  In a signal handler only for a type that
 * d9_event_type_register() has seen, without pooled strings.  Keeps errno.
 * Since: 0.1
 */
D9_API int d9_event_emit(struct d9_event_type *type, const struct d9_arg *args, size_t n);

/**
 * Whether events are recorded now; D9_EMIT() asks it before it looks at its arguments.
 * Async-signal-safe.  Since: 0.1
 */
D9_API bool d9_event_on(void);

/**
 * Check |type| and give it an id, as the first emission would.
 *
 * @return 0, -EINVAL, -E2BIG if its description is longer than 8 KiB, -ENOSPC, -ENOMEM
 *
 * Threads: any; takes a mutex.  Since: 0.1
 */
D9_API int d9_event_type_register(struct d9_event_type *type);

#define D9_ANNOTATIONS_MAX 32

/** A fact about a field, beside its unit and kind, for programs that read traces. */
struct d9_annotation {
	const char *field; /* its name */
	const char *key;
	const char *value;
};

/**
 * Register |type|, as d9_event_type_register() does, with facts about its fields; before the first
 * event of it is emitted: those that were emitted before go without.  Keys and values are free text;
 * programs that read the trace pass over keys that they do not know, and the viewer knows
 *
 *	threshold, warning, critical	a number in the field's unit: a line in its chart
 *	partition			any value: the chart has a line for each value of this field
 *
 *	static const struct d9_annotation limits[] = {
 *		{ "depth", "warning", "100" },
 *		{ "depth", "critical", "1000" },
 *	};
 *
 *	d9_event_type_annotate(&queue, limits, 2);
 *
 * @param annotations  copied; may be NULL if |n| is 0
 *
 * @return as d9_event_type_register(); -EINVAL also if there is no field of that name, -E2BIG also
 *         above D9_ANNOTATIONS_MAX
 *
 * Threads: any; takes a mutex.  Since: 0.1
 */
D9_API int d9_event_type_annotate(struct d9_event_type *type,
				  const struct d9_annotation *annotations, size_t n);

/**
 * Intern |text|, for pooled strings that are emitted often.  Works before a recorder is started.
 *
 * @param text  copied; cut at 1024 bytes; NULL counts as empty
 *
 * @return its name; that of "(other)" after some 65 000 different texts
 *
 * Threads: any; takes a mutex.  Since: 0.1
 */
D9_API struct d9_name d9_name_intern(const char *text);

/* ---- arguments ---- */

/** No value, for an optional field. */
static inline struct d9_arg d9_absent(void)
{
	struct d9_arg arg;

	arg.kind = D9_ARG_ABSENT;
	arg.u.u64 = 0;
	return arg;
}

static inline struct d9_arg d9_arg_u64(unsigned long long value)
{
	struct d9_arg arg;

	arg.kind = D9_ARG_U64;
	arg.u.u64 = value;
	return arg;
}

static inline struct d9_arg d9_arg_i64(long long value)
{
	struct d9_arg arg;

	arg.kind = D9_ARG_I64;
	arg.u.i64 = value;
	return arg;
}

static inline struct d9_arg d9_arg_f64(double value)
{
	struct d9_arg arg;

	arg.kind = D9_ARG_F64;
	arg.u.f64 = value;
	return arg;
}

static inline struct d9_arg d9_arg_bool(bool value)
{
	struct d9_arg arg;

	arg.kind = D9_ARG_BOOL;
	arg.u.boolean = value;
	return arg;
}

static inline struct d9_arg d9_arg_name(struct d9_name name)
{
	struct d9_arg arg;

	arg.kind = D9_ARG_NAME;
	arg.u.name = name;
	return arg;
}

static inline struct d9_arg d9_arg_self(struct d9_arg arg)
{
	return arg;
}

static inline struct d9_arg d9_arg_of_kind(enum d9_arg_kind kind, const void *data, size_t n)
{
	struct d9_arg arg;

	arg.kind = kind;
	arg.u.of.data = data;
	arg.u.of.n = n;
	return arg;
}

/** Text of |len| bytes, UTF-8.  NULL is allowed if |len| is 0. */
static inline struct d9_arg d9_text(const char *text, size_t len)
{
	return d9_arg_of_kind(D9_ARG_TEXT, text, len);
}

/** A terminated text; NULL counts as absent. */
static inline struct d9_arg d9_arg_text(const char *text)
{
	size_t len = 0;

	if (!text)
		return d9_absent();
	while (text[len])
		len++;
	return d9_text(text, len);
}

/** Raw bytes. */
static inline struct d9_arg d9_bytes(const void *bytes, size_t len)
{
	return d9_arg_of_kind(D9_ARG_BYTES, bytes, len);
}

/** Code addresses, innermost frame first. */
static inline struct d9_arg d9_stack(const uint64_t *addresses, size_t n)
{
	return d9_arg_of_kind(D9_ARG_STACK, addresses, n);
}

/** |n| values of any kinds; lists may hold lists. */
static inline struct d9_arg d9_list(const struct d9_arg *items, size_t n)
{
	return d9_arg_of_kind(D9_ARG_LIST, items, n);
}

/** |n| pairs: key, value, key, value, ... */
static inline struct d9_arg d9_map(const struct d9_arg *pairs, size_t n)
{
	return d9_arg_of_kind(D9_ARG_MAP, pairs, n);
}

/** |n| pairs of texts: key, value, key, value, ... */
static inline struct d9_arg d9_string_map(const char *const *pairs, size_t n)
{
	return d9_arg_of_kind(D9_ARG_STRING_MAP, pairs, n);
}

#ifdef __cplusplus
} /* extern "C" */

/* C++: an overload per type.  Pointers would turn into bool: they are deleted instead. */
inline struct d9_arg d9_arg_from(bool v) { return d9_arg_bool(v); }
inline struct d9_arg d9_arg_from(signed char v) { return d9_arg_i64(v); }
inline struct d9_arg d9_arg_from(unsigned char v) { return d9_arg_u64(v); }
inline struct d9_arg d9_arg_from(short v) { return d9_arg_i64(v); }
inline struct d9_arg d9_arg_from(unsigned short v) { return d9_arg_u64(v); }
inline struct d9_arg d9_arg_from(int v) { return d9_arg_i64(v); }
inline struct d9_arg d9_arg_from(unsigned v) { return d9_arg_u64(v); }
inline struct d9_arg d9_arg_from(long v) { return d9_arg_i64(v); }
inline struct d9_arg d9_arg_from(unsigned long v) { return d9_arg_u64(v); }
inline struct d9_arg d9_arg_from(long long v) { return d9_arg_i64(v); }
inline struct d9_arg d9_arg_from(unsigned long long v) { return d9_arg_u64(v); }
inline struct d9_arg d9_arg_from(float v) { return d9_arg_f64(static_cast<double>(v)); }
inline struct d9_arg d9_arg_from(double v) { return d9_arg_f64(v); }
inline struct d9_arg d9_arg_from(const char *v) { return d9_arg_text(v); }
inline struct d9_arg d9_arg_from(char *v) { return d9_arg_text(v); }
inline struct d9_arg d9_arg_from(struct d9_name v) { return d9_arg_name(v); }
inline struct d9_arg d9_arg_from(const struct d9_arg &v) { return v; }
template <typename T> struct d9_arg d9_arg_from(T *) = delete;

template <typename... A> inline int d9_emit_args(struct d9_event_type *type, const A &...values)
{
	const struct d9_arg args[] = { d9_arg_from(values)..., d9_absent() };

	return d9_event_emit(type, args, sizeof...(values));
}

/** Make a struct d9_arg of a value, for lists and maps. */
#define D9_ARG(value) d9_arg_from(value)

#define D9_EMIT(type, ...) (d9_event_on() ? d9_emit_args((type), __VA_ARGS__) : 0)

#else /* C */

/* clang-format off */
/** Make a struct d9_arg of a value, for lists and maps. */
#define D9_ARG(value)                                                                             \
	_Generic((value),                                                                         \
		bool: d9_arg_bool,                                                                \
		char: d9_arg_i64, signed char: d9_arg_i64, unsigned char: d9_arg_u64,             \
		short: d9_arg_i64, unsigned short: d9_arg_u64,                                    \
		int: d9_arg_i64, unsigned: d9_arg_u64,                                            \
		long: d9_arg_i64, unsigned long: d9_arg_u64,                                      \
		long long: d9_arg_i64, unsigned long long: d9_arg_u64,                            \
		float: d9_arg_f64, double: d9_arg_f64,                                            \
		char *: d9_arg_text, const char *: d9_arg_text,                                   \
		struct d9_name: d9_arg_name, struct d9_arg: d9_arg_self)(value)
/* clang-format on */

/** Emit an event with 1 to 16 arguments; for none, d9_event_emit(type, NULL, 0). */
#define D9_EMIT(type, ...) \
	(d9_event_on() ? d9_event_emit((type), \
				       (const struct d9_arg[]){ D9__ARGS(__VA_ARGS__) }, \
				       D9__COUNT(__VA_ARGS__)) : 0)

/* The number of arguments, and D9_ARG() of each. */
#define D9__COUNT(...) D9__17TH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define D9__17TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, ...) q
#define D9__JOIN(a, b)  D9__JOIN_(a, b)
#define D9__JOIN_(a, b) a##b
#define D9__ARGS(...)   D9__JOIN(D9__ARGS_, D9__COUNT(__VA_ARGS__))(__VA_ARGS__)
#define D9__ARGS_1(a)       D9_ARG(a)
#define D9__ARGS_2(a, ...)  D9_ARG(a), D9__ARGS_1(__VA_ARGS__)
#define D9__ARGS_3(a, ...)  D9_ARG(a), D9__ARGS_2(__VA_ARGS__)
#define D9__ARGS_4(a, ...)  D9_ARG(a), D9__ARGS_3(__VA_ARGS__)
#define D9__ARGS_5(a, ...)  D9_ARG(a), D9__ARGS_4(__VA_ARGS__)
#define D9__ARGS_6(a, ...)  D9_ARG(a), D9__ARGS_5(__VA_ARGS__)
#define D9__ARGS_7(a, ...)  D9_ARG(a), D9__ARGS_6(__VA_ARGS__)
#define D9__ARGS_8(a, ...)  D9_ARG(a), D9__ARGS_7(__VA_ARGS__)
#define D9__ARGS_9(a, ...)  D9_ARG(a), D9__ARGS_8(__VA_ARGS__)
#define D9__ARGS_10(a, ...) D9_ARG(a), D9__ARGS_9(__VA_ARGS__)
#define D9__ARGS_11(a, ...) D9_ARG(a), D9__ARGS_10(__VA_ARGS__)
#define D9__ARGS_12(a, ...) D9_ARG(a), D9__ARGS_11(__VA_ARGS__)
#define D9__ARGS_13(a, ...) D9_ARG(a), D9__ARGS_12(__VA_ARGS__)
#define D9__ARGS_14(a, ...) D9_ARG(a), D9__ARGS_13(__VA_ARGS__)
#define D9__ARGS_15(a, ...) D9_ARG(a), D9__ARGS_14(__VA_ARGS__)
#define D9__ARGS_16(a, ...) D9_ARG(a), D9__ARGS_15(__VA_ARGS__)

#endif

#endif /* DIAL9_EVENT_H */
