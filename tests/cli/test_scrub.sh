#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dial9 scrub copies for strangers: a trace in which a report finds the same, and no text or address but what
# --explain lists.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

umask 022
# values TRACE...: every text that an event there holds, once.
values() {
	"$dial9" events "$@" | grep -oE '":"([^"\\]|\\.){3,}"' | cut -c 3- | tr -d '"' | sort -u
}
# unpacked TRACE: all its bytes.
unpacked() {
	case $1 in
	*.zst) zstd -qdc "$1" ;;
	*.gz) gzip -dc "$1" ;;
	*) cat "$1" ;;
	esac
}
# leaks TRACE COPY: texts of TRACE that are in COPY, too, and that --explain does not list.
leaks() {
	"$dial9" scrub --explain "$1" | sed -n 's/^  //p' >listed
	sed 's/^[^=]*=//' listed | sort -u - listed >allowed
	values "$1" | comm -13 allowed - >secret
	values "$2" | comm -12 secret -
}
# findings TRACE: what a report begins with, without the program's name and those of files.
findings() {
	COLUMNS=200 "$dial9" report "$1" |
		sed -n '1s/^[^ ]*  //p; s/ *[a-z_]*\.c:[0-9]*$//; s/ *([a-z_]*\.c:[0-9]*[^)]*)//; s/ *(in [a-z_0-9]*)$//; /^!/p; /^  so: /p; /^  at: /p; /^time: /p'
}

say "the findings of every demo, with functions; and no other text of it"
for demo in "$top_srcdir"/core/demo/*/; do
	name=$(basename "$demo")
	"$dial9" scrub -o "$name" "$demo" >said || echo "[exit status $?]"
	sed 's|, [0-9.]* [KMi]*B, |, SIZE, |' said
	findings "$demo" >before
	findings "$name" >after
	cmp before after || diff before after
	leaks "$demo" "$name"
done
cat after
stat -c '%A %n' mistakes mistakes/process-1 mistakes/process-1/*

say "what leaves of one"
mkdir of
cp "$top_srcdir"/core/demo/hang/* of
run scrub --explain of

say "events and spans of the program's own: times, relations and measures"
for kind in "types plain bin" "spans gzip bin.gz" "newest zstd bin.zst" "wild plain bin"; do
	# shellcheck disable=SC2086 # KIND PACKING SUFFIX
	set -- $kind
	"$make_trace" "$1" "$2" "$1.$3"
	"$dial9" scrub -o "of_$1" "$1.$3" >/dev/null || echo "[exit status $?]"
	(cd "of_$1" && ls process-1)
	leaks "$1.$3" "of_$1"
done
"$dial9" events of_types of_spans | head -n 12

say "not one of its texts is left in any byte"
"$make_trace" spans plain s.bin
"$dial9" scrub -o bytes s.bin >/dev/null
unpacked bytes/process-1/trace.0.bin >all
for text in request /index s.c:3 query q.c; do
	grep -aqF -e "$text" s.bin || echo "$text: not in the trace"
	! grep -aqF -e "$text" all || echo "$text: in the copy"
done

say "the same stand-ins in all segments and processes, which have names of their own"
mkdir -p several/web-1 several/db-2
"$make_trace" process plain several/web-1/trace.3.bin web-1 10
"$make_trace" process zstd several/web-1/trace.4.bin.zst web-1 10
"$make_trace" process plain several/db-2/trace.0.bin db-2 10
touch several/db-2/trace.1.bin.active
run scrub -o shared several
find shared -type f | sort
"$dial9" events shared | grep -o '"spawn_loc":"[^"]*"' | sort | uniq -c

say "as a stage"
cp s.bin trace.0.bin
run process --stage scrub trace.0.bin
cmp trace.0.bin bytes/process-1/trace.0.bin && echo "as the copy"
run process --stage scrub trace.0.bin

say "a segment that is cut is not in the copy"
head -c 200 s.bin >several/db-2/trace.2.bin
run scrub -o cut several/db-2
find cut -type f

say "command lines that are wrong"
run scrub s.bin
run scrub -o a --explain s.bin
run scrub -o a
run scrub -o a missing
run scrub -o shared s.bin
run scrub -o missing/a s.bin
run scrub -o s.bin s.bin
ls -d a missing 2>&1

finish ''
