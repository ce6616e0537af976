#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that use every kind of GLib source and count for themselves, recorded in every way there
# is: each callback must have as many polls in the trace as the program counted, and the program must
# run as it does alone.
set -u

# As in check_libevent.sh.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"
# Where it has forgotten how a thread came to a write it cannot know a line of that file again.
TSAN_OPTIONS="${TSAN_OPTIONS-}:suppressions=$top_srcdir/tests/support/glib_threads.supp:history_size=7"
export TSAN_OPTIONS
library=glib
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

every_kind=$here/glib_every_kind
by_preload="LD_PRELOAD=$preload"
full="--has poll=full --has park=all --has wakefd=eventfd --has depth=exact --has scan=complete
	--has task_end=destroy+finalize --has spawn=site --has wake=exact --others --seen"

"$every_kind" --out="$work/alone" || exit 99
record "preloaded" "$by_preload" "--wakes $full" "$every_kind"
same_log
record "preloaded, bound at once" "$by_preload LD_BIND_NOW=1" "--wakes $full" "$every_kind"
record "preloaded and attached" "$by_preload" "$full" "$every_kind" --attach
record "adapter loaded RTLD_LOCAL" "" "$full" "$every_kind" --adapter="$adapter"
for order in before behind noplt; do
	record "linked $order" "" "$full" "$here/glib_linked_$order" --attach
done
record "GLib loaded RTLD_LOCAL" "$by_preload" "$full" "$here/loader" \
	"$here/.libs/glib_every_kind_module.so"
record "both loaded RTLD_LOCAL" "" "$full" "$here/loader" \
	"$here/.libs/glib_every_kind_module.so" --adapter="$adapter"

cases=$here/glib_cases
for name in recursion invokes late external contexts poll_function handle longjmp \
	cancel errno daemon ends destroy_self inline looked_at; do
	record "$name" "$by_preload" "--seen" "$cases" $name
done
# With a checker of threads a signal that comes inside a handler can leave all signals blocked: it keeps one
# mask of them per thread.
[ "$SANITIZER" = thread ] || record storm "$by_preload" "--seen" "$cases" storm
# A checker of threads does not look at children, and takes its time with them.  Another sanitizer has
# their leaks to tell, and its time with short threads, each of which takes a chunk of the ring.
[ "$SANITIZER" = thread ] || record spawn "$by_preload" "--seen" "$cases" spawn
[ "$SANITIZER" != no ] || record fork "$by_preload" "--seen" "$cases" fork
[ "$SANITIZER" = address,undefined ] ||
	record threads "$by_preload DIAL9_RING_MB=128" "--seen" "$cases" threads
# Whatever the threads that make sources are held up by.
record "made behind its last poll" "$by_preload" "--wakes --seen" "$here/glib_held" made
record "made while another thread takes the loop over" "$by_preload DIAL9_RING_MB=128" "--wakes --seen" "$here/glib_held" taken
record "invoked while the owner lets go" "$by_preload" "--wakes --seen" "$here/glib_held" let_go
"$top_builddir/core/dial9" events -e QueueSampleEvent "$work/trace" | tail -n 1 |
	grep -q '"global_queue":0' || fail "what was handed over counts for ever"
record "used while it is attached" "" "--seen" "$here/glib_held" attach --adapter="$adapter"
"$top_builddir/core/dial9" events -e TaskSpawnEvent "$work/trace" | grep -q '"kind":"idle"' ||
	fail "an idle source is shown as something else"
# Ready times in nanoseconds: who set them, and when they come.  GLib 2.90.
record "nanoseconds" "$by_preload" "--wakes --seen" "$cases" nanoseconds
if [ -e "$work/counters" ]; then
	wakes=$("$top_builddir/core/dial9" events -e WakeEventEvent "$work/trace")
	n=$(echo "$wakes" | grep -c '"reason":5[,}]')
	[ "$n" -eq 100 ] || fail "$n of 100 wakes are another thread's"
	due=$(sed -n 's/^due //p' "$work/counters")
	echo "$wakes" | grep -q "\"timestamp_ns\":$due," || fail "no wake when it was due, $due"
fi
record "renamed" "$by_preload" "--seen" "$cases" renamed
record "never attached" "$by_preload" "--seen" "$cases" never_attached
"$top_builddir/core/dial9" events -e TaskSpawnEvent "$work/trace" | grep -q '"fd":0' &&
	fail "a source has the descriptor of another, at its address, that was never attached"
record "handed" "$by_preload" "--seen" "$cases" handed
workers=$("$top_builddir/core/dial9" events -e PollStartEvent "$work/trace" |
	sed 's/.*"worker_id":\([0-9]*\).*/\1/' | sort -u | wc -l)
[ "$workers" -eq 2 ] || fail "its polls are on $workers lanes"
record "unannounced" "$by_preload" "--others" "$cases" unannounced
# It crashes where GLib does.
if [ "$SANITIZER" = no ]; then
	"$cases" query_null --out="$work/alone"
	record "query of no context" "$by_preload" "" "$cases" query_null
	same_log
fi
record "older than attach" "" "--has scan=complete --seen" "$cases" older --adapter="$adapter"
record "poll function older than attach" "" "--seen" "$cases" poll_function --adapter="$adapter"
record "attach while others make sources" "" "--others" "$cases" elsewhere --adapter="$adapter"
record "contexts attached by hand" "" "--seen" "$cases" contexts --adapter="$adapter"
workers=$("$top_builddir/core/dial9" events -e PollStartEvent "$work/trace" |
	sed 's/.*"worker_id":\([0-9]*\).*/\1/' | sort -u)
[ "$workers" = 0 ] || fail "its polls are on the lanes $workers"
record "a log handler older than the recording" "DIAL9_LOG_BRIDGE=debug" "--has log=partial --seen" \
	"$cases" older_handler --adapter="$adapter"
"$top_builddir/core/dial9" info "$work/trace" |
	grep -q '^ *loop\.glib\.degraded *a default log handler older than the recording was left alone$' ||
	fail "the trace does not say why"
said=$("$top_builddir/core/dial9" events -e LogEvent "$work/trace" | sed 's/.*"message":"\([^"]*\)".*/\1/')
[ "$said" = "to that of its domain" ] || fail "the trace has the lines: $said"
record "exceptions" "$by_preload" "" "$here/glib_throw"
record "more contexts than there is room for" "$by_preload" "--others" "$cases" too_many

record "600 dispatch functions" "$by_preload" "--has poll=partial --others" "$cases" many
record "no eventfd" "$by_preload" "--has wakefd=pipe --has park=all --others --seen" \
	"$here/glib_refused" eventfd "$every_kind"
record "no process_vm_readv" "$by_preload" "--has depth=lower-bound --others" \
	"$here/glib_refused" copy "$every_kind"

# The values that `dial9 info` shows, one for each key.
told() {
	for entry; do
		"$top_builddir/core/dial9" info "$work/trace" | grep -q "^ *loop\.glib\.$entry" ||
			fail "the trace does not say $entry"
	done
}

record "more functions at their end than stubs" "$by_preload" \
	"--has poll=full --has task_end=destroy, --seen" "$cases" finalizers
told "degraded *more distinct finalizers than stubs$"
# Two million sources take a sanitizer too long.
if [ "$SANITIZER" = no ]; then
	record "attached late in a long life" "" "--has scan=partial --has poll=full" "$cases" long_lived \
		--adapter="$adapter"
	told "degraded *too many source ids to look for older ones$" "unseen *5$"
fi

# libglib's slots, and those of other libraries, stay as they are: waits of its own are not seen.
record "pages of libraries refused" "" "--has poll=partial --has park=query-check --has wakefd=off
	--has depth=lower-bound --has task_end=return --has spawn=name --has wake=round --seen" "$here/glib_sealed"
told "degraded .*libglib's waits are not seen; a wake-up's descriptor could not be captured" \
	"tables_unpatchable *1$" "slots_refused"
waits=$(sed -n 's/^waits //p' "$work/counters")
parks=$("$top_builddir/core/dial9" events -e WorkerParkEvent "$work/trace" | wc -l)
[ "$parks" -eq "$waits" ] || fail "$parks parks of $waits waits"
# A poll that began where the one before it ended would have a wait in it.
[ -z "$(for event in PollStartEvent PollEndEvent; do
	"$top_builddir/core/dial9" events -e $event "$work/trace"
done | sed 's/.*"timestamp_ns":\([0-9]*\).*/\1/' | sort | uniq -d)" ] || fail "a wait is in a poll"

"$here/glib_host" "$here/.libs/glib_plugin.so" || exit 99
record "plug-ins" "$by_preload" "" "$here/glib_host" "$here/.libs/glib_plugin.so"

# Work for helper threads: what was pushed has run.
record "thread pool" "$by_preload" "" "$cases" pool
for event in HelperQueuedEvent HelperRunEvent; do
	n=$("$top_builddir/core/dial9" info "$work"/trace | sed -n "s/^ *$event  *//p")
	[ "$n" = 70 ] || fail "$n of 70 $event"
done

# Where nothing can be recorded the program runs on, and attach says why.
scenario="GLib in the program"
if $CC -x c -o "$work/static" -I"$top_builddir/core/include" - $(pkg-config --cflags glib-2.0) \
	-Wl,-Bstatic $(pkg-config --static --libs glib-2.0) -Wl,-Bdynamic -lm -pthread -ldl \
	2>"$work/stderr" <<-END
	#include <dlfcn.h>
	#include <glib.h>

	int main(int argc, char **argv)
	{
		int (*attach)(GMainContext *) = (int (*)(GMainContext *))dlsym(
			dlopen(argv[1], RTLD_NOW), "d9_g_main_context_attach");

		(void)argc;
		g_print("%d\\n", attach(NULL));
		g_idle_add(g_source_remove_by_user_data, argv);
		g_main_context_iteration(NULL, FALSE);
		return g_main_context_pending(NULL);
	}
	END
then
	said=$(env LD_PRELOAD="$preload" DIAL9_TRACE_DIR="$work/static.trace" \
		"$work/static" "$adapter") || fail "the program did not run as alone"
	[ "$said" = -2 ] || fail "attach said $said"
	[ ! -e "$work/static.trace" ] || fail "something was recorded"
else
	echo "left out: $scenario: $(head -n 1 "$work/stderr")"
fi
scenario="no GLib in the process"
"$here/glib_absent" || fail "attach did not say so"
scenario="pages refused"
said=$("$here/glib_refused" pages) || fail "the program did not run as alone"
[ "$said" = "-EPERM" ] || fail "attach said $said"

# Nothing of GLib is linked or wanted by name.
scenario="imports"
! $NM -D --undefined-only "$adapter" | grep -q ' g_' || fail "the adapter imports functions of GLib"

finish
