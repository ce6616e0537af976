#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9 doctor -- CMD: what CMD uses, and whether that can be recorded.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"
# shellcheck source=tests/cli/altered.sh
. "$top_srcdir/tests/cli/altered.sh"

for library in libevent libev glib; do
	[ -x "$top_builddir/adapters/dial9-selftest-$library" ] || skip "no self-test of $library was built"
	cp "$top_builddir/adapters/dial9-selftest-$library" "./uses-$library"
done
TMPDIR=$work
DIAL9_TRACE_DIR=$work/traces
export TMPDIR DIAL9_TRACE_DIR
# Each text in one line, whatever the length of a path.
COLUMNS=2000
export COLUMNS

# show ARGUMENTS...: the lines about the command and its libraries, and the status.
show() {
	printf '$ dial9 doctor %s\n' "$*"
	"$dial9" doctor "$@" >found
	status=$?
	[ $status = 0 ] || echo "[exit status $status]"
	awk '/^[A-Z]/ { told = $2 ~ /^(command|loader|loop|libevent|libev|glib|self-test)$/ } told' found
}

say "exactly the libraries that it uses"
for library in libevent libev glib; do
	show -- "./uses-$library" | sed 's/: [a-z_]*=[^ ]*$/: CAPABILITIES/'
done
echo 'int main(void) { return 0; }' >nothing.c
$CC -o nothing nothing.c
show ./nothing --help

say "what lacks the debug information that would name its functions"
# symbols NAME: what is told of it; which libraries have theirs depends on the machine.
symbols() {
	"$dial9" doctor -- "./$1" | awk '/^[A-Z]/ { told = $2 == "symbols" } told' | tr '\n,' '  ' >found
	grep -qw "$1" found && grep -o 'no lines' found
	grep -o 'your own with -g' found
}
$CC -o plain nothing.c
strip plain
symbols plain
$CC -g -o told nothing.c
symbols told

say "as wide as the terminal"
for columns in 80 200; do
	COLUMNS=$columns "$dial9" doctor -- ./uses-libev >found
	awk -v columns=$columns 'length >= columns && !/\// { print "too wide: " $0 }' found
	echo "$columns columns: $(grep -c 'poll=full,.*,task_end=partial$' found) line with all capabilities"
done

say "nothing of it runs"
printf '#!/bin/sh\ntouch ran\n' >script
chmod +x script
show -- ./script | head -n 2
$CC -o touches -x c - <<'END'
#include <fcntl.h>
static __attribute__((constructor)) void start(void) { open("ran", O_CREAT, 0600); }
int main(void) { return 0; }
END
show -- ./touches | head -n 2
[ ! -e ran ] || echo "it ran"

say "what cannot be recorded"
show -- no-such-program
show -- ./nothing.c
if $CC -static -o static nothing.c 2>/dev/null; then
	show -- ./static
else
	echo '$ dial9 doctor -- ./static'
	echo '[exit status 1]'
	echo 'FAIL  command          ./static: statically linked, so nothing can be preloaded into it'
	echo '              mend it: link libdial9-libevent, -libev or -glib and attach its loops'
fi
cp nothing other
if [ "$(id -u)" = 0 ] && chown 1:1 other && chmod 4755 other; then
	show -- ./other | head -n 4
else
	cat <<'END'
$ dial9 doctor -- ./other
[exit status 1]
FAIL  command          ./other: runs with other privileges (set-user-ID or file capabilities), so the loader ignores LD_PRELOAD
              mend it: start it as the user it runs as
END
fi

say "a loop inside it, and a library that is missing"
printf 'int ev_run(void *loop, int flags) { return !loop + flags; }\n' >ev.c
$CC -o embeds nothing.c ev.c
show -- ./embeds
$CC -shared -fPIC -Wl,-soname,libgone.so -o libgone.so nothing.c
$CC -o misses nothing.c -Wl,--no-as-needed ./libgone.so
rm libgone.so
show -- ./misses

say "libraries that are refused"
alter ./uses-libevent ./uses-libev ./uses-glib
LD_LIBRARY_PATH=altered
export LD_LIBRARY_PATH
for library in libevent libev glib; do
	show -- "./uses-$library"
done
unset LD_LIBRARY_PATH

say "JSON"
"$dial9" doctor --json -- ./uses-libev | grep -o '{"name":"command"[^}]*}'

finish 's/\(4\|2\)\.[0-9][0-9]*\(\.[0-9]*\(-stable\)\{0,1\}\)\{0,1\}\(, \| [a-z]\)/VERSION\4/; s/[^ ]*\/\(libevent\|libev\|libglib\)[-_.0-9a-z]*/\1.so/; s/the [0-9]* libraries/the N libraries/'
