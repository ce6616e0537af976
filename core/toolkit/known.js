// SPDX-License-Identifier: Apache-2.0
// The types of fields that readers know by their names.  A trace can give them any other; then they are as absent.

import { TYPE } from './frames.js';

const TEXT_TYPES = [TYPE.STRING, TYPE.POOLED_STRING], STACK_TYPES = [TYPE.STACK, TYPE.POOLED_STACK], MAP_TYPES = [TYPE.STRING_MAP];
const INTEGER_TYPES = [TYPE.I64, TYPE.BOOL, TYPE.VARINT, TYPE.U8, TYPE.U16, TYPE.U32];
// All others are integers.
const TYPES_BY_NAME = new Map([
	...['spawn_loc', 'kind', 'name', 'thread_name', 'symbol_name', 'source_file', 'path', 'cause', 'function', 'loop', 'runtime_name', 'span_name', 'refused_sources', 'phase', 'span', 'syscall', 'wchan',
		'build_id', 'file', 'level', 'local_addr', 'mistake', 'target'].map((name) => [name, TEXT_TYPES]),
	...['callchain', 'holder_stack'].map((name) => [name, STACK_TYPES]),
	...['entries', 'attributes'].map((name) => [name, MAP_TYPES]),
]);

/** Whether a field of an event that readers know has a type that its name allows. */
export function isAsKnown({ name, type }) {
	return (TYPES_BY_NAME.get(name) ?? INTEGER_TYPES).includes(type);
}
