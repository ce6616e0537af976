#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs with a libev.a of their own, linked in with the flags of `pkg-config --static`: every callback
# has as many polls as the program counted, also without any loader; what is not seen is named.
set -u
library=libev
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

archive=$($CC -print-file-name=libev.a)
[ -f "$archive" ] || skip "there is no libev.a"
flags=$(sed -n 's/^Libs.private: //p' "$top_builddir/pkgconfig/dial9-libev.pc")

# The adapter as a static library has it; the recorder's objects serve as they are.
include="-I$top_builddir -I$top_builddir/core/include -I$top_srcdir/core/include"
include="$include -I$top_srcdir/adapters/include -I$top_srcdir/core -I$top_srcdir/adapters"
tests=$top_srcdir/tests/adapters
mkdir "$work/objects" "$work/kinds"
(
	cd "$work/objects" || exit 1
	# The lists are lists of words.
	# shellcheck disable=SC2086
	$CC -std=gnu11 -O1 -pthread -fvisibility=hidden -fexceptions $include -c \
		"$top_srcdir"/adapters/libev/*.c && ar rcs "$work/libdial9-libev.a" ./*.o
) || exit 99
(
	cd "$work/kinds" || exit 1
	# shellcheck disable=SC2086
	$CC -std=gnu11 -O1 -pthread $include -DLINKED_ADAPTER -c "$tests/libev_every_kind.c" \
		"$tests/libev_kinds_core.c" "$tests/libev_kinds_extra.c" "$tests/counters.c"
) || exit 99
recorder="$top_builddir/core/block/.libs/libblock.a $top_builddir/core/loop/.libs/libloop.a $top_builddir/core/sample/.libs/libsample.a $top_builddir/core/hook/.libs/libhook.a
	$top_builddir/core/record/.libs/librecord.a $top_builddir/core/base/.libs/libbase.a $top_builddir/core/format/.libs/libformat.a"

# build NAME FLAGS LIBEV...
build() {
	name=$1 how=$2
	shift 2
	# shellcheck disable=SC2086
	$CC ${LINK_FLAGS-} -pthread -o "$work/$name" "$work"/kinds/*.o $how "$work/libdial9-libev.a" $flags \
		-Wl,--start-group $recorder -Wl,--end-group "$@" -lzstd -lz -ldl -lm >"$work/link" 2>&1 || {
		cat "$work/link"
		return 1
	}
}

static="--wakes --has mode=static --has poll=full --has park=on --has wake=public --has lateness=on"
scenario=linking
build before "" "$archive" || exit 99
"$work/before" --out="$work/alone" || exit 99
for backend in select poll epoll; do
	record "static, $backend" "" "$static" "$work/before" --attach --backend=$backend
	same_log
done
for when in before after; do
	record "own callbacks set $when" "" "$static" "$work/before" --attach --callbacks=$when
done

# The order of libraries does not matter.
build behind "$archive" || exit 99
record "static, behind" "" "$static" "$work/behind" --attach

# lld gives us those calls too that libev makes of itself, but for what the compiler has inlined.
if command -v ld.lld >/dev/null; then
	build by_lld -fuse-ld=lld "$archive" || exit 99
	record "static, by lld" "" "$static" "$work/by_lld" --attach
else
	echo "skipped: lld is not installed"
fi

# The same library and flags where libev is shared: as good as any other way in.
build shared "" -lev || exit 99
record "shared after all" "" "--wakes --has poll=full --has wake=full --has park=on" "$work/shared" --attach

# No loader, no libraries at all; needs static libraries of everything.
if build fully -static "$archive" >"$work/why"; then
	record "no loader" "" "$static" "$work/fully" --attach
else
	echo "skipped: no fully static program can be linked here"
fi

# Without the flags the program runs as alone, and attach says so.
flags=
scenario="without the flags"
build plain "" "$archive" || exit 99
! "$work/plain" --attach 2>"$work/said" || fail "attach says nothing"
grep -q "want 0, is -2" "$work/said" || fail "attach said $(cat "$work/said")"

finish
