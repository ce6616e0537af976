#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing of Debian's packages for SET...: build, demo, test, bench.
# Does nothing, and needs no root, where everything is there.
set -eu

build='gcc g++ make autoconf automake libtool pkg-config libzstd-dev zlib1g-dev libjson-c-dev
	libdw-dev libiberty-dev libevent-dev libev-dev libglib2.0-dev'
demo='memcached apache2-utils libevent-dev'
test='libcunit1-dev memcached apache2-utils tmux valgrind gdb strace nodejs clang git binutils
	libclang-rt-14-dev xz-utils procps shellcheck cppcheck clang-tidy python3 libxml2-utils
	libsoup-3.0-dev libglib2.0-tests libsoup-3.0-tests dbus-daemon irssi gstreamer1.0-tools
	python3-gi gir1.2-gtk-3.0 xvfb
	nghttp2-server nghttp2-client hitch openssl libssl-dev python3-gevent i3-wm picom qemu-system-x86
	btrfs-progs'
bench='lttng-tools liblttng-ust-dev python3 apache2-utils nghttp2-server nghttp2-client
	libsoup-3.0-dev'

missing=
for set; do
	case $set in
	build) names=$build ;;
	demo) names=$demo ;;
	test) names=$test ;;
	bench) names=$bench ;;
	*)
		echo "install_packages.sh: unknown set '$set' (build, demo, test, bench)" >&2
		exit 2
		;;
	esac
	for name in $names; do
		# A program that is there by other means (a newer node, say) needs no package.
		case $name in
		nodejs) command -v node >/dev/null && continue ;;
		python3) command -v python3 >/dev/null && continue ;;
		esac
		dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed ||
			missing="$missing $name"
	done
done
[ -n "$missing" ] || exit 0

echo "installing:$missing"
as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "install_packages.sh: not root and no sudo; as root: apt-get install$missing" >&2
		exit 1
	}
	as_root=sudo
fi
# One word per package is meant.
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive sh -c \
	'apt-get -q update && apt-get -q install -y --no-install-recommends "$@"' sh $missing \
	>/dev/null
