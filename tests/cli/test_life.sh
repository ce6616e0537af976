#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The life of a task and of a span: as lines, and as a picture to scale.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" life plain life.bin

say "a task: made, woken by its descriptor, by another task and by itself"
run events --format text --life --task 7 life.bin

say "a task that was there before and lives on; the same from standard input"
run events --life --task 9 life.bin
"$dial9" events --life --task 9 - <life.bin >by_input
"$dial9" events --life --task 9 life.bin | cmp - by_input

say "a span that is entered twice, and its events alone"
run events --life --span 3 life.bin
run events --span 3 life.bin

say "a picture: 500 us are 990 wide, from 190 on"
run diagram --task 7 -o task.svg life.bin
if command -v xmllint >/dev/null; then
	xmllint --noout task.svg
fi
grep -E 'class="(busy|ready)"' task.svg | grep '^<rect'
grep -c 'class="wake"' task.svg
grep -c 'class="self"' task.svg
grep -o '<title>[^/]*span parse begins' task.svg
grep -c 'answer &lt;&amp;&gt; ask' task.svg
run diagram --span 3 life.bin | grep 'class="busy"' | grep '^<rect'

say "the axis of a short life that comes late: labels differ; names have all the room they take"
"$make_trace" late plain late.bin
run diagram --task 7 -o late.svg late.bin
grep -o 'class="tick">[^<]*' late.svg
grep -o 'class="label">service[^<]*' late.svg
grep -o 'viewBox="[^"]*"' late.svg

say "texts that are no UTF-8, no XML, or orders to a terminal"
"$make_trace" wild plain wild.bin
run events --life --task 3 wild.bin
run diagram --task 3 -o wild.svg wild.bin
if command -v xmllint >/dev/null; then
	xmllint --noout wild.svg
fi
grep -o 'class="label own">.*</text>' wild.svg

say "of a thousand processes, each has its own tasks: the one that comes last does not take names of the first"
"$make_trace" small plain small.bin
mkdir many
(
	cd many || exit
	# shellcheck disable=SC2046 # one folder for each process
	mkdir $(seq 0 1024)
	# shellcheck disable=SC2046
	tee $(seq -f %g/x.bin 0 1023) <../small.bin >/dev/null
)
"$make_trace" life plain many/1024/x.bin 1000000
"$dial9" events --life --task 7 many | grep 'task 9'

say "a reader that went away is no failure"
mkfifo gone
{
	read -r _ <gone
	"$dial9" diagram --task 7 life.bin
	echo "status $?" >&2
} | {
	exec <&-
	echo >gone
}

say "usage"
run events --life life.bin
run events --life --task 7 --span 3 life.bin
run events --life --task 8 life.bin
for other in --event=WakeEvent --worker=0 --from=1ms --to=1ms --limit=3 --format=jsonl; do
	run events --life --task 7 $other life.bin
done
run diagram life.bin
run diagram --task x life.bin
run diagram --span 4 life.bin
run diagram --task 7 -o missing/x.svg life.bin
run diagram --task 7

finish ''
