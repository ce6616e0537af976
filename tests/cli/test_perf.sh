#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Samples by perf events where they are permitted: as many as the CPU time makes, through the kernel's functions by name,
# and where threads leave the CPU; as another user, what setting would permit them.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"
# shellcheck source=tests/cli/refused.sh
. "$top_srcdir/tests/cli/refused.sh"

"$dial9" record --quiet -o probe --cpu-backend perf --off-cpu -- ./loop >/dev/null
"$dial9" info probe | grep -q 'source.cpu  *on' || skip "perf events per processor are not permitted: $("$dial9" info probe |
	sed -n 's/^ *source.cpu *//p')"
"$dial9" info probe | grep -q 'source.offcpu  *on' || skip "samples of switches are not permitted"

# counted WHAT DUE [LEAST]: WHAT, if there are about DUE of it; the machine may be busy, and lose some.
counted() {
	n=$(cat)
	if [ "$n" -ge "${3:-$(($2 / 3))}" ] && [ "$n" -le $(($2 * 3 / 2)) ]; then
		echo "as many as are due: $1"
	else
		echo "$n: $1"
	fi
}

# on_cpu TRACE [LEAST]: of the loop's thread, which computes for 0.4 s, and of the helper, which does for 0.3 s.
on_cpu() {
	"$dial9" events -e CpuSampleEvent "$1" | grep '"source":0' >samples
	grep -c '"worker_id":0' samples | counted "on the loop's thread" 40
	grep -c '"thread_name":"helper"' samples | counted "on the helper" 30 $2
	grep -q '"cpu":[0-9]' samples && echo "on which processor is told"
	[ $((10 * $(grep -c '"truncated":true' samples))) -le "$(grep -c . samples)" ] && echo "whole stacks"
	"$dial9" report "$1" | grep -q 'Where threads\|on_timer' && echo "in the report"
}

for backend in perf perf-thread; do
	say "$backend"
	"$dial9" record --quiet -o "$backend" --cpu-threads all --cpu-backend $backend -- ./loop
	echo "status $?"
	# A busy machine may let the helper compute for a while before the recorder's thread has found it.
	on_cpu $backend "$([ $backend = perf ] || echo 1)"
	"$dial9" info $backend | sed -n 's/  */ /g; s/[0-9][0-9]* processors/N processors/; /^ source.cpu/p'
	"$dial9" info $backend | grep -q side_ring && echo "some were lost"
	"$dial9" export --format folded -o - $backend | grep -q 'on_timer;compute' && echo "the callback is in the stacks"
done

say "off the CPU"
"$dial9" record --quiet -o off --off-cpu -- ./loop sleeps
"$dial9" info off | sed -n 's/  */ /g; /^ source\.offcpu\| sched.switch_duty/p'
"$dial9" export --format folded --kind off-cpu -o - off >stacks.folded
grep -o 'on_timer;sleep_in_callback;' stacks.folded | sort -u
if "$dial9" info off | grep -q 'source.kernel_names  *on'; then
	grep -q '_\[k\]' stacks.folded && echo "the kernel's functions have names"
else
	echo "the kernel's functions have names"
fi
"$dial9" report --section samples off | grep -o 'Where threads left the CPU, .*\|^ *switches: .*' | sed 's/[0-9][0-9.,]*\( k\| M\)*/N/g'
finish 's|  *| |g'
