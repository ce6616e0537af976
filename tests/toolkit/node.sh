# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Sourced by tests that run JavaScript: they are skipped without Node, and $work is a folder that goes with them.
"$top_srcdir/tests/support/has_node.sh" || {
	echo "there is no node, or one older than 18"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
