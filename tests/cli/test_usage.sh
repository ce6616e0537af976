#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Help, and one clear line for each way to get a command line wrong.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

say "the program"
run --version
run
run nonsense
run help nonsense

say "help of each command, by both ways to ask"
for command in record info events diagram flamegraph export symbolize process scrub ship query agents serve status doctor recover dump dumps trigger top enable disable rotate; do
	run $command --help
	"$dial9" help $command >by_help
	"$dial9" $command -h >by_option
	cmp by_help by_option
done
say "lines of help are no longer than a terminal is wide"
for command in $("$dial9" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx help); do
	"$dial9" help "$command"
done | awk 'length > 80; END { if (NR < 200) print NR " lines" }'

say "wrong options and values"
run events --nonsense
run events --limits 5
run record --mode flight -- true
run events -x
run events --format
run events --format=xml t
run events --no-symbols=1 t
run events --worker two t
run events --from 1parsec t
run events --limit 99999999999999999999 t
run export t
run export --format avro -o f t
run serve
run serve --port 65536 t
run serve a b
run serve missing
run record
run record -o

say "output that cannot be written"
for words in --version help "record --help" "info --help"; do
	printf "$ dial9 %s >/dev/full\n" "$words"
	# One word per argument is meant.
	# shellcheck disable=SC2086
	"$dial9" $words >/dev/full
	echo "[exit status $?]"
done

say "names that would write on the terminal"
"$dial9" info "$(printf 'a\033[31mb\nc\302\233d')"
echo "[exit status $?]"

say "no trace"
run events
run info
run export -o f
run events missing
mkdir empty
run info empty
: >nothing
run info nothing
echo "this is a text" >text
run events text
run export -o f text
head -c 5 /dev/zero >zeros
run info zeros
[ ! -e f ] || echo "export left a file"

finish 's/^dial9 [0-9].*/dial9 VERSION/'
