#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rings that dead processes of other users left: root recovers each by its own user's rights.  With a /dev/shm
# and processes of its own.
other_users=yes
# shellcheck source=tests/cli/own_shm.sh
. "$top_srcdir/tests/cli/own_shm.sh"
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

command -v memcached >/dev/null || skip "no memcached"
chmod 755 "$work"
port=$((21000 + $$ % 10000))

# A timer, 20 times as root, then as nobody with no way back.
cat >became.c <<'END'
#include <event2/event.h>
#include <grp.h>
#include <unistd.h>

static struct event *timer;
static int calls;

static void call(evutil_socket_t fd, short what, void *arg)
{
	struct timeval next = { 0, 2000 };

	(void)fd, (void)what, (void)arg;
	if (++calls == 20 && (setgroups(0, NULL) || setgid(65534) || setuid(65534)))
		_exit(9);
	event_add(timer, &next);
}

int main(void)
{
	struct event_base *base = event_base_new();

	timer = event_new(base, -1, 0, call, NULL);
	call(-1, 0, NULL);
	return event_base_dispatch(base) < 0;
}
END
${CC:-cc} -o became became.c -levent || skip "no libevent to build with"

# begin DIR CMD...: it is recorded below DIR, and $pid.
begin() {
	dir=$1
	shift
	DIAL9_TRACE_DIR="$work/$dir" DIAL9_ENABLED=true DIAL9_MODE="${mode:-continuous}" \
		LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" "$@" &
	pid=$!
}

# until_status TEXT: its status, as JSON, says so.
until_status() {
	until "$dial9" status -j "$pid" 2>/dev/null | grep -q "$1"; do
		kill -0 "$pid" 2>/dev/null || { echo "it is gone before its status has $1"; break; }
		sleep 0.05
	done
}

die() {
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	echo "its ring is in $(cd /dev/shm && echo dial9-*/*-"$pid")"
}

# replace RING TEXT BY: in the ring's header, what begins with TEXT and has its end there.
replace() {
	at=$(head -c 4096 "$1" | grep -abo -m 1 -F "$2" | head -n 1 | cut -d : -f 1)
	printf '%s\0' "$3" | dd of="$1" bs=1 seek="$at" conv=notrunc 2>errors
}

words='s|/[^ ]*/\(all/of/them\)|\1|g; s/[a-z]\{4\}-[0-9]\{1,\}/ID/g; s/process [0-9]\{1,\}/process PID/; s/: [0-9]* events/: N events/
	s/"pid":[0-9]*/"pid":N/; s|/[^ ]*/\(theirs\|roots\)|\1|g'
show() {
	echo "\$ dial9 $*"
	"$dial9" "$@" >shown 2>&1
	status=$?
	sed "$words" shown
	[ $status = 0 ] || echo "[exit status $status]"
}

# trace_of DIR: who owns it all, whether nobody can read it, and where rings are left.
trace_of() {
	find "$1" -mindepth 1 -printf '%y %m %U %f\n' | sed "$words" | sort
	setpriv --reuid=65534 --regid=65534 --clear-groups cat "$1"/*/*.zst >/dev/null 2>&1 && echo "nobody can read it"
	rmdir /dev/shm/dial9-* 2>/dev/null
	find /dev/shm -name ring | sed "$words"
}

theirs() {
	rm -rf theirs
	mkdir -m 700 theirs
	chown 65534:65534 theirs
}

say "a daemon that becomes another user before it has a loop, in that user's directory"
theirs
mode=flight begin theirs memcached -u nobody -l 127.0.0.1 -p $port -U 0 -t 2
until_status '"recorded":[1-9]'
die
show recover theirs
trace_of theirs
show recover theirs

say "one that becomes another user behind our back: the ring is root's, the trace the user's"
theirs
begin theirs "$work/became"
until_status '"written":[0-9]\{3\}'
# With something in it that is not in the file.
kill -STOP "$pid"
until "$dial9" status -j "$pid" 2>/dev/null | grep -q '"waiting":[1-9]'; do
	kill -CONT "$pid" || break
	sleep 0.05
	kill -STOP "$pid"
done
die
show recover theirs
trace_of theirs
show recover theirs

say "in root's directory the other user could not write: root can, and gives it to that user"
mkdir roots
mode=flight begin roots memcached -u nobody -l 127.0.0.1 -p $port -U 0 -t 2
until_status '"recorded":[1-9]'
die
chmod 711 roots
show recover roots
trace_of roots
rm -r roots

say "record does it when its program was killed"
theirs
DIAL9_MODE=flight "$dial9" record -o theirs -- memcached -u nobody -l 127.0.0.1 -p $port -U 0 -t 2 2>shown &
recorder=$!
until pid=$(pgrep -x memcached) && "$dial9" status -j "$pid" 2>/dev/null | grep -q '"recorded":[1-9]'; do
	kill -0 $recorder 2>/dev/null || break
	sleep 0.05
done
kill -KILL "$pid"
wait $recorder 2>/dev/null
grep -o 'recovered' shown
trace_of theirs

say "all of them"
theirs
mode=flight begin theirs memcached -u nobody -l 127.0.0.1 -p $port -U 0 -t 2
until_status '"recorded":[1-9]'
die
show recover --all
show recover --all -o all/of/them
stat -c '%a %u' all all/of all/of/them
trace_of all/of/them

say "in another user's directory none of this user's is written, nor by a link in the place of rings"
theirs
mkdir -m 700 strangers
chown 1234 strangers
mode=flight begin theirs memcached -u nobody -l 127.0.0.1 -p $port -U 0 -t 2
until_status '"recorded":[1-9]'
die
ring=$(echo /dev/shm/dial9-65534/*/ring)
replace "$ring" "$work/theirs" "$work/strangers"
show recover strangers
find strangers -mindepth 1
replace "$ring" "$work/strangers" "$work/theirs"
mv /dev/shm/dial9-65534 /dev/shm/away
ln -s away /dev/shm/dial9-65534
show recover theirs
rm /dev/shm/dial9-65534
cp /dev/shm/away/*/ring theirs/abcd-1.ring
show recover theirs
mv /dev/shm/away /dev/shm/dial9-65534
rm theirs/abcd-1.ring

say "files in the place of segments: a link to root's, a pipe, a directory of root's"
echo precious >precious
chmod 600 precious
id=$(cd /dev/shm/dial9-65534 && echo *)
mkdir -p "theirs/$id"
chmod 700 "theirs/$id"
chown 65534:65534 "theirs/$id"
ln precious "theirs/$id/trace.0.bin.zst.active"
show recover theirs
rm "theirs/$id/trace.0.bin.zst.active"
mkfifo "theirs/$id/trace.0.bin.zst.active"
show recover theirs
rm "theirs/$id/trace.0.bin.zst.active" "theirs/$id/.lock"
ln precious "theirs/$id/.lock"
show recover theirs
rm "theirs/$id/.lock"
chown 0 "theirs/$id"
show recover theirs
find theirs -mindepth 1 -printf '%y %m %U %f\n' | sed "$words"
cat precious
chown 65534 "theirs/$id"
show recover theirs

say "a ring of root's that somebody with less rights wrote into leads nobody elsewhere"
mkdir -m 700 roots precious.d
theirs
begin roots "$work/became"
until_status '"recorded":[1-9][0-9]'
die
ring=$(echo /dev/shm/dial9-0/*-"$pid"/ring)
replace "$ring" "$work/roots" "$work/precious.d"
# Behind the directory, which takes 1024 bytes, and 8 more: of which segment recovery would begin anew.
at=$((at + 1032))
printf '\001' | dd of="$ring" bs=1 seek=$at conv=notrunc 2>errors
# As another process.
mkdir -m 700 roots/abcd-77
: >roots/abcd-77/.lock
echo precious >roots/abcd-77/trace.0.bin.zst
replace "$ring" "$(basename "$(dirname "$ring")")" abcd-77
echo "as $(stat -c %u "$ring")'s, it names $("$dial9" status -j -d precious.d | grep -c precious.d) directory"
begin roots "$work/became"
until_status '"recorded":[1-9][0-9]'
kill "$pid"
wait "$pid" 2>/dev/null
show recover --all -o roots
find precious.d -mindepth 1
cat roots/abcd-77/trace.0.bin.zst

say "what a process of root's left, the recorder of the next process leaves too; record writes it before it starts one"
rm -rf roots
mkdir -m 700 roots
mode=flight begin roots memcached -u root -l 127.0.0.1 -p $port -U 0 -t 2
until_status '"recorded":[1-9]'
die
left=$(echo /dev/shm/dial9-0/*-"$pid"/ring)
begin roots memcached -u root -l 127.0.0.1 -p $port -U 0 -t 2
until_status '"written":[0-9]\{3\}'
kill "$pid"
wait "$pid"
[ -e "$left" ] && echo "left"
"$dial9" record -o roots -- sh -c '[ -e "$0" ] || echo written' "$left" 2>errors
"$dial9" info roots/"$(basename "$(dirname "$left")")" | grep -c 'recovered.*true'

say "for anybody else, what cannot be read is bad usage"
if setpriv --reuid=65534 --clear-groups "$dial9" --version >out 2>&1; then
	mkdir -m 700 unreadable
	setpriv --reuid=65534 --clear-groups "$dial9" recover unreadable
	echo "[exit status $?]"
else
	echo "dial9 recover: unreadable: Permission denied"
	echo "[exit status 2]"
fi

finish "$words"
