#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that know nothing of dial9 and have a problem each, on the loop libraries where it differs: the first finding but
# those on the machine and the recording has the right check and owner.  Their twins, and programs that only look like it, are
# told of no fault.  Without D9_ALL=yes those that look like it, and problems that are alike on all, are asked on one library.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need_node
programs=$helpers/verdicts

# run TRACE PROGRAM ARG...
run() {
	rm -rf "${dir:?}/$1"
	trace=$dir/$1
	program=$programs/$2
	[ -x "$program" ] || return 1
	shift 2
	status=0
	"$dial9" record --quiet -o "$trace" -- "$program" "$@" >"$trace.out" 2>&1 || status=$?
	[ "$status" != 77 ] || return 1
	[ "$status" = 0 ] || fail "$program $* exited with $status: $(cat "$trace.out")"
	ran=yes
}

# Of what is told beside the machine, what that makes late, and the recording: CHECK NAME of the first.
first() {
	report "$dir/trace" '((f) => f ? `${f.check} ${f.name}` : "nothing")(
		r.findings.find((f) => !/^(incomplete-data|degraded-hooks|short-of-cpu|cpu-contention|wake-delay|timer-late|stopped)$/
			.test(f.check)))'
}

warnings() {
	report "$dir/trace" 'r.findings.filter((f) => f.severity !== "info"
		&& !/^(incomplete-data|short-of-cpu|cpu-contention|wake-delay|timer-late|stopped)$/.test(f.check))
		.map((f) => `${f.check} ${f.name}`).join(", ")'
}

# guilty "PROGRAM ARG..." CHECK NAME
guilty() {
	# shellcheck disable=SC2086 # words
	run trace $1 || return 0
	found=$(first)
	# shellcheck disable=SC2254 # a pattern
	case $found in
	$2" "$3) echo "$1: $found" ;;
	*)
		"$dial9" report "$dir/trace" | head -12
		fail "$1: the first finding is $found, not $2 $3"
		;;
	esac
}

# told "PROGRAM ARG..." CHECK NAME: somewhere, as information is told behind all that a busy machine makes late.
told() {
	# shellcheck disable=SC2086 # words
	run trace $1 || return 0
	[ "$(report "$dir/trace" "r.findings.some((f) => f.check === '$2' && (f.name ?? '') === '$3')")" = true ] || {
		"$dial9" report "$dir/trace" --section findings | head -40
		fail "$1: no finding $2 $3"
	}
	echo "$1: $2 $3"
}

# innocent "PROGRAM ARG..."
innocent() {
	# shellcheck disable=SC2086 # words
	run trace $1 || return 0
	found=$(warnings)
	[ -z "$found" ] || {
		"$dial9" report "$dir/trace" | head -12
		fail "$1: accused of $found"
	}
	echo "$1: no fault"
}

for loop in libevent libev glib; do
	guilty "wakes-$loop look" empty-wakes look_for_news
	guilty "one-$loop thread" long-callback on_job
	guilty "one-$loop client" '*' on_client
	[ "$loop" = libevent ] || [ "${D9_ALL:-}" = yes ] || continue
	innocent "wakes-$loop accepts"
	innocent "wakes-$loop bursts"
	innocent "wakes-$loop timers"
	innocent "wakes-$loop closes"
	innocent "one-$loop thread innocent"
done
guilty "wakes-glib hangup" empty-wakes '*'
told "sums-libevent one" adds-up sign_with_key
# Short calls are short only where a CPU is free.
if [ "${D9_ALL:-}" = yes ]; then
	told "sums-libevent three" adds-up sign_with_key
	told "sums-libevent loops" adds-up sign_with_key
fi
innocent "sums-libevent one innocent"
told "elsewhere-libevent threads" elsewhere ''
innocent "elsewhere-libevent threads innocent"

# says EXPRESSION: in JavaScript, of the first finding "f" but those on the machine, and of the report "r".
says() {
	[ "$(report "$dir/trace" "((f) => $1)(r.findings.find((f) =>
		!/^(incomplete-data|degraded-hooks|short-of-cpu|cpu-contention|wake-delay|timer-late|stopped)$/.test(f.check)))")" = true ] || {
		"$dial9" report --section findings "$dir/trace" | head -40
		fail "it does not say $1"
	}
}

# pair "PROGRAM ARG..." CHECK NAME EXPRESSION: and its twin, which has one more argument, is told of no fault.
pair() {
	ran=no
	guilty "$1" "$2" "$3"
	[ "$ran" = yes ] || return 0
	says "$4"
	rm -rf "$dir/guilty"
	mv "$dir/trace" "$dir/guilty"
	innocent "$1 innocent"
}

pair "sums-libevent lock" '*' '*' '/lock for a few instructions only/.test(f.advice) && f.severity !== "info"'

# The write is named that waits for the disk, and not those who wait behind it.
disk() {
	pair "disk-$1 $dir" blocked-callback on_entry '/^write\(\d+\) at append_to_journal/.test(f.blocked) && /write them in a thread/.test(f.advice)'
}

# Two loops, and not each of them.
hops() {
	pair "hops-$1" many-wakes take_piece '/^two loops wake each other/.test(f.brief) && /on one loop/.test(f.advice)'
}

# Of all that holds a loop the library's own work has no callback.
library() {
	pair "library-$1 $dir" inside-library "inside *" '/fewer/.test(f.advice) && f.on_cpu !== null'
}

# Callbacks that are not the function which does the work, each with the one that does.
trampolines() {
	# shellcheck disable=SC2016 # JavaScript
	pair "trampolines-$1 $programs/.libs/plugin.so" long-callback "*" '[
		[/lambda/, /render_page \(/], [/call_function/, /operator\(\) \(trampolines/], [/on_any_event/, /handle_search \(/],
		[/on_any_event/, /plugin_scale \(plugin/], [/method_thunk/, /queue::drain \(/], [/call_plugin/, /transform_image \(/],
	].every(([name, work]) => r.findings.some((f) => f.check === "long-callback" && name.test(f.name) &&
		(work.test(f.on_cpu) || f.evidence.some((e) => work.test(e.text)))))'
}

for loop in libevent libev glib; do
	case $loop:${D9_ALL:-} in libevent:* | *:yes) disk $loop ;; esac
	case $loop:${D9_ALL:-} in glib:* | *:yes) hops $loop ;; esac
	case $loop:${D9_ALL:-} in libevent:*) ;; libev:* | *:yes) library $loop ;; esac
	case $loop:${D9_ALL:-} in libev:* | *:yes) trampolines $loop ;; esac
done

# libev calls these in each round, whatever it woke for: by their share, as any other callback.
rounds() {
	pair "rounds-libev $1" source-time "on_$1" '/computes in each round/.test(f.brief) && /only look/.test(f.advice) &&
		/flush_dirty/.test(f.on_cpu)'
}

rounds prepare
[ "${D9_ALL:-}" != yes ] || rounds check

# ---- the machine: figure, cause and remedy are on the first screen of 80 columns and 24 lines, of which the prompts have two ----

# screen PROGRAM FIGURE REMEDY: and no callback is accused of what the machine does.
screen() {
	"$dial9" report --width 80 "$dir/trace" | head -n 22 >"$dir/screen" || true
	tr -s '\n ' '  ' <"$dir/screen" | grep -E "$2.* do: $3" >/dev/null || {
		cat "$dir/screen"
		fail "$1: the first screen does not tell $2, and $3"
	}
	found=$(warnings)
	[ -z "$found" ] || fail "$1: accused of $found"
	echo "$1: $2"
}

# limited DIRECTORY: a new cgroup that may use 3 % of a CPU, which is less than any neighbours leave to it; its file of processes is $group/cgroup.procs.
limited() {
	group=$1/dial9-test-$$
	mkdir "$group" 2>/dev/null || return 1
	if [ -w "$group/cpu.max" ]; then
		echo "3000 100000" >"$group/cpu.max" && return 0
	elif [ -w "$group/cpu.cfs_quota_us" ]; then
		echo 3000 >"$group/cpu.cfs_quota_us" && return 0
	fi
	rmdir "$group"
	return 1
}

# A quota that the program comes under while it runs.
quota() {
	[ -x "$programs/quota-$1" ] || return 0
	limited /sys/fs/cgroup || limited /sys/fs/cgroup/cpu || limited /sys/fs/cgroup/cpu,cpuacct || {
		echo "no cgroup can be made here"
		return 0
	}
	limited_run=0
	run trace "quota-$1" "$group/cgroup.procs" || limited_run=$?
	# The kernel lets go of a group a moment after its last process.
	for _ in 1 2 3 4 5 6 7 8 9; do
		! rmdir "$group" 2>/dev/null || break
		sleep 0.1
	done
	[ "$limited_run" = 0 ] || return 0
	screen "quota-$1" "short of CPU by its cgroup's limit: stopped for [0-9.]+ m?s, [0-9]+ times" "Raise the CPU limit"
}

# Neighbours that burn all CPUs.
neighbour() {
	[ -x "$programs/quota-$1" ] || return 0
	for _ in $(seq $((2 * $(nproc)))); do
		timeout 60 sh -c 'while :; do :; done' &
		pids="$pids $!"
	done
	run trace "quota-$1"
	stop_all
	pids=''
	screen "a neighbour of quota-$1" \
		"short of CPU: loops were ready without one for [0-9]+ % of the time, as (other programs|the host)" \
		"(Run fewer programs|Give this virtual machine)"
}

for loop in libevent libev glib; do
	[ "$loop" = libevent ] || [ "${D9_ALL:-}" = yes ] || continue
	quota $loop
	neighbour $loop
done

# A thread of the program's own on the loop's CPU, and other programs there beside one that hardly computes.
bound() {
	[ -x "$programs/bound-libevent" ] && [ "$(nproc)" -gt 1 ] || return 0
	cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	run trace "bound-libevent" "$cpu" || return 0
	screen "bound-libevent" \
		"waits for CPU $cpu for [0-9]+ % of the time, [0-9]+ % of that behind the program's thread indexer .tid [0-9]+." \
		"Bind the loop's thread and the other one to different CPUs"
	for _ in 1 2; do
		taskset -c "$cpu" timeout 60 sh -c 'while :; do :; done' &
		pids="$pids $!"
	done
	run trace "bound-libevent" "$cpu" innocent
	stop_all
	pids=''
	screen "others beside bound-libevent" \
		"short of CPU: loops were ready without one for [0-9]+ % of the time, as (other programs|the host)" \
		"(Run fewer programs|Give this virtual machine)"
}

bound
