#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs with one problem each, on each loop library where it differs: the report's first finding names
# the check and the owner.  The innocent twin of each does the same without the problem: no warning, and where the
# finding tells what callbacks would wait without it, that is how long the twin's do.
#	test_judged.sh [LIBRARY:NAME...]
# Each takes eight seconds of which it waits for most: without names, and without D9_ALL=yes, one or two of a kind.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need_node
wanted=" $* "

# record TRACE LIBRARY NAME [innocent]
record() {
	rm -rf "${dir:?}/$1"
	"$dial9" record -o "$dir/$1" -- "$helpers/judged/judged_$2" "$3" 4 ${4:-} >"$dir/log" 2>&1 || {
		cat "$dir/log"
		fail "$2 $3 $4 was not recorded"
	}
}

# The first finding that is about the program: what the machine did to it stands beside that.
first() {
	report "$dir/$1" '((f) => f ? `${f.check} ${f.name}` : "nothing")(r.findings.find((f) =>
		!/^(incomplete-data|degraded-hooks|short-of-cpu|cpu-contention)$/.test(f.check)))'
}

# Warnings about the program that are no consequence of a machine which is busy.
warnings() {
	report "$dir/$1" 'r.findings.filter((f) => f.severity !== "info" &&
		!/^(incomplete-data|short-of-cpu|cpu-contention|wake-delay|timer-late|backlog)$/.test(f.check))
		.map((f) => f.check + " " + f.name).join(", ")'
}

# Of $library and $name.
record_both() {
	record guilty "$library" "$name"
	record twin "$library" "$name" innocent
}

# judged LIBRARY:NAME "CHECK OWNER" [WORDS in sentence or advice]
judged() {
	case $wanted in "  " | *" $1 "*) ;; *) return 0 ;; esac
	library=${1%%:*}
	name=${1#*:}
	[ -x "$helpers/judged/judged_$library" ] || return 0
	record guilty "$library" "$name"
	found=$(first guilty)
	[ "$found" = "$2" ] || {
		"$dial9" report "$dir/guilty" | head -12
		fail "$1: the first finding is $found, not $2"
	}
	[ -z "${3:-}" ] || "$dial9" report --json "$dir/guilty" | grep -q "$3" || {
		"$dial9" report "$dir/guilty" | head -12
		fail "$1: the report does not say $3"
	}
	record twin "$library" "$name" innocent
	found=$(warnings twin)
	[ -z "$found" ] || {
		"$dial9" report "$dir/twin" | head -12
		fail "$1: the innocent twin is accused: $found"
	}
	promise_holds "$dir/guilty" "$dir/twin" record_both
	echo "$1: $2; its twin is silent"
}

# Of a kind that another one stands for.
more() {
	case ${D9_ALL:-}$wanted in "  ") ;; *) judged "$@" ;; esac
}

judged libevent:hold_callback 'long-callback rebuild_index'
more libev:hold_callback 'long-callback rebuild_index'
more glib:hold_callback 'long-callback rebuild_index'
more libevent:hold_nested 'nested-loop ask_peer'
judged libev:hold_nested 'nested-loop ask_peer'
more glib:hold_nested 'blocked-callback ask_user'
more libevent:hold_between 'between-rounds sweep_cache'
judged libev:hold_between 'between-rounds sweep_cache'
more glib:hold_between 'between-rounds sweep_cache'
more libevent:ask_between 'sleeps-between ask_sidecar' 'O_NONBLOCK'
more libev:ask_between 'sleeps-between ask_sidecar' 'O_NONBLOCK'
judged glib:ask_between 'sleeps-between ask_sidecar' 'O_NONBLOCK'
judged libev:nap_between 'sleeps-between sleep between rounds' 'Wait in the loop'
judged libev:ask_loop 'loop-overhead ask_loop' 'Let the loop wait'

# By slept time, whatever the clock says of a write that the kernel interrupted; and advice by the call.
judged libevent:lock_and_write 'blocked-callback on_request' 'Hold the lock'
judged libevent:convoy 'blocked-callback on_request' 'stand in it: workers'
judged libevent:forks 'long-callback run_hook' 'posix_spawn'
more libevent:write_again 'long-callback send_page' 'Wait for writability'
more libevent:asks_time 'long-callback wait_for_device' "the loop's time"
more libevent:spins_on_lock 'long-callback look_up_word' 'Hold the lock'
more libevent:yields 'long-callback ask_worker' 'hand the result over'
judged libevent:looks 'spin on_frame' 'nothing is read from it'
judged libevent:joins 'blocked-callback on_render' 'hand the result over'
more libevent:reads 'blocked-callback authorise' 'O_NONBLOCK'
# Inside the C library: by the child that the stream belongs to.
more libevent:asks_child 'blocked-callback on_metrics' 'SIGCHLD'

# Beside a program that burns the CPU which this one may use, and has seventy times as much of it: a lock's holder
# that computes for half a millisecond has it for many.
beside_load() {
	case $wanted in "  " | *" $1 "*) ;; *) return 0 ;; esac
	cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	taskset -c "$cpu" sh -c 'while :; do :; done' &
	pids="$pids $!"
	rm -rf "$dir/twin"
	taskset -c "$cpu" nice -n 19 "$dial9" record -o "$dir/twin" -- \
		"$helpers/judged/judged_${1%%:*}" "${1#*:}" 4 innocent >"$dir/log" 2>&1 || {
		cat "$dir/log"
		fail "$1 was not recorded beside load"
	}
	stop_all
	pids=''
	found=$(warnings twin)
	[ -z "$found" ] || {
		"$dial9" report "$dir/twin" | head -12
		fail "$1: beside load the innocent twin is accused: $found"
	}
	[ "$(report "$dir/twin" 'r.findings[0].check')" = short-of-cpu ] || {
		"$dial9" report "$dir/twin" | head -12
		fail "$1: beside load the machine is not told first"
	}
	echo "$1: beside load its twin is silent"
}

judged libevent:holder_computes 'blocked-callback on_word' 'count_words'
beside_load libevent:holder_computes

# Of one function for all clients each waits for the others.
judged libevent:clients 'blocked-callback on_ask' 'nanosleep'

# A round that does not end, and one priority before all others, beside neighbours that wait.
judged libevent:endless_round 'long-round poll_queue'
judged libevent:starved 'unfair on_stream'
more glib:starved 'unfair handle_stream'

# Timers that libev counts from a clock which stood still between two runs.
judged libev:stale_between 'stale-clock run_tasks'
more libev:sleep_between 'stale-clock sleep_between'
more glib:seconds_late 'long-callback hold_second'

# The long jobs that fill a pool are accused, and not the short ones behind them.
judged glib:full_pool 'helper-queue on_report'
more glib:own_pool 'helper-queue push_long'

# What eight loops have alike is one finding, which names them.
judged libevent:eight_between 'between-rounds expire_part' 'So it is on . other workers'
more libevent:eight 'long-callback flush_part'
