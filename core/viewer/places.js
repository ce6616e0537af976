// SPDX-License-Identifier: Apache-2.0
// Where the reader was in files of their own: told by the hash of their content, in the URL and in local
// storage, so that a file that is picked again opens where it was left.

import { Xxh64 } from '../toolkit/xxh64.js';

const PLACES_KEY = 'dial9.places', PLACES_MOST = 20;
const HASHED = 1 << 20; // of each end of a file
const FILE_ITEM = /(?:^#?|&)file=([\da-f]{16})(?=&|$)/;

/** 16 digits for |files|: their sizes, and the first and last MiB of each. */
export async function hashOfFiles(files) {
	const hash = new Xxh64();
	for (const file of [...files].sort((a, b) => (a.name < b.name ? -1 : 1))) {
		hash.push(new TextEncoder().encode(`${file.size};`));
		hash.push(new Uint8Array(await file.slice(0, HASHED).arrayBuffer()));
		hash.push(new Uint8Array(await file.slice(Math.max(HASHED, file.size - HASHED)).arrayBuffer()));
	}
	return hash.digest().map((half) => half.toString(16).padStart(8, '0')).join('');
}

/** The file that a fragment is about, or ''. */
export function fileOfFragment(fragment) {
	return FILE_ITEM.exec(fragment)?.[1] ?? '';
}

/** [[hash, fragment]], newest first; storage may be forbidden, or hold what others wrote. */
function storedPlaces() {
	try {
		const places = JSON.parse(localStorage.getItem(PLACES_KEY) ?? '[]');
		return Array.isArray(places) ? places.filter((place) => Array.isArray(place) && place.length === 2 && place.every((part) => typeof part === 'string')) : [];
	} catch {
		return [];
	}
}

/** The fragment of a file when it was left, or ''. */
export function placeOfFile(hash) {
	return storedPlaces().find(([own]) => own === hash)?.[1] ?? '';
}

export function keepPlace(hash, fragment) {
	const places = [[hash, fragment], ...storedPlaces().filter(([own]) => own !== hash)].slice(0, PLACES_MOST);
	try {
		localStorage.setItem(PLACES_KEY, JSON.stringify(places));
	} catch {
		// The URL has it.
	}
}
