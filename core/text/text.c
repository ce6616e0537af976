/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text/text.h"

#include "base/time.h"
#include "text/fail.h"
#include "text/parse.h"
#include "text/shown.h"

#define DEFAULT_COLUMNS 80

static const char digits16[] = "0123456789abcdef";

static const char digit_pairs[] =
	"00010203040506070809101112131415161718192021222324252627282930313233343536373839"
	"40414243444546474849505152535455565758596061626364656667686970717273747576777879"
	"8081828384858687888990919293949596979899";

void d9__text_init(struct d9__text_out *out, int fd)
{
	signal(SIGPIPE, SIG_IGN);
	out->fd = fd;
	out->err = 0;
	out->len = 0;
}

/* Write all of |bytes|; nothing after the first error. */
static void write_all(struct d9__text_out *out, const char *bytes, size_t len)
{
	while (len && !out->err) {
		ssize_t n = write(out->fd, bytes, len);

		if (n < 0 && errno != EINTR)
			out->err = -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
}

int d9__text_flush(struct d9__text_out *out)
{
	write_all(out, out->data, out->len);
	out->len = 0;
	return out->err;
}

int d9__text_finish(struct d9__text_out *out, const char *command)
{
	int err = d9__text_flush(out);

	if (!err || err == -EPIPE)
		return D9__EXIT_OK;
	return d9__cmd_fail(command, "cannot write: %s", strerror(-err));
}

void d9__text_bytes_slow(struct d9__text_out *out, const char *bytes, size_t len)
{
	d9__text_flush(out);
	if (len > sizeof(out->data)) {
		write_all(out, bytes, len);
		return;
	}
	memcpy(out->data, bytes, len);
	out->len = len;
}

void d9__text_u64(struct d9__text_out *out, uint64_t n)
{
	char buf[20], *end = buf + sizeof(buf), *p = end;

	for (; n >= 100; n /= 100)
		memcpy(p -= 2, &digit_pairs[n % 100 * 2], 2);
	if (n >= 10)
		memcpy(p -= 2, &digit_pairs[n * 2], 2);
	else
		*--p = (char)('0' + n);
	d9__text_bytes(out, p, (size_t)(end - p));
}

void d9__text_i64(struct d9__text_out *out, int64_t n)
{
	if (n < 0)
		d9__text_char(out, '-');
	d9__text_u64(out, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void d9__text_hex(struct d9__text_out *out, uint64_t n)
{
	char buf[18], *end = buf + sizeof(buf), *p = end;

	do
		*--p = digits16[n & 15];
	while (n >>= 4);
	*--p = 'x';
	*--p = '0';
	d9__text_bytes(out, p, (size_t)(end - p));
}

void d9__text_hex_bytes(struct d9__text_out *out, const void *bytes, size_t len)
{
	for (const unsigned char *p = bytes; len; p++, len--) {
		d9__text_char(out, digits16[*p >> 4]);
		d9__text_char(out, digits16[*p & 15]);
	}
}

void d9__text_f64(struct d9__text_out *out, double x)
{
	char buf[32];

	if (!isfinite(x)) {
		d9__text_string(out, "null");
		return;
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(buf, sizeof(buf), "%.*g", precision, x);
		if (strtod(buf, NULL) == x)
			break;
	}
	d9__text_string(out, buf);
}

static inline bool is_plain(char c)
{
	return (unsigned char)c >= ' ' && (unsigned char)c < 0x7f && c != '"' && c != '\\';
}

void d9__text_escaped(struct d9__text_out *out, const char *text, size_t len)
{
	size_t start = 0, i = 0;
	struct d9__shown shown;

	while (i < len) {
		if (is_plain(text[i])) {
			i++;
			continue;
		}
		d9__text_bytes(out, text + start, i - start);
		d9__shown_next(&shown, text + i, len - i);
		if (shown.code == '"' || shown.code == '\\')
			d9__text_char(out, '\\');
		d9__text_bytes(out, shown.text, shown.len);
		i += shown.taken;
		start = i;
	}
	d9__text_bytes(out, text + start, i - start);
}

size_t d9__text_fitting(struct d9__text_out *out, const char *text, size_t columns)
{
	size_t len = strlen(text), used = 0, width;
	struct d9__shown shown;

	for (; len; text += shown.taken, len -= shown.taken) {
		d9__shown_next(&shown, text, len);
		width = shown.escaped ? shown.len : 1;
		if (used + width > columns)
			break;
		d9__text_bytes(out, shown.text, shown.len);
		used += width;
	}
	return used;
}

void d9__text_json(struct d9__text_out *out, const char *text, size_t len)
{
	d9__text_char(out, '"');
	d9__text_escaped(out, text, len);
	d9__text_char(out, '"');
}

void d9__text_word(struct d9__text_out *out, const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && is_plain(text[i]) && text[i] != ' ')
		i++;
	if (i && i == len)
		d9__text_bytes(out, text, len);
	else
		d9__text_json(out, text, len);
}

unsigned d9__text_columns(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= D9__WIDTH_MIN)
		return size.ws_col;
	if (columns && d9__parse_u64(columns, &n) && n >= D9__WIDTH_MIN && n <= D9__WIDTH_MAX)
		return (unsigned)n;
	return DEFAULT_COLUMNS;
}

void d9__text_wrapped(struct d9__text_out *out, const char *text, size_t len, size_t indent)
{
	size_t column = indent, end = d9__text_columns() - 1, word, shown;

	for (; len; text += word, len -= word) {
		for (word = 1; word < len && text[word - 1] != ',' && text[word - 1] != ' ';)
			word++;
		shown = word - (text[word - 1] == ' ');
		if (column > indent && column + 1 + shown > end) {
			d9__text_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent && text[-1] == ' ') {
			d9__text_char(out, ' ');
			column++;
		}
		d9__text_escaped(out, text, shown);
		column += shown;
	}
	d9__text_char(out, '\n');
}

void d9__text_printf(struct d9__text_out *out, const char *format, ...)
{
	char *place = d9__text_reserve(out, D9__TEXT_RESERVE_MAX);
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(place, D9__TEXT_RESERVE_MAX, format, args);
	va_end(args);
	if (n > 0)
		out->len += n < D9__TEXT_RESERVE_MAX ? (size_t)n : D9__TEXT_RESERVE_MAX - 1;
}

/* Three digits that count, and the unit. */
static void print_scaled(char *buf, size_t size, double value, const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(buf, size, "%.*f %s", decimals, value, unit);
}

const char *d9__duration_text(uint64_t ns, char buf[D9__DURATION_LEN])
{
	if (ns < 1000)
		snprintf(buf, D9__DURATION_LEN, "%" PRIu64 " ns", ns);
	else if (ns < 999500)
		print_scaled(buf, D9__DURATION_LEN, (double)ns / 1e3, "us");
	else if (ns < 999500000)
		print_scaled(buf, D9__DURATION_LEN, (double)ns / 1e6, "ms");
	else if (ns < UINT64_C(999500000000))
		print_scaled(buf, D9__DURATION_LEN, (double)ns / 1e9, "s");
	else
		snprintf(buf, D9__DURATION_LEN, "%" PRIu64 " s", ns / D9__SECOND_NS);
	return buf;
}

const char *d9__size_text(uint64_t bytes, char buf[D9__SIZE_LEN])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, D9__SIZE_LEN, "%" PRIu64 " bytes", bytes);
		return buf;
	}
	for (; value >= 999.5 && i < 3; i++)
		value /= 1024;
	print_scaled(buf, D9__SIZE_LEN, value, units[i]);
	return buf;
}
