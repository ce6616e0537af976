/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/note.h"

#define REPEAT_NS  UINT64_C(60000000000)
#define COUNT_MAX  0xffffu
#define HEAD_WORDS 3u /* sum, time, what follows */
#define TEXT_WORDS ((D9__NOTE_TEXT + 7) / 8)
#define TIMES_MAX  0xffffu

static_assert(sizeof(struct d9__notes) == 16 + 16 * D9__NOTE_REPEATS + 8 * D9__NOTE_WORDS,
	      "the ring's layout has no holes");

/* One line in the words of the ring. */
struct packed {
	uint64_t words[HEAD_WORDS + TEXT_WORDS];
};

/* Before there is a ring, and in a forked child until it has one of its own. */
static struct d9__notes early;
static _Atomic(uintptr_t) in_use; /* struct d9__notes *; 0: |early| */

static struct d9__notes *notes_now(void)
{
	/* acquire: pairs with the release in d9__notes_use() */
	uintptr_t notes = atomic_load_explicit(&in_use, memory_order_acquire);

	return notes ? (struct d9__notes *)notes : &early;
}

static uint64_t load(const _Atomic(uint64_t) *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void copy_words(struct d9__notes *to, const struct d9__notes *from)
{
	_Atomic(uint64_t) *out = (_Atomic(uint64_t) *)(void *)to;
	const _Atomic(uint64_t) *in = (const _Atomic(uint64_t) *)(const void *)from;

	for (size_t i = 0; i < sizeof(*to) / sizeof(uint64_t); i++)
		atomic_store_explicit(&out[i], load(&in[i]), memory_order_relaxed);
}

/* ---- lines in words ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* Never 0, so that an empty ring holds no line. */
static uint64_t sum_of(const struct packed *line, uint32_t at, uint32_t n)
{
	uint64_t sum = mix(UINT64_C(0xd1a19), at);

	for (uint32_t i = 1; i < n; i++)
		sum = mix(sum, line->words[i]);
	return sum ? sum : 1;
}

/* number 32, times 16, level 8, length 8 */
static uint64_t pack(uint32_t number, uint32_t times, enum d9_log_level level, size_t len)
{
	return (uint64_t)number << 32 | (uint64_t)(times < TIMES_MAX ? times : TIMES_MAX) << 16 |
	       (uint64_t)level << 8 | len;
}

static uint32_t words_of(size_t len)
{
	return HEAD_WORDS + (uint32_t)(len + 7) / 8;
}

/* The number of the line. */
static uint32_t put(struct d9__notes *notes, enum d9_log_level level, uint32_t times, uint64_t ns,
		    const char *text)
{
	size_t len = strlen(text);
	struct packed line = { { 0, ns } };
	uint32_t n = words_of(len), at, number;
	uint64_t head = atomic_fetch_add_explicit(&notes->head, UINT64_C(1) << 32 | n,
						  memory_order_relaxed);

	at = (uint32_t)head;
	number = (uint32_t)(head >> 32);
	line.words[2] = pack(number, times, level, len);
	memcpy(&line.words[HEAD_WORDS], text, len);
	line.words[0] = sum_of(&line, at, n);
	for (uint32_t i = 0; i < n; i++)
		atomic_store_explicit(&notes->words[(at + i) % D9__NOTE_WORDS], line.words[i],
				      memory_order_relaxed);
	return number;
}

/* ---- the same text again ---- */

static uint32_t hash_of(enum d9_log_level level, const char *text)
{
	uint64_t hash = mix(1, level);

	for (; *text; text++)
		hash = mix(hash, (unsigned char)*text);
	return (uint32_t)(hash >> 32) | 1;
}

static uint32_t count_in(uint64_t word)
{
	return (uint32_t)word & COUNT_MAX;
}

/* True if it is counted beside the line that has this text. */
static bool count_again(struct d9__note_repeat *repeat, uint32_t hash, uint64_t ns)
{
	uint64_t word = load(&repeat->word);

	while (word >> 32 == hash && count_in(word) < COUNT_MAX &&
	       ns - load(&repeat->since_ns) < REPEAT_NS)
		if (atomic_compare_exchange_weak_explicit(&repeat->word, &word, word + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

/* The place of |hash|, or the oldest that may be given up for it because nothing was counted there.
 */
static struct d9__note_repeat *place_of(struct d9__notes *notes, uint32_t hash)
{
	struct d9__note_repeat *oldest = NULL;

	for (unsigned i = 0; i < D9__NOTE_REPEATS; i++) {
		struct d9__note_repeat *repeat = &notes->repeats[i];
		uint64_t word = load(&repeat->word);

		if (word >> 32 == hash)
			return repeat;
		if (!count_in(word) &&
		    (!oldest || load(&repeat->since_ns) < load(&oldest->since_ns)))
			oldest = repeat;
	}
	return oldest;
}

/* Line |number| has the text of |hash|.  What was counted meanwhile stays, also if it is another
 * one's. */
static void remember(struct d9__note_repeat *repeat, uint32_t hash, uint32_t number, uint64_t ns)
{
	uint64_t word = load(&repeat->word),
		 line = (uint64_t)hash << 32 | (uint64_t)(number & 0xffff) << 16;

	while (word >> 32 == hash || !count_in(word))
		if (atomic_compare_exchange_weak_explicit(
			    &repeat->word, &word, line | count_in(word), memory_order_relaxed,
			    memory_order_relaxed)) {
			atomic_store_explicit(&repeat->since_ns, ns, memory_order_relaxed);
			return;
		}
}

/* Take the count of |repeat|, if it is of |hash|. */
static uint32_t take_count(struct d9__note_repeat *repeat, uint32_t hash)
{
	uint64_t word = load(&repeat->word);

	while (word >> 32 == hash)
		if (atomic_compare_exchange_weak_explicit(
			    &repeat->word, &word, word & ~(uint64_t)COUNT_MAX, memory_order_relaxed,
			    memory_order_relaxed))
			return count_in(word);
	return 0;
}

/* ---- writing ---- */

static void note(struct d9__notes *notes, enum d9_log_level level, const char *text)
{
	uint64_t ns = d9__clock_mono_ns();
	uint32_t hash = hash_of(level, text), number;
	struct d9__note_repeat *repeat = place_of(notes, hash);

	if (repeat && count_again(repeat, hash, ns))
		return;
	number = put(notes, level, 1 + (repeat ? take_count(repeat, hash) : 0), ns, text);
	if (repeat)
		remember(repeat, hash, number, ns);
}

void d9__note(enum d9_log_level level, const char *fmt, ...)
{
	char text[D9__NOTE_TEXT + 1] = "";
	int saved = errno;
	va_list ap;

	/* In a bare clone() the ring is the parent's. */
	if (!d9__gate_is_ours())
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note(notes_now(), level, text);
	errno = saved;
}

/* The line with the last 16 bits of |number| once more, as it came |times| again. */
static void write_again(struct d9__notes *notes, struct d9__note_repeat *repeat, uint32_t number,
			uint32_t times)
{
	struct d9__note_line line;
	struct d9__notes copy;
	uint32_t at = 0;

	copy_words(&copy, notes);
	while (d9__notes_next(&copy, &at, &line))
		if ((line.number & 0xffff) == number) {
			uint64_t ns = d9__clock_mono_ns();
			uint32_t again = put(notes, line.level, times, ns, line.text);

			remember(repeat, hash_of(line.level, line.text), again, ns);
			return;
		}
}

void d9__notes_settle(bool all)
{
	struct d9__notes *notes = notes_now();
	uint64_t now_ns = d9__clock_mono_ns();

	for (unsigned i = 0; i < D9__NOTE_REPEATS; i++) {
		struct d9__note_repeat *repeat = &notes->repeats[i];
		uint64_t word = load(&repeat->word);

		if (count_in(word) && (all || now_ns - load(&repeat->since_ns) >= REPEAT_NS))
			write_again(notes, repeat, word >> 16 & 0xffff,
				    take_count(repeat, (uint32_t)(word >> 32)));
	}
}

void d9__notes_tell(uint32_t number)
{
	atomic_store_explicit(&notes_now()->told, number, memory_order_relaxed);
}

uint32_t d9__notes_told(void)
{
	return (uint32_t)load(&notes_now()->told);
}

/* ---- which ring ---- */

void d9__notes_use(struct d9__notes *notes)
{
	static const struct d9__notes none;

	if (notes)
		copy_words(notes, &early);
	copy_words(&early, &none);
	/* release: pairs with the acquire in notes_now() */
	atomic_store_explicit(&in_use, (uintptr_t)notes, memory_order_release);
}

/* ---- reading ---- */

void d9__notes_copy(struct d9__notes *copy)
{
	copy_words(copy, notes_now());
}

uint32_t d9__notes_end(void)
{
	return (uint32_t)(load(&notes_now()->head) >> 32);
}

/* The words of a line at |at|, if there is one.  How many there are, 0 if none. */
static uint32_t unpack(const struct d9__notes *copy, uint32_t at, uint32_t end, struct packed *line)
{
	uint64_t what = load(&copy->words[(at + 2) % D9__NOTE_WORDS]);
	uint32_t n = words_of(what & 0xff);

	if (n > end - at || (what >> 8 & 0xff) > D9_LOG_INFO || !(what >> 16 & TIMES_MAX))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		line->words[i] = load(&copy->words[(at + i) % D9__NOTE_WORDS]);
	return line->words[0] == sum_of(line, at, n) ? n : 0;
}

/* How often it came that no line tells yet. */
static uint32_t untold(const struct d9__notes *copy, uint32_t number)
{
	for (unsigned i = 0; i < D9__NOTE_REPEATS; i++) {
		uint64_t word = load(&copy->repeats[i].word);

		if (word && (word >> 16 & 0xffff) == (number & 0xffff))
			return count_in(word);
	}
	return 0;
}

/* A name that a file system gave, or a character that was cut. */
static void make_utf8(char *text)
{
	size_t len = strlen(text), n;

	for (; len; text += n, len -= n) {
		n = d9__utf8_len(text, len);
		if (!n) {
			*text = '?';
			n = 1;
		}
	}
}

static void fill(struct d9__note_line *line, const struct d9__notes *copy,
		 const struct packed *packed)
{
	uint64_t what = packed->words[2];
	size_t len = what & 0xff;

	line->ns = packed->words[1];
	line->number = (uint32_t)(what >> 32);
	line->times = (uint32_t)(what >> 16 & TIMES_MAX);
	line->again = untold(copy, line->number);
	line->level = (enum d9_log_level)(what >> 8 & 0xff);
	memcpy(line->text, &packed->words[HEAD_WORDS], len);
	line->text[len] = '\0';
	make_utf8(line->text);
}

/* |*at| counts words from the oldest that can be there. */
int d9__notes_next(const struct d9__notes *copy, uint32_t *at, struct d9__note_line *line)
{
	uint32_t end = (uint32_t)load(&copy->head),
		 whole = end < D9__NOTE_WORDS ? end : D9__NOTE_WORDS;
	struct packed packed;

	while (*at + HEAD_WORDS <= whole) {
		uint32_t n = unpack(copy, end - whole + *at, end, &packed);

		*at += n ? n : 1;
		if (n) {
			fill(line, copy, &packed);
			return 1;
		}
	}
	return 0;
}

const char *d9__note_level(enum d9_log_level level)
{
	static const char *const words[] = { "error", "warning", "info" };

	return (unsigned)level < sizeof(words) / sizeof(words[0]) ? words[level] : "unknown";
}
