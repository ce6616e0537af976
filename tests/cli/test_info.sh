#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" two plain two.bin
mkdir -p traces/abcd-1 traces/efgh-2
"$make_trace" small zstd traces/abcd-1/trace.0.bin.zst
"$make_trace" cut zstd traces/abcd-1/trace.1.bin.zst.active
"$make_trace" two gzip traces/efgh-2/trace.0.bin.gz
"$make_trace" unknown-tag plain damaged.bin
"$make_trace" cut plain cut.bin

say "a plain segment with loss, hooks, metadata and health"
run info two.bin
run info --json two.bin

say "a directory of two processes, three containers, one still active"
run info traces | sed 's/[0-9.]* bytes stored\|[0-9.]* KiB stored/N stored/'

say "standard input"
run info - <two.bin | sed -n '/^process/,/from/p'
head -c 100000 two.bin | "$dial9" info --json - >piped
"$dial9" info --json - <two.bin | cmp - piped

say "what readers cope with is a warning, and the last of several values of a key counts"
"$make_trace" repeats plain repeats.bin
"$dial9" info repeats.bin | grep -E 'warning|^  (pid|x) '
"$dial9" info --json repeats.bin | tr ',' '\n' | grep -E 'repeated|unresolved|unusable'

say "damaged: what came before is counted"
run info damaged.bin

say "cut: no error"
run info cut.bin 2>&1 | sed -n '/long/p; /frame/p'

say "health that is longer than a line may be"
"$make_trace" odd plain odd.bin
"$dial9" info --json odd.bin | grep -o '"health":.*'
"$dial9" info odd.bin | tail -n 1

finish ''
