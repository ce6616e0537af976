#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether two builds have the same code: each object of core/ and adapters/ by its base name, so that a move of files can be told from
# a change.
#
#	same_objects.sh BUILD_BEFORE BUILD_AFTER
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The shared library's half of each pair is in .libs; a convenience library's name stands before the file's.
sums() {
	find "$1/core" "$1/adapters" -name '*.o' -path '*/.libs/*' -o -name 'dial9-*.o' -o -name 'dial9_store-*.o' | while read -r object; do
		name=${object##*/}
		printf '%s %s\n' "${name##*-}" "$(objdump -dr --no-show-raw-insn "$object" | sed 1,3d | sha256sum | cut -d' ' -f1)"
	done | LC_ALL=C sort -u
}
sums "$1" >"$scratch/before"
sums "$2" >"$scratch/after"
[ -s "$scratch/before" ]
diff "$scratch/before" "$scratch/after" || {
	echo "same_objects.sh: the objects above differ"
	exit 1
}
echo "$(wc -l <"$scratch/after") objects are the same"
