#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pipe is read once, whoever would like to look twice: FIFOs and what a shell makes of <(...).
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" two zstd two.bin.zst
"$make_trace" small plain small.bin
mkfifo fifo other

# through COMMAND...: dial9 with two.bin.zst in the FIFO named fifo, small.bin in the one named other.
through() {
	cat two.bin.zst >fifo 2>/dev/null &
	first=$!
	cat small.bin >other 2>/dev/null &
	second=$!
	timeout 60 "$dial9" "$@"
	echo "[exit status $?]"
	# One that has not run yet still has the trap of TERM, and would go on to wait for a reader.
	kill -KILL $first $second 2>/dev/null
	wait 2>/dev/null
}

say "the same as from the file"
for command in events 'events --format text' 'events --life --task 7' 'diagram --task 7' 'report -v' \
	'export --output -'; do
	# Words are meant.
	# shellcheck disable=SC2086
	{
		"$dial9" $command two.bin.zst
		echo "[exit status $?]"
	} >from-file 2>&1
	# shellcheck disable=SC2086
	through $command fifo >from-pipe 2>&1
	cmp from-file from-pipe && echo "$command"
done

say "it is opened once: a writer takes whoever opens it for its reader"
if [ "$SANITIZER" = no ] && command -v strace >/dev/null && strace -o trace true 2>errors; then
	for command in info events 'events --life --task 7' report; do
		# What opens it again has another writer, and no end.
		cat two.bin.zst >fifo 2>/dev/null &
		first=$!
		# shellcheck disable=SC2086 # words are meant
		timeout 20 strace -f -o trace -e trace=open,openat "$dial9" $command fifo >out 2>&1
		kill -KILL $first 2>/dev/null
		wait $first 2>/dev/null
		opened=$(grep -c '"fifo"' trace)
		[ "$opened" = 1 ] || echo "$command: opened $opened times"
	done
fi

say "two pipes are two processes"
through info fifo other | grep -e '^process' -e ' events in ' -e status
through report --json fifo other | grep -e '"folder"' -e '"total_events"' -e status

say "a pipe beside a file"
through info fifo small.bin | grep -e '^process' -e ' events in ' -e status
through export --output both.trc fifo small.bin
"$dial9" events two.bin.zst small.bin | sed 's/,"process":"[^"]*"//' | sort >a
"$dial9" events both.trc | sort >b
cmp a b

finish ''
