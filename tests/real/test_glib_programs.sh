#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of others on GLib, unmodified under `dial9 record`: dispatches equal an independent count,
# and they say what they say alone.  Those that are not installed are left out, and that is told.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need node objdump
private_glib

# look NAME CMD...: alone and recorded.
look() {
	name=$1
	shift
	"$@" >"$dir/alone" 2>"$dir/alone.err" </dev/null || fail "$name does not run here"
	(record "$dir/$name" "$@" >"$dir/out" 2>"$dir/out.err" </dev/null) || {
		cat "$dir/out.err"
		fail "$name failed when it was recorded"
	}
	plain "$dir/$name"
	echo "== $name"
	dispatched "$dir/$name"
}

same_output() {
	cmp -s "$dir/alone" "$dir/out" || {
		diff "$dir/alone" "$dir/out" | head -n 5
		fail "$name says something else when it is recorded"
	}
}

# of PROGRAM: is it there?
of() {
	command -v "$1" >/dev/null && return
	echo "left out: $1 is not installed"
	return 1
}

if of gst-launch-1.0; then
	export GST_REGISTRY="$dir/registry" GST_REGISTRY_FORK=no
	gst-launch-1.0 -q fakesrc num-buffers=1 ! fakesink # makes the registry
	look gst-launch gst-launch-1.0 -q fakesrc num-buffers=500 ! fakesink
	same_output
fi

# It drives GLib from a loop of its own: query, its own ppoll(), check.
if of qemu-system-x86_64; then
	printf 'info status\nquit\n' >"$dir/commands"
	cat >"$dir/machine" <<-END
		exec qemu-system-x86_64 -machine none -nodefaults -no-user-config -display none \
			-monitor stdio -S <"$dir/commands"
	END
	look qemu sh "$dir/machine"
	same_output
	parks=$("$dial9" info "$dir/qemu" | sed -n 's/^ *WorkerParkEvent  *//p')
	[ "$parks" -gt 2 ] || fail "a loop that waited was parked ${parks:-0} times"
fi

program=$top_srcdir/tests/real/gtk_program.py
python=/usr/bin/python3 # that of the system: it has the bindings
if of $python && $python -c 'import gi' 2>/dev/null; then
	look pygobject $python "$program"
	same_output
	look introspected $python "$top_srcdir/tests/real/introspected.py"
	same_output
else
	echo "left out: no PyGObject"
fi

if of Xvfb && $python -c 'import gi; gi.require_version("Gtk", "3.0")' 2>/dev/null; then
	mkdir "$dir/x"
	Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>"$dir/x/display" 2>/dev/null &
	pids="$pids $!"
	i=0
	until [ -s "$dir/x/display" ] || [ $i = 200 ]; do
		i=$((i + 1))
		sleep 0.05
	done
	DISPLAY=:$(cat "$dir/x/display")
	export DISPLAY NO_AT_BRIDGE=1 GIO_USE_VFS=local GSETTINGS_BACKEND=memory GDK_BACKEND=x11
	export DBUS_SESSION_BUS_ADDRESS=disabled: XDG_RUNTIME_DIR="$dir/x" HOME="$dir/x"
	look gtk $python "$program" window
	same_output
	unset DISPLAY
else
	echo "left out: no GTK, or no Xvfb"
fi

if of irssi && of tmux; then
	echo "== irssi"
	mkdir "$dir/irssi"
	cat >"$dir/session" <<-END
		exec "$dial9" record --quiet -o "$dir/terminal" -- irssi --home="$dir/irssi" -!
	END
	# In a terminal of tmux's, which is no program of ours here.
	tmux -S "$dir/socket" -f /dev/null new-session -d -x 80 -y 24 \
		"env LD_LIBRARY_PATH=$dir/private '$helpers/uprobe_count' '$dir/uprobes' $offsets -- \
		sh '$dir/session' 2>'$dir/errors'; touch '$dir/over'"
	for text in '/echo hello' '/quit'; do
		i=0
		until tmux -S "$dir/socket" capture-pane -p 2>/dev/null | grep -q '\[(status)\]' ||
			[ $i = 100 ] || [ -e "$dir/over" ]; do
			i=$((i + 1))
			sleep 0.05
		done
		tmux -S "$dir/socket" capture-pane -p >"$dir/screen" 2>/dev/null || true
		tmux -S "$dir/socket" send-keys "$text" Enter || true
		sleep 0.2
	done
	i=0
	until [ -e "$dir/over" ] || [ $i = 200 ]; do
		i=$((i + 1))
		sleep 0.05
	done
	tmux -S "$dir/socket" kill-server 2>/dev/null || true
	[ -e "$dir/over" ] || fail "irssi does not end"
	grep -q 'Irssi' "$dir/screen" || fail "irssi does not show its screen"
	plain "$dir/terminal"
	dispatched "$dir/terminal"
fi
