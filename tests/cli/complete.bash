#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# complete.bash COMPLETION WORD...: what COMPLETION offers for the last WORD, a line each.  As readline does it,
# --option=value is three words.
# shellcheck source=core/completion/dial9
. "$1"
shift
COMP_WORDS=()
for word; do
	case $word in
	--*=) COMP_WORDS+=("${word%=}" "=") ;;
	--*=*) COMP_WORDS+=("${word%%=*}" "=" "${word#*=}") ;;
	*) COMP_WORDS+=("$word") ;;
	esac
done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_dial9
printf '%s\n' "${COMPREPLY[@]}"
