#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trace that somebody else's recorder wrote gives the figures that somebody else found in it.
# The trace is not part of the project: D9_FOREIGN_TRACE names it.
set -eu

trace=${D9_FOREIGN_TRACE:-$top_srcdir/../shared/data/foreign-demo-trace.bin.gz}
if [ ! -r "$trace" ]; then
	echo "skipped: no foreign trace at $trace (set D9_FOREIGN_TRACE)"
	exit 77
fi
if ! command -v python3 >/dev/null; then
	echo "skipped: python3 is not installed"
	exit 77
fi
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$top_builddir/core/dial9" report --json "$trace" >"$report"
python3 "$top_srcdir/tests/cli/check_foreign_report.py" "$report"
python3 "$top_srcdir/tests/cli/check_time_parts.py" "$report"
python3 "$top_srcdir/tests/cli/check_accounts.py" "$report"
