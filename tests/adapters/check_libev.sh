#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that use every kind of libev watcher and count for themselves, recorded in every way
# there is: each callback must have as many polls in the trace as the program counted, and the
# program must run as it does alone.
set -u
library=libev
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

every_kind=$here/libev_every_kind
by_preload="LD_PRELOAD=$preload"
full="--wakes --has poll=full --has park=on --has wake=full --has spawn=on --has lateness=on"

"$every_kind" --out="$work/alone" || exit 99
for backend in select poll epoll; do
	record "preloaded, $backend" "$by_preload" "$full" "$every_kind" --backend=$backend
	same_log
	for order in before behind lazy noplt; do
		record "linked $order, $backend" "" "$full" "$here/libev_linked_$order" --attach \
			--backend=$backend
		same_log
	done
done
record "preloaded, bound at once" "$by_preload LD_BIND_NOW=1" "$full" "$every_kind"
record "preloaded and attached" "$by_preload" "$full" "$here/libev_linked_behind" --attach
record "adapter loaded RTLD_LOCAL" "" "$full" "$every_kind" --adapter="$adapter"
for when in before after; do
	record "own callbacks set $when" "" "$full" "$here/libev_linked_before" --attach \
		--callbacks=$when
	record "own callbacks, preloaded, set $when" "$by_preload" "$full" "$every_kind" \
		--callbacks=$when
done
record "libev loaded RTLD_LOCAL" "$by_preload" "$full" "$here/loader" \
	"$here/.libs/every_ev_kind.so"
record "both loaded RTLD_LOCAL" "" "$full" "$here/loader" \
	"$here/.libs/every_ev_kind.so" --adapter="$adapter"

scenario="300000 scripts, and memory that is no loop"
said=$("$here/libev_drains") || fail "attach did not refuse, or has touched it"
[ "$said" = 0 ] || fail "$said went otherwise"

finish
