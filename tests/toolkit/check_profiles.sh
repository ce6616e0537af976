#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stacks as the toolkit folds and compares them, and as `dial9 export` does.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
DIAL9=$top_builddir/core/dial9 node --test "$top_srcdir/tests/toolkit/test_profiles.mjs" \
	"$top_srcdir/tests/toolkit/test_compare.mjs"
