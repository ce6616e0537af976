#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that leave the recorder little room, or none: built with a sanitizer, or with hardly any address
# space.  They run as alone, and one line says why there is no trace and what to do.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

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

say "8 MiB of memory that may be locked"
sed 's/^int main(int argc, char \*\*argv)/int run(int argc, char **argv)/' prog.c >locked.c
cat >>locked.c <<'END'
#include <sys/mman.h>

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

/* So that a recorder runs. */
static void run_a_loop(void)
{
	struct event_base *base = event_base_new();

	event_base_once(base, -1, EV_TIMEOUT, on_timeout, NULL, NULL);
	event_base_dispatch(base);
	event_base_free(base);
}

int main(int argc, char **argv)
{
	if (INSIDE)
		run_a_loop();
	if (mlockall(FLAGS))
		return 9;
	if (LATER)
		run_a_loop();
	/* Alone there is room for it. */
	if (LATER && mmap(NULL, LATER << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 8;
	return run(argc, argv);
}
END
mkdir -m 777 others && chmod 755 .
# locked NAME FLAGS INSIDE [VARIABLE=VALUE]: as somebody who has a limit, and maps $later MiB more when a recorder runs.
later=0
locked() {
	say "$2 ${3%0}"
	$CC -DFLAGS="$2" -DINSIDE="$3" -DLATER=$later -o "$1" locked.c -levent || exit 99
	env "${4-A=}" prlimit --memlock=8388608:8388608 setpriv --reuid 65534 --regid 65534 --clear-groups \
		--inh-caps=-all --bounding-set=-all "$dial9" record -q --require -o "others/$1" -- "./$1" 100 50 0
	echo "status $?"
	[ ! -e "others/$1" ] || {
		"$dial9" info "others/$1" | grep -o 'ring.limit .*'
		"$dial9" info "others/$1" | awk '$1 == "PollEndEvent" { print $2, "callbacks" }'
	}
}
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && command -v prlimit >/dev/null; then
	locked future MCL_FUTURE 0
	locked current MCL_CURRENT 0
	locked both 'MCL_CURRENT|MCL_FUTURE' 0
	locked current-inside MCL_CURRENT 1
	locked both-inside 'MCL_CURRENT|MCL_FUTURE' 1
	locked fault-inside 'MCL_CURRENT|MCL_FUTURE|MCL_ONFAULT' 1
	say "of which the program maps 4 later, when a ring of 4 is there"
	later=4
	locked later MCL_FUTURE 0 DIAL9_RING_MB=4
	locked later-inside MCL_FUTURE 1 DIAL9_RING_MB=4
	later=0
	say "not guarded"
	locked unguarded MCL_CURRENT 1 DIAL9_GUARD_LOCKING=no
else
	sed -n '/^# 8 MiB of memory/,$p' "${0%.sh}.expected" | sed 1d
fi

finish 's/  *$//'
