// SPDX-License-Identifier: Apache-2.0
// Stacks of samples as names.

import { splitLocation } from './show.js';

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

/** The recorder's frames, those in the place of a function that they call, and what is the system's: see own_frames.h. */
const OURS = 'ours', HOOK = 'hook', SYSTEM = 'system', OTHER = 'other';

const classes = new WeakMap();

function ownClassOf(trace, address) {
	if (!classes.has(trace)) classes.set(trace, new Map());
	const known = classes.get(trace);
	if (!known.has(address)) known.set(address, findClass(trace, address));
	return known.get(address);
}

function findClass(trace, address) {
	const module = fileOf(moduleOf(trace, address)?.path ?? ''), [{ name }] = framesOfAddress(trace, address);
	if (name.startsWith('d9__hook_') || (module.startsWith('libdial9') && name.startsWith('hook_'))) return HOOK;
	if (module.startsWith('libdial9') || name.startsWith('d9__')) return OURS;
	return isKernel(address) || /^(libc\.so|libc-|ld-linux|linux-vdso|libpthread|librt\.so|\[)/.test(module) ? SYSTEM : OTHER;
}

const isOurs = (frame) => frame === OURS || frame === HOOK;

/** The outermost address whose function is |name|, by its place; -1: none is. */
function placeOfFunction(trace, addresses, name) {
	return addresses.findLastIndex((address) => framesOfAddress(trace, address).at(-1).name === name);
}

/**
 * The addresses of a stack that are shown, innermost first: none of the recorder's, nor of what it calls of the system
 * itself; all if nothing else is there.  |root|: the function of the one callback that the view is about, or null; then
 * its callers are left out.  {addresses, rooted, named}: whether they are, and whether that function is among them.
 */
export function shownAddresses(trace, addresses, root = null) {
	const found = addresses.map((address) => ownClassOf(trace, address));
	let own = found.findIndex((frame) => frame !== SYSTEM), end = addresses.length;
	if (own < 0 || !isOurs(found[own]) || (own && found[own] === HOOK)) own = 0;
	while (own < found.length && isOurs(found[own])) own++;
	const named = root === null ? -1 : placeOfFunction(trace, addresses, root), caller = found.indexOf(OURS, own);
	if (named >= 0) end = named + 1;
	else if (root !== null && caller >= 0) end = caller;
	const shown = addresses.filter((_, i) => i >= own && i < end && !isOurs(found[i]));
	return { addresses: shown.length ? shown : addresses.slice(0, end), rooted: named >= 0 || end < addresses.length, named: named >= 0 };
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

/** The address of "server+0x1a2b0", or null; of two modules of one name the first one's. */
export function addressOfPlace(trace, place) {
	const [, file, offset] = /^(.+)\+0x([0-9a-f]{1,16})$/.exec(place) ?? [];
	trace.modulesByFile ??= new Map([...(trace.modules ?? [])].reverse().map((module) => [fileOf(module.path), module]));
	const module = trace.modulesByFile.get(file), address = module && BigInt(module.base ?? 0) + BigInt(`0x${offset}`);
	return module ? (address <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(address) : address) : null;
}

/** What a place is in each trace of one build: its module's build-id and the offset there; null if they are not known. */
function identityOfPlace(trace, place) {
	const address = /^0x[0-9a-f]{1,16}$/.test(place) ? Number(place) : addressOfPlace(trace, place), module = address === null ? null : moduleOf(trace, address);
	return module?.build_id ? `${module.build_id}+0x${(BigInt(address) - BigInt(module.base ?? 0)).toString(16)}` : null;
}

/** The same of a |location|, with names or without; null if not all of it is known. */
export function identityOf(trace, location) {
	const places = splitLocation(trace.recordedTexts?.get(location) ?? location).filter(Boolean).map((place) => identityOfPlace(trace, place));
	return places.length && places.every(Boolean) ? places.join(' @ ') : null;
}

/** "render" for "server+0x1a2b0", and for the |site| of a call where it lies as well; the place itself if no row names it. */
function nameOfPlace(trace, place, site) {
	const frame = trace.symbols.get(addressOfPlace(trace, place))?.at(-1);
	if (!frame) return place;
	return site && frame.file ? `${frame.name} ${fileOf(frame.file)}${frame.line ? `:${frame.line}` : ''}` : frame.name;
}

/** "render @ main server.c:12" for the |location| "server+0x1a2b0 @ server+0x9f04", as far as rows of the trace name it. */
export function nameOfLocation(trace, location) {
	// Symbols come later than the trace where the server finds them.
	if (trace.locationNames?.symbols !== trace.symbols.size)
		trace.locationNames = { symbols: trace.symbols.size, names: new Map() };
	const { names } = trace.locationNames;
	if (!names.has(location)) {
		const [callback, site] = splitLocation(location);
		names.set(location, nameOfPlace(trace, callback, false) + (site ? ` @ ${nameOfPlace(trace, site, true)}` : ''));
	}
	return names.get(location);
}

/** The two halves of nameOfLocation(). */
export function namesOfLocation(trace, location) {
	return splitLocation(nameOfLocation(trace, location));
}

/** Frames of a stack, innermost first. */
export function framesOf(trace, stack) {
	return (trace.stacks[stack] ?? []).slice(0, FRAMES_MAX).flatMap((address) => framesOfAddress(trace, address));
}
