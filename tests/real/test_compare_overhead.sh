#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The script that compares a service with and without dial9 ends by itself, and has a figure in each of its rows; what it lacks it
# says in one line.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

script=$top_srcdir/tests/bench/compare_overhead.sh

# refused TEXT ARG...: with $PATH and where it is run.
refused() {
	text=$1
	shift
	status=0
	(cd "$where" && PATH=$path "$script" "$@") >"$dir/out" 2>"$dir/err" || status=$?
	equal "status, output, lines" "$status $(wc -c <"$dir/out") $(wc -l <"$dir/err")" "1 0 1"
	grep -qF "$text" "$dir/err" || fail "$(cat "$dir/err")"
}
path=$PATH where=$top_builddir
for seconds in 0 1 -2 2s '' 99999; do
	refused 'is no number of seconds' "$seconds"
done
where=$dir
refused 'run it in the folder of the build'
where=$top_builddir path=$dir/bin
mkdir "$path"
ln -s "$(command -v sh)" "$(command -v sed)" "$path"
refused 'ab is missing (Debian: apache2-utils)' 2

need ab
cd "$top_builddir"
"$script" 2 >"$dir/out"
cat "$dir/out"
awk 'BEGIN { good = 1 }
	/^(requests a second|p50, ms|p99, ms|CPU a request, us) / { rows++; good = good && $(NF - 2) > 0 && $(NF - 1) > 0 && $NF ~ /^x[0-9]+\.[0-9]+$/ }
	/^(events a request|bytes a request|bytes an event) / { rows++; good = good && $(NF - 1) == "-" && $NF > 0 }
	END { exit !(good && rows == 7) }' "$dir/out" || fail "there are not seven rows of figures"
