#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Dumps that triggers made: listed, and read by their manifests.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >prog.c <<'END'
#include <dlfcn.h>
#include <event2/event.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int (*fire)(const char *);
static int calls, done;
static time_t joins_until;

/* How many dumps are closed comes from the test, as the length of the file "closed". */
static int closed(void)
{
	struct stat st;

	return stat("closed", &st) ? 0 : (int)st.st_size;
}

/* Every 2 ms.  The 20th call fires "mark" and then "other", which joins; "late" fires when none joins that dump any more. */
static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (++calls == 20) {
		fire("mark");
		fire("other");
		joins_until = time(NULL) + 2;
	}
	if (calls > 20 && closed() > done && (done || time(NULL) > joins_until)) {
		done++;
		if (done == 1)
			fire("late");
		else
			event_base_loopbreak(base);
	}
}

int main(void)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);

	*(void **)&fire = dlsym(RTLD_DEFAULT, "d9_trigger_fire");
	alarm(300);
	if (!fire)
		return 1;
	event_add(timer, &(struct timeval){ 0, 2000 });
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	return 0;
}
END
$CC -g -O1 -o prog prog.c -levent -ldl 2>errors || skip "no libevent to build with: $(head -n 1 errors)"

# recorded DIR OPTION...: two dumps of the program in DIR, one after the other.
recorded() {
	dir=$1
	shift
	rm -f closed
	: >closed
	"$dial9" record --quiet -o "$dir" "$@" --trigger 'mark: call last 10s then 50ms every 1s; other: call last 10s then 50ms every 1s' \
		--trigger 'late: call last 10s then 50ms every 1s pairs team=web' -- ./prog &
	recorder=$!
	for n in 1 2; do
		until [ "$(cat "$dir"/*/dump.*.json 2>/dev/null | grep -c '"state": "closed"')" = $n ]; do
			kill -0 $recorder || return
			sleep 0.02
		done
		printf x >>closed
	done
	wait $recorder
}

# shown ARGUMENT...: the list, without what changes from run to run.
shown() {
	run dumps "$@" | sed "s/20[0-9-]* [0-9:]* /TIME /; s/[0-9.]* [KM]iB/SIZE/; s/  *SIZE/  SIZE/; s/[a-z]\{4\}-[0-9]*/BOOT/; s/[0-9A-HJKMNP-TV-Z]\{26\}/ID/"
}

for mode in "flight mode" "a recorder that writes continuously"; do
	dir=$(echo "$mode" | tr -d ' ')
	say "$mode"
	case $mode in
	flight*) recorded $dir --flight ;;
	*) recorded $dir ;;
	esac
	shown $dir
	"$dial9" dumps --json $dir | sed -n 's/.*"id": "\(.*\)",/\1/p' >ids
	while read -r id; do
		manifest=$(echo $dir/*/dump.$id.json)
		"$dial9" info --json $manifest | grep -o '"path":"[^"]*"' | sed 's/.*\(trace.*\)"/\1/' | sort >segments
		grep -o '"trace[^"]*"' $manifest | tr -d '"' | sort | cmp - segments
		"$dial9" report --color never $manifest | sed -n '/^trigger/s/[0-9.]* m\{0,1\}s/T/gp'
	done <ids
done

say "dial9 info of the directory names them"
"$dial9" info $dir | sed -n '/^dumps/,/^events/s/: .*ID.json/: MANIFEST/; /^dumps/{n; s/: .*/: MANIFEST/p}'
"$dial9" info --json $dir | grep -o '"dumps":\[[^]]*\]' | grep -o 'dump\.[^"]*json' | sed 's/dump\.\(.*\)\.json/\1/' | cmp - ids

say "a segment that both list is read once"
set -- $dir/*/dump.*.json
both=$(cat "$@" | grep -o '"trace[^"]*"' | sort -u | wc -l)
segments=$("$dial9" info --json "$@" | grep -o '"path":"[^"]*"' | wc -l)
[ "$both" = "$segments" ] || echo "$both segments, and $segments were read"

say "without one"
rm "$(grep -o '"trace[^"]*"' "$2" | tr -d '"' | sed "s|^|$(dirname "$2")/|" | tail -n 1)"
shown $dir | sed 's/trace\.[0-9]*/trace.N/'
finish ''
