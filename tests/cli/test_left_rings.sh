#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rings that dead processes left: what of them is summed up, saved, kept and removed.  With a /dev/shm and
# processes of its own, since it deals with all there are.
# shellcheck source=tests/cli/own_shm.sh
. "$top_srcdir/tests/cli/own_shm.sh"
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer

mkdir bin

# run_until TEXT NAME DIR [VARIABLE=VALUE...]: a recorded program of that name, $pid, until its status has TEXT.
run_until() {
	text=$1 name=$2 dir=$3
	shift 3
	cp prog "bin/$name"
	env "$@" DIAL9_TRACE_DIR="$work/$dir" DIAL9_ENABLED=true \
		LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" "bin/$name" 100 100 &
	pid=$!
	until "$dial9" status -j "$pid" 2>/dev/null | grep -q "$text"; do
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
}

# Killed with all of its events in its ring, or with none.
die_full() {
	run_until '"recorded":[0-9]\{3\}' "$1" "$2" DIAL9_MODE=flight
	kill -KILL $pid
	wait $pid 2>/dev/null
}

die_empty() {
	run_until '"recorded":[0-9]\{3,\},"written":[0-9]*,"waiting":0,' "$1" "$2"
	kill -KILL $pid
	wait $pid 2>/dev/null
}

rings() {
	find /dev/shm -name ring | wc -l
}

# What differs from run to run.
words='s/^ *[0-9]\{1,\} \([a-z]*\) *dead.*/PID \1 dead/; s/ [0-9.]* [KM]iB/ SIZE/; s/ [0-9]* events/ N events/
	s/[a-z]\{4\}-[0-9]*/ID/; s/dial9-[0-9]*/dial9-UID/; s/process [0-9]\{1,\}/process PID/'
show() {
	echo "\$ dial9 $*"
	"$dial9" "$@" >shown 2>&1
	status=$?
	sed "$words" shown
	[ $status = 0 ] || echo "[exit status $status]"
}

say "two are shown, the others summed up, with the memory that they take: a ring is not full"
for name in one two three four; do
	die_full $name $name
	truncate -s 1T /dev/shm/dial9-*/*-$pid/ring
done
show status
grep -c ' [KM]iB of memory' shown

say "record, and the report of a killed one's trace, say what saves the end of who goes on in the background"
cp prog bin/ended
export dial9
# shellcheck disable=SC2016
"$dial9" record -o ended -- sh -c 'bin/ended 100 100 & echo $! >pid
	until "$dial9" status -j $! 2>/dev/null | grep -q "\"written\":[1-9]"; do
		kill -0 $! || break
		sleep 0.05
	done' 2>shown
sed "$words" shown
kill -KILL "$(cat pid)"
until "$dial9" status -j "$(cat pid)" | grep -q dead; do sleep 0.05; done
"$dial9" report -v ended | tr -s ' \n' ' ' | grep -o 'of a killed one, dial9 recover saves them from its ring where it ran'
"$dial9" recover ended >shown
"$dial9" report -v ended | grep -c 'recover saves'
"$dial9" report ended | head -n 1 | grep -o 'complete .*'
"$dial9" report -v ended | tr -s ' \n' ' ' | grep -o 'data is complete[^:]*'
"$dial9" report --json ended | grep -m 1 -o '"killed": true'

say "the report of a directory says that one was killed before it wrote anything"
die_full second ended
"$dial9" report -v ended | tr -s ' \n' ' ' | grep -o '1 more process of this directory is not in the trace'
"$dial9" recover ended >shown
"$dial9" report -v ended | grep -c 'not in the trace'

say "so does that of a directory which has nothing else"
die_full third alone
show report alone
"$dial9" recover alone >shown

say "and of one into which a program records that has written nothing yet, as in flight mode"
run_until '"recorded":[0-9]\{3\}' lives waits DIAL9_MODE=flight
show report waits
kill -KILL $pid
wait $pid 2>/dev/null
"$dial9" recover waits >shown

say "the report of a directory says that the end of one is in its ring alone"
# shellcheck disable=SC2016
"$dial9" record -q -o sealed -- sh -c 'bin/ended 100 100000 & echo $! >pid
	until "$dial9" status -j $! 2>/dev/null | grep -q "\"written\":[1-9]"; do
		kill -0 $! || break
		sleep 0.05
	done'
pid=$(cat pid)
"$dial9" rotate "$pid" >shown 2>&1
# Stopped while there is something in the ring.
for try in 1 2 3 4 5 6 7 8 9; do
	kill -STOP "$pid"
	"$dial9" status -j "$pid" | grep -q '"waiting":[1-9]' && break
	kill -CONT "$pid"
	sleep 0.0$try
done
find sealed -name '*.active' -exec rm {} +
kill -KILL "$pid"
until "$dial9" status -j "$pid" | grep -q dead; do sleep 0.05; done
"$dial9" report -v sealed | tr -s ' \n' ' ' | grep -o 'The latest of 1 process of this directory is not in the trace'
"$dial9" recover sealed >shown
"$dial9" report -v sealed | grep -c 'not in the trace'

say "one of which nothing is missing goes with the next recovery, wherever that is"
die_empty empty gone
rm -r gone
mkdir elsewhere
rings
show recover elsewhere
rings

say "one that somebody else looks at is waited for"
die_full watched watched
flock "$(echo /dev/shm/dial9-*/*-$pid/ring)" sh -c 'echo >locked; sleep 0.5' &
until [ -e locked ]; do sleep 0.02; done
show recover watched
wait $!
rm -r watched

say "another version's stay, and are summed up"
die_full other other
ring=$(echo /dev/shm/dial9-*/*-$pid/ring)
printf '\377' | dd of="$ring" bs=1 seek=8 conv=notrunc 2>errors
for id in zzza-1 zzzb-2 zzzc-3; do
	cp -r "${ring%/ring}" "${ring%/*/ring}/$id"
done
show status -d other
"$dial9" status -j -d other | sed 's/.*"other_versions":/"other_versions":/; s/,"left_out".*/}/' | tr '{' '\n' |
	sed 's/"path":"[^"]*"/"path":PATH/; s/"bytes":[1-9][0-9]*/"bytes":N/; s/"pid":[1-9][0-9]*/"pid":N/; s/[a-z]*-[0-9]*"/ID"/'
show recover other | sort

say "a recorder that starts keeps them too, and removes those of its own beyond two of a program, and of root's 64 MiB"
for dir in a b c; do
	die_full same $dir
	[ $dir = a ] && oldest=$(echo /dev/shm/dial9-*/*-$pid/ring)
	[ $dir = c ] || fallocate -o 128M -l 40M /dev/shm/dial9-*/*-$pid/ring
done
run_until '"recorded":[0-9]\{3\}' next next
while [ -e "$oldest" ]; do
	kill -0 $pid 2>/dev/null || break
	sleep 0.05
done
kill $pid
wait $pid 2>/dev/null
find /dev/shm -path '*/zzz*/ring' | sed "$words"
find a b c -name '*.zst' | sed "$words"

say "and less than that where its own memory is limited"
small=
for dir in d e f; do
	die_full small $dir
	ring_of=$(echo /dev/shm/dial9-*/*-$pid)
	[ $dir = d ] && oldest=$ring_of/ring
	small="$small $ring_of"
	fallocate -o 128M -l 15M "$ring_of/ring"
done
# shellcheck disable=SC3045 # Debian's sh and bash know -S
ulimit -S -v 120000
run_until '"recorded":[0-9]\{3\}' next limited
# shellcheck disable=SC3045
ulimit -S -v unlimited
while [ -e "$oldest" ]; do
	kill -0 $pid 2>/dev/null || break
	sleep 0.05
done
kill $pid
wait $pid 2>/dev/null
find $small -name ring 2>errors | wc -l
rm -r d e f $small limited /dev/shm/dial9-*/*-$pid 2>errors

say "all of them at once: root has to say where to"
rm -r /dev/shm/dial9-*/zzz?-? "${ring%/ring}" b
show recover --all
show recover --all -o all | sort
find all -name '*.zst' | sed "$words" | sort
show status
show recover --all -o all

say "what shall not be recovered is discarded: of a directory, or all"
die_full kept kept
die_full unwanted unwanted
run_until '"recorded":[0-9]\{3\}' living living DIAL9_MODE=flight
rm -r unwanted
mkdir unwanted
show recover --discard unwanted
show recover --discard --json --all | sed 's/"pid":[0-9]*/"pid":N/; s/"discarded_bytes":[1-9][0-9]*/"discarded_bytes":N/'
show recover --discard --all
rings
kill $pid
wait $pid 2>/dev/null
run recover
run recover --all b
run recover -o all kept
run recover --discard -a -o all

finish "$words"
