#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The top level holds what it should and nothing else, no ignore rule swallows a source, and folders include
# headers only of those that they may depend on.  Documents name every check of the report.
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

# FOLDER: those whose headers its files may include, besides its own.
broken=''
while read -r folder allowed; do
	for other in $(printf '%s\n' "$files" | grep "^$folder.*[.][ch]\$" |
		xargs sed -n 's|^#include "\([a-z]*\)/[a-z_]*\.h".*|\1|p' | LC_ALL=C sort -u); do
		case " ${folder#core/} $allowed " in
		*" $other "*) ;;
		*) broken="$broken $folder->$other" ;;
		esac
	done
done <<END
core/format
core/record format
core/sample format record
core/loop format record sample
core/hook record
core/block record loop sample hook
core/read format
core/analyze format read
core/symbol format read analyze
core/stage format record read analyze
core/ship format record read analyze stage
core/fleet format read analyze symbol ship
core/serve record read analyze ship
core/cli format record read analyze symbol stage ship serve fleet
adapters format record sample loop hook block glib libev libevent memory preload
END
[ -z "$broken" ] || {
	printf 'not allowed to include:%s\n' "$broken"
	exit 1
}

# Each check of `dial9 report` has its paragraph in the man page, and its name in REPORT-JSON.md.
headings=" $(sed -n 's/^\.BR* //p' core/man/dial9-report.1 | tr -d "\\\\" | tr '\n", ' '    ') "
checks=$(sed -n 's/^	{ "\([a-z-]*\)", D9__ABOUT_.*/\1/p' core/analyze/findings.c)
[ -n "$checks" ]
for check in $checks; do
	case $headings in
	*" $check "*) ;;
	*) echo "dial9-report(1) does not tell of $check" && exit 1 ;;
	esac
	grep -q "\`$check\`" core/doc/REPORT-JSON.md || {
		echo "REPORT-JSON.md does not name $check"
		exit 1
	}
done
