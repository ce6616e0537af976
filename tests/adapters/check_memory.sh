#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# With everything sampled, every allocation and every free of a program is in the trace, whatever function it uses and
# whatever allocator it brings, and nothing that the program sees is changed.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"

tests=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
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

# ---- allocators in the program, or before us, that have some of the functions ----

cat >partial.c <<'END'
#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of its own have their size before them, and a mark: it ends at a block that is not its own. */
struct head {
	size_t size, mark;
};

static _Alignas(16) char room[32 << 20];
static size_t used;

void *malloc(size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + sizeof(struct head) + 15) & ~(size_t)15, __ATOMIC_RELAXED);
	struct head *head = (void *)(room + at);

	if (at + size > sizeof(room) - 64)
		return NULL;
	*head = (struct head){ size, 0xd9 };
	return head + 1;
}

void free(void *block)
{
	if (block && ((struct head *)block)[-1].mark != 0xd9)
		__builtin_trap();
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size); /* of memory that nobody had */
}

void *realloc(void *block, size_t size)
{
	void *moved = malloc(size);
	size_t old = block ? ((struct head *)block)[-1].size : 0;

	if (moved && block)
		memcpy(moved, block, old < size ? old : size);
	free(block);
	return moved;
}

#ifdef LIBRARY
#define RUN run
#else
#define RUN main
#endif

int RUN(void)
{
	void *block = reallocarray(NULL, 10, 100000);
	struct event_base *base = event_base_new();

	block = reallocarray(block, 10, 110000);
	free(block);
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_free(base);
	puts("its own");
	return 0;
}
END
cat >plain.c <<'END'
int run(void);
int main(void) { return run(); }
END
sed 's/^int RUN/__attribute__((weak)) int RUN/' partial.c >partial_library.c
if "$CC" -O1 -fno-builtin -rdynamic -o partial partial.c -levent 2>errors; then
	"$CC" -O1 -fno-builtin -fPIC -shared -DLIBRARY -o libpartial.so partial_library.c -levent
	"$CC" -O1 -o linked plain.c ./libpartial.so
	for jemalloc in /usr/lib/*/libjemalloc.a; do
		[ ! -e "$jemalloc" ] || { sed '/^struct head/,/^#ifdef/{/^#ifdef/!d}' partial.c >je.c &&
			"$CC" -O1 -fno-builtin -rdynamic -o je je.c -levent "$jemalloc" -lpthread -ldl -lm -lstdc++; }
	done
	for program in ./partial ./linked ./je; do
		[ -e $program ] || continue
		for flags in '' --memory --memory=1; do
			# shellcheck disable=SC2086 # words
			out=$("$dial9" record -q $flags -o partial.d -- $program) || fail "$program [$flags]: status $?"
			[ "$out" = "its own" ] || fail "$program [$flags]: $out"
		done
	done
	# shellcheck disable=SC2016 # the shell that is recorded expands it
	out=$("$dial9" record -q --memory=1 -o partial.d -- sh -c 'LD_PRELOAD=$PWD/libpartial.so:$LD_PRELOAD exec ./linked') ||
		fail "preloaded before us: status $?"
fi

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
