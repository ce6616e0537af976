#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables that we write, read by DuckDB and hyparquet; and the same rows give the same bytes.
set -eu

# shellcheck source=tests/fleet/npm.sh
. "$top_srcdir/tests/fleet/npm.sh"
mkdir "$work/again"
"$top_builddir/tests/fleet/write_parquet" "$work"
"$top_builddir/tests/fleet/write_parquet" "$work/again"
for file in "$work"/*.parquet; do
	cmp "$file" "$work/again/${file##*/}"
done
WORK=$work node --test "$top_srcdir/tests/fleet/parquet.mjs"
