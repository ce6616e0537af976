#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, as C11 and as C++11, but those that bring libev's source with them.
set -eu

flags="-I$top_builddir/core/include -I$top_srcdir/core/include -I$top_srcdir/adapters/include"
flags="$flags -fsyntax-only -pedantic -Wall -Wextra -Werror"

for header in $(find "$top_builddir/core/include/dial9" "$top_srcdir/core/include/dial9" \
	"$top_srcdir/adapters/include" -name '*.h' ! -name 'ev-embed*'); do
	line="#include <dial9/${header##*/}>
typedef int d9_not_empty;"
	printf '%s\n' "$line" | $CC $flags -std=c11 -xc -
	if command -v "${CXX%% *}" >/dev/null; then
		printf '%s\n' "$line" | $CXX $flags -std=c++11 -xc++ -
	fi
done
