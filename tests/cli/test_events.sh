#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" small plain small.bin
"$make_trace" two zstd two.bin.zst
"$make_trace" two gzip two.bin.gz
"$make_trace" types plain types.bin

say "one order of time over two batches"
run events two.bin.zst
run events --format text two.bin.zst

say "every field type"
run events types.bin
run events --format text types.bin

say "a field that is called like a key of the line"
"$make_trace" odd plain odd.bin
run events --event SpanEnter:odd --event SpanEnter:inner odd.bin

say "filters"
run events --event PollStartEvent --event PollEndEvent small.bin
run events --worker 255 two.bin.gz
run events --task 9 small.bin
run events -t 5 -f text small.bin
run events --from 15us --to 17us small.bin
run events --limit 2 -f text small.bin
run events --from 1h small.bin
run events --from 2s --to 1s small.bin

say "what the trace does not have: a line, and status 2; a built-in event may have happened never"
run events --event NoSuchThing small.bin
run events --event PollStratEvent small.bin
run events -e pollstart small.bin
run events -e WakeEventEvent types.bin
run events -e SpanEnter:other types.bin
run events --task 12 small.bin
run events --span 12 small.bin
run events --worker 77 small.bin
run events --worker 0 --event NoSuchThing small.bin
run events --event NoSuchThing --limit 1 -e PollStartEvent small.bin

say "the same from standard input, in every container"
"$dial9" events two.bin.zst >reference
for file in two.bin.zst two.bin.gz; do
	"$dial9" events - <$file | cmp - reference
	head -c 100000 $file | "$dial9" events - | cmp - reference
done

say "segments of several files are one trace"
cp small.bin other.bin
"$dial9" events small.bin other.bin | sort | uniq -c | awk '$1 != 2'

say "a file is read once, by whatever names it is given"
ln small.bin link.bin
"$dial9" events small.bin small.bin link.bin | sort | uniq -c | awk '$1 != 1'

say "damage: all before it, one line, status 2"
for kind in unknown-tag newer cut; do
	"$make_trace" $kind plain $kind.bin
	run events --event WorkerParkEvent $kind.bin
done

say "a reader that goes away is no error"
"$make_trace" many zstd many.bin.zst 200000
{
	"$dial9" events many.bin.zst
	echo "[exit status $?]" >status
} | head -n 1
cat status

finish ''
