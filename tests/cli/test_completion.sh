#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What bash completes, and that both completions agree with the help of the commands.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

completion=$top_srcdir/core/completion/dial9
zsh_completion=$top_srcdir/core/completion/_dial9
command -v bash >/dev/null || skip "no bash"
PATH=$top_builddir/core:$PATH

# offer WORD...: the words that bash offers for the last, in one line.
offer() {
	echo "$ dial9 $*<TAB>"
	bash "$top_srcdir/tests/cli/complete.bash" "$completion" dial9 "$@" | sort | tr '\n' ' '
	echo
}

say "commands, as dial9 --help tells them"
offer ""
offer re
offer help di

say "options of a command, and no other's"
offer export --
offer report --no
offer nonsense --

say "values that are words"
offer record --compress ""
offer record --compress=g
offer record --compress=
offer record --log-bridge ""
offer record --name ""
offer events -f j
offer report --color a

say "what a command works on"
mkdir traces traces/web
: >traces/web/trace.0.bin
offer report tr
offer report -v traces/web/
offer recover t
offer dumps t
offer record -o tr
offer record -q --compress zstd -- "$work/tr"
offer record -q --compress=zstd ls tr
offer doctor ls tr

say "processes that are recorded, of those commands alone that take one"
if [ "$SANITIZER" = no ] && [ -e "$top_builddir/adapters/.libs/libdial9-preload.so" ]; then
	build_timer
	DIAL9_SERVICE_NAME="$test_name-$$" "$dial9" record -o recorded --exec -- ./prog 1000 &
	pid=$!
	until "$dial9" status "$pid" >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null || break
	done
	for command in status top dump trigger enable disable rotate report events; do
		bash "$top_srcdir/tests/cli/complete.bash" "$completion" dial9 "$command" "" | grep -qx "$pid" &&
			echo "$command"
	done >offered
	kill "$pid"
	wait "$pid" 2>/dev/null
	"$dial9" recover recorded >/dev/null # no ring is left
else
	printf '%s\n' status top dump trigger enable disable rotate >offered
fi
cat offered

say "every option in the help of every command"
for command in $("$dial9" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	[ "$command" != help ] || continue
	"$dial9" "$command" --help | sed -n 's/^ \{2,6\}\(-[a-z], \)\{0,1\}\(--[a-z-]*\)[] A-Z=[]*  .*/\2/p' | sort >wanted
	bash "$top_srcdir/tests/cli/complete.bash" "$completion" dial9 "$command" -- | sort >given
	diff wanted given >differs || echo "$command: $(cat differs)"
	[ -s wanted ] || echo "$command: no option was found in its help"
done

say "each word that is offered as a value is in the help"
sed -n 's/^	"\([a-z]*\) --\([a-z-]*\)".* echo "\(.*\)" ;;/\1 \2 \3/p' "$completion" >values
while read -r command option words; do
	"$dial9" "$command" --help >help
	grep -qe "--$option [A-Z]" help || echo "$command has no --$option that takes a value"
	for word in $words; do
		grep -qw -e "$word" help || echo "$command --$option: no $word in the help"
	done
	echo "$command --$option"
done <values

say "zsh has the same"
shared() {
	sed -n '/^_dial9_commands/,/^# end of/p' "$1"
}
shared "$completion" >of_bash
shared "$zsh_completion" >of_zsh
cmp of_bash of_zsh
[ "$(wc -l <of_zsh)" -gt 20 ] || echo "nothing is shared"
! command -v zsh >/dev/null || zsh -n "$zsh_completion"

finish ''
