#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What runs inside the recorded program never ends it, never prints, and reads the environment in one place.  adapters/selftest is a
# recorded program itself.
set -eu

sources=$(find "$top_srcdir/core/format" "$top_srcdir/core/record" "$top_srcdir/core/loop" \
	"$top_srcdir/core/sample" "$top_srcdir/core/hook" "$top_srcdir/core/block" "$top_srcdir/adapters" -name '*.[ch]' ! -path '*/adapters/selftest/*')
# Paths of this project hold no spaces; one word per file is meant.
# shellcheck disable=SC2086
if grep -nE '(^|[^a-z0-9_])(abort|_?exit|perror|v?f?printf|f?puts)[[:space:]]*\(' $sources |
	grep -vE ':[[:space:]]*(/\*|\*|//)'; then
	echo "the lines above end the recorded program or print into it"
	exit 1
fi
# shellcheck disable=SC2086
if grep -nE '(^|[^a-z0-9_])((secure_)?getenv[[:space:]]*\(|environ([^a-z0-9_m]|$))' $sources |
	grep -vE ':[[:space:]]*(/\*|\*|//)' | grep -v '^[^:]*/core/record/environment\.c:'; then
	echo "the lines above read the environment, which core/record/environment.c alone does"
	exit 1
fi
