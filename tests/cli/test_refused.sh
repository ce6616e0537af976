#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where the kernel does not permit what samples are taken with: recording goes on, nothing is replaced silently, and the
# last line, the metadata, the report and the status say what is missing and what would permit it.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"
# shellcheck source=tests/cli/refused.sh
. "$top_srcdir/tests/cli/refused.sh"

./refused timer_create=fails true || skip "no filters of system calls here"

# try TRACE HOW... -- OPTION... : the loop, recorded where calls are refused; what is said of it.
try() {
	trace=$1
	shift
	how=
	while [ "$1" != -- ]; do
		how="$how $1"
		shift
	done
	shift
	say "$trace:$how, $*"
	# shellcheck disable=SC2086
	./refused $how "$dial9" record -o "$trace" "$@" -- ./loop 2>line
	echo "status $?"
	sed 's/[0-9][0-9]* events/N events/' line
	"$dial9" info "$trace" | grep '^  source\.' | sed 's/  */ /g'
	if "$dial9" events -e CpuSampleEvent "$trace" 2>&1 | grep -q '"source":0'; then
		echo "has samples on the CPU"
	else
		echo "has no samples on the CPU"
	fi
	"$dial9" events "$trace" | grep -q PollEnd && echo "has the loop"
	"$dial9" report -v "$trace" | sed -n '/refused-source\|missing-source/,/what to do/p'
}

try timers timer_create=fails -- --cpu-threads all
try perf perf_event_open=fails -- --cpu-backend perf
try perf-kills perf_event_open=kills -- --cpu-backend perf-thread
try switches perf_event_open=fails -- --off-cpu
try stacks process_vm_readv=fails -- --cpu-threads all
"$dial9" events -e CpuSampleEvent stacks | grep '"thread_name":"helper"' | grep -v '"callchain":\[[^,]*\]' |
	grep -c . | sed 's/^0$/each stack of the helper has one frame/'
try automatic perf_event_open=kills -- --quiet

say "nothing but stacks was wanted"
./refused perf_event_open=fails "$dial9" record -o only --profile-only --cpu-backend perf -- ./loop
"$dial9" report only | sed 's/^loop  [0-9.]* m*s/loop  TIME/; s/^loop *[0-9.]* [nu]*s/loop  TIME/'

say "while it runs"
./refused perf_event_open=fails "$dial9" record --quiet -o running --cpu-backend perf -- ./loop >/dev/null &
pid=$!
tries=0
until grep -q perf_event_open status.txt 2>/dev/null || [ $tries = 100 ]; do
	child=$("$dial9" status --json -d running 2>/dev/null | sed -n 's/.*"pid":\([0-9]*\).*/\1/p' | head -n 1)
	[ -z "$child" ] || "$dial9" status "$child" >status.txt 2>/dev/null
	tries=$((tries + 1))
	sleep 0.02
done
sed -n '/^  samples/,/^  hooks/p' status.txt | grep -v '^  hooks'
wait $pid
finish 's/^[0-9]* \(INFO\|WARNING\)/N \1/; s/  */ /g'
