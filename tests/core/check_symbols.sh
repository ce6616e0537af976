#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Three lists must agree for each library: its symbol map, what it exports, and the
# functions and data its headers mark D9_API.
set -eu

map_names() {
	sed -n 's/^[[:space:]]*\([a-z][a-z0-9_]*\);$/\1/p' "$1" | sort
}

exported_names() {
	$NM -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		grep -v '^__[a-z]*san_\|^__start_\|^__stop_' | sort
}

declared_names() {
	# The name in a declaration stands before its parameters, or before the semicolon.
	sed -n -e 's/^D9_API [^(]*[ *]\([a-z][a-z0-9_]*\)(.*/\1/p' \
		-e 's/^extern D9_API .*[ *]\([a-z][a-z0-9_]*\);.*/\1/p' "$@" | sort -u
}

same() {
	[ "$2" = "$3" ] || {
		printf '%s\n--- map\n%s\n--- other\n%s\n' "$1" "$2" "$3"
		exit 1
	}
}

# check MAP LIBRARY HEADER...
check() {
	map=$1 lib=$2
	shift 2
	test -e "$lib" || return 0
	found=yes
	names=$(map_names "$map")
	same "$lib: exports" "$names" "$(exported_names "$lib")"
	same "$lib: headers" "$names" "$(declared_names "$@")"
}

core=$top_srcdir/core adapters=$top_srcdir/adapters found=no
public=$core/include/dial9
check "$core/libdial9.map" "$top_builddir/core/.libs/libdial9.so" \
	$(find "$public" -name "*.h" ! -name reader.h) \
	$(find "$core/record" "$core/loop" "$core/hook" -name '*.h')
check "$core/libdial9-reader.map" "$top_builddir/core/.libs/libdial9-reader.so" \
	"$public/reader.h" "$public/error.h"
for loop in libevent; do
	check "$adapters/$loop/libdial9-$loop.map" \
		"$top_builddir/adapters/.libs/libdial9-$loop.so" \
		"$adapters/include/dial9/$loop.h" "$adapters/$loop/attach.h"
done
check "$adapters/preload/libdial9-preload.map" \
	"$top_builddir/adapters/.libs/libdial9-preload.so" "$adapters/preload/"*.h

[ "$found" = yes ] || exit 77
