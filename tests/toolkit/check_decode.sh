#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The JavaScript decoder and the checker of the producer rules.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
DIAL9=$top_builddir/core/dial9 node --test "$top_srcdir/tests/toolkit/test_cut.mjs" \
	"$top_srcdir/tests/toolkit/test_decode.mjs" "$top_srcdir/tests/toolkit/test_lanes.mjs" "$top_srcdir/tests/toolkit/test_span_rules.mjs" \
	"$top_srcdir/tests/toolkit/test_time.mjs" "$top_srcdir/tests/toolkit/test_toolkit.mjs" \
	"$top_srcdir/tests/toolkit/test_tracks.mjs"
