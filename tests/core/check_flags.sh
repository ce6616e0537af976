#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CFLAGS, CPPFLAGS and LDFLAGS are the user's: what stands there comes last, and nothing of ours
# optimises, warns or defines against it.
set -eu

cd "$top_builddir"
srcdir=$(sed -n "s/^srcdir = //p" Makefile)
# commands TARGET: what make would run for it.
commands() {
	${MAKE:-make} -n V=1 -W core/format/cursor.c -W "$srcdir/core/format/cursor.c" \
		CFLAGS="-O0 -g3 -Dd9_user" CPPFLAGS=-Dd9_user_cpp "$1" 2>&1
}

compile=$(commands core/format/cursor.lo | grep -e '-c -o' | head -n 1)
case $compile in
*-O[1-9s]* | *FORTIFY_SOURCE*) echo "not the user's: $compile" && exit 1 ;;
*-Dd9_user_cpp*'-O0 -g3 -Dd9_user'*) ;;
*) echo "user's flags are missing or not last: $compile" && exit 1 ;;
esac
