# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by tests of loop libraries that the hooks refuse: copies of the installed ones, in the folder
# altered/, in which something is missing, or which say that they are too old.

# installed PROGRAM NAME: the paths of the libraries of that name that PROGRAM loads.
installed() {
	ldd "$1" | sed -n "s|.*=> \(/[^ ]*/$2[-.0-9]*so[^ ]*\) .*|\1|p"
}

# alter LIBEVENT-PROGRAM LIBEV-PROGRAM GLIB-PROGRAM: the libraries that these load.
alter() {
	mkdir altered
	# Functions that a program need not call; a name of the same length keeps the file's shape.
	for path in $(installed "$1" 'libevent[_a-z]*'); do
		sed 's/event_base_get_method/event_base_get_nothod/g' "$path" >"altered/${path##*/}"
	done
	path=$(installed "$2" libev)
	sed 's/ev_set_allocator/ev_set_alligator/g' "$path" >"altered/${path##*/}"
	# 2.50, in the word that says it.
	path=$(installed "$3" libglib)
	file=altered/${path##*/}
	cp "$path" "$file"
	chmod u+w "$file"
	at=$(nm -D "$path" | sed -n 's/ . glib_minor_version$//p')
	printf '\062\0\0\0' | dd of="$file" bs=1 seek=$((0x$at)) conv=notrunc 2>/dev/null
}
