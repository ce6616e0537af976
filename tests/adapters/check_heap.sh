#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What libdial9 keeps does not go through the program's malloc() and free(), which may be its own and know one thread only:
# none of its objects asks for them, and none of its threads calls them, whatever is recorded.
set -eu
: "${top_builddir:?}"

tests=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
watched=$tests/.libs/watched_malloc.so
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD 2>/dev/null || true

fail() {
	printf '%s\n' "$1"
	exit 1
}

# ---- objects ----

# A function of the C library that allocates for its caller, or to do its work.
allocates='malloc|calloc|realloc|reallocarray|free|strn?dup|v?asprintf|(__v?asprintf_chk)|f?(d?open|open64)|f?d?opendir|qsort(_r)?'
allocates="$allocates|getline|getdelim|open_memstream|posix_memalign|aligned_alloc|scandir|ZSTD_create[CD]Ctx|ZSTD_(de)?compress"
symbols() {
	for room in format record loop sample hook block; do
		nm -A -u "$top_builddir/core/$room/.libs/lib$room.a"
	done
	for library in glib libev libevent preload; do
		[ ! -e "$top_builddir/adapters/.libs/libdial9-$library.so" ] ||
			nm -A -u "$top_builddir/adapters/.libs/libdial9-$library.so"
	done
	true
}
symbols >"$dir/symbols"
grep -q 'record.a:.* d9__malloc' "$dir/symbols" || fail "the objects of libdial9 are elsewhere"
# heap.o is not used where own_heap.o is.
sed 's/@.*//' "$dir/symbols" | grep -v 'format.a:heap.o:' | grep -E " ($allocates)\$" >"$dir/found" || true
# open() itself allocates nothing.
grep -vE ' open(64)?$' "$dir/found" >"$dir/asks" || true
[ ! -s "$dir/asks" ] || fail "ask for memory of the C library: $(head -n 5 "$dir/asks")"

# ---- threads ----

cd "$dir"
# watch NAME PROGRAM ARGUMENT...; flags of dial9 record are in $flags.
watch() {
	name=$1
	shift
	# shellcheck disable=SC2086,SC2016 # words; the shell that is recorded expands it
	"$dial9" record -q -o "$name" $flags -- sh -c \
		'LD_PRELOAD=$LD_PRELOAD:$0 exec "$@"' "$watched" "$@" >"$name.out" 2>"$name.err" ||
		fail "$name: status $?: $(cat "$name.err")"
	grep -q '^0 calls by threads of dial9$' "$name.err" || fail "$name: does not say how many calls"
	! grep -q '^[1-9][0-9]* calls' "$name.err" || fail "$name: $(cat "$name.err")"
	"$dial9" info "$name" >/dev/null || fail "$name: no trace"
	echo "$name: none"
}

n=0
for kind in libevent libev glib; do
	program=$tests/${kind}_every_kind
	[ -x "$program" ] || continue
	flags=
	watch "$kind" "$program" --out="$dir/truth"
	flags='--cpu 999 --off-cpu --memory'
	watch "$kind-sampled" "$program" --out="$dir/truth"
	flags='--flight --memory'
	export DIAL9_TRIGGERS='any: poll > 1us then 1s every 1s at most 360/h'
	watch "$kind-dumps" "$program" --out="$dir/truth"
	unset DIAL9_TRIGGERS
	ls "$kind-dumps"/*/dump.*.json >/dev/null || fail "$kind-dumps: nothing was dumped"
	n=$((n + 1))
done
[ $n -gt 0 ] || {
	echo "none of the libraries is there"
	exit 77
}
