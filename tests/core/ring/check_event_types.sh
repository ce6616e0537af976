#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What D9_EMIT() takes compiles as C11 and C++11; what it cannot take does not.
set -eu

flags="-I$top_builddir/core/include -I$top_srcdir/core/include -fsyntax-only -Wall -Wextra -Werror"
found=no

# program EXPRESSION: a translation unit with that argument in an event.
program() {
	cat <<-END
		#include <dial9/event.h>
		struct thing { int a; };
		int emit(struct d9_event_type *type, struct thing *thing, const unsigned char *raw);
		int emit(struct d9_event_type *type, struct thing *thing, const unsigned char *raw)
		{
			const char *text = "text";
			const struct d9_arg items[] = { D9_ARG(1), D9_ARG("x") };
			struct d9_name name = d9_name_intern(text);

			(void)thing, (void)raw, (void)items, (void)name;
			return D9_EMIT(type, $1);
		}
	END
}

compiles() {
	printf '%s\n' "$1" | $2 $flags -x"$3" -std="$4" - 2>/dev/null
}

try() {
	want=$1 source=$(program "$2")
	for language in "c c11 $CC" "c++ c++11 $CXX"; do
		# shellcheck disable=SC2086
		set -- $language
		x=$1 std=$2
		shift 2
		command -v "$1" >/dev/null || continue
		found=yes
		got=yes
		compiles "$source" "$*" "$x" "$std" || got=no
		[ "$got" = "$want" ] || {
			echo "$x: compiles: $got, wanted: $want"
			echo "$source"
			exit 1
		}
	done
}

for good in '1' '1u' '-1L' '1ull' '(short)1' '(unsigned char)1' "'c'" '1.5' '1.5f' '(bool)1' \
	'"text"' 'text' 'name' 'd9_absent()' 'd9_bytes(raw, 4)' 'd9_list(items, 2)' \
	'1, 2.0, text, name, d9_absent(), 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16'; do
	try yes "$good"
done
for bad in 'thing' '*thing' 'raw' '&text' 'emit' 'd9_bytes(4, raw)' 'd9_list(1)' \
	'(void)0' '1, thing, 2'; do
	try no "$bad"
done
[ "$found" = yes ] || exit 77
