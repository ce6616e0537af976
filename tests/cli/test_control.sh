#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Running recorders told from outside: switched on and off, rotated, asked for a dump.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer

# start DIR MILLISECONDS [VARIABLE=VALUE...]: a recorded program in the background, $pid.
start() {
	dir=$1 ms=$2
	shift 2
	env "$@" DIAL9_TRACE_DIR="$work/$dir" LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" \
		./prog $((ms * 1000)) &
	pid=$!
	until_status '"events":{"recorded":'
}

# until_status PATTERN: the recorder of $pid says so; an answer in the end, whatever it is.
until_status() {
	tries=0
	until
		# 1 if it is paused, for example
		"$dial9" status -j "$pid" 2>/dev/null >json
		grep -q "$1" json
	do
		tries=$((tries + 1))
		[ $tries -lt 60 ] || { echo "never: $1" && break; }
	done
}

stop() {
	kill "$pid"
	wait "$pid" 2>/dev/null
	# Its ring would stay.
	"$dial9" recover "$dir" >/dev/null 2>&1
}

# told ARGUMENTS...: dial9, with what differs from run to run as PID, ID and N.
told() {
	printf '$ dial9 %s\n' "$*" | sed "s/\<$pid\>/PID/g"
	"$dial9" "$@" >out 2>err
	status=$?
	sed "$words" out
	sed "$words" err
	[ $status = 0 ] || echo "[exit status $status]"
}
words='s/[a-z]\{4\}-[0-9]\{1,\}/BOOT_ID/g; s/dial9: [0-9]* events of the last [0-9.]* [a-z]*, [0-9.]* [A-Za-z]*/dial9: N events of the last T, SIZE/; s/, [0-9.]* [KM]iB;/, SIZE;/; s/, [0-9]* bytes;/, SIZE;/; s/process [0-9]*/process PID/; s/status [0-9]\{1,\}/status PID/; s/dump [0-9]\{1,\}/dump PID/'

# events TRACE: it can be read, and there are polls in it.
events() {
	"$dial9" report --json "$1" >report.json || echo "no report of $1"
	"$dial9" info "$1" | awk '$1 == "PollStartEvent" { print ($2 > 0) ? "polls" : "none" }'
}

say "flight mode: nothing is written until it is asked for"
start flight 1 DIAL9_MODE=flight
until_status '"state":"flight"'
until_status '"recorded":[1-9][0-9][0-9]'
find flight -type f ! -name .peers | sed "$words"
grep -o '"mode":"[a-z]*"' json
told dump "$pid"
told dump --last 5s -o elsewhere "$pid"
told dump -o elsewhere "$pid"
events "$(find elsewhere -name 'trace.1.*')"
"$dial9" info --json "$(find elsewhere -name 'trace.1.*')" | grep -o '"dump.by": *"[^"]*"\|"recorder.mode": *"[^"]*"' | sort -u
echo "dumps that overlap, in one directory:"
"$dial9" report -v elsewhere 2>&1 | sed -n '1s/.*  \([0-9]* processes\),.*/\1/p'
told rotate "$pid"
find flight -name 'trace.*' | wc -l
echo "killed, it leaves what it held:"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover flight | sed -e 's/: [0-9]* events/: N events/' -e "$words"
find flight -name 'trace.*' | wc -l

say "a dump that cannot be written"
start flight2 1 DIAL9_MODE=flight
until_status '"recorded":[1-9][0-9]'
: >file
told dump -o file "$pid"
mkdir open && chmod 777 open
told dump -o open "$pid"
stop

say "a recorder that is paused"
start paused 1
until_status '"recorded":[1-9][0-9]'
# Until the recorder does not make it anew in between.
until rm -rf paused && true >paused; do :; done 2>/dev/null
"$dial9" rotate "$pid" 2>/dev/null && echo "it found a place"
until_status '"state":"paused"'
told rotate "$pid"
told dump -o innocent "$pid"
rm paused
echo "what stood in the way is gone:"
# A machine at load may have begun a segment before the directory went; its number is not used again.
told rotate "$pid"
find paused -name 'trace.*.zst' | sed "$words; s/trace\.[01]\./trace.N./"
stop

say "continuous mode: the segments of the window"
start steady 1
until_status '"recorded":[1-9][0-9]'
told rotate "$pid"
find steady -name 'trace.*' | sed "$words" | grep -v active
until_status '"waiting":[1-9]'
told dump -o brought "$pid"
find brought -name 'trace.*' | sed "$words" | sort
events brought
echo "the last moment, with the timer that was set long before:"
until_status '"waiting":[1-9]'
told dump --last 1ms -o last "$pid"
find last -name 'trace.*' | sed "$words" | sort
events last
grep -o '"name": *"on_timer"\|"kind": *"timer"\|"tasks_spawned": *[0-9]*' report.json | sort -u
stop

say "off and on again, also of a program that is asleep"
start sleepy 60000
for to in disabled recording disabled; do
	case $to in
	recording) told enable "$pid" ;;
	*) told disable "$pid" ;;
	esac
	until_status "\"state\":\"$to\""
	grep -o '"state":"[a-z]*"' json | head -n 1
done
told enable "$pid"
told enable "$pid"
stop

say "started inert"
start inert 1 DIAL9_ENABLED=false
until_status '"state":"disabled"'
[ ! -e inert ] || echo "it made a directory"
told dump "$pid"
told enable "$pid"
until_status '"recorded":[1-9][0-9]'
told rotate "$pid"
stop
events inert

say "a ring without a name"
start memfd 1 DIAL9_RING=memfd
told disable "$pid"
until_status '"state":"disabled"'
grep -o '"state":"[a-z]*"' json | head -n 1
stop
start memory 1 DIAL9_RING=memory
told disable "$pid"
stop

say "somebody else's"
start others 1
others=$pid
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups "$dial9" --version >out 2>&1; then
	setpriv --reuid=65534 --clear-groups "$dial9" disable "$pid" >out 2>&1
	echo "[exit status $?]"
	sed "$words" out
else
	echo "[exit status 1]"
	echo "dial9 disable: process PID: only its user and root may do that"
fi
grep -o '"state":"[a-z]*"' json | head -n 1

say "processes that cannot be told"
told disable 2147483647
told rotate $$ | sed "s/rotate $$/rotate SHELL/"
kill -STOP "$others"
timeout 20 "$dial9" disable "$others" >out 2>err
echo "[exit status $?]"
sed "$words" err
kill -CONT "$others"
stop

say "usage"
for command in enable disable rotate dump; do
	run $command
done
run disable x
run rotate 1 2
run dump --last soon 1
run dump --last 0s 1
run dump --last 0.1ns 1
run dump -o '' 1
run dump 0

finish ''
