#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that leave the recorder little room, or none: built with a sanitizer, or with hardly any address
# space.  They run as alone, and one line says why there is no trace and what to do.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

need_preload
build_timer

say "sanitizers"
# What the sanitizer is does not matter, but by which name its runtime is begun.
sanitizer() {
	name=$1 begin=$2
	shift 2
	printf 'void %s(void);\nint main(void)\n{\n\t%s();\n\treturn 0;\n}\n' "$begin" "$begin" >"$name.c"
	printf '#include <stdio.h>\nvoid %s(void);\nvoid %s(void)\n{\n\tputs("ran");\n}\n' "$begin" "$begin" >runtime.c
	$CC -shared -fPIC -o "lib$name.so" runtime.c
	$CC -o "$name" "$name.c" "./lib$name.so"
	run record -o "$name.trace" "./$name"
	[ ! -e "$name.trace" ] || echo "a directory was left"
}
sanitizer asan __asan_init
sanitizer tsan __tsan_init
sanitizer msan __msan_init
run doctor -- ./asan 2>&1 | grep -A 5 ' command '
echo "with the runtime inside, as clang and -static-libasan build it:"
$CC -c -o runtime.o -x c - <<'END'
void __asan_init(void);
void __asan_init(void)
{
}
END
$CC -rdynamic -o inside prog.c runtime.o -levent
run record -q --require -o inside.trace ./inside 100 50 0

say "another C library"
# Which one it is does not matter, but that its loader has another name.
loader=$(readelf -l prog | sed -n 's/.*interpreter: \(.*\)]/\1/p')
cp "$loader" ld-other.so.1
printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void)\n{\n\treturn !puts(getenv("LD_PRELOAD") ? "preloaded" : "ran");\n}\n' >other.c
$CC -o other other.c -Wl,--dynamic-linker="$work/ld-other.so.1"
run record -o other.trace ./other
ln -s "$loader" ld-same.so.1
$CC -o same other.c -Wl,--dynamic-linker="$work/ld-same.so.1"
run record -o same.trace ./same

say "40 MB of address space"
./prog 100 1 0
mb=40
run record -q --require -o small.trace sh -c "ulimit -v $((mb * 1024)); exec ./prog 100 50 0"
"$dial9" info small.trace | grep -o 'ring.limit .*' | sed 's/[0-9]* KiB/N KiB/'
"$dial9" info small.trace | awk '$1 == "PollEndEvent" { print $2, "callbacks" }'

finish 's/  *$//'
