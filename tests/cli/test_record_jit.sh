#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The names that a runtime wrote to /tmp/perf-PID.map stand beside the segments after the process is gone, and nothing
# else that is there under such a name does.
# The shell that is recorded expands the commands that are given to it.
# shellcheck disable=SC2016
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer

# recorded HOW: record the timer after it, a shell that becomes the timer, has made its map, which is $map.
recorded() {
	rm -rf tr
	"$dial9" record -q -o tr -- sh -c "map=/tmp/perf-\$\$.map; rm -f \$map; $1; exec ./prog 1000 20 0" || echo "status $?"
	echo "$(find tr -name 'trace.*.zst' | wc -l) segment, maps: $(find tr -name 'perf-*' | wc -l)"
	for copy in tr/*/perf-*.map; do
		[ ! -e "$copy" ] || rm -f "/tmp/$(basename "$copy")"
	done
}

say "as the runtime wrote it"
recorded 'printf "7f0000001000 20 hot\n7f0000001030 20 js:~main /srv/a.js:3\n" >$map'
cat tr/*/perf-*.map
[ "$(stat -c %a tr/*/perf-*.map)" = 600 ] || stat -c '%a %n' tr/*/perf-*.map

say "of a longer one the beginning"
recorded 'yes "7f0000001000 20 hot" | head -c 20000000 >$map'
wc -c <"$(echo tr/*/perf-*.map)"

say "a link, a pipe, a directory: nothing"
echo "7f0000001000 20 hot" >secret
for how in "ln -s $work/secret" mkfifo mkdir; do
	recorded "$how \$map; echo \$map >name"
	rm -rf "$(cat name)"
done

say "where no segment is, no map stays"
rm -rf tr
"$dial9" record -q -o tr -- sh -c 'echo "7f0000001000 20 hot" >/tmp/perf-$$.map; echo /tmp/perf-$$.map >name; exec sleep 0'
rm -f "$(cat name)"
find tr -name 'perf-*' 2>/dev/null

finish ''
