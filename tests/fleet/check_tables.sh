#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables of recordings have the figures of `dial9 query` and `dial9 report`.
set -eu

# shellcheck source=tests/fleet/npm.sh
. "$top_srcdir/tests/fleet/npm.sh"
"$top_builddir/core/dial9" query --schema >"$work/schema" || {
	echo "dial9 was built without SQLite"
	exit 77
}
# Two callbacks, one of them in two minutes; events are lost in the second of these and in a minute without calls.
"$top_builddir/tests/cli/make_samples" plain "$work/lost.bin" <<'END_S'
poll 10000 1 1 0x1010 0
end 12000 1
poll 70000010000 1 1 0x1010 0
end 70000012000 1
poll 70000020000 1 2 0x2020 0
end 70000022000 1
lost 70000030000 1234
lost 500000000000 5
END_S
DIAL9=$top_builddir/core/dial9 DEMO=$top_srcdir/core/demo WORK=$work node --test "$top_srcdir/tests/fleet/tables.mjs"
