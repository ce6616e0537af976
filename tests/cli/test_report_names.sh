#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions are called by their names: from a binary, from the trace's own symbols.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
dial9=$top_builddir/core/dial9
make_trace=$top_builddir/tests/cli/make_trace

# expect FILE TEXT: the JSON in FILE has a line with TEXT.
expect() {
	grep -qF "$2" "$1" && return
	echo "expected $2 in:"
	grep -E '"(name|source|site)"' "$1"
	exit 1
}

cat >prog.c <<'END'
static volatile int n;
__attribute__((noinline)) static void on_read(void)
{
	n++;
}
__attribute__((noinline)) void set_up(void)
{
	on_read();
	n--;
}
int main(void)
{
	set_up();
	return 0;
}
END
$CC -g -O0 -Wl,--build-id=0x0123456789abcdef -o prog prog.c || exit 77
address_of() {
	$NM prog | awk -v name="$1" '$3 == name { sub(/^0+/, "", $1); print $1 }'
}
site=$(printf '%x' $((0x$(address_of set_up) + 9)))
"$make_trace" module plain prog.bin "$work/prog" 0123456789abcdef "$(address_of on_read)" "$site"

"$dial9" report --json prog.bin >names
expect names '"name": "on_read"'
expect names '"source": "prog.c:2"'
expect names '"site": "set_up prog.c:'

"$dial9" report --json --no-symbols prog.bin >no_names
expect no_names "\"name\": \"prog+0x$(address_of on_read)\""
expect no_names "\"site\": \"prog+0x$site\""

# At its beginning the compiler put another function's code, of another file.
cat >count.h <<'END'
static inline __attribute__((always_inline)) void count(int *n)
{
	++*n;
}
END
cat >inlined.c <<'END'
#include "count.h"
int n;

__attribute__((noinline)) void on_write(void)
{
	count(&n);
}
int main(void)
{
	on_write();
	return n;
}
END
$CC -g -O2 -Wl,--build-id=0x0123456789abcdef -o inlined inlined.c
on_write=$($NM inlined | awk '$3 == "on_write" { sub(/^0+/, "", $1); print $1 }')
"$make_trace" module plain inlined.bin "$work/inlined" 0123456789abcdef "$on_write" "$on_write"
"$dial9" report --json inlined.bin >inlined.json
expect inlined.json '"source": "inlined.c:4"'

"$make_trace" rows plain rows.bin
"$dial9" report --json rows.bin >rows
expect rows '"name": "named_by_row"'
expect rows '"source": "gone.c:7"'
expect rows '"site": "gone+0x2000"'
