#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The JavaScript decoder and the checker of the producer rules.
set -eu

command -v node >/dev/null || {
	echo "node is not installed"
	exit 77
}
node --test "$top_srcdir/tests/toolkit/test_decode.mjs" "$top_srcdir/tests/toolkit/test_span_rules.mjs"
