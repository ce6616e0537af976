#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs with a libevent of their own, linked in with the flags of `pkg-config --static`: every
# callback has as many polls, or spans, as the program counted; what is not seen is named.
set -eu

here=$top_builddir/tests/adapters
archive=$($CC -print-file-name=libevent.a)
threads=$($CC -print-file-name=libevent_pthreads.a)
flags=$(sed -n 's/^Libs.private: //p' "$top_builddir/pkgconfig/dial9-libevent.pc")
if [ ! -f "$archive" ] || [ ! -f "$threads" ]; then
	echo "no libevent.a"
	exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The adapter as a static library has it; the recorder's objects serve as they are.
include="-I$top_builddir -I$top_builddir/core/include -I$top_srcdir/core/include"
include="$include -I$top_srcdir/adapters/include -I$top_srcdir/core -I$top_srcdir/adapters"
mkdir "$work/objects" "$work/kinds"
(
	cd "$work/objects"
	# The lists are lists of words.
	# shellcheck disable=SC2086
	$CC -std=gnu11 -O0 -pthread -fvisibility=hidden -fexceptions $include -c \
		"$top_srcdir"/adapters/libevent/*.c
	ar rcs "$work/libdial9-libevent.a" ./*.o
)
tests=$top_srcdir/tests/adapters
(
	cd "$work/kinds"
	# shellcheck disable=SC2086
	$CC -O0 -pthread $include -DSTATIC_ADAPTER -c "$tests/libevent_every_kind.c" \
		"$tests/libevent_kinds_core.c" "$tests/libevent_kinds_extra.c" "$tests/counters.c"
)
recorder="$top_builddir/core/block/.libs/libblock.a $top_builddir/core/loop/.libs/libloop.a $top_builddir/core/sample/.libs/libsample.a $top_builddir/core/hook/.libs/libhook.a
	$top_builddir/core/record/.libs/librecord.a $top_builddir/core/base/.libs/libbase.a $top_builddir/core/format/.libs/libformat.a"

# build NAME FLAGS LIBEVENT...
build() {
	name=$1 how=$2
	shift 2
	# shellcheck disable=SC2086
	$CC ${LINK_FLAGS-} -pthread -o "$work/$name" "$work"/kinds/*.o $how "$work/libdial9-libevent.a" $flags \
		-Wl,--start-group $recorder -Wl,--end-group "$@" -lzstd -lz -ldl \
		>"$work/link" 2>&1 || {
		cat "$work/link"
		return 1
	}
}

# record NAME "COMPARE OPTIONS" ARGUMENTS...
record() {
	name=$1 options=$2
	shift 2
	echo "$name $*"
	rm -rf "$work/trace"
	DIAL9_TRACE_DIR="$work/trace" timeout 60 "$work/$name" --attach "$@" --out="$work/counters"
	[ ! -e "$work/trace" ] || "$top_builddir/core/dial9" recover "$work/trace" >/dev/null
	pid=$(sed -n 's/^pid //p' "$work/counters")
	# shellcheck disable=SC2086
	"$here/compare_counts" "$work"/trace/*-"$pid" "$work/counters" $options
}

# A bufferevent's event callback may be compared with libevent's own, so it is left alone.
static="--except on_socket_event --has mode=static --has poll=partial --has wake=public
	--has park=on --has task=event --has lateness=on"
build before "" "$archive" "$threads"
record before "$static"
record before "$static" --threads
record before "$static" --reinit

# The order of libraries does not matter.
build behind "$archive $threads"
record behind "$static" --threads

# The same library and flags where libevent is shared: as good as any other way in.
build shared "" -levent -levent_pthreads
record shared "--wakes --has poll=full --has wake=full --has park=on" --threads

# No loader, no libraries at all; needs static libraries of everything.
if build alone -static "$archive" "$threads" >"$work/why"; then
	record alone "$static" --threads
else
	echo "skipped: no fully static program can be linked here"
fi

# Without the flags the program runs as alone and attach says so.
flags=
build plain "" "$archive" "$threads"
! "$work/plain" --attach --only=timers 2>"$work/said" || exit 1
grep -q "want 0, is -2" "$work/said"
