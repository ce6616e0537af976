#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One process that uses libevent, libev and GLib: one trace has the callbacks of all, each as often as
# the program counted it, with wakes, and the capabilities of each library.
set -u

# As in check_libevent.sh.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"
library=libevent
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

three=$here/three_loops
by_preload="LD_PRELOAD=$preload"

all() {
	scenario="$1: of libev and GLib"
	for library in libev glib; do
		compare "$work/counters" --has poll=full --has wake= --has spawn=
	done
	library=libevent
	set -- "$work"/trace/*/
	[ $# -eq 1 ] || fail "$# traces"
}

timeout 60 "$three" --out="$work/alone" || exit 99
record "three libraries, preloaded" "$by_preload" "--wakes --has poll=full --has wake=full" "$three"
all preloaded
record "three libraries, preloaded and attached" "$by_preload" "--wakes" "$three" --attach
all attached
record "three libraries, linked" "" "--wakes --has poll=full" "$here/three_loops_linked" --attach
all linked

finish
