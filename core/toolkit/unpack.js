// SPDX-License-Identifier: Apache-2.0
// The container of a segment, told by its content: plain, one gzip member, or a row of zstd frames.
//
// The zstd decoder is vendored and believes what it reads, so each frame's header is checked here first.

import { TraceError, Truncated } from './frames.js';
import { Decompress } from './zstd.js';
import { Xxh64 } from './xxh64.js';

const ZSTD_FRAME = 0xfd2fb528;
const ZSTD_HEAD = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_HEAD = [0x1f, 0x8b];
const ZSTD_SKIPPABLE = 0x184d2a50;
const WINDOW_MAX = 8 << 20;
const DECODER_MIN = 18; // bytes that the decoder wants before it begins: the smallest frames have less
const RATIO_MAX = 1000;
const RATIO_FREE = 1 << 20;

/** The input unpacks to more than the reader takes: what came before is kept. */
export class LimitError extends TraceError {}

/** Bytes that come in chunks, looked at in any amount. */
class ByteQueue {
	constructor(chunks) {
		this.source = chunks[Symbol.asyncIterator]();
		this.bytes = new Uint8Array(0);
		this.at = 0; // of bytes[0] in the whole input
	}

	/** Whether |n| bytes are there now. */
	async has(n) {
		const parts = [this.bytes];
		let length = this.bytes.length;
		while (length < n) {
			const { done, value } = await this.source.next();
			if (done) break;
			parts.push(value);
			length += value.length;
		}
		if (parts.length > 1) {
			const joined = new Uint8Array(length);
			let at = 0;
			for (const part of parts) {
				joined.set(part, at);
				at += part.length;
			}
			this.bytes = joined;
		}
		return length >= n;
	}

	/** The next |n| bytes; throws where the input ends before. */
	async take(n) {
		if (!await this.has(n)) throw new Truncated(this.at + this.bytes.length, 'the packed data ends inside a frame');
		const taken = this.bytes.subarray(0, n);
		this.bytes = this.bytes.subarray(n);
		this.at += n;
		return taken;
	}

	/** All that is left, as it comes. */
	async *rest() {
		if (this.bytes.length) yield this.bytes;
		for (;;) {
			const { done, value } = await this.source.next();
			if (done) return;
			yield value;
		}
	}
}

function le32(bytes, at) {
	return (bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24) >>> 0;
}

/** The length of the header after the magic, from its first byte. */
function zstdHeaderLength(descriptor) {
	const single = descriptor >> 5 & 1, size = descriptor >> 6, dictionary = descriptor & 3;
	return 1 + (single ? 0 : 1) + [0, 1, 2, 4][dictionary] + (size ? 1 << size : single);
}

/** Bytes of window that a frame asks for. */
function zstdWindow(header) {
	const descriptor = header[0], size = descriptor >> 6;
	if (!(descriptor >> 5 & 1)) {
		const base = 2 ** (10 + (header[1] >> 3));
		return base + base / 8 * (header[1] & 7);
	}
	const at = 1 + [0, 1, 2, 4][descriptor & 3];
	if (size === 0) return header[at];
	if (size === 1) return (header[at] | header[at + 1] << 8) + 256;
	return le32(header, at) + (size === 3 ? le32(header, at + 4) * 2 ** 32 : 0);
}

async function* zstdFrame(queue) {
	const start = queue.at;
	await queue.has(5);
	const length = queue.bytes.length > 4 ? zstdHeaderLength(queue.bytes[4]) : 1;
	const head = Uint8Array.from(await queue.take(4 + length)), descriptor = head[4];
	const window = zstdWindow(head.subarray(4));
	if (window > WINDOW_MAX) throw new TraceError(start, `a zstd frame asks for a window of ${window} bytes`);
	if (descriptor & 8) throw new TraceError(start, 'a zstd frame sets a reserved bit');
	if (descriptor & 3) throw new TraceError(start, 'a zstd frame needs a dictionary');
	const hash = descriptor & 4 ? new Xxh64() : null;
	const out = [];
	const engine = new Decompress((piece) => out.push(piece));
	let pushed = head.length;
	try {
		engine.push(head);
		for (let last = 0; !last;) {
			const blockHead = Uint8Array.from(await queue.take(3));
			const kind = blockHead[0] >> 1 & 3, size = (blockHead[0] | blockHead[1] << 8 | blockHead[2] << 16) >> 3;
			last = blockHead[0] & 1;
			if (kind === 3 || size > 128 << 10) throw new TraceError(queue.at - 3, 'a zstd block of an unknown kind or size');
			const body = await queue.take(kind === 1 ? 1 : size);
			engine.push(blockHead);
			engine.push(body);
			pushed += 3 + body.length;
			if (last && pushed < DECODER_MIN) engine.push(new Uint8Array(DECODER_MIN - pushed));
			for (const piece of out.splice(0)) {
				if (!piece.length) continue;
				hash?.push(piece);
				yield { bytes: piece, stored: queue.at };
			}
		}
	} catch (error) {
		throw error instanceof TraceError ? error : new TraceError(start, `damaged zstd frame: ${error.message ?? error}`);
	}
	if (hash) {
		const stored = le32(await queue.take(4), 0);
		if (hash.digest()[1] !== stored) throw new TraceError(start, 'the checksum of a zstd frame does not fit');
	}
}

async function* unpackZstd(queue) {
	while (await queue.has(1)) {
		const start = queue.at;
		if (!await queue.has(4)) throw new Truncated(start, 'the packed data ends inside a frame');
		const magic = le32(queue.bytes, 0);
		if ((magic & 0xfffffff0) >>> 0 === ZSTD_SKIPPABLE) {
			let left = le32(await queue.take(8), 4);
			for (; left > 0; left -= Math.min(left, 65536)) await queue.take(Math.min(left, 65536));
		} else if (magic === ZSTD_FRAME) {
			yield* zstdFrame(queue);
		} else {
			throw new TraceError(start, 'neither a zstd frame nor the end');
		}
	}
}

async function* unpackGzip(queue) {
	const engine = new DecompressionStream('gzip'), writer = engine.writable.getWriter(), reader = engine.readable.getReader();
	let stored = 0, read = true;
	// A failure is told by the reader too, where it is handled.
	const write = (async () => {
		for await (const chunk of queue.rest()) {
			stored += chunk.length;
			await writer.write(chunk);
		}
		await writer.close();
	})().catch(() => {});
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) break;
			yield { bytes: value, stored };
		}
	} catch (error) {
		read = false;
		const cut = /truncat|unexpected end/i.test(`${error.message} ${error.cause?.message ?? ''}`);
		throw cut ? new Truncated(stored, 'the packed data ends inside the gzip member')
			: new TraceError(stored, 'the gzip data is damaged');
	} finally {
		if (!read) await writer.abort().catch(() => {});
		else await reader.cancel().catch(() => {});
		await write;
	}
}

async function* asPlain(queue) {
	for await (const bytes of queue.rest()) {
		queue.at += bytes.length;
		yield { bytes, stored: queue.at };
	}
}

/**
 * The unpacked bytes of a segment that comes as |chunks|, an async iterable of Uint8Array, in pieces
 * {bytes, stored}: |stored| counts the packed bytes used so far.  Throws a TraceError with the offset in
 * the packed data behind everything that could be unpacked: Truncated where the data just ends,
 * LimitError where it unpacks to more than |limit| bytes or suspiciously much.
 */
export async function* unpack(chunks, limit = Infinity) {
	const queue = new ByteQueue(chunks);
	await queue.has(4);
	const { bytes } = queue;
	// One that was cut inside of the magic is what it was going to be.
	const beginsAs = (magic) => bytes.length > 0 && magic.every((byte, i) => i >= bytes.length || byte === bytes[i]);
	const zstd = beginsAs(ZSTD_HEAD) || (bytes.length >= 4 && (le32(bytes, 0) & 0xfffffff0) >>> 0 === ZSTD_SKIPPABLE);
	const pieces = zstd ? unpackZstd(queue) : beginsAs(GZIP_HEAD) ? unpackGzip(queue) : asPlain(queue);
	let total = 0;
	for await (const piece of pieces) {
		total += piece.bytes.length;
		if (total > limit) throw new LimitError(piece.stored, `more than ${limit} bytes unpacked`);
		if (total > RATIO_FREE && total > RATIO_MAX * piece.stored)
			throw new LimitError(piece.stored, `unpacks to more than ${RATIO_MAX} times its size`);
		yield piece;
	}
}
