#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" two plain two.bin
"$make_trace" two zstd two.bin.zst
"$make_trace" types gzip types.bin.gz
"$make_trace" types plain types.bin
"$make_trace" many zstd many.bin.zst 100000

say "byte for byte what was recorded, whatever the container"
run export --format trc -o out.trc two.bin.zst
cmp out.trc two.bin
stat -c %a out.trc
"$dial9" export -o - types.bin.gz | cmp - types.bin

say "several segments: the earlier first, and the events are those of the input"
run export --format trc -o all.trc many.bin.zst two.bin
"$dial9" events all.trc >from_export
"$dial9" events two.bin many.bin.zst >from_input
sort from_export >a && sort from_input >b && cmp a b

say "one gzip member"
run export --format trc.gz -o out.trc.gz two.bin.zst
run export -o by_name.gz two.bin.zst
gzip -dc out.trc.gz | cmp - two.bin
gzip -dc by_name.gz | cmp - two.bin

say "a suffix that tells no format is refused, and leaves no file; with --format any name is right, without a suffix it is a trace"
for name in x.json x.json.gz x.zst x.TRC x.trc.zst x.svg; do
	run export -o "$name" two.bin
	[ ! -e "$name" ] || echo "$name is there"
done
run export --format trc -o x.json two.bin && cmp x.json two.bin
mkdir some.dir
for name in some.dir/bare x.trc x.bin; do
	run export -o "$name" two.bin && cmp "$name" two.bin
done
for name in some.dir/bare.gz x.trc.gz x.bin.gz; do
	run export -o "$name" two.bin && gzip -dc "$name" | cmp - two.bin
done

say "standard input, in both kinds"
"$dial9" export -o - - <two.bin.zst | cmp - two.bin
head -c 100000 two.bin.zst | "$dial9" export -o - - | cmp - two.bin

say "a cut segment: its whole frames"
head -c 1850 two.bin >cut.bin
run export -o cut.trc cut.bin
"$dial9" events cut.bin 2>/dev/null >a
"$dial9" events cut.trc >b
cmp a b
head -c "$(wc -c <cut.trc)" two.bin | cmp - cut.trc

say "a damaged segment: what is before the damage"
"$make_trace" unknown-tag plain damaged.bin
run export -o damaged.trc damaged.bin
"$make_trace" small plain small.bin
cmp small.bin damaged.trc

say "a segment that was just begun: no file rather than an empty one"
mkdir begun
: >begun/trace.0.bin.zst.active
run export -o begun.trc begun
[ ! -e begun.trc ] || echo "it left a file"

say "what never ends and is no trace is refused by its beginning"
# A function of the harness, not the shell's command.
# shellcheck disable=SC2216
yes | run export --format trc -o endless.trc -
run export --format trc -o endless.trc /dev/zero
run export --format trc -o endless.trc /dev/null
ls endless.trc 2>/dev/null

say "output that cannot be written"
run export -o no/such/folder/f two.bin
run export -o /dev/full two.bin
(
	ulimit -f 8
	run export -o long.trc many.bin.zst 2>&1
) | cat
for left in out.trc.?????? f.??????; do
	[ ! -e "$left" ] || echo "left behind: $left"
done

say "not to a terminal"
if command -v script >/dev/null; then
	script -qec "'$dial9' export -o - two.bin" /dev/null </dev/null | tr -d '\r'
else
	echo "dial9 export: a trace is not for a terminal; give a file with -o"
fi

finish ''
