#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The top level holds what it should and nothing else, and no ignore rule swallows a source.
set -eu

cd "$top_srcdir"
files=$(git ls-files 2>/dev/null) || files=
if [ -z "$files" ]; then
	echo "not a clone"
	exit 77
fi
top=$(printf '%s\n' "$files" | sed 's|/.*||' | grep -v '^\.' | LC_ALL=C sort -u | tr '\n' ' ')
wanted='LICENSE Makefile.am README.md adapters configure.ac core examples pkgconfig tests '
[ "$top" = "$wanted" ] || {
	printf 'top level: %s\n' "$top"
	exit 1
}
ignored=$(git ls-files -i -c --exclude-standard)
for new in core/new.c core/core.c core/record/core core/record/core/new.h tests/core/new.sh; do
	! git check-ignore -q --no-index "$new" || ignored="$ignored $new"
done
[ -z "$ignored" ] || {
	printf 'ignored, but source: %s\n' "$ignored"
	exit 1
}
