#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands in documents and skills do what they say: each block of them runs on a trace that was recorded here.
set -eu

"$top_srcdir/tests/support/has_node.sh" || {
	echo "there is no node, or one older than 18"
	exit 77
}
if [ "$SANITIZER" != no ] || [ ! -x "$top_builddir/examples/scenario_blocked_callback" ]; then
	echo "there is no program to record: no libevent, or a sanitizer"
	exit 77
fi
"$top_builddir/core/dial9" query --schema >/dev/null 2>&1 || {
	echo "dial9 was built without SQLite"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
DIAL9_TRACE_DIR=$work/traces "$top_builddir/examples/scenario_blocked_callback" >/dev/null
D9_WORK=$work D9_PROGRAMS=$(cd "$top_builddir/core" && pwd) node --test "$top_srcdir/tests/cli/test_documents.mjs"
