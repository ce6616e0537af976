#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rows of libraries on this machine are what libdw says of them: of those that the programs here use, or, with
# D9_LONG=1, of all that are in /usr/lib and /usr/bin.
set -eu

program=$top_builddir/tests/core/sample/compare_tables
if [ -n "${D9_LONG-}" ]; then
	find /usr/lib /usr/bin -type f \( -name '*.so*' -o -perm -u+x \) -print0 | xargs -0 -n 5000 "$program"
	exit
fi
for name in "$program" /bin/sh /usr/bin/perl /usr/bin/openssl /usr/bin/git /usr/bin/python3; do
	[ ! -e "$name" ] || ldd "$name" | sed -n 's/.*=> \(.*\) (0x.*/\1/p'
done | sort -u | xargs "$program"
