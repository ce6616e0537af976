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

# Every folder with C is a room of tests/core/rooms.list, and includes what it may there.  A source in a room is `room/header.h`.
sources=$(printf '%s\n' "$files" | grep -E '^(core|adapters)/.*[.][ch]$')
broken=$(printf '%s\n' "$sources" | xargs grep -Ho '^#include "[a-z_/]*/[a-z_0-9]*\.h"' | awk -v sources="$sources" '
	FILENAME != "-" {
		if ($1 ~ /^(traced|outside|public)$/) {
			sub(/:$/, "", $2)
			room[$2] = " " $2 " "
			for (i = 3; i <= NF; i++)
				room[$2] = room[$2] $i " "
		} else if ($1 == "door") {
			behind = $2
			sub(/\/[^\/]*$/, "", behind)
			for (i = 3; i <= NF; i++)
				door[$i " " behind] = $2
		} else if ($1 == "except")
			except[$2 " " $3] = 1
		next
	}
	{
		split($0, part, /:#include "|"/)
		folder = part[1]
		sub(/\/[^\/]*$/, "", folder)
		header = part[2]
		sub(/.*\//, "", header)
		other = part[2]
		sub(/\/[^\/]*$/, "", other)
		other = ("core/" other in room ? "core/" : "adapters/") other
		file = part[1]
		sub(/.*\//, "", file)
		if (folder " " other in door && door[folder " " other] != other "/" header)
			print part[1] " includes " part[2] " and not " door[folder " " other]
		if (!(folder in room) || index(room[folder], " " other " ") || folder " " other in except || file " " header in except)
			next
		print part[1] " includes " part[2]
	}
	END {
		n = split(sources, source, "\n")
		for (i = 1; i <= n; i++) {
			sub(/\/[^\/]*$/, "", source[i])
			if (!(source[i] in room) && !told[source[i]]++)
				print source[i] " is no room"
		}
	}' tests/core/rooms.list -)
[ -z "$broken" ] || {
	printf '%s\n' "$broken" "which tests/core/rooms.list does not allow"
	exit 1
}

# Each check of `dial9 report` has its paragraph in the man page, and its name in REPORT-JSON.md.
headings=" $(sed -n 's/^\.BR* //p' core/man/dial9-report.1 | tr -d "\\\\" | tr '\n", ' '    ') "
checks=$(sed -n 's/^	{ "\([a-z-]*\)", D9__ABOUT_.*/\1/p' $(printf '%s\n' "$sources" | grep '/checks\.c$'))
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

sed -nE 's/^\t?scenario "([a-z_ ]+)" .*/\1/p; s/^\t?scenario ([a-z_]+) .*/\1/p' tests/real/test_scenarios.sh | while read -r scenario; do
	grep -q "^| $scenario |" core/doc/SCENARIOS.md || {
		echo "SCENARIOS.md has no row of $scenario: run make scenarios"
		exit 1
	}
done
