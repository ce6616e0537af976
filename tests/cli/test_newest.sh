#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trace as release 0.5.4 of the original writes them; tests/toolkit/check_readers.sh has the toolkit read it, too.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" newest plain newest.bin

say "every event is read, with the fields that older releases had not"
run events --event RuntimeMetricsEvent --event TaskSpawnEvent newest.bin

say "events whose fields have the roles of a span are spans, and ad-hoc spans are told apart by all 64 bits"
run report --section spans newest.bin | sed -n '/^Spans/,/^$/p'

say "how segments ended is metadata"
run info newest.bin | grep 'segment\.'

say "it can be converted"
run export --format trc -o copy.bin newest.bin
"$dial9" events newest.bin >before
"$dial9" events copy.bin >after
cmp before after && echo "the same events"

finish ''
