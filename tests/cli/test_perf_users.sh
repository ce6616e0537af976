#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A user whom the kernel permits no perf events per processor: what would permit them is said.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"
# shellcheck source=tests/cli/refused.sh
. "$top_srcdir/tests/cli/refused.sh"

[ "$(id -u)" = 0 ] || skip "only root can become another user"
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ] 2>/dev/null || skip "everybody is permitted perf events here"

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"
}
chmod 755 "$work"
mkdir -m 777 traces
as_nobody sh -c "test -x '$dial9' && test -r '$top_builddir/adapters/.libs/libdial9-preload.so'" ||
	skip "another user may not run the program from where it was built"
as_nobody "$dial9" record -o traces/perf --cpu-backend perf -- ./loop 2>line
echo "status $?"
sed 's/[0-9][0-9]* events/N events/; s/paranoid=[2-9];/paranoid=N;/' line
as_nobody "$dial9" events -e CpuSampleEvent traces/perf 2>&1 | grep -c '"source":0'

say "with that capability alone"
with_perfmon() {
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+perfmon --ambient-caps=+perfmon "$@"
}
with_perfmon true 2>errors || skip "no CAP_PERFMON here: $(cat errors)"
with_perfmon "$dial9" record --quiet -o traces/capable --cpu-backend perf --off-cpu -- ./loop
echo "status $?"
as_nobody "$dial9" info traces/capable | sed -n 's/[0-9][0-9]* processors/N processors/; /^  source\.\(cpu\|offcpu\)/p'
finish 's|  *| |g'
