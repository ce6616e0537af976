#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The end of `make install`: programs that were linked with what is now in LIBDIR are to find it.
#
#	find_libraries.sh LIBDIR
#
# Root tells the loader, whose failure is no reason for an installation to fail.  Where it does not look into LIBDIR, the
# two ways to have it found are printed.  LDCONFIG: another program than ldconfig(8), for tests.
PATH=$PATH:/usr/sbin:/sbin
ldconfig=${LDCONFIG:-ldconfig}

[ -e "$1/libdial9.so" ] || exit 0 # --disable-shared
[ "$(id -u)" != 0 ] || "$ldconfig" 2>/dev/null || :
if command -v "$ldconfig" >/dev/null && ! "$ldconfig" -p 2>/dev/null | grep -qF "=> $1/libdial9.so"; then
	cat <<-END

		The loader does not look for libraries in $1.  So that programs which are linked with libdial9 start:
		    for all of them, as root:    echo $1 >/etc/ld.so.conf.d/dial9.conf && ldconfig
		    or link each of them with:   -Wl,-rpath,$1
	END
fi
exit 0
