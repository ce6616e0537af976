#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing of Debian's packages for SET...: build, demo, test, stores, bench.
# Does nothing, and needs no root, where everything is there.
#
# Any release of Debian will do.  What only some tests want, and this release does not have, is left out
# with a word on stderr; those tests skip and say what they miss.
set -eu

needed='' wanted=''
for set; do
	case $set in
	build)
		needed="$needed gcc g++ make autoconf automake libtool pkg-config libzstd-dev zlib1g-dev
			libjson-c-dev libdw-dev libssl-dev libiberty-dev liblzma-dev libevent-dev libev-dev libglib2.0-dev
			libsqlite3-dev libedit-dev libcurl4-openssl-dev"
		;;
	demo) needed="$needed apache2-utils libevent-dev" ;;
	test)
		needed="$needed libcunit1-dev git binutils xz-utils procps python3"
		wanted="$wanted memcached postgresql libpq-dev pgbouncer apache2-utils tmux valgrind ccache gdb strace nodejs npm chromium chromium-headless-shell golang-go clang libclang-rt lld
			libunwind-dev shellcheck cppcheck clang-tidy libxml2-utils
			libsoup-3.0-dev libglib2.0-tests libsoup-3.0-tests dbus-daemon irssi gstreamer1.0-tools
			python3-gi gir1.2-gtk-3.0 xvfb
			nghttp2-server nghttp2-client hitch openssl python3-gevent i3-wm picom
			qemu-system-x86 btrfs-progs e2fsprogs libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0
			libjemalloc-dev libgoogle-perftools-dev libmimalloc-dev zstd python3-yaml"
		;;
	# Object stores of others, for tests/ship.
	stores) wanted="$wanted swift-proxy swift-account swift-container swift-object radosgw ceph-mon ceph-osd openssl rclone" ;;
	bench)
		wanted="$wanted lttng-tools liblttng-ust-dev libunwind-dev python3 apache2-utils nghttp2-server nghttp2-client
			libsoup-3.0-dev memcached postgresql pgbouncer python3-gevent"
		;;
	*)
		echo "install_packages.sh: unknown set '$set' (build, demo, test, stores, bench)" >&2
		exit 2
		;;
	esac
done

# available NAME: apt knows a version of it.
available() {
	apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

# missing NAME...: those that are not installed, as this release calls them.
missing() {
	for name; do
		case $name in
		# A program that is there by other means (a newer node, say) needs no package.
		nodejs) command -v node >/dev/null && continue ;;
		npm) command -v npm >/dev/null && continue ;;
		python3) command -v python3 >/dev/null && continue ;;
		# The sanitizers and the fuzzer of the default clang: part of what clang needs anyhow until 13.
		libclang-rt)
			version=$(apt-cache depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p')
			name=libclang-rt-$version-dev
			[ "${version:-0}" -gt 13 ] || continue
			;;
		esac
		dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || echo "$name"
	done
}

# split NAME...: into $have and $lack, by whether apt knows them.
split() {
	have='' lack=''
	for name; do
		if available "$name"; then have="$have $name"; else lack="$lack $name"; fi
	done
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		env DEBIAN_FRONTEND=noninteractive "$@"
	elif command -v sudo >/dev/null; then
		sudo env DEBIAN_FRONTEND=noninteractive "$@"
	else
		echo "install_packages.sh: not root and no sudo; as root: $*" >&2
		exit 1
	fi
}
install() {
	as_root apt-get -q install -y --no-install-recommends "$@" >/dev/null
}

# One word per package is meant.
# shellcheck disable=SC2046,SC2086,SC2005,SC2015
{
	split $(missing $wanted)
	[ -n "$have$(missing $needed)" ] || {
		# That apt knows no such package is final where it has lists.
		[ -n "$lack" ] && ! apt-cache policy make | grep -q ' Packages$' || exit 0
	}
	as_root apt-get -q update >/dev/null
	split $(missing $wanted)
	needed=$(echo $(missing $needed))
	[ -z "$lack" ] || echo "install_packages.sh: not in this release:$lack" >&2
	[ -n "$needed$have" ] || exit 0
	echo "installing: $needed$have"
	if [ -z "$have" ] || ! install $needed $have; then
		# One that cannot be installed now, which happens in unstable, must not cost all others.
		[ -z "$needed" ] || install $needed
		for name in $have; do
			install "$name" || echo "install_packages.sh: $name cannot be installed" >&2
		done
	fi
}
