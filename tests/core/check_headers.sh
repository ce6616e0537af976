#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, as C11, C++11 and C++20, with the warnings that programs may want; but
# those that bring libev's source with them.
set -eu

flags="-I$top_builddir/core/include -I$top_srcdir/core/include -I$top_srcdir/adapters/include"
flags="$flags -fsyntax-only -pedantic -Wall -Wextra -Werror -Wshadow -Wconversion -Wsign-conversion -Wcast-align
	-Wpointer-arith -Wvla -Wdouble-promotion -Wformat=2"

for header in $(find "$top_builddir/core/include/dial9" "$top_srcdir/core/include/dial9" \
	"$top_srcdir/adapters/include" -name '*.h' ! -name 'ev-embed*'); do
	line="#include <dial9/${header##*/}>
typedef int d9_not_empty;"
	printf '%s\n' "$line" | $CC $flags -Wstrict-prototypes -Wmissing-prototypes -std=c11 -xc -
	if command -v "${CXX%% *}" >/dev/null; then
		for standard in c++11 c++20; do
			printf '%s\n' "$line" | $CXX $flags -Wold-style-cast -std=$standard -xc++ -
		done
	fi
done
