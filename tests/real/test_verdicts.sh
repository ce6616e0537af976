#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that know nothing of dial9 and have a problem each, on the loop libraries where it differs: the first finding but
# those on the machine and the recording has the right check and owner.  Their twins, and programs that only look like it, are
# told of no fault.  Without D9_ALL=yes those that look like it are asked on one library.
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
