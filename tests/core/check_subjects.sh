#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Subjects of commits since the rule stands: `area: verb object`, at most 72 letters, without a riddle's words (HACKING).
set -eu

since=${D9_SUBJECTS_SINCE:-c240d13646595f3db2ef6aa2c2161eeb98720738}
cd "$top_srcdir"
git cat-file -e "$since" 2>/dev/null || {
	echo "no clone with $since"
	exit 77
}
wrong=$(git log --no-merges --format=%s "$since..HEAD" | grep -vE '^[a-z][a-z0-9./ _-]*(, [a-z][a-z0-9./ _-]*)*: [a-z]+ .' || true)
wrong="$wrong$(git log --no-merges --format=%s "$since..HEAD" | grep -E '.{73}|(^|[^a-z])([Ww]hat|[Ww]ho|[Ww]hose|[Ww]hoever|somebody|nobody|theirs)([^a-z]|$)' || true)"
[ -z "$wrong" ] || {
	printf '%s\n' "$wrong" "are no subjects as HACKING has them: area: verb object"
	exit 1
}
