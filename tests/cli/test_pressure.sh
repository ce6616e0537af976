#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A recorder that has no time to compress: what it writes reads as ever, says how much that was, and is compressed once CMD
# has ended, with the same content.
# What CMD gets in single quotes, CMD's shell expands.
# shellcheck disable=SC2016
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer
DIAL9_PRESSURE=yes
export DIAL9_PRESSURE

# fact KEY DIR: its value in the metadata.
fact() {
	"$dial9" info "$2" | sed -n "s/^  $1  *//p"
}

# state DIR: whether its segments are as large as what was written raw into them.
state() {
	size=$(cat "$1"/*/trace.*.bin.zst | wc -c)
	raw=$(fact segment.raw_bytes "$1")
	[ "${raw:-0}" -gt 1000 ] || echo "nothing was raw"
	if [ "$size" -ge "$raw" ]; then echo raw; else echo compressed; fi
}

# unpack FILE: its content by the toolkit's decoder, or without Node its events.
unpack() {
	if "$top_srcdir/tests/support/has_node.sh"; then
		node --input-type=module -e 'const [unpack, file] = process.argv.slice(1);
			const { createReadStream, writeSync } = await import("node:fs");
			for await (const piece of (await import(unpack)).unpack(createReadStream(file))) writeSync(1, piece.bytes);' \
			"$(cd "$top_srcdir" && pwd)/core/toolkit/unpack.js" "$1"
	else
		"$dial9" events "$1"
	fi
}

say "a process that becomes CMD leaves it raw, and all readers read it"
"$dial9" record -q --exec -o raw -- ./prog 1000 400 0
state raw
echo "recorder.raw: $(fact recorder.raw raw)"
"$dial9" report raw | sed -n 's/^.*\(on_timer\).*$/the report names \1/p' | head -n 1

say "while CMD runs"
"$dial9" record -q -o tr -- sh -c 'echo $$ >pid; exec ./prog 1000' &
recorder=$!
until [ -s pid ] && "$dial9" status "$(cat pid)" >seen 2>/dev/null && grep -q '^  raw' seen &&
	[ -s "$(echo tr/*/trace.0.bin.zst.active)" ]; do
	kill -0 $recorder || break
	sleep 0.05
done
sed -n 's/^  raw  */raw: /p' seen
"$dial9" status --json "$(cat pid)" | tr ',' '\n' | grep '"recorder.raw"'
"$dial9" rotate "$(cat pid)" >/dev/null
cp -R tr kept
state kept

say "when it is killed, too, it is compressed"
kill -KILL "$(cat pid)"
wait $recorder 2>/dev/null
state tr
rm kept/*/*.active 2>/dev/null
for file in kept/*/trace.*.bin.zst; do
	name=${file#kept/}
	"$dial9" events "$file" >one
	"$dial9" events "tr/$name" >other
	cmp one other && echo "the same events"
done
find tr -name '.*.staged'

say "when another process has a segment, it stays as it is"
cat >holding <<'END'
dir=$1
shift
"$@"
exec 9<"$(echo "$dir"/*/trace.0.bin.zst)"
flock 9
sh -c 'until [ -e finished ]; do sleep 0.05; done' >/dev/null 2>&1 &
END
"$dial9" record -q -o held -- sh holding held ./prog 1000 400 0
state held
touch finished

say "it is compressed to the same content, and traces that were there before are left alone"
mkdir -m 700 tr2
cp -R raw/* tr2/
mv tr2/* tr2/aaaa-1
"$dial9" record -q -o tr2 -- sh -c 'cp -R raw/* tr2/; mv tr2/"$(ls raw)" tr2/zzzz-1; exec ./prog 1000 400 0'
original=raw/$(ls raw)/trace.0.bin.zst
unpack "$original" >content
[ -s content ] || echo "no content"
for name in aaaa-1 zzzz-1; do
	unpack tr2/$name/trace.0.bin.zst >other
	cmp content other && echo "$name has the same content"
	cmp -s "$original" tr2/$name/trace.0.bin.zst || echo "and other bytes"
done
"$dial9" info tr2/zzzz-1 | sed -n 's/^.* long, \(complete\)$/\1/p'

say "by no, nothing is raw, and gzip and none are as ever"
DIAL9_PRESSURE=no "$dial9" record -q --exec -o no -- ./prog 1000 400 0
echo "recorder.raw: $(fact recorder.raw no)"
for packing in gzip none; do
	"$dial9" record -q --exec --compress $packing -o $packing -- ./prog 1000 400 0
	echo "recorder.raw: $(fact recorder.raw $packing)"
done

finish ''
