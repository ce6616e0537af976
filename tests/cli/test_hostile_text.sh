#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No command prints a character that a terminal obeys, reorders by or does not show, whatever traces, rings,
# file names and arguments hold.  With a /dev/shm and processes of its own, for it makes rings.
# shellcheck source=tests/cli/own_shm.sh
. "$top_srcdir/tests/cli/own_shm.sh"
set -u
top_builddir=$(cd "$top_builddir" && pwd)
dial9=$top_builddir/core/dial9
make_hostile=$top_builddir/tests/cli/make_hostile
find_bad=$top_builddir/tests/cli/find_bad_text
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
cd "$work" || exit 99
failed=0 looked=0 said=0 seen=
sections="data findings workers callbacks longest wakes timers queues tasks process samples spans events"

# looks_clean DIAL9-ARGUMENTS...: what it prints, on both outputs, is clean.
looks_clean() {
	$within "$dial9" "$@" >out 2>err </dev/null
	seen="$seen $1 "
	looked=$((looked + 1))
	[ ! -s out ] || said=$((said + 1))
	"$find_bad" out err >found && return
	failed=$((failed + 1))
	printf 'dial9 %s\n' "$*" | cat -v
	cat found
}

# A command in front of the program: what it is started by.
within=
terminal=
script -qec true /dev/null >/dev/null 2>&1 </dev/null && terminal=yes

# The checker itself finds each of them, and nothing in clean text.
printf 'gr\303\274n \033[1mbold\033[0m\n' | "$find_bad" || exit 1
for text in '\033[35m' '\302\233' '\342\200\256' '\302\255' '\363\240\201\201' '\233' '\355\240\200' 'a\tb'; do
	# shellcheck disable=SC2059
	printf "$text" | "$find_bad" >/dev/null && { echo "not found: $text"; exit 1; }
done

override=$(printf 'o\342\200\256\302\233\033[35m')
# A sanitizer makes each of 700 starts of dial9 six times as dear.
firsts='0 6 12 18 24 30 36 42 48 53'
[ "${SANITIZER:-no}" = no ] || firsts='0 18 53'
for first in $firsts; do
	folder=$first$override
	mkdir "$folder"
	trace=$folder/trace.0.bin
	"$make_hostile" trace "$trace" $first || exit 99
	looks_clean info "$trace"
	looks_clean info -j "$trace"
	looks_clean events "$trace"
	looks_clean events -f text "$trace"
	looks_clean events -f text -v --no-symbols "$trace"
	looks_clean events --span 3 "$trace"
	looks_clean events --life --task 1 "$trace"
	looks_clean events --life --span 3 "$trace"
	looks_clean events -e "$override" "$trace"
	looks_clean diagram --task 1 "$trace"
	looks_clean diagram --span 3 "$trace"
	looks_clean report "$trace"
	LC_ALL=C.UTF-8 looks_clean report --color always -n 1000 "$trace"
	LC_ALL=C.UTF-8 looks_clean report -v "$trace"
	# shellcheck disable=SC2046 # a list of words
	looks_clean report $(printf ' --section %s' $sections) "$trace"
	for n in 1 2 3 4 5 6 7 8 9; do
		looks_clean report --finding $n "$trace"
	done
	if [ -n "$terminal" ]; then
		DIAL9_PAGER='cat >paged' script -qec "LC_ALL=C.UTF-8 '$dial9' report -v '$trace'" /dev/null </dev/null >/dev/null
		"$find_bad" paged || failed=$((failed + 1))
		rm paged
	fi
	looks_clean report --exit-code "$trace"
	looks_clean report --no-symbols --width 40 "$trace"
	looks_clean report -j "$trace"
	head -c 3000 "$trace" >"$folder/trace.1.bin"
	printf 'no trace' >"$folder/trace.2.bin"
	looks_clean info "$folder"
	looks_clean report "$folder"
	looks_clean report -j "$folder"
	within='timeout -s INT 1'
	looks_clean serve "$folder"
	within=
	looks_clean serve "$folder.none"
	# Each by itself: joined, each text would come thousands of times, or never if one of them is empty.
	for format in table csv jsonl json; do
		for table in events metadata callbacks findings tasks spans; do
			looks_clean query -f $format "$trace" "SELECT * FROM $table"
		done
	done
	looks_clean query "$trace" "SELECT '$override' AS '$override', $override"
	looks_clean query "$trace" ".$override"
	looks_clean export -o "$override.trc" "$folder/trace.2.bin"
	looks_clean export -o "$override.trc.gz" "$trace"
	looks_clean export -f trc.gz -o "$folder/none/x" "$trace"
	looks_clean export -f folded -o - "$trace"
	looks_clean export -f speedscope -o - "$trace"
	looks_clean flamegraph -o - "$trace"
	looks_clean flamegraph --callback "$override" -o - "$trace"
	looks_clean export -f pprof -o "$override.pb" "$trace"
	looks_clean export -f parquet -o "$override.parquet" "$trace"
	looks_clean export -f parquet --partitions -o "$folder/none" "$folder/trace.2.bin"
	looks_clean export -f parquet --partitions --segment-key "$override" -o "$override.fleet" "$folder/trace.2.bin"
	looks_clean export -f folded --kind off-cpu --callback "$override" -o - "$trace"
	looks_clean symbolize -o "$override.bin" "$trace"
	looks_clean symbolize -o "$folder/copies" "$folder"
	looks_clean symbolize -o "$folder/none/x" --debug-dir "$override" "$trace"
	sed "s|MARK|$override|" >"$folder/dump.01M8HCZECA4KCBSV0B2WFDCFWJ.json" <<-'END'
		{"dump_id": "01M8HCZECA4KCBSV0B2WFDCFWJ", "trigger": "MARK", "trigger_time": "2026-11-28T15:39:28.396451648Z",
		"state": "failed", "error": "MARK", "complete": true, "segments": ["trace.0.bin"],
		"fired": [{"trigger": "MARK", "condition": "MARK", "value": 1, "threshold": 0, "time": "2026-11-28T15:39:28.396451648Z"}],
		"pairs": {"MARK": "MARK"}}
	END
	printf '{"dump_id": "%s"}' "$override" >"$folder/dump.$override.json"
	looks_clean dumps "$folder"
	looks_clean dumps --json "$folder"
	looks_clean dumps "$folder/dump.$override.json"
	looks_clean report "$folder"/dump.0*.json
	looks_clean info "$folder"
	rm "$folder"/dump.*.json
	mkdir "$folder/staged"
	cp "$trace" "$folder/staged/trace.0.bin"
	looks_clean process --stage "redact:$override,*.path" --stage "sh -c 'echo $override >&2; exit 1'" "$folder/staged"
	looks_clean process --stage "$override" "$folder/staged"
	looks_clean scrub --explain "$trace"
	looks_clean ship --to s3://bucket/p --dry-run "$trace"
	looks_clean scrub -o "$folder/scrubbed" "$trace"
	looks_clean scrub -o "$folder/scrubbed" "$folder/none"
	looks_clean report -v "$folder/scrubbed"
	rm -rf "$folder/copies" "$folder/staged" "$folder/scrubbed"
	looks_clean export -o "$folder" "$trace"
	looks_clean diagram --task 1 -o "$folder" "$trace"
	looks_clean diagram --task 77777 "$trace"
	looks_clean events --task 77777 --life "$trace"
	looks_clean report "$folder/none"
	looks_clean events "$folder/trace.2.bin"
done
looks_clean info .
looks_clean report .
looks_clean events -f text .
looks_clean export -o x.trc .
looks_clean "$override"
looks_clean report --top "$override"
looks_clean "report" "--$override"
looks_clean doctor -- "$override"
looks_clean agents
looks_clean agents skill "$override"
looks_clean agents skills "$override"
looks_clean agents toolkit "$override/none"
looks_clean record "$override"
looks_clean record -o "$override/a" "./$override"
for option in "report --section" "report --finding" "report --color" "report -n" "events -f" "events --task" "diagram --span" \
	"export -f" "query -f" "record --compress" "record --max-total" "dump -l" "dump -o" "top -i" "status -d" "recover -o"; do
	# shellcheck disable=SC2086 # a command and its option
	looks_clean $option "$override" .
done
for command in report info events query agents diagram flamegraph export symbolize process scrub ship record recover status top doctor enable disable rotate dump trigger dumps help; do
	looks_clean $command "$override"
	looks_clean $command --bad "$override"
	looks_clean $command "--$override=$override"
	looks_clean $command --help
done

# A program that another one pretends to be: the last line of record tells what its trace says.
mkdir recorded
"$make_hostile" trace pretended 12 || exit 99
looks_clean record -o recorded -- sh -c "mkdir recorded/x && cp pretended recorded/x/trace.0.bin"

# Rings.
shm=/dev/shm/dial9-$(id -u)
mkdir -m 700 "$shm"
for first in 0 8 16 24 32 40 48; do
	dir=$work/traces$override$first
	mkdir -p "$dir" "$shm/$first$override"
	"$make_hostile" ring "$shm/$first$override/ring" "$dir" $first || exit 99
	looks_clean status $((900000000 + first))
	looks_clean status --log $((900000000 + first))
	looks_clean status --log -j $((900000000 + first))
	looks_clean status -d "$dir"
done
looks_clean status
looks_clean status -j
looks_clean doctor
looks_clean doctor -j
"$dial9" status -j | grep -q '"program":"[^"]*\\u202e' || { echo "no ring was shown"; exit 1; }

# A process that lives: its callbacks' names are in the folder that its ring names.
mkdir -p "live$override/live"
mkfifo end
mkdir "$shm/live"
"$make_hostile" live "$shm/live/ring" "$work/live$override" 24 <end >ready &
pid=$!
exec 4>end
until [ -s ready ]; do kill -0 $pid || exit 99; done
for first in 0 18 36; do
	"$make_hostile" recent "live$override/live/trace.0.bin.active" $first || exit 99
	looks_clean top --once $pid
	looks_clean top -j $pid
	grep -q '"callback":' out || { echo "top saw no callback"; exit 1; }
done
looks_clean status $pid
grep -q 'running now' out || { echo "status saw no callback that runs"; exit 1; }
looks_clean status
for command in enable disable rotate dump trigger; do
	looks_clean $command $pid
done
looks_clean trigger $pid set "$override" "call; $override"
looks_clean trigger $pid set call
looks_clean trigger $pid remove "$override"
looks_clean trigger "$override"
looks_clean dump -o "$work/$override" $pid
if command -v bash >/dev/null; then
	bash -c '. "$0" && _dial9_pids "$1"' "$top_srcdir/core/completion/dial9" "$dial9" >out
	[ "$(cat out)" = $pid ] || { echo "completion: $(cat -v out)"; failed=$((failed + 1)); }
fi
exec 4>&-
wait $pid

# One that says that it wrote a dump.  What the last one said must be gone before this one starts.
: >ready
"$make_hostile" live "$shm/live/ring" "$work/live$override" 25 <end >ready &
pid=$!
exec 4>end
until [ -s ready ]; do kill -0 $pid || exit 99; done
looks_clean dump $pid
[ -s out ] || { echo "no dump was told"; exit 1; }
looks_clean trigger $pid
[ -s out ] || { echo "no trigger was shown"; exit 1; }
exec 4>&-
wait $pid

for dir in "$work/traces$override"*; do
	looks_clean recover "$dir"
	looks_clean recover --json "$dir"
done
looks_clean recover --all
looks_clean recover --all -o "$work/$override"
# Every command there is.
for command in $("$dial9" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'); do
	case $seen in
	*" $command "*) ;;
	*) echo "never called: $command"; failed=1 ;;
	esac
done
[ $said -gt $((looked / 3)) ] || { echo "only $said of $looked printed anything"; failed=1; }
echo "$looked outputs, $said of them not empty, $failed not clean"
[ $failed = 0 ]
