#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs that count for themselves, with a libevent other than the installed one:
#
#	check_other_libevent.sh PREFIX [COMPARE OPTION...]
#
# PREFIX holds include/ and lib/ as libevent's `make install` leaves them; $top_builddir is a built tree.
# Without options they follow from what the library exports.  Without PREFIX: each libevent that can be
# built from the sources in $D9_TEST_SOURCES.
set -u

: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:?is a built tree}"
. "$top_srcdir/tests/adapters/other_libevent.sh"

# options_for PREFIX: what must be found there.
options_for() {
	options="--has task=event --has lateness=on --has park=on"
	if nm -D "$1/lib/libevent.so" | grep -qE ' T (event_callback_activate_nolock_|event_active_nolock)$'; then
		options="$options --wakes --has wake=full"
	else
		options="$options --has wake=public"
	fi
	if readelf -d "$1/lib/libevent.so" | grep -q SYMBOLIC; then
		options="$options --partial --has poll=partial"
	else
		options="$options --has poll=full"
	fi
}

# record "VARIABLES" PROGRAM ARGUMENTS...
record() {
	variables=$1 program=$2
	shift 2
	scenario="$version: $variables $program $*"
	status=0
	# shellcheck disable=SC2086
	run "$prefix_tested" env $variables "$work/$program" "$@" >"$work/said" 2>&1 || status=$?
	[ $status -ne 77 ] || return 0
	if [ $status -ne 0 ] || [ -s "$work/said" ]; then
		cat "$work/said"
		fail "status $status"
		return
	fi
	# shellcheck disable=SC2086
	for file in "$work"/counters*; do
		compare "$file" $options
	done
}

# check PREFIX [COMPARE OPTION...]: the whole list.
check() {
	prefix_tested=$1 library=$1/lib/libevent.so
	shift
	if [ $# -gt 0 ]; then
		options=$*
	else
		options_for "$prefix_tested"
	fi
	name=${prefix_tested%/usr}
	config=$prefix_tested/include/event2/event-config.h
	version="${name##*/} $(sed -n 's/^#define _*EVENT_*VERSION "\(.*\)"/\1/p' "$config")"
	compile_programs "$prefix_tested"
	before=$passed
	# A base of ours is not to be announced.
	scenario="$version: EVENT_SHOW_METHOD"
	env LD_LIBRARY_PATH="$prefix_tested/lib" EVENT_SHOW_METHOD=1 "$work/every_kind" 2>"$work/alone" || fail "status $?"
	run "$prefix_tested" env EVENT_SHOW_METHOD=1 "$work/every_kind" 2>"$work/said" || fail "status $?"
	cmp "$work/alone" "$work/said" || fail "stderr is not as alone"
	record "" every_kind --threads
	record "" every_kind
	record "" every_kind --threads --debug
	record "" every_kind --reinit
	record "EVENT_NOEPOLL=1" every_kind --threads
	record "EVENT_NOEPOLL=1 EVENT_NOPOLL=1" every_kind --threads
	record "EVENT_EPOLL_USE_CHANGELIST=1" every_kind --reinit
	record "" every_kind --threads --fork=descriptors,timers,signals,once
	# 2.2 can read signals from descriptors; each of several at once is then one.
	! nm -D "$library" | grep -q ' T event_base_get_signal_method$' ||
		record "EVENT_USE_SIGNALFD=1" every_kind
	# 2.0 does not tell how many were made ready before a loop.
	if nm -D "$library" | grep -q ' T event_base_get_num_events$'; then
		case " $options " in
		*wake=full*) record "" facts wakes ;;
		*wake=public*) record "" facts public ;;
		esac
	fi
	# A case need not use what tells a capability.
	options=
	for name in nested longjmp thread_exit closures lock_debug precise two_threads daemon allocator; do
		record "" cases $name
	done
	case " $* " in
	*task=slot*) ;; # events are not told from one another, nor what they wait for
	*)
		for name in tasks compat late; do
			record "" cases $name
		done
		;;
	esac
	echo "$version: $((passed - before)) traces equal to the program's own counters"
}

[ -x "$here/compare_counts" ] || skip "no $here/compare_counts: run make check TESTS= first"

if [ $# -gt 0 ]; then
	check "$@"
	[ $failed -eq 0 ]
	exit
fi

unpack libevent "$work/plain" || skip "$no_sources"

# build NAME FLAG...: a copy of the source, changed since it was made.
build() {
	name=$1
	shift
	diff -rq "$work/plain" "$work/$name" >/dev/null && fail "the source reads otherwise now: mend the sed"
	"$top_srcdir/tests/support/build_libevent.sh" "$work/$name" "$work/$name/usr" "$@" >"$work/log" || {
		cat "$work/log"
		exit 99
	}
}

# As 2.2 is built: only what is meant for others is visible; and private fields lie elsewhere.
cp -R "$work/plain" "$work/moved"
sed -i '/^struct event_base {/,/^};/s/^\tconst struct eventop \*evsel;/&\n\tchar d9_moved[520];/' \
	"$work/moved/event-internal.h"
sed -i '/^struct event {/,/^};/s/^\tstruct event_callback ev_evcallback;/&\n\tvoid *d9_moved[3];/' \
	"$work/moved/include/event2/event_struct.h"
build moved -fvisibility=hidden -Devent_shared_EXPORTS
check "$work/moved/usr" --has poll=full --has wake=public --has task=event --has lateness=on --has park=on

# What no guard may pass: two places that say which event runs, and when it is due; a table whose name is
# not the method's.
cp -R "$work/plain" "$work/doubtful"
sed -i '/^struct event_base {/,/^};/s/^\tconst struct eventop \*evsel;/&\n\tvoid *d9_again;/' \
	"$work/doubtful/event-internal.h"
sed -i '/^struct event {/,/^};/s/^\tstruct event_callback ev_evcallback;/&\n\tstruct timeval d9_again;/' \
	"$work/doubtful/include/event2/event_struct.h"
sed -i -e 's/base->current_event = \([a-zA-Z]*\);/base->d9_again = base->current_event = \1;/' \
	-e 's/evutil_timeradd(&now, tv, &ev->ev_timeout);/&\n\t\tev->d9_again = ev->ev_timeout;/' \
	-e 's/return (base->evsel->name);/static char copy[32]; return strcpy(copy, base->evsel->name);/' \
	"$work/doubtful/event.c"
build doubtful
check "$work/doubtful/usr" --has poll=full --has wake=partial --has task=slot --has lateness=off \
	--has park=off --no-parks

if unpack openmpi "$work/old" opal/mca/event/libevent2022/libevent; then
	build old
	check "$work/old/usr"
else
	echo "no source of openmpi: libevent 2.0 is not tested"
fi

echo "$passed traces equal to the program's own counters, $failed failures"
[ $failed -eq 0 ]
