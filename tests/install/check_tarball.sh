#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make dist` packs is all that git knows:
#
#	check_tarball.sh SRCDIR DISTDIR
#
# A file that no fragment names would be missed only by those who build from the tarball.
set -eu

[ -e "$1/.git" ] && command -v git >/dev/null || exit 0
missing=$(git -C "$1" ls-files | grep -vx '\.git[a-z-]*' | while read -r file; do
	# One that was removed and is not yet committed is no matter.
	[ -e "$2/$file" ] || [ ! -e "$1/$file" ] || echo "$file"
done)
[ -z "$missing" ] || {
	echo "not in the tarball; name them in the fragment of their folder:"
	echo "$missing"
	exit 1
}
