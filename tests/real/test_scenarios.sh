#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each examples/scenario_NAME has a problem: the report's first finding names it and the function.
# Its innocent twin does the same without the problem: the report has nothing to warn of.
#	test_scenarios.sh [NAME...]
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need_node
examples=$top_builddir/examples
wanted=" $* "

# What else runs on this machine takes the CPU from them, and that is a problem of its own: where the kernel
# lets us they come first.
first=
[ -n "$(nice -n -20 true 2>&1)" ] || first='nice -n -20'

# run TRACE NAME ARG...
run() {
	rm -rf "${dir:?}/$1"
	trace=$dir/$1
	program=$examples/scenario_$2
	shift 2
	# shellcheck disable=SC2086 # words
	DIAL9_TRACE_DIR=$trace $first "$program" "$@" >"$trace.out" || fail "$program $* exited with $?"
}

# The first finding but those on the recording itself: CHECK FUNCTION.
finding() {
	report "$dir/$1" '((f) => f ? `${f.check} ${f.name}` : "nothing")(
		r.findings.find((f) => !/^(incomplete-data|degraded-hooks)$/.test(f.check)))'
}

# Checks of all warnings.
warnings() {
	report "$dir/$1" 'r.findings.filter((f) => f.severity !== "info"
		&& f.check !== "incomplete-data").map((f) => f.check).join(" ")'
}

# What a machine that is busy with something else does to any program.
is_disturbance() {
	for check in $1; do
		case $check in
		short-of-cpu | cpu-contention | wake-delay | timer-late | backlog) ;;
		*) return 1 ;;
		esac
	done
}

is_short_of_cpu() {
	case " $(warnings "$1") " in *" short-of-cpu "*) ;; *) return 1 ;; esac
}

# Events were lost, maybe those that tell what a task is.
is_incomplete() {
	[ "$(report "$dir/$1" 'r.trace.lost_events > 0')" = true ]
}

# is_told FOUND CHECK FUNCTION: the function may be a pattern, of a library's that has no name in a stripped one.
is_told() {
	# shellcheck disable=SC2254
	case $1 in "$2 "$3) ;; *) return 1 ;; esac
}

# NAME by its own count: on a machine that is too busy for a storm there is none.
did_too_little() {
	case $1 in
	*wake_storm) [ "$(sed -n 's/.* results in \([0-9]*\) calls$/\1/p' "$dir/guilty.out")" -lt 3000 ] ;;
	*) return 1 ;;
	esac
}

# scenario "NAME [VARIANT]" CHECK FUNCTION
scenario() {
	case $wanted in "  " | *" ${1%% *} "*) ;; *) return 0 ;; esac
	for _ in 1 2 3; do
		# Name and variant are two words.
		# shellcheck disable=SC2086
		run guilty $1
		found=$(finding guilty)
		! is_told "$found" "$2" "$3" || break
		is_disturbance "${found%% *}" || is_short_of_cpu guilty || is_incomplete guilty ||
			did_too_little "$1" || break
	done
	if [ "$found" = nothing ] && did_too_little "$1"; then
		echo "$1: left out: the machine is too busy: $(cat "$dir/guilty.out")"
		return 0
	fi
	is_told "$found" "$2" "$3" || {
		"$dial9" report "$dir/guilty" | head -12
		fail "$1: the first finding is $found, not $2 $3"
	}
	for _ in 1 2 3; do
		# shellcheck disable=SC2086
		run innocent $1 innocent
		found=$(warnings innocent)
		# What a host takes counts as CPU time of whoever ran: where the report says that the machine was short of
		# CPU, any call may be longer than the program made it.
		case " $found " in
		"  ") break ;;
		*" short-of-cpu "*) ;;
		*) is_disturbance "$found" || break ;;
		esac
	done
	case $found in
	"" | short-of-cpu | cpu-contention) ;; # true, of this machine
	*)
		"$dial9" report "$dir/innocent" | head -12
		fail "$1: the innocent twin is accused: $found"
		;;
	esac
	echo "$1: $2 $3; its twin is silent"
}

# scenario_killed NAME VARIANT CHECK FUNCTION: one that hangs until it is killed; what is in its ring is recovered.
scenario_killed() {
	case $wanted in "  " | *" $1 "*) ;; *) return 0 ;; esac
	for variant in "$2" innocent; do
		rm -rf "${dir:?}/$variant"
		status=0
		DIAL9_TRACE_DIR=$dir/$variant "$examples/scenario_$1" 4 "$variant" >"$dir/$variant.out" 2>&1 || status=$?
		equal "status of the killed scenario_$1" 137 "$status"
		"$dial9" recover "$dir/$variant" >/dev/null
	done
	found=$(finding "$2")
	equal "the first finding of $1 $2" "$3 $4" "$found"
	equal "its share of the loop's time" true "$(report "$dir/$2" 'r.workers[0].busy > 0.5')"
	found=$(warnings innocent)
	case $found in
	"" | short-of-cpu | cpu-contention) ;;
	*) fail "$1: the innocent twin is accused: $found" ;;
	esac
	echo "$1 $2: $3 $4; its twin is silent"
}

scenario_killed hang hang stuck-callback on_request
scenario_killed hang lock stuck-callback on_request
scenario long_callback long-callback rebuild_report
scenario blocked_callback blocked-callback ask_and_wait
scenario "spin read" spin on_readable
scenario "spin write" spin on_writable
scenario "spin hangup" spin on_data
scenario wake_storm wake-storm take_results
scenario idle_wakes empty-wakes look
scenario signal_handler busy-wait '*'
scenario stale_clock stale-clock begin_request
scenario "in_time periodic" periodic-pause 'on_*'
scenario "in_time first" cold-start on_read
scenario "in_time growing" growing-calls on_read
scenario timer_late timer-late run_stage
scenario timer_overrun timer-overrun read_sensors
scenario "growth memory" memory-growth handle_request
scenario "growth descriptors" descriptor-growth handle_request
scenario idle_workers idle-workers do_job
scenario "many_wakes timers" many-wakes on_timer
scenario "many_wakes signals" many-wakes on_signal
scenario "many_wakes pipe" many-wakes on_byte
scenario page_faults page-faults render
scenario "nested_loop attached" nested-loop handle_request
scenario "nested_loop polled" nested-loop handle_request
# A base that nobody attached is waited for as for anything else.
scenario "nested_loop private" blocked-callback handle_request
scenario unfair unfair on_message
scenario backlog backlog on_message
scenario leak task-leak on_timeout
scenario "leak unused" task-leak on_timeout
scenario accept_storm accept-storm on_accept_error

# What was reported of libev.
if [ -x "$examples/scenario_libev_lost_wake" ]; then
	scenario libev_accept_storm accept-storm on_ready
	scenario libev_eager_read long-callback read_messages
	scenario libev_lost_wake lost-wake take_result
	scenario libev_polled_loop nested-loop handle_request
	scenario libev_stale_clock stale-clock begin_request
	# Each of them, whatever the moment between two ticks of the kernel.
	case $wanted in "  " | *" libev_stale_clock "*)
		equal "timers by a clock that stood still" 12 \
			"$("$dial9" info "$dir/guilty" | awk '$1 == "StaleTimerEvent" { print $2 }')"
		;;
	esac
	scenario libev_timer_storm idle-wakes look_for_connection
fi

# The same on GLib, and what only GLib has.
if [ -x "$examples/scenario_glib_leak" ]; then
	# GIO accepts by a function of its own, which calls the program's, if at all.
	scenario "glib_accept_storm listener" accept-storm 'socket listener accept*'
	scenario "glib_accept_storm service" accept-storm 'socket listener accept*'
	scenario glib_blocked blocked-callback ask_and_wait
	scenario glib_check source-time device_check
	scenario glib_helper helper-queue read_record
	scenario glib_idle_spin spin look_for_work
	scenario glib_leak task-leak on_watchdog
	scenario "glib_nested_loop modal" nested-loop show_dialog
	scenario "glib_nested_loop polled" nested-loop show_dialog
	scenario "glib_nested_loop private" blocked-callback show_dialog
	scenario glib_starvation unfair handle_data
	scenario glib_sync_call blocked-callback call_sync
	scenario glib_wake_storm wake-storm take_results
fi
