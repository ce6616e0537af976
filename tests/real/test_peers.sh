#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of loops, threads, sockets and buses that GLib and libsoup bring themselves, as Debian
# installs them: each says the same and ends the same with and without `dial9 record`.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need dbus-run-session
installed=/usr/share/installed-tests
[ -d $installed/glib ] || skip "GLib's own tests are not installed (Debian: libglib2.0-tests)"

# Those with names that say so; not those that take tens of seconds, as threadtests does where futexes are dear, nor gapplication,
# which quits an application that has not begun yet where the machine is slow, and then leaves a bus behind and a process
# that waits for its end for ever.
chosen() {
	for suite in glib libsoup-3.0; do
		find $installed/$suite -name '*.test' 2>/dev/null
	done | grep -E -e '/libsoup|/g?(main|unix|spawn|thread|task|socket|dbus|cancel|subproc|resolv)' \
		-e 'async|monitor|sleepy|source|poll|idle|tls|appl|actions|stream|once|private|cond' |
		grep -v -e slow -e deprecated -e '/gsubprocess\.' -e '/gapplication\.' -e '/threadtests\.' -e '/hsts-test\.' \
			-e '/http2-body-stream-test\.' | sort
}

# run HOW FILE: the results that the test of FILE tells, without random numbers, and its exit status.
run() {
	status=0
	home=$dir/$1.home
	rm -rf "$home"
	mkdir -p "$home/tmp"
	exec=$(sed -n 's/^Exec=//p' "$2")
	set -- "$1" "$(basename "$2" .test)" env -C "$home" "HOME=$home" "TMPDIR=$home/tmp" \
		"XDG_RUNTIME_DIR=$home/tmp" dbus-run-session --
	[ "$1" = alone ] || set -- "$@" "$dial9" record --quiet -o "$dir/traces/$2"
	[ "$1" = alone ] || set -- "$@" --
	shift 2
	timeout 60 "$@" sh -c "exec $exec" >"$home.out" 2>&1 </dev/null || status=$?
	grep -E '^ *(not )?ok ' "$home.out" | sed 's/seed:[0-9]*/seed:N/; s/ *#.*//' || true
	echo "exit status $status"
}

# all HOW: each chosen test's results go to a file.
all() {
	mkdir -p "$dir/$1"
	chosen | while read -r file; do
		run "$1" "$file" >"$dir/$1/$(basename "$file")"
	done
}

# Both at once.
all alone &
alone=$!
all recorded
wait $alone

n=0
for file in $(chosen); do
	name=$(basename "$file")
	# What depends on how busy the machine is gets two more tries.
	for try in 1 2 3; do
		cmp -s "$dir/alone/$name" "$dir/recorded/$name" && break
		[ $try != 3 ] || grep -qx 'exit status 0' "$dir/alone/$name" || {
			echo "not compared: $name does not pass alone here now"
			n=$((n - 1))
			break
		}
		[ $try != 3 ] || {
			diff "$dir/alone/$name" "$dir/recorded/$name" | head -n 20
			tail -n 20 "$dir/recorded.home.out"
			fail "$name ends otherwise when it is recorded"
		}
		echo "once more: $name"
		run alone "$file" >"$dir/alone/$name"
		run recorded "$file" >"$dir/recorded/$name"
	done
	n=$((n + 1))
done
echo "equal: results of $n tests of GLib and libsoup"

polls=$(report "$dir/traces/mainloop" 'r.callbacks.reduce((n, c) => n + c.polls, 0)')
[ "$polls" -gt 1000 ] || fail "GLib's test of main loops made $polls polls: nothing was tested"
for name in mainloop unix socket gdbus-peer server-test session-test; do
	[ ! -d "$dir/traces/$name" ] || plain "$dir/traces/$name"
done
