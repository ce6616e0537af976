#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make install` brings what a user looks for, and `make uninstall` leaves no file and no folder of ours.
# MAKE and the folders come from the environment, as configured; the current folder is the build's.
set -eu

dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
# Neither a jobserver nor variables of the make that called us.
unset MAKEFLAGS MFLAGS MAKELEVEL
"$MAKE" install DESTDIR="$dest" >"$dest/log" 2>&1 || {
	tail "$dest/log"
	exit 1
}
for file in "$BASHCOMPLETIONDIR/dial9" "$ZSHCOMPLETIONDIR/_dial9" "$DOCDIR/README.md" "$DOCDIR/LICENSE" \
	"$DOCDIR/NEWS.md" "$DOCDIR/adapters/README.md" "$DOCDIR/examples/libevent_echo.c" \
	"$DOCDIR/examples/cpp_service.cc" "$DOCDIR/examples/metrics_service/README.md" "$DOCDIR/examples/metrics_service/http.c" "$PKGDATADIR/viewer/index.html" "$PKGDATADIR/doc/ANALYSIS.md" "$PKGDATADIR/toolkit/zstd.LICENSE" "$PKGDATADIR/agents/dial9-runtime.md" "$PKGDATADIR/demo/web/trace.0.bin.zst" \
	"$BINDIR/dial9"; do
	[ -s "$dest$file" ] || {
		echo "not installed: $file"
		exit 1
	}
done
# In a drop-in of systemd each path is one that was installed, and no @NAME@ is left.
dropin=$dest$PKGDATADIR/systemd/record.conf
if [ -e "$dest$PKGLIBDIR/libdial9-preload.so" ]; then
	library=$(sed -n 's/^Environment=LD_PRELOAD=//p' "$dropin")
	if [ -z "$library" ] || [ ! -e "$dest$library" ]; then
		echo "record.conf preloads '$library', which is not installed"
		exit 1
	fi
	! grep '@[a-z]*@' "$dropin" || exit 1
	! grep '@[a-z]*@' "${dropin%/*}/ship.conf" 2>/dev/null || exit 1
	if command -v systemd-analyze >/dev/null; then
		mkdir -p "$dest/units/web.service.d"
		cp "$dropin" "$dest/units/web.service.d/dial9.conf"
		printf '[Service]\nExecStart=/bin/true\n' >"$dest/units/web.service"
		systemd-analyze verify --man=no --recursive-errors=no "$dest/units/web.service" >"$dest/verified" 2>&1 || :
		! grep 'dial9.conf' "$dest/verified" || exit 1
		rm -r "$dest/units" "$dest/verified"
	fi
fi
"$MAKE" uninstall DESTDIR="$dest" >"$dest/log" 2>&1 || {
	tail "$dest/log"
	exit 1
}
rm "$dest/log"
# The prefix itself may lie in a folder of that name, as distcheck's does.
left=$(find "$dest" ! -type d -o -type d -path "$dest${BINDIR%/*}/*" -name '*dial9*')
[ -z "$left" ] || {
	echo "make uninstall leaves:"
	echo "$left"
	exit 1
}
echo "installed: all of it, and nothing is left without it"
