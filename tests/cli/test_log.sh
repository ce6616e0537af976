#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The recorder's own log: of a program at work, of one that was killed, in its trace, and as JSON.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer

# texts: what lines of the log say, without times and numbers.
texts() {
	sed -E 's/^[0-9-]*T[0-9:.]*Z +//; s/process [0-9]+/process N/; s/dial9 [0-9.]+,/dial9 VERSION,/' | grep -vE '^[a-z]+ +(loop|source|clock|modules|ring)'
}

say "at work"
env DIAL9_TRACE_DIR="$work/t" DIAL9_ENABLED=true LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" ./prog 1000 &
pid=$!
until "$dial9" status -j "$pid" 2>/dev/null | grep -q '"workers":\[{"id":0'; do kill -0 $pid || break; done
"$dial9" disable $pid >/dev/null
"$dial9" enable $pid >/dev/null
"$dial9" rotate $pid >/dev/null
until "$dial9" status --log $pid | grep -q 'recording, was disabled'; do kill -0 $pid || break; done
"$dial9" status --log $pid | texts
"$dial9" status $pid | sed -n "s/^  log  *[0-9].* other lines; /a count; /p" | sed "s/$pid/PID/"

say "killed"
kill -KILL $pid
wait $pid 2>/dev/null
"$dial9" status --log $pid | texts
"$dial9" status --log --json $pid | python3 -c '
import json, sys
said = json.load(sys.stdin)
print(said["errors"], [line["number"] for line in said["log"]] == list(range(len(said["log"]))))'

say "in the trace, once each, the last ones by recovery"
"$dial9" recover "$work/t" >/dev/null
"$dial9" events -e RecorderLogEvent "$work/t" | sed -E 's/.*"level":"([a-z]*)","text":"([^"]*)".*/\1    \2/' | texts
"$dial9" info "$work/t" | grep "^the recorder's log"
"$dial9" query "$work/t" "SELECT count(*) > 5 FROM events WHERE name = 'RecorderLogEvent'" | tail -n 1

say "wrong usage"
run status --log

finish ''
