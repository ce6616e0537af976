#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Three lists must agree for each library: its symbol map, what it exports, and the
# functions and data its headers mark D9_API.
set -eu

map_names() {
	sed -n 's/^[[:space:]]*\([A-Za-z_][A-Za-z0-9_]*\);$/\1/p' "$1" | sort
}

exported_names() {
	$NM -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		grep -v '^__[a-z]*san_\|^__start_\|^__stop_' | sort
}

declared_names() {
	# The name in a declaration stands before its parameters, or before the semicolon, or is told the assembler.
	sed -n -e 's/^D9_API .*__asm__("\([A-Za-z0-9_]*\)");/\1/p;t' -e 's/^D9_API [^(]*[ *]\([a-z][a-z0-9_]*\)(.*/\1/p' \
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

# Private headers of what is in libdial9.
traced_headers() {
	sed -n 's/^traced \(core\/.*\):.*/\1/p' "$top_srcdir/tests/core/rooms.list" | while read -r room; do
		[ ! -d "$top_srcdir/$room" ] || find "$top_srcdir/$room" -name '*.h'
	done
}

core=$top_srcdir/core adapters=$top_srcdir/adapters found=no
public=$core/include/dial9
check "$core/libdial9.map" "$top_builddir/core/.libs/libdial9.so" \
	$(find "$public" -name "*.h" ! -name reader.h) \
	$(traced_headers)
check "$core/libdial9-reader.map" "$top_builddir/core/.libs/libdial9-reader.so" \
	"$public/reader.h" "$public/error.h"
for loop in libevent libev glib; do
	check "$adapters/$loop/libdial9-$loop.map" \
		"$top_builddir/adapters/.libs/libdial9-$loop.so" \
		"$adapters/include/dial9/$loop.h" "$adapters/$loop"/*.h
done
check "$adapters/memory/libdial9-memory.map" "$top_builddir/adapters/.libs/libdial9-memory.so" \
	"$adapters/memory/hooks.h"
# The preload library's map has the names of all adapters, those that are not built included.
preload=$top_builddir/adapters/.libs/libdial9-preload.so
if [ -e "$preload" ]; then
	found=yes declared=$adapters/preload/sandbox.h
	for loop in libevent libev glib; do
		[ ! -e "$top_builddir/adapters/.libs/libdial9-$loop.so" ] ||
			declared="$declared $adapters/preload/$loop.h"
	done
	# One word per header is meant.
	# shellcheck disable=SC2086
	same "$preload: headers" "$(exported_names "$preload")" "$(declared_names $declared)"
	same "$preload: map" "$(map_names "$adapters/preload/libdial9-preload.map")" \
		"$(declared_names $(find "$adapters/preload" -name 'lib*.h' -o -name glib.h -o -name sandbox.h))"
fi

[ "$found" = yes ] || exit 77
