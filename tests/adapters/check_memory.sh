#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# With everything sampled, every allocation and every free of a program is in the trace, whatever function it uses and
# whatever allocator it brings, and nothing that the program sees is changed.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}" "${SANITIZER:=no}"

tests=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
if [ "$SANITIZER" != no ] || [ ! -e "$top_builddir/adapters/.libs/libdial9-memory.so" ]; then
	echo "no library for memory, or one whose sanitizer has an allocator of its own"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD 2>/dev/null || true
cd "$dir"

fail() {
	printf '%s\n' "$1"
	exit 1
}

# truth NAME ALLOCATOR ARGUMENT...: the program with that library before libc's allocator, "" for none.
truth() {
	name=$1 allocator=$2
	shift 2
	LD_PRELOAD=$allocator "$tests/memory_program" "$@" >plain || fail "$name: status $? without us"
	# shellcheck disable=SC2016 # the shell that is recorded expands it
	"$dial9" record -q -o "$name" --cpu off --memory=1 -- sh -c \
		'LD_PRELOAD=$LD_PRELOAD${0:+:}$0 exec "$@"' "$allocator" "$tests/memory_program" "$@" >truth ||
		fail "$name: status $?"
	cmp plain truth || fail "$name: another output"
	"$tests/memory_truth" "$name" <truth || fail "$name: the trace is wrong"
	echo "$name: $(wc -l <truth) sizes are as they should be"
}

truth libc '' pvalloc throw
skipped=
# jemalloc has no pvalloc(), and what libc's gives it cannot free; mimalloc ends the program instead of throwing: with us and
# without.
while read -r name library arguments; do
	if LD_PRELOAD=$library true 2>&1 | grep -q .; then
		skipped="$skipped $name"
	else
		# shellcheck disable=SC2086 # words
		truth "$name" "$library" $arguments </dev/null
	fi
done <<END
jemalloc libjemalloc.so.2 throw
tcmalloc libtcmalloc_minimal.so.4 pvalloc throw
mimalloc libmimalloc.so.2.0 pvalloc
END
[ -z "$skipped" ] || echo "skipped, not installed:$skipped"

# ---- what may go wrong ----

cat >plugin.cc <<'END'
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int run()
{
	std::vector<std::string> texts;

	for (int i = 0; i < 3; i++)
		texts.push_back(std::string(1000 + i, 'x'));
	try {
		texts.reserve(texts.max_size() / 2);
	} catch (const std::bad_alloc &) {
		return (int)texts.size();
	}
	return 0;
}
END
"$CXX" -O1 -fPIC -shared -o plugin.so plugin.cc
for bytes in 1 4K; do
	"$dial9" record -q -o stress --memory=$bytes -- "$tests/memory_stress" ./plugin.so || fail "one in $bytes: status $?"
	"$dial9" info stress | grep -q AllocEvent || fail "one in $bytes: nothing was sampled"
	rm -rf stress
done

# ---- an allocator of the program's own ----

"$dial9" record -q -o own --memory=1 -- "$tests/memory_own" >own.out
"$dial9" info own | grep -qF "source.memory                  off: another allocator comes before libdial9-memory" ||
	fail "the program's own allocator is not told"
[ "$(cat own.out)" = "its own: 1" ] || fail "the program's own allocator was not used"

# ---- a program that is not position-independent and has taken the address of malloc(), as Debian's python3 has ----

cat >fixed.c <<'END'
#include <stdlib.h>

static void *(*const table[])(size_t) = { malloc };

int main(int argc, char **argv)
{
	void *block = table[argc - 1](4321);

	(void)argv;
	free(block);
	return !block;
}
END
"$CC" -fno-builtin -fno-pie -no-pie -o fixed fixed.c
"$dial9" record -q -o fixed.d --memory=1 -- ./fixed || fail "fixed: status $?"
"$dial9" events fixed.d | grep -q '"AllocEvent".*"size":4321,' || fail "fixed: its allocation is not in the trace"
