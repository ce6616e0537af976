#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `dial9 record --on-dump` runs for a dump, and what that gets to know.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

say "mistakes, before anything runs"
run record --on-dump '' -- touch ran
run record --on-dump "mail 'me" -- touch ran
run record --on-dump 'mail me' --exec -- touch ran
run record --on-dump a --on-dump a --on-dump a --on-dump a --on-dump a --on-dump a --on-dump a --on-dump a --on-dump a -- touch ran
ls ran 2>/dev/null

cat >prog.c <<'END'
#include <event2/event.h>
#include <unistd.h>

/* The only call takes too long, and the program ends. */
static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	usleep(20000);
	event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();

	alarm(300);
	event_base_once(base, -1, EV_TIMEOUT, on_timer, base, &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
	event_base_free(base);
	return 7;
}
END
$CC -g -O1 -o prog prog.c -levent || exit 99

cat >hook <<'END'
#!/bin/sh
exec >>"$1"
echo "$# words, the second: $2"
shift 2
case $1 in
/*/dump.*.json) grep -o '"state": "[a-z]*"' "$1" ;;
esac
echo "$(wc -c) bytes of input"
[ -e /proc/$$/fd/5 ] && echo "a descriptor of CMD's"
[ "$(ps -o pgid= -p $$ | tr -d ' ')" = $$ ] && echo "a group of its own"
# By the shell itself, which blocks signals until it has started a program.
while read -r key value; do
	case $key in SigBlk: | SigIgn:) echo "${key%:} ${value#?????????}" ;; esac
done </proc/$$/status
echo "variables: $(env | sed 's/=.*//' | sort | grep -v '^\(_\|PWD\|SHLVL\|OLDPWD\)$' | tr '\n' ' ')"
END
chmod +x hook
cat >kept <<END
#!/bin/sh
'$(cd "$top_builddir" && pwd)/core/dial9' dumps "\$2" | sed -n '2s/.*\(stuck\).*/\1/p' >"\$1"
ls "\${2%/*}" | sed -n 's/^trace\..*/its segments are there/p' | uniq >>"\$1"
END
chmod +x kept

say "a dump that the program was killed in the middle of, once its segment is recovered"
sed 's/usleep(20000)/sleep(2), kill(getpid(), SIGKILL)/;s/#include <unistd.h>/&\n#include <signal.h>/' prog.c >killed.c
$CC -g -O1 -o killed killed.c -levent || exit 99
"$dial9" record -o killed.traces --flight --trigger 'stuck: blocked > 100ms then 60s' --on-dump './kept out' -- ./killed >said 2>&1
echo "exit status $?"
cat out

say "a dump that is finished as the program ends"
env -i PATH="$PATH" HOME=/nowhere TZ=UTC LC_ALL=C AWS_ACCESS_KEY_ID=AKIA AWS_SECRET_ACCESS_KEY=x GITHUB_TOKEN=x \
	DATABASE_URL=postgres://u:p@h DB_PASSWORD=x API_KEY=x SETTING=1 \
	"$dial9" record --quiet -o tr --flight --trigger 'poll > 10ms then 0s' --on-dump "'./hook' log 'two words'" -- \
	sh -c 'env >prog.env; exec ./prog' 5</dev/null
echo "[exit status $?]"
cat log

say "nobody but the command line tells what is run"
grep -c hook prog.env
grep -l hook tr/*/*.json
"$dial9" events --include-recorder tr 2>/dev/null | grep hook
"$dial9" events tr | grep hook

say "failures are told, and are not CMD's"
rm -rf tr
run record -o tr --flight --trigger 'poll > 10ms then 0s' --on-dump './missing it' --on-dump false --on-dump 'sh -c "exit 0"' -- ./prog \
	2>&1 | sed 's/recorded [0-9]* events/recorded N events/; s|tr/[a-z]*-[0-9]*|tr/BOOT|; s/dump\.[0-9A-Z]*\.json/dump.ID.json/'

say "dumps of another dial9 record in the same directory are that one's"
rm -rf tr log enough
"$dial9" record --quiet -o tr --on-dump './hook log waited' -- sh -c 'echo >ready; until [ -e enough ]; do sleep 0.05; done' &
until [ -e ready ]; do sleep 0.05; done
"$dial9" record --quiet -o tr --flight --trigger 'poll > 10ms then 0s' --on-dump './hook log2 own' -- ./prog
: >enough
wait $!
sed -n 1,2p log2
[ ! -e log ] || cat log

say "nor those of an earlier run"
rm -f log
"$dial9" record --quiet -o tr --flight --trigger 'poll > 10s' --on-dump './hook log again' -- ./prog
[ ! -e log ] || cat log
finish ''
