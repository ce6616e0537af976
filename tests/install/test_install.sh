#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is installed works where it was put: moved to another prefix, README's program is built by the command below it with
# what pkg-config says of that place, and is recorded and reported by the dial9 there.  And `make install` has the loader
# find the libraries, or says how.  Installs into a folder of its own.
set -eu

fail() {
	echo "FAILED: $1"
	exit 1
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD 2>/dev/null || :

# ---- the loader ----

mkdir "$dir/lib"
cat >"$dir/ldconfig" <<END
#!/bin/sh
[ \$# = 0 ] && touch "$dir/told" && exit 1
cat "$dir/known"
END
chmod +x "$dir/ldconfig"
found() {
	LDCONFIG=$dir/ldconfig sh "$top_srcdir/pkgconfig/find_libraries.sh" "$dir/lib" || fail "it fails where ldconfig does"
}
: >"$dir/known"
[ -z "$(found)" ] || fail "it speaks of libraries where none are"
touch "$dir/lib/libdial9.so"
found | grep -qF "echo $dir/lib >/etc/ld.so.conf.d/dial9.conf && ldconfig" || fail "a way for all programs is not told"
found | grep -qF -e "-Wl,-rpath,$dir/lib" || fail "a way for one program is not told"
[ "$(id -u)" != 0 ] || [ -e "$dir/told" ] || fail "root does not tell the loader"
echo "	libdial9.so.0 (libc6,x86-64) => $dir/lib/libdial9.so.0" >"$dir/known"
[ -z "$(found)" ] || fail "it says how to do what is done"
echo "the loader is told"

# ---- another prefix ----

# Neither a jobserver nor variables of the make that called us.
unset MAKEFLAGS MFLAGS MAKELEVEL 2>/dev/null || :
make -C "$top_builddir" install DESTDIR="$dir/dest" >"$dir/log" 2>&1 || {
	tail "$dir/log"
	fail "make install DESTDIR="
}
! grep -F 'ld.so.conf.d' "$dir/log" || fail "the loader is told of an installation elsewhere"
pc=$(find "$dir/dest" -name dial9-libevent.pc)
libdir=${pc%/pkgconfig/*}
cd "$dir"
sed -n '/^```c$/,/^```$/{/^```/!p}' "$top_srcdir/README.md" >server.c
sed -n '/^    cc server\.c /,/^$/s/^    //p' "$top_srcdir/README.md" | sed 's|pkg-config|pkg-config --define-prefix|' >commands
[ "$(wc -l <commands)" = 2 ] || fail "README.md has another command"
PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir sh -e commands || fail "README's program does not run"
"$libdir/../bin/dial9" report traces >said || [ $? = 1 ] || fail "it is not reported"
"$libdir/../bin/dial9" info traces | grep -q ClockSyncEvent || fail "nothing was recorded"
echo "README's program works at another prefix"
