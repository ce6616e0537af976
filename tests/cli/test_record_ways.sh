#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other ways in which `dial9 record` runs a program: as itself, switched off, as a service.
# What CMD gets in single quotes, CMD's shell expands.
# shellcheck disable=SC2016
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer
words='s/[a-z]\{4\}-[0-9]\{1,\}/ID/g; s/recorded [0-9]* events/recorded N events/'

calls() {
	"$dial9" report --json "$1" | tr '{' '\n' | sed -n 's/.*"polls": *\([0-9]*\).*/\1/p' | sort -n | tail -n 1
}

say "--exec: the same process, its own status, no line"
sh -c 'echo $$ >pid; exec "$0" record --exec -o tr -- sh -c "echo \$\$ >own; exec ./prog 1000 20 7"' "$dial9"
echo "[exit status $?]"
cmp pid own
calls tr
run record --exec -o tr -- sh -c 'kill -TERM $$' 2>/dev/null
run record --exec -o tr -- no-such-program
run record --exec --report -- true
run record --exec --require -- true
# The helper of the program that was killed removes it, too, when it is empty.
rm -rf tr

say "--start-disabled: nothing is recorded until it is enabled"
run record --start-disabled -o tr -- ./prog 1000 20 0
ls tr 2>&1
"$dial9" record -q --start-disabled -o tr -- sh -c 'echo $$ >pid; exec ./prog 1000' &
recorder=$!
until [ -s pid ] && "$dial9" status "$(cat pid)" >/dev/null 2>&1; do sleep 0.05; done
ls -A tr
"$dial9" enable "$(cat pid)" | sed 's/[0-9]\{2,\}/PID/'
until "$dial9" status -j "$(cat pid)" | grep -q '"written":[1-9]'; do sleep 0.05; done
kill "$(cat pid)"
wait $recorder 2>/dev/null
[ "$(calls tr)" -gt 0 ] && echo "it is recorded"
rm -r tr pid

say "systemd's directory for the service is the default"
mkdir -m 755 state
STATE_DIRECTORY=$work/state:$work/other run record -- ./prog 1000 20 0
ls state
ls -d dial9-traces other 2>&1

finish "$words"
