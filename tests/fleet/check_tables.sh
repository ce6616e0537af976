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
DIAL9=$top_builddir/core/dial9 DEMO=$top_srcdir/core/demo WORK=$work node --test "$top_srcdir/tests/fleet/tables.mjs"
