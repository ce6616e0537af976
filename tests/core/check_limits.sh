#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The counts of tests/core/limits.list may only fall for each file: lines longer than .clang-format's columns, and comments that begin with
# a riddle or leave out who acts (HACKING, "How we write").  And a struct's tag has one meaning.
#
#	UPDATE_LIMITS=1 top_srcdir=. tests/core/check_limits.sh		writes the counts down, where they fell
set -eu

cd "$top_srcdir"
limits=tests/core/limits.list
columns=$(sed -n 's/^ColumnLimit: //p' .clang-format)
counted=$(mktemp)
trap 'rm -f "$counted"' EXIT
sources=$(find core adapters tests -name '*.[ch]' | LC_ALL=C sort)
[ -n "$columns" ] && [ -n "$sources" ]

# Lines "columns N FILE" and "riddles N FILE".
# Paths of this project hold no spaces; one word per file is meant.
# shellcheck disable=SC2086
LC_ALL=C awk -v columns="$columns" '
	function width(line,    at, n) {
		for (n = 0; (at = index(line, "\t")); line = substr(line, at + 1))
			n = int((n + at - 1) / 8) * 8 + 8
		return n + length(line)
	}
	# A letter of UTF-8 is one column: bytes behind its first are none.
	{ seen = $0; gsub(/[\200-\277]/, "", seen) }
	width(seen) > columns { n["columns " FILENAME]++ }
	# A declaration of many lines ends in a comment that has to be seen, so comments are told by their marks.
	/^[ \t]*(\/\*|\*|\/\/)/ || /\/\*/ {
		text = $0
		sub(/^.*\/\*/, "/*", text)
		if (text ~ /^[ \t]*(\/\*|\*|\/\/) *(What|Who|Whose|Those|All that|The same|Likewise)[^a-zA-Z]/ ||
		    (" " text " ") ~ /[^a-zA-Z](whoever|somebody|nobody|theirs)[^a-zA-Z]|[^a-zA-Z]of (root|the program|the system)\047s[^a-zA-Z]/)
			n["riddles " FILENAME]++
	}
	END {
		for (key in n) {
			split(key, part, " ")
			print part[1], n[key], part[2]
		}
	}' $sources | LC_ALL=C sort -k1,1 -k3,3 >"$counted"

[ -z "${UPDATE_LIMITS:-}" ] || [ -e "$limits" ] || cp "$counted" "$limits"
wrong=$(awk -v update="${UPDATE_LIMITS:-}" '
	FILENAME != "-" { allowed[$1 " " $3] = $2; next }
	{ found[$1 " " $3] = $2 }
	END {
		for (key in found)
			if (found[key] > allowed[key] + 0) {
				split(key, part, " ")
				printf "%s has %d %s, and may have %d\n", part[2], found[key],
				       part[1] == "columns" ? "lines that are too long" : "riddles in comments", allowed[key]
			}
		for (key in allowed)
			if (!update && found[key] + 0 < allowed[key])
				printf "%s fell to %d: run UPDATE_LIMITS=1 tests/core/check_limits.sh\n", key, found[key]
	}' "$limits" - <"$counted" | LC_ALL=C sort)
[ -z "$wrong" ] || {
	printf '%s\n' "$wrong"
	exit 1
}
[ -z "${UPDATE_LIMITS:-}" ] || cp "$counted" "$limits"

# shellcheck disable=SC2086
twice=$(grep -hoE '^(struct|enum|union) d9_[a-z0-9_]+ \{' $(find core adapters -name '*.[ch]') | LC_ALL=C sort | uniq -d)
[ -z "$twice" ] || {
	printf '%s\n' "$twice" "these tags have two meanings"
	exit 1
}
