#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What was typed to `dial9 query` is kept for its user alone, in folders that are made where they are missing.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

grep -q '^#define HAVE_LIBEDIT 1' "$top_builddir/config.h" || skip "built without libedit"
"$make_trace" process plain trace.bin web-1 30

# A question to the shell, on a terminal.
type_question() {
	python3 -c '
import os, pty, sys
pid, terminal = pty.fork()
if not pid:
    os.execv(sys.argv[1], [sys.argv[1], "query", "trace.bin"])
os.write(terminal, b"SELECT count(*) FROM polls;\n.quit\n")
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
print("exit status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$dial9"
}

umask 022
say "in a home that has nothing in it yet"
mkdir home
unset XDG_STATE_HOME
HOME=$work/home type_question
cd home || exit 99
find . -printf '%P %m\n' | sort
cd ..
grep -c SELECT home/.local/state/dial9/query_history

say "where the environment says, and again in what is there"
HOME=$work/home XDG_STATE_HOME=$work/a/state type_question
HOME=$work/home XDG_STATE_HOME=$work/a/state type_question
find a -printf '%P %m\n' | sort
grep -c SELECT a/state/dial9/query_history

say "a home that does not exist is not made, for the symbols' cache neither"
unset XDG_CACHE_HOME
HOME=$work/none type_question
HOME=$work/none "$dial9" report trace.bin >/dev/null
[ -e none ] && echo made

say "where none can be made, none is kept"
: >file
HOME=$work/home XDG_STATE_HOME=$work/file/state type_question

finish ''
