#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What has no symbol has a name all the same: the callbacks of loop libraries that distributions strip,
# and the closures that bindings make at run time.
set -u

skip() {
	echo "$1"
	exit 77
}

here=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
libraries=$top_builddir/adapters/.libs
export LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# record NAME COMMAND...: what callbacks the trace knows, one "CALLBACK @ SITE" a line, in $work/NAME
record() {
	name=$1
	shift
	timeout 60 "$dial9" record --quiet -o "$work/$name.trace" -- "$@" >"$work/$name.out" 2>&1 || {
		echo "FAILED: $name: $(tail -3 "$work/$name.out")"
		failed=$((failed + 1))
	}
	"$dial9" events "$work/$name.trace" |
		sed -n 's/.*"event":"TaskSpawnEvent".*"spawn_loc":"\([^"]*\)".*/\1/p' | sort -u >"$work/$name"
}

# named NAME CALLBACK...: the trace has each of these callbacks
named() {
	name=$1
	shift
	for callback; do
		grep -q "^$callback\( @ .*\)\{0,1\}$" "$work/$name" || {
			echo "FAILED: $name: no \"$callback\" in"
			sed 's/^/	/' "$work/$name"
			failed=$((failed + 1))
		}
	done
}

# none NAME PATTERN: no callback begins like that
none() {
	if grep "^$2" "$work/$1"; then
		echo "FAILED: $1: callbacks without a name"
		failed=$((failed + 1))
	fi
}

if [ -x "$here/libevent_every_kind" ]; then
	record libevent "$here/libevent_every_kind" --threads
	named libevent "bufferevent read" "bufferevent write" "bufferevent deferred" "bufferevent finalizer" \
		"listener accept" "signal pipe" "wake-up by another thread" "common timeouts" loopexit \
		"evdns read" "evdns answer" "evdns server"
	none libevent 'libevent.*\.so'
fi
if [ -x "$here/libevent_tls" ]; then
	record tls "$here/libevent_tls"
	named tls "bufferevent TLS handshake" "bufferevent read" "bufferevent write"
	none tls 'libevent.*\.so'
fi

if command -v python3 >/dev/null && ldd "$here/libevent_every_kind" 2>/dev/null | grep -q libevent; then
	libevent=$(ldd "$here/libevent_every_kind" | sed -n 's/.*=> \(.*\/libevent[-_.][^ ]*\).*/\1/p' | head -n 1)
	cat >"$work/closures.py" <<-END
		from ctypes import *
		libevent = CDLL("$libevent")
		Callback = CFUNCTYPE(None, c_int, c_short, c_void_p)
		class Time(Structure): _fields_ = [("s", c_long), ("us", c_long)]
		libevent.event_base_new.restype = libevent.event_new.restype = c_void_p
		libevent.event_new.argtypes = [c_void_p, c_int, c_short, Callback, c_void_p]
		libevent.event_add.argtypes = [c_void_p, POINTER(Time)]
		libevent.event_base_dispatch.argtypes = [c_void_p]
		base = libevent.event_base_new()
		closures = [Callback(lambda *what: None) for i in range(2)]
		for closure in closures:
		    libevent.event_add(libevent.event_new(base, -1, 0, closure, None), Time(0, 1000))
		libevent.event_base_dispatch(base)
	END
	record closures python3 "$work/closures.py"
	named closures "python callback" "python callback 2"
	none closures 0x
fi

# PyGObject makes a closure for each source: those that run once are one callback, and sources have names.
python=/usr/bin/python3 # that of the system: it has the bindings
if $python -c 'from gi.repository import Gio' 2>/dev/null; then
	cat >"$work/sources.py" <<-END
		import os
		from gi.repository import Gio, GLib
		loop = GLib.MainLoop()
		left = 20
		def once():
		    global left
		    left -= 1
		    if left: GLib.idle_add(once)
		    return False
		def answered(process, result):
		    process.communicate_utf8_finish(result)
		    loop.quit()
		GLib.idle_add(once)
		GLib.timeout_add(1, lambda: False)
		GLib.Source.set_name_by_id(GLib.timeout_add(1, lambda: False), "refresh")
		readable, writable = os.pipe()
		os.write(writable, b"x")
		GLib.io_add_watch(readable, GLib.IO_IN, lambda fd, condition: False)
		# It ends when the loop runs, which waits for what it says by then, however slow the machine is.
		os.mkfifo("$work/gate")
		def let_go():
		    try:
		        os.close(os.open("$work/gate", os.O_WRONLY | os.O_NONBLOCK))
		    except OSError:
		        return True
		    return False
		process = Gio.Subprocess.new(["cat", "$work/gate"], Gio.SubprocessFlags.STDOUT_PIPE)
		process.communicate_utf8_async(None, None, answered)
		GLib.timeout_add(5, let_go)
		loop.run()
	END
	record sources $python "$work/sources.py"
	named sources "python idle callback" "python timer callback" "python timer callback 2" "python io callback" \
		"child source"
	none sources "0x\|python callback\|other python"
	"$dial9" report --json "$work/sources.trace" >"$work/sources.json"
	for name in refresh GChildWatchSource; do
		grep -q "\"$name\"" "$work/sources.json" || {
			echo "FAILED: no callback $name in the report"
			failed=$((failed + 1))
		}
	done
fi

# GLib knows of a function of libgobject's only, which calls the closure.
if [ -x "$here/glib_closures" ]; then
	record gobject "$here/glib_closures"
	none gobject libgobject
	[ "$(sed -n 's/^\(glib_closures+0x[0-9a-f]*\) @ .*/\1/p' "$work/gobject" | sort -u | wc -l)" = 2 ] || {
		echo "FAILED: the functions of two closures are: $(cat "$work/gobject")"
		failed=$((failed + 1))
	}
fi

# The name that a program gives to its loop counts, also where the loop was hooked before it said so.
lane() {
	"$dial9" info "$work/$1.trace" | grep -q "^ *runtime\.$2 " || {
		echo "FAILED: $1: no loop \"$2\" in"
		"$dial9" info "$work/$1.trace" | grep 'runtime\.'
		failed=$((failed + 1))
	}
}
if [ -x "$top_builddir/examples/thread_per_core" ]; then
	record loops "$top_builddir/examples/thread_per_core" 2 100
	for name in main core-0 core-1; do
		lane loops $name
	done
fi
if [ -x "$here/libev_every_kind" ] && command -v python3 >/dev/null; then
	cat >"$work/its_own.py" <<-'END'
		from ctypes import *
		libev, adapter = CDLL("libev.so.4"), CDLL("libdial9-libev.so.0")
		libev.ev_default_loop.restype = c_void_p
		libev.ev_run.argtypes = [c_void_p, c_int]
		adapter.d9_ev_loop_attach_named.argtypes = [c_void_p, c_char_p]
		loop = libev.ev_default_loop(0)
		adapter.d9_ev_loop_attach_named(loop, b"its own")
		libev.ev_run(loop, 1)
	END
	record libev python3 "$work/its_own.py"
	lane libev "its own"
fi

[ $failed = 0 ] || echo "$failed failures"
[ $failed = 0 ]
