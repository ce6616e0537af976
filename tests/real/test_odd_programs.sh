#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of odd shapes behave under `dial9 record` as alone, with the default flags, with all that is sampled, and with
# --profile-only: standard output, standard error, exit status and signal are compared.  Where they differ, dial9-record(1)
# says so, in the words that the table below holds.  NAME... as arguments: these alone.
#
# What a shape does: tests/real/odd/*.c.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need sh
odd=$helpers/odd/odd
library=$helpers/.libs/odd_library.so
manual=$top_srcdir/core/man/dial9-record.1
export odd
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD 2>/dev/null || true
# shellcheck disable=SC3045 # every shell that is one of Debian's knows it
ulimit -c 0
# Those that become another user look at what they start.
chmod 755 "$dir"

# ---- the table: NAME | what it takes | command ----
# It takes: root; a program; libraries (preload:NAME); a build of the shapes with more words for the compiler (CC:WORD,WORD),
# which is $built then.  A command with words for a shell is started by one.

# Each shape of tests/real/odd that needs nothing.
for shape in $("$odd" list); do
	case $shape in
	another_root | become_another_user | between_two_users | kept_capabilities | namespaces_in_a_loop | process_namespace | \
	user_namespace_*) echo "$shape | root | $odd $shape" ;;
	dlclose_*) echo "$shape | | $odd $shape $library" ;;
	*) echo "$shape | | $odd $shape" ;;
	esac
done >"$dir/table"

cat >>"$dir/table" <<'END'
launch_setpriv | root setpriv | setpriv --reuid 1002 --regid 1002 --clear-groups id -u
launch_setpriv_loop | root setpriv | setpriv --reuid 1002 --regid 1002 --clear-groups --no-new-privs $odd plain
launch_unshare | root unshare | unshare --map-root-user --net id -u
launch_unshare_loop | root unshare | unshare --map-root-user --net $odd plain
launch_unshare_pid | root unshare | unshare --pid --fork --mount-proc $odd plain
launch_runuser | root runuser | runuser -u nobody -- $odd plain
launch_su | root su | su -s /bin/sh nobody -c "$odd plain"
launch_chroot | root chroot | chroot / $odd plain
launch_capsh | root capsh | capsh --drop=cap_sys_ptrace --keep=1 -- -c "$odd plain"
launch_env | | env A=1 $odd plain
launch_env_empty | | env -i $odd plain
launch_nohup | nohup | nohup $odd plain
launch_setsid | setsid | setsid --wait $odd plain
launch_timeout | timeout | timeout 60 $odd plain
launch_timeout_over | timeout | timeout 0.2 sleep 60
launch_nice | nice | nice -n 3 $odd plain
launch_taskset | taskset | taskset -c 0 $odd plain
launch_chrt | root chrt | chrt -b 0 $odd plain
launch_prlimit | prlimit | prlimit --nofile=64 $odd plain
launch_flock | flock | flock /dev/null $odd plain
launch_stdbuf | stdbuf | stdbuf -o0 $odd plain
launch_xargs | xargs | printf 'plain no_loop' | xargs -n 1 $odd
launch_find | find | find /dev/null -exec $odd plain ';'
launch_setarch | setarch | setarch -R $odd plain
launch_python | python3 | python3 -c "import subprocess, sys; sys.exit(subprocess.call(['$odd', 'exit_in_callback']))"
launch_perl | perl | perl -e "system('$odd', 'plain'); exit($? >> 8)"
launch_many | | i=0; while [ $i -lt 40 ]; do /bin/true; i=$((i + 1)); done
launch_pipeline | | $odd plain | cat; exit 3
launch_background | | $odd plain & wait $!
launch_not_found | | sh -c 'exec /nowhere/nothing'
launch_killed | | $odd killed
watch_strace | strace | strace -f -qq -o /dev/null $odd plain
watch_gdb | gdb | gdb -batch -q -ex 'set startup-with-shell off' -ex run -ex quit --args $odd exit_in_callback | grep -o 'exited with code.*'
memcached_few_descriptors | memcached | timeout 1 memcached -u root -c 28 -s $PWD/socket
jemalloc_linked | CC:-ljemalloc | $built allocations
jemalloc_static | CC:-l:libjemalloc.a,-lstdc++,-lm,-rdynamic | $built allocations
tcmalloc_linked | CC:-ltcmalloc_minimal | $built allocations
tcmalloc_static | CC:-l:libtcmalloc_minimal.a,-lstdc++,-lm,-rdynamic | $built allocations
mimalloc_linked | CC:-lmimalloc | $built allocations
mimalloc_static | CC:-l:libmimalloc.a,-rdynamic | $built allocations
jemalloc_preloaded | preload:libjemalloc.so.2 | LD_PRELOAD=libjemalloc.so.2 $odd allocations
tcmalloc_preloaded | preload:libtcmalloc_minimal.so.4 | LD_PRELOAD=libtcmalloc_minimal.so.4 $odd allocations
mimalloc_preloaded | preload:libmimalloc.so.2.0 | LD_PRELOAD=libmimalloc.so.2.0 $odd allocations
asan | CC:-fsanitize=address | $built allocations
asan_started | CC:-fsanitize=address | $built allocations; exit $?
asan_static | CC:-fsanitize=address,-static-libasan | $built allocations
tsan | CC:-fsanitize=thread | $built allocations
ubsan | CC:-fsanitize=undefined | $built allocations
static | CC:-static | $built allocations
END

# What the kernel puts on a stack for a signal; old ones do not say.
frame=$(LD_SHOW_AUXV=1 /bin/true | sed -n 's/^AT_MINSIGSTKSZ: *//p')
frame=${frame:-0}

# What dial9-record(1) says of NAME under the flags SET, if they may differ.
documented() {
	case $1 in
	coroutines_4k) [ "$frame" -lt 3000 ] || echo "Coroutines with a smaller stack than that, such as 4 KiB with" ;;
	locks_all_within_8m) [ "$2" != all ] || echo "What it allocates counts against" ;;
	asan_started) echo "Where another program starts it, its runtime refuses to begin" ;;
	esac
}

# ---- running ----

# as WAY COMMAND...: run it, and write down what can be seen of it, in files named WAY.*.
as() {
	way=$1 status=0
	shift
	timeout -k 5 120 "$@" >"$way.out" 2>"$way.err" </dev/null || status=$?
	echo "exit status $status" >>"$way.out"
}

# is_there WORD...: what the entry takes; else why it cannot be run.
is_there() {
	for word; do
		case $word in
		root) [ "$(id -u)" = 0 ] || echo "takes root" ;;
		preload:*) LD_PRELOAD=${word#*:} true 2>&1 | sed 's/.*/there is no '"${word#*:}/" ;;
		CC:*)
			# A sanitizer is in the code; the others are linked with.
			case $word in *-fsanitize=*) parts=$(echo "$top_srcdir"/tests/real/odd/*.c) ;; *) parts=$(echo "$dir"/objects/*.o) ;; esac
			# Words are meant.
			# shellcheck disable=SC2046,SC2086
			$CC -D_GNU_SOURCE -g -O1 -o built $parts $(echo "${word#*:}" | tr , ' ') -levent -lpthread -ldl 2>cc.err ||
				echo "cannot be built: $(tail -n 1 cc.err)"
			;;
		*) command -v "$word" >/dev/null || echo "$word is not installed" ;;
		esac
	done
}

same() {
	cmp -s "alone.$2" "$1.$2"
}

# judge NAME SET: one line.
judge() {
	if same "$2" out && same "$2" err; then
		echo "same: $1 [$2]"
		return
	fi
	words=$(documented "$1" "$2")
	if [ -n "$words" ] && grep -qF "$words" "$dir/manual"; then
		echo "differs as documented: $1 [$2]"
		return
	fi
	echo "FAILED: $1 [$2]"
	diff alone.out "$2.out" | head -n 8
	diff alone.err "$2.err" | head -n 8
}

# entry NAME COMMAND: alone, and with each set of flags.
entry() {
	built=$PWD/built
	export built
	case $2 in
	*[\;\|\&=\>]*) set -- "$1" sh -c "$2" ;;
	*) eval "set -- $1 $2" ;;
	esac
	name=$1
	shift
	as alone "$@"
	as default "$dial9" record -q -o default.d -- "$@"
	judge "$name" default
	as all "$dial9" record -q --cpu 999 --off-cpu --memory -o all.d -- "$@"
	judge "$name" all
	as profile "$dial9" record -q --profile-only -o profile.d -- "$@"
	judge "$name" profile
}

# All entries of the table whose number modulo WORKERS is NUMBER.
work() {
	awk -v n="$1" -v of="$2" 'NR % of == n' "$dir/chosen" | while IFS='|' read -r name takes command; do
		name=${name% }
		mkdir -m 755 "$dir/$name"
		cd "$dir/$name"
		# Words are meant.
		# shellcheck disable=SC2086
		why=$(is_there $takes | head -n 1)
		if [ -n "$why" ]; then echo "skipped: $name: $why"; else entry "$name" "${command# }"; fi
		cd "$dir"
		rm -rf "${dir:?}/$name"
	done
}

sed 's/[\\]//g; s/^\.[A-Z]* //' "$manual" | tr -s '\n ' '  ' >"$dir/manual"
for name; do grep "^$name |" "$dir/table"; done >"$dir/chosen"
[ $# -gt 0 ] || cp "$dir/table" "$dir/chosen"
mkdir "$dir/objects"
! grep -q '| CC:' "$dir/chosen" || (cd "$dir/objects" && $CC -D_GNU_SOURCE -g -O1 -c "$top_srcdir"/tests/real/odd/*.c) || fail "the shapes cannot be built"
workers=$((2 * $(nproc)))
for number in $(seq 0 $((workers - 1))); do
	work "$number" $workers >"$dir/result.$number" 2>&1 &
done
wait
cat "$dir"/result.*
echo "$(wc -l <"$dir/chosen") programs, three sets of flags each: $(cat "$dir"/result.* | grep -c '^same') as alone," \
	"$(cat "$dir"/result.* | grep -c '^differs') as documented, $(cat "$dir"/result.* | grep -c '^skipped') programs skipped"
[ "$(cat "$dir"/result.* | grep -c '^same')" -gt 0 ] || fail "nothing was compared"
! cat "$dir"/result.* | grep -q '^FAILED' || fail "a program behaves in another way"
