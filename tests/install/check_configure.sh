#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What configure says where something is missing or wrongly asked for:
#
#	check_configure.sh SRCDIR
#
# Takes a folder for its work from mktemp.  Not in `make check`: it configures many times.
set -eu

configure=$1/configure
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export CONFIG_SITE="$dir/none"
# With Debian's sh configure takes a third less.
export CONFIG_SHELL=/bin/sh

# Every .pc file of this machine, so that one can be taken away.
mkdir pc
for folder in $(pkg-config --variable pc_path pkg-config | tr : ' '); do
	[ ! -d "$folder" ] || find "$folder" -name '*.pc' -exec ln -sf {} pc/ \;
done
unset PKG_CONFIG_PATH
export PKG_CONFIG_LIBDIR="$dir/pc"

# A compiler without descriptors for thread-local variables, as clang was before 18.
no_descriptors=$dir/cc
cat >"$no_descriptors" <<'END'
#!/bin/sh
case "$*" in *-mtls-dialect=*) echo "unknown argument" >&2 && exit 1 ;; esac
exec cc "$@"
END
chmod +x "$no_descriptors"

# without FILE EXPECTED ARGUMENT...: configure without that .pc file; what it says at its end.
# EXPECTED begins with ! where configure must fail.
without() {
	missing=$1 expected=$2 status=0
	shift 2
	mkdir -p away build
	[ -z "$missing" ] || mv "pc/$missing.pc" away/
	(cd build && "$configure" -C "$@") >log 2>&1 || status=1
	# The cache keeps the compiler's answers and not pkg-config's.
	sed -i '/_LIBS=\|_CFLAGS=/d' build/config.cache
	[ -z "$missing" ] || mv "away/$missing.pc" pc/
	case $expected in !*) wanted=1 ;; *) wanted=0 ;; esac
	grep -qF -e "${expected#!}" log || status=other
	[ $status = $wanted ] || {
		tail -n 20 log
		echo "FAILED: configure $* without ${missing:-nothing}: expected '$expected'"
		exit 1
	}
	echo "ok: configure $* without ${missing:-nothing}"
}

without '' 'libevent adapter   yes'
without '' 'libevent adapter   no  (--with-libevent' --without-libevent
without '' '!--with-libevent takes yes, no or check' --with-libevent=maybe
without '' '!white space' --prefix="$dir/two words"
without libevent 'libevent adapter   no  (--with-libevent' --with-libevent=check
without libevent '!Debian: libevent-dev' --with-libevent
without glib-2.0 '!Debian: libglib2.0-dev' --with-glib
without libevent_pthreads '!Debian: libevent-dev' --with-libevent=yes
without libzstd '!Debian: libzstd-dev'
without zlib '!Debian: zlib1g-dev'
without json-c '!Debian: libjson-c-dev'
without libdw '!Debian: libdw-dev'
without libcrypto '!Debian: libssl-dev'
without cunit 'Debian: libcunit1-dev'
without '' '!does not take -fsanitize=adress' --enable-sanitizer=adress
# Another compiler or pkg-config is none for the cache.
rm -r build
without '' '!does not take -mtls-dialect=' --with-tls=descriptor CC="$no_descriptors"
rm -r build
without '' '!does not take -fsanitize=fuzzer' --enable-fuzzing CC=gcc
rm -r build
without '' '!pkg-config was not found' PKG_CONFIG=

# rpath EXPECTED ARGUMENT...: whether programs are told by the .pc files where the libraries are.
rpath() {
	expected=$1
	shift
	(cd build && "$configure" -C "$@") >log 2>&1
	[ "$(grep -c -e '^Libs: .*-Wl,-rpath,${libdir} ' build/pkgconfig/dial9.pc)" = "$expected" ] || {
		echo "FAILED: configure $*: $(grep '^Libs:' build/pkgconfig/dial9.pc)"
		exit 1
	}
	echo "ok: configure $*: Libs"
}
rpath 0
rpath 0 --prefix=/usr
rpath 0 --prefix=/usr --libdir=/usr/lib/x86_64-linux-gnu
rpath 1 --prefix=/opt/d9
rpath 1 --prefix=/opt/d9 --libdir=/opt/d9/lib64
