/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/trigger_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "base/utf8.h"

#define MINUTE_NS (60 * D9__SECOND_NS)
#define HOUR_NS	  (60 * MINUTE_NS)

/* The object of a condition decides what `where` may ask for. */
enum of { PROCESS, LOOPS, CALLBACK };

static const struct kind {
	const char *name;
	enum d9__trigger_unit unit;
	enum of of;
} kinds[D9__TRIGGER_KINDS] = {
	[D9__TRIGGER_CALL] = { "call", D9__TRIGGER_NO_UNIT, PROCESS },
	[D9__TRIGGER_POLL] = { "poll", D9__TRIGGER_NS, CALLBACK },
	[D9__TRIGGER_LATENESS] = { "lateness", D9__TRIGGER_NS, CALLBACK },
	[D9__TRIGGER_BLOCKED] = { "blocked", D9__TRIGGER_NS, CALLBACK },
	[D9__TRIGGER_QUEUE] = { "queue", D9__TRIGGER_COUNT, LOOPS },
	[D9__TRIGGER_WAKES] = { "wakes", D9__TRIGGER_PER_SECOND, LOOPS },
	[D9__TRIGGER_POLLS] = { "polls", D9__TRIGGER_PER_SECOND, LOOPS },
	[D9__TRIGGER_LOSS] = { "loss", D9__TRIGGER_COUNT, PROCESS },
};

static const char *const subjects[] = { "loop", "callback", "thread" };

const char *d9__trigger_kind_name(enum d9__trigger_kind kind)
{
	return kinds[kind].name;
}

enum d9__trigger_unit d9__trigger_unit(enum d9__trigger_kind kind)
{
	return kinds[kind].unit;
}

/* ---- words ---- */

struct word {
	const char *at;
	size_t len;
};

struct parser {
	const char *begin, *at, *end;
	const char *text_end; /* of the text that was taken last */
	struct word word; /* the next one; of length 0 at the end */
	struct d9__trigger *out;
	struct d9__trigger_fault *fault;
	bool names; /* callbacks may have them */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_sign(char c)
{
	return c == ':' || c == '>' || c == '~';
}

/* Bytes that go on with a character are none of their own. */
static uint32_t characters(const char *from, const char *to)
{
	uint32_t n = 0;

	for (; from < to; from++)
		n += ((unsigned char)*from & 0xc0) != 0x80;
	return n;
}

/* False. */
__attribute__((format(printf, 3, 4))) static bool fail_at(struct parser *p, const char *at, const char *fmt, ...)
{
	va_list args;

	p->fault->column = characters(p->begin, at) + 1;
	va_start(args, fmt);
	vsnprintf(p->fault->text, sizeof(p->fault->text), fmt, args);
	va_end(args);
	return false;
}

/* To the next word.  A sign is a word of its own. */
static void step(struct parser *p)
{
	while (p->at < p->end && is_blank(*p->at))
		p->at++;
	p->word.at = p->at;
	if (p->at < p->end && is_sign(*p->at))
		p->at++;
	else
		while (p->at < p->end && !is_blank(*p->at) && !is_sign(*p->at))
			p->at++;
	p->word.len = (size_t)(p->at - p->word.at);
}

static bool is(const struct parser *p, const char *text)
{
	return p->word.len == strlen(text) && !memcmp(p->word.at, text, p->word.len);
}

/* Words as long as a message can hold. */
static int shown(const struct parser *p)
{
	return p->word.len > 40 ? 40 : (int)p->word.len;
}

/* False: the word "is no time, such as 50ms", or "a time" is missing there. */
static bool refuse(struct parser *p, const char *says, const char *missing)
{
	if (!p->word.len)
		return fail_at(p, p->word.at, "%s is missing", missing);
	return fail_at(p, p->word.at, "'%.*s' %s", shown(p), p->word.at, says);
}

static bool expect(struct parser *p, const char *text, const char *behind)
{
	if (!is(p, text))
		return fail_at(p, p->word.at, "%s wants '%s' behind it", behind, text);
	step(p);
	return true;
}

/* A text that may hold signs, and in double quotes blanks: up to the next blank. */
static bool take_text(struct parser *p, char *out, size_t size, const char *what)
{
	const char *from = p->word.at, *to, *quote = NULL;
	size_t len = 0;

	for (to = from; to < p->end && (quote || !is_blank(*to)); to++) {
		if (*to == '"')
			quote = quote ? NULL : to;
		else if (len + 1 >= size)
			return fail_at(p, from, "%s is longer than %zu bytes", what, size - 1);
		else
			out[len++] = *to;
	}
	if (quote)
		return fail_at(p, quote, "the quotes are not closed");
	if (!len)
		return fail_at(p, from, "%s is missing", what);
	out[len] = '\0';
	p->at = p->text_end = to;
	step(p);
	return true;
}

/* ---- numbers ---- */

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 }, { "us", D9__US_NS }, { "ms", D9__MS_NS }, { "s", D9__SECOND_NS }, { "m", MINUTE_NS }, { "h", HOUR_NS },
};

/* The digits at |*at|.  False: there are none, or too many. */
static bool take_digits(const char **at, const char *end, uint64_t *out)
{
	const char *from = *at;

	*out = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(**at - '0'), out))
			return false;
	return *at > from;
}

/* "1.5s": the part behind the point, in ns. */
static bool take_fraction(const char **at, const char *end, uint64_t unit_ns, uint64_t *out)
{
	uint64_t tenth = unit_ns;

	*out = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		*out += (uint64_t)(**at - '0') * (tenth /= 10);
	return true;
}

static bool take_time(struct parser *p, uint64_t *out)
{
	const char *at = p->word.at, *end = at + p->word.len, *point, *unit;
	uint64_t fraction = 0;

	if (!take_digits(&at, end, out))
		return refuse(p, "is no time, such as 50ms", "a time, such as 50ms,");
	point = at < end && *at == '.' ? at + 1 : NULL;
	for (unit = at; unit < end && (*unit == '.' || (*unit >= '0' && *unit <= '9')); unit++)
		;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if ((size_t)(end - unit) != strlen(units[i].name) || memcmp(unit, units[i].name, (size_t)(end - unit)))
			continue;
		if ((point && (!take_fraction(&point, unit, units[i].ns, &fraction) || point != unit)) || (!point && at != unit) ||
		    __builtin_mul_overflow(*out, units[i].ns, out) || __builtin_add_overflow(*out, fraction, out))
			break;
		step(p);
		return true;
	}
	return refuse(p, unit == end ? "wants a unit: ns, us, ms, s, m or h" : "is no time, such as 50ms", "");
}

/* A number, and |behind| it "/h", "/s" or "". */
static bool take_number(struct parser *p, const char *behind, uint64_t *out)
{
	const char *at = p->word.at, *end = at + p->word.len;

	if (!take_digits(&at, end, out))
		return refuse(p, "is no number", "a number");
	if ((size_t)(end - at) != strlen(behind) || memcmp(at, behind, (size_t)(end - at)))
		return *behind ? fail_at(p, p->word.at, "'%.*s' wants to be a number with %s", shown(p), p->word.at, behind) :
				 refuse(p, "is no number", "");
	step(p);
	return true;
}

/* ---- clauses ---- */

static bool take_threshold(struct parser *p, const struct kind *kind)
{
	if (kind->unit == D9__TRIGGER_NO_UNIT)
		return true;
	if (!expect(p, ">", kind->name))
		return false;
	if (kind->unit == D9__TRIGGER_NS)
		return take_time(p, &p->out->threshold);
	return take_number(p, kind->unit == D9__TRIGGER_PER_SECOND ? "/s" : "", &p->out->threshold);
}

static bool take_condition(struct parser *p)
{
	const struct kind *kind = NULL;
	const char *from = p->word.at;
	struct d9__trigger *out = p->out;

	for (int i = 0; i < D9__TRIGGER_KINDS && !kind; i++)
		if (is(p, kinds[i].name)) {
			out->kind = (enum d9__trigger_kind)i;
			kind = &kinds[i];
		}
	if (!kind)
		return refuse(p, "is no condition: poll, lateness, blocked, queue, wakes, polls, loss or call",
			      "a condition, such as poll > 50ms,");
	step(p);
	if (!take_threshold(p, kind))
		return false;
	if (!out->name[0]) {
		const char *to = p->word.at;

		while (to > from && is_blank(to[-1]))
			to--;
		snprintf(out->name, sizeof(out->name), "%.*s", (int)(to - from), from);
	}
	return true;
}

/*
 * The recorder knows callbacks by module and offset, and those of loop libraries by texts with a blank, as some names in C++
 * have it.
 */
static bool can_match(struct parser *p, struct d9__trigger_match *match, const char *at)
{
	if (match->subject != D9__TRIGGER_CALLBACK || !match->glob[strspn(match->glob, "*?")])
		return true;
	match->is_name = p->names && !strstr(match->glob, "+0x");
	return match->is_name || strpbrk(match->glob, "+ ") ||
	       fail_at(p, at, "a callback is matched by module and offset, such as frobd+0x12*, not by name");
}

/* Take the addresses that the glob before it stands for. */
static bool take_resolved(struct parser *p, struct d9__trigger_match *match)
{
	struct d9__trigger *out = p->out;
	const char *from = p->word.at, *at;
	size_t used = out->n_resolved ? out->n_resolved : 1;

	step(p);
	at = p->word.at;
	if (match->subject != D9__TRIGGER_CALLBACK)
		return fail_at(p, from, "only callbacks are resolved");
	if (used >= sizeof(out->resolved) ||
	    !take_text(p, out->resolved + used, sizeof(out->resolved) - used, "what it stands for"))
		return used < sizeof(out->resolved) ? false : fail_at(p, at, "too much is resolved");
	if (!strstr(out->resolved + used, "+0x"))
		return fail_at(p, at, "what is resolved is module and offset, such as frobd+0x12a0");
	match->resolved = (uint16_t)used;
	match->cut_from = (uint16_t)(from - p->begin);
	match->cut_to = (uint16_t)(p->word.at - p->begin);
	out->n_resolved = (uint16_t)(used + strlen(out->resolved + used) + 1);
	return true;
}

static bool take_where(struct parser *p)
{
	struct d9__trigger_match *match = &p->out->matches[p->out->n_matches];
	const struct kind *kind = &kinds[p->out->kind];
	const char *at = p->word.at;
	int i;

	for (i = 0; i < 3 && !is(p, subjects[i]); i++)
		;
	if (i == 3)
		return fail_at(p, at, "where wants loop, callback or thread behind it");
	if (kind->of == PROCESS)
		return fail_at(p, at, "%s is of the whole process: there is no where", kind->name);
	if (kind->of == LOOPS && i != D9__TRIGGER_LOOP)
		return fail_at(p, at, "%s is of loops: where wants loop behind it", kind->name);
	if (p->out->n_matches == D9__TRIGGER_MATCHES)
		return fail_at(p, at, "more than %d wheres", D9__TRIGGER_MATCHES);
	step(p);
	match->subject = (enum d9__trigger_subject)i;
	p->out->n_matches++;
	if (!expect(p, "~", subjects[i]))
		return false;
	at = p->word.at;
	if (!take_text(p, match->glob, sizeof(match->glob), "what it is to match"))
		return false;
	match->from = (uint16_t)(at - p->begin);
	match->to = (uint16_t)(p->text_end - p->begin);
	return is(p, "resolved") ? take_resolved(p, match) : can_match(p, match, at);
}

static bool take_at_most(struct parser *p)
{
	const char *at;
	uint64_t n;

	if (!expect(p, "most", "at"))
		return false;
	at = p->word.at;
	if (!take_number(p, "/h", &n))
		return false;
	if (!n || n > D9__TRIGGER_MOST)
		return fail_at(p, at, "a process is dumped 1 to %d times an hour", D9__TRIGGER_MOST);
	p->out->at_most = (uint32_t)n;
	return true;
}

enum clause { FOR, WHERE, LAST, THEN, EVERY, AT, PAIRS, CLAUSES };

static const char *const clauses[CLAUSES] = { "for", "where", "last", "then", "every", "at", "pairs" };

/* CLAUSES: it begins none. */
static unsigned clause_of(const struct parser *p)
{
	unsigned i = 0;

	while (i < CLAUSES && !is(p, clauses[i]))
		i++;
	return i;
}

static bool is_clause(const struct parser *p)
{
	return clause_of(p) < CLAUSES;
}

static bool take_pairs(struct parser *p)
{
	char *to = p->out->pairs, *end = to + sizeof(p->out->pairs) - 1;

	if (!p->word.len || is_clause(p))
		return fail_at(p, p->word.at, "pairs wants KEY=VALUE behind it");
	while (p->word.len && !is_clause(p)) {
		const char *at = p->word.at, *equal;

		if (to >= end || !take_text(p, to, (size_t)(end - to), "a pair"))
			return to < end ? false : fail_at(p, at, "pairs are longer than %d bytes", D9__TRIGGER_PAIRS);
		equal = strchr(to, '=');
		if (!equal || equal == to)
			return fail_at(p, at, "a pair is KEY=VALUE");
		to += strlen(to) + 1;
	}
	return true;
}

static bool take_every(struct parser *p)
{
	const char *at = p->word.at;

	if (!take_time(p, &p->out->every_ns))
		return false;
	return p->out->every_ns >= D9__SECOND_NS || fail_at(p, at, "every is 1s at least");
}

/* The window of flight mode is what the ring holds; of continuous mode, what lies on disk. */
static bool take_span(struct parser *p, uint64_t *out)
{
	const char *at = p->word.at;

	return take_time(p, out) && (*out <= HOUR_NS || fail_at(p, at, "a window reaches over one hour at most"));
}

/* |word| is where `for` stands. */
static bool take_for(struct parser *p, const char *word)
{
	const struct kind *kind = &kinds[p->out->kind];
	const char *at = p->word.at;

	if (kind->of != LOOPS)
		return fail_at(p, word, "%s does not last: there is no for", kind->name);
	return take_time(p, &p->out->for_ns) &&
	       (p->out->for_ns <= HOUR_NS || fail_at(p, at, "a condition has to hold for one hour at most"));
}

static bool take_clause(struct parser *p, unsigned clause)
{
	const char *word = p->word.at;

	step(p);
	switch (clause) {
	case FOR: return take_for(p, word);
	case WHERE: return take_where(p);
	case LAST: return take_span(p, &p->out->last_ns);
	case THEN: return take_span(p, &p->out->then_ns);
	case EVERY: return take_every(p);
	case AT: return take_at_most(p);
	default: return take_pairs(p);
	}
}

static bool take_clauses(struct parser *p)
{
	unsigned seen = 0;

	while (p->word.len) {
		unsigned clause = clause_of(p);

		if (clause == CLAUSES)
			return refuse(p, "is not known here: for, where, last, then, every, at most or pairs", "");
		if (seen & 1u << clause && clause != WHERE)
			return fail_at(p, p->word.at, "'%s' stands there twice", clauses[clause]);
		seen |= 1u << clause;
		if (!take_clause(p, clause))
			return false;
	}
	return true;
}

/* ---- a trigger ---- */

static bool take_name(struct parser *p)
{
	struct parser ahead = *p;

	step(&ahead);
	if (!is(&ahead, ":"))
		return is(p, ":") ? fail_at(p, p->word.at, "a name is missing") : true;
	for (size_t i = 0; i < p->word.len; i++) {
		char c = p->word.at[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
		      c == '.'))
			return fail_at(p, p->word.at + i, "a name is of letters, digits, - _ and .");
	}
	if (p->word.len >= sizeof(p->out->name))
		return fail_at(p, p->word.at, "a name has %d characters at most", D9__TRIGGER_NAME - 1);
	memcpy(p->out->name, p->word.at, p->word.len);
	step(p);
	step(p);
	return true;
}

/* Of what its author wrote; what was resolved has room of its own. */
static bool is_too_long(const char *text, size_t len)
{
	bool resolved = memmem(text, len, " resolved ", 10);

	return len > (resolved ? D9__TRIGGER_TEXT + D9__TRIGGER_RESOLVED : D9__TRIGGER_TEXT);
}

static bool parse(struct parser *p, size_t len)
{
	const char *text = p->begin;

	*p->out = (struct d9__trigger){ .last_ns = 30 * D9__SECOND_NS, .then_ns = 10 * D9__SECOND_NS, .every_ns = MINUTE_NS, .at_most = 6 };
	if (is_too_long(text, len))
		return fail_at(p, text + D9__TRIGGER_TEXT, "a trigger is %d bytes long at most", D9__TRIGGER_TEXT);
	for (size_t i = 0, n; i < len; i += n) {
		n = d9__utf8_len(text + i, len - i);
		if (!n || ((unsigned char)text[i] < ' ' && text[i] != '\t' && text[i] != '\r'))
			return fail_at(p, text + i, "a character that is none of a text");
	}
	step(p);
	return take_name(p) && take_condition(p) && take_clauses(p);
}

bool d9__trigger_parse(const char *text, size_t len, struct d9__trigger *out, struct d9__trigger_fault *fault)
{
	struct parser p = { .begin = text, .at = text, .end = text + len, .out = out, .fault = fault };

	return parse(&p, len);
}

bool d9__trigger_parse_names(const char *text, size_t len, struct d9__trigger *out, struct d9__trigger_fault *fault)
{
	struct parser p = { .begin = text, .at = text, .end = text + len, .out = out, .fault = fault, .names = true };

	return parse(&p, len);
}

void d9__trigger_plain(const struct d9__trigger *trigger, const char *text, size_t len, char *out, size_t size)
{
	size_t from = 0, n = 0;

	for (unsigned i = 0; i <= trigger->n_matches; i++) {
		const struct d9__trigger_match *match = &trigger->matches[i];
		size_t to = i == trigger->n_matches ? len : match->cut_from;

		if (i < trigger->n_matches && !match->resolved)
			continue;
		for (; from < to && n + 1 < size; from++)
			out[n++] = text[from];
		from = i == trigger->n_matches ? len : match->cut_to;
	}
	while (n && is_blank(out[n - 1]))
		n--;
	out[n] = '\0';
}

bool d9__trigger_next(const char **list, const char **one, size_t *len)
{
	while (**list) {
		const char *from = *list + strspn(*list, " \t\r\n;"), *to;
		bool remark = *from == '#';

		to = from + strcspn(from, remark ? "\n" : ";\n");
		*list = to;
		if (remark || to == from)
			continue;
		*one = from;
		*len = (size_t)(to - from);
		return true;
	}
	return false;
}

uint32_t d9__trigger_line(const char *list, const char *one, uint32_t *before)
{
	uint32_t line = 1;

	for (const char *end; (end = memchr(list, '\n', (size_t)(one - list))); list = end + 1)
		line++;
	*before = characters(list, one);
	return line;
}

bool d9__trigger_glob(const char *glob, const char *text, size_t len)
{
	const char *star = NULL, *from = NULL, *end = text + len;

	while (text < end) {
		if (*glob == '*') {
			star = ++glob;
			from = text;
		} else if (*glob == '?' || (*glob && *glob == *text)) {
			glob++;
			text++;
		} else if (star) {
			glob = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

bool d9__trigger_stands_for(const char *resolved, const char *text, size_t len)
{
	const char *plus = memrchr(text, '+', len);
	size_t module = plus ? (size_t)(plus - text) : 0;
	bool is_its = false;

	while (plus && *resolved) {
		size_t n = strcspn(resolved, "|");
		const char *offset = memrchr(resolved, '+', n);

		if (offset != resolved)
			is_its = offset && (size_t)(offset - resolved) == module && !memcmp(resolved, text, module);
		if (is_its && n - (size_t)(offset - resolved) == len - module && !memcmp(offset, plus, len - module))
			return true;
		resolved += n + (resolved[n] == '|');
	}
	return false;
}
