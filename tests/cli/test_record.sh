#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program that runs another one, with a library in the place of ours that does nothing.
# What CMD gets in single quotes, CMD's shell expands.
# shellcheck disable=SC2016
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# A program built with ASan starts behind another preloaded library only if told so.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
preload=$($CC -print-file-name=libm.so.6)
DIAL9_PRELOAD=$preload
export DIAL9_PRELOAD
preload=$(readlink -f "$preload")

# What a recorder would leave: two processes' worth.
"$make_trace" small zstd made
cat >fake <<'END'
#!/bin/sh
mkdir "$DIAL9_TRACE_DIR/$1" && cp made "$DIAL9_TRACE_DIR/$1/trace.0.bin.zst"
END
chmod +x fake

say "CMD's output, status and environment are its own"
run record -q -- sh -c 'echo out; echo err >&2; exit 7'
run record -q sh -c 'echo "$1"' sh --quiet
# What is preloaded already stays, behind ours: the same file once more does no harm.
LD_PRELOAD=$preload "$dial9" record -q -- sh -c 'echo "$LD_PRELOAD"' | sed "s|$preload|LIBM|g"
env >before
"$dial9" record -q -o x --name web -- env >after
sort before >a && sort after >b
diff a b | sed -n "s|$preload|LIBM|; s/^[<>]/&/p" | grep -v -e ' _=' -e DIAL9_GIVER
stat -c %a x
"$dial9" record -q --max-total 1.5G --rotate 2m --compress none -- env >after
sort before >a && sort after >b
diff a b | sed -n "s/^> \(DIAL9_[CMR].*\)/\1/p"

say "options that cannot be"
run record --max-total 12K true
run record --max-total lots true
run record --rotate 1.5s true
run record --compress lz4 true
run record --log-bridge all true

say "no descriptor but those it had"
"$dial9" record -q -- sh -c 'ls /proc/self/fd' >a
sh -c 'ls /proc/self/fd' >b
cmp a b

say "the final line"
run record true
run record ./fake aaaa-1
rm -r dial9-traces
run record -o two sh -c './fake aaaa-1; ./fake bbbb-2'
run record -o two ./fake cccc-3
run record -o two -q ./fake dddd-4
run record --require true
run record --require -- sh -c 'exit 5'
run record --require -o req ./fake aaaa-1

say "why nothing was recorded"
echo 'int main(void) { return 0; }' >static.c
if $CC -static -o static static.c 2>/dev/null; then
	run record ./static
else
	printf '$ dial9 record ./static\ndial9: nothing was recorded: %s, %s; %s\n' \
		"./static is statically linked" "so nothing can be preloaded into it" \
		"link libdial9-libevent and attach its loops"
	ln -s "$(command -v true)" static
fi
cp "$(readlink -f "$(command -v sleep)")" other
if [ "$(id -u)" = 0 ] && chown 1:1 other && chmod 4755 other; then
	run record ./other 0
else
	printf '$ dial9 record ./other 0\ndial9: nothing was recorded: %s (%s), so %s; %s\n' \
		"./other runs with other privileges" "set-user-ID or file capabilities" \
		"the loader ignores LD_PRELOAD" "start it as the user it runs as"
fi
# A script is what its interpreter is.
printf '#!%s/static\n' "$work" >script
chmod +x script
"$dial9" record ./script 2>&1 | grep -c "nothing was recorded"
[ ! -e dial9-traces ] || echo "an empty folder was left"

say "a trace directory that is none"
: >file
run record -o file true
run record -o file/below true

say "CMD that cannot be run"
run record no-such-program
run record ./no-such-program
run record ./static.c
run record /
[ ! -e dial9-traces ] || echo "an empty folder was left"

say "a folder to which others may write, and one that was there"
mkdir -m 775 shared
run record -o shared -- true
mkdir -m 755 kept
run record -o kept -- true
[ -d kept ] || echo "the folder is gone"

say "signals"
run record -q -- sh -c 'kill -KILL $$' 2>/dev/null
run record -q -- sh -c 'kill -TERM $$' 2>/dev/null
run record -q -- sh -c 'trap "exit 3" INT; kill -INT $$; sleep 5'

# A signal to dial9 is passed on; CMD decides what it does.
cat >waits <<'END'
#!/bin/sh
trap 'echo "CMD: terminated"; exit 4' TERM
trap 'echo "CMD: hung up"; exit 5' HUP
trap 'echo "CMD: usr1"' USR1
echo ready >ready
while :; do sleep 0.05; done
END
chmod +x waits
for signals in TERM HUP "USR1 TERM"; do
	rm -f ready
	"$dial9" record -q ./waits &
	while [ ! -e ready ]; do sleep 0.02; done
	for signal in $signals; do
		kill -"$signal" $!
		sleep 0.2
	done
	wait $!
	echo "[exit status $?]"
done

say "Ctrl-C reaches CMD once, and dial9 stays to tell"
if command -v script >/dev/null && command -v setsid >/dev/null; then
	cat >interrupted <<'END'
#!/bin/sh
trap 'echo "CMD: interrupted"; exit 6' INT
echo ready >ready
while :; do sleep 0.05; done
END
	chmod +x interrupted
	rm -f ready
	{
		while [ ! -e ready ]; do sleep 0.02; done
		printf '\003'
		sleep 0.3
	} | script -qec "trap : INT; '$dial9' record -o ctrl ./interrupted; echo \"[exit status \$?]\"" /dev/null |
		tr -d '\r' | sed 's/^\^C//'
else
	echo "CMD: interrupted"
	echo "dial9: nothing was recorded: no loop of a shared libevent, libev or GLib ran in ./interrupted or in what it started"
	echo "[exit status 6]"
fi

say "the last line is one, whatever names it holds"
"$dial9" record -o "$(printf 'a\nb\033[31m')" ./fake aaaa-1 2>&1 | grep -o 'events in .*;'

say "a library that is not there"
DIAL9_PRELOAD=/no/such/library.so run record true

finish "s|in /[^ ]*/dial9;|in PKGLIBDIR;|"
