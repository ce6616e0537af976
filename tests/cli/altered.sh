# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by tests of loop libraries that the hooks refuse: copies of the installed ones, in the folder
# altered/, in which something is missing, or which say that they are too old.

# installed PROGRAM NAME: the path of the library that PROGRAM loads, its file name in $file.
installed() {
	path=$(ldd "$1" | sed -n "s|.*=> \(/[^ ]*/$2[-.0-9]*so[^ ]*\) .*|\1|p")
	file=${path##*/}
}

# alter LIBEVENT-PROGRAM LIBEV-PROGRAM GLIB-PROGRAM: the libraries that these load.
alter() {
	mkdir altered
	# Functions that a program need not call; a name of the same length keeps the file's shape.
	installed "$1" libevent
	sed 's/event_base_get_method/event_base_get_nothod/g' "$path" >"altered/$file"
	installed "$2" libev
	sed 's/ev_set_allocator/ev_set_alligator/g' "$path" >"altered/$file"
	# 2.50, in the word that says it.
	installed "$3" libglib
	cp "$path" "altered/$file"
	chmod u+w "altered/$file"
	at=$(nm -D "$path" | sed -n 's/ . glib_minor_version$//p')
	printf '\062\0\0\0' | dd of="altered/$file" bs=1 seek=$((0x$at)) conv=notrunc 2>/dev/null
}
