#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Statements of FLEET.md, on rows made from recordings of the demo.  By hand, with more of them:
#
#	TELL=yes HOSTS=200 MINUTES=1 SEGMENT=10 tests/fleet/test_fleet_statements.sh
set -eu

# shellcheck source=tests/fleet/npm.sh
. "$top_srcdir/tests/fleet/npm.sh"
for pair in web:web slow:blocked; do
	"$top_builddir/core/dial9" export --format parquet --partitions -o "$work/recorded/${pair%:*}" "$top_srcdir/core/demo/${pair#*:}"
done
GUIDE=$top_srcdir/core/doc/FLEET.md RECORDED=$work/recorded STORE=$work/store node --test "$top_srcdir/tests/fleet/statements.mjs"
