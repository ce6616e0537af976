// SPDX-License-Identifier: Apache-2.0
// Stacks of samples as names.

const KERNEL = 2n ** 63n;

/** Frames of a stack that are shown, the innermost ones: no recorder writes more. */
export const FRAMES_MAX = 1024;

/** The file at the end of a path. */
function fileOf(path) {
	return path.slice(path.lastIndexOf('/') + 1);
}

function isKernel(address) {
	return typeof address === 'bigint' && address >= KERNEL;
}

function moduleOf(trace, address) {
	return trace.modules?.find((m) => address >= m.start && address < Number(m.start) + Number(m.size));
}

/** The program's own functions, those of libraries, and those of the kernel. */
function kindOf(trace, address) {
	if (isKernel(address)) return 'kernel';
	const module = moduleOf(trace, address), program = trace.metadata?.get('program');
	return module && program && module.path !== program ? 'lib' : 'own';
}

/** Frames of an address, innermost first: [{name, where, known, kind}]; one without a name is told by its place. */
export function framesOfAddress(trace, address) {
	const frames = trace.symbols.get(address), kind = kindOf(trace, address);
	if (frames) return frames.map((f, i) => ({ name: f.name, inlined: i < frames.length - 1, where: f.file ? `${fileOf(f.file)}${f.line ? `:${f.line}` : ''}` : '', known: true, kind }));
	return [{ name: placeOf(trace, address) ?? `${isKernel(address) ? '[kernel] ' : ''}0x${address.toString(16)}`, where: '', known: false, kind: kind === 'kernel' ? kind : 'unknown' }];
}

/** "module+0xoffset" of an address by the modules that the trace tells. */
function placeOf(trace, address) {
	const module = moduleOf(trace, address);
	return module ? `${fileOf(module.path)}+0x${(BigInt(address) - BigInt(module.base ?? 0)).toString(16)}` : null;
}

/** Frames of a stack, innermost first. */
export function framesOf(trace, stack) {
	return (trace.stacks[stack] ?? []).slice(0, FRAMES_MAX).flatMap((address) => framesOfAddress(trace, address));
}
