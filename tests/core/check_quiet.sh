#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What runs inside the recorded program never ends it, never prints, and reads the environment in one place.
set -eu

sources=$(sed -n 's/^traced \(.*\):.*/\1/p' "$top_srcdir/tests/core/rooms.list" | while read -r room; do
	[ ! -d "$top_srcdir/$room" ] || find "$top_srcdir/$room" -name '*.[ch]'
done)
# Paths of this project hold no spaces; one word per file is meant.
# shellcheck disable=SC2086
if grep -nE '(^|[^a-z0-9_])(abort|_?exit|perror|v?f?printf|f?puts)[[:space:]]*\(' $sources |
	grep -vE ':[[:space:]]*(/\*|\*|//)'; then
	echo "the lines above end the recorded program or print into it"
	exit 1
fi
# shellcheck disable=SC2086
if grep -nE '(^|[^a-z0-9_])((secure_)?getenv[[:space:]]*\(|environ([^a-z0-9_m]|$))' $sources |
	grep -vE ':[[:space:]]*(/\*|\*|//)' | grep -v '^[^:]*/core/[a-z]*/environment\.c:'; then
	echo "the lines above read the environment, which environment.c of core alone does"
	exit 1
fi
