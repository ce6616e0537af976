// SPDX-License-Identifier: Apache-2.0
// The objects of s3d.mjs: in memory, or under a folder as BUCKET/KEY, where other programs may read them.

import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";

const META = ".s3d";

/** Takes a body piece by piece: sums, and the bytes unless they are discarded. */
export class Body {
	constructor(file, discard) {
		this.sha256 = createHash("sha256");
		this.md5 = createHash("md5");
		this.size = 0;
		this.pieces = [];
		this.file = file;
		this.fd = file && !discard ? fs.openSync(file, "w", 0o600) : -1;
		this.discard = discard;
	}
	add(piece) {
		this.sha256.update(piece);
		this.md5.update(piece);
		this.size += piece.length;
		if (this.fd >= 0)
			fs.writeSync(this.fd, piece);
		else if (!this.discard)
			this.pieces.push(piece);
	}
	end() {
		this.sum = { sha256: this.sha256.digest(), md5: this.md5.digest() };
		if (this.fd >= 0)
			fs.closeSync(this.fd);
		this.fd = -1;
	}
	drop() {
		if (this.fd >= 0)
			fs.closeSync(this.fd);
		if (this.file)
			fs.rmSync(this.file, { force: true });
	}
	bytes() {
		return this.file && !this.discard ? fs.readFileSync(this.file) : Buffer.concat(this.pieces);
	}
}

export class Objects {
	constructor({ dir, discard, buckets, copies }) {
		Object.assign(this, { dir, discard, copies, serial: 0 });
		this.buckets = new Map(buckets.map((name) => [name, new Map()]));
		this.sorted = new Map();
		for (const name of dir ? buckets : [])
			this.#load(name);
	}
	#load(bucket) {
		fs.mkdirSync(path.join(this.dir, META, bucket), { recursive: true });
		fs.mkdirSync(path.join(this.dir, bucket), { recursive: true });
		for (const name of fs.readdirSync(path.join(this.dir, META, bucket)))
			if (name.endsWith(".json")) {
				const object = JSON.parse(fs.readFileSync(path.join(this.dir, META, bucket, name), "utf8"));
				this.buckets.get(bucket).set(object.key, object);
			}
	}
	#metaFile(bucket, key) {
		return path.join(this.dir, META, bucket, `${createHash("sha256").update(key).digest("hex")}.json`);
	}
	/** All contents that a key ever had, each once, under its sum. */
	#keep(key, body) {
		const folder = path.join(this.copies, ...key.split("/"));
		fs.mkdirSync(folder, { recursive: true });
		fs.rmSync(path.join(folder, body.sum.sha256.toString("hex")), { force: true });
		fs.linkSync(body.file, path.join(folder, body.sum.sha256.toString("hex")));
	}
	has(bucket) {
		return this.buckets.has(bucket);
	}
	/** A key that cannot be a file of its own under the folder. */
	impossible(key) {
		return this.dir && key.split("/").some((part) => part === "" || part === "." || part === ".." || part.length > 255);
	}
	newBody(bucket, method = "PUT") {
		return new Body(this.dir && method === "PUT" && path.join(this.dir, META, bucket, `body.${process.pid}.${this.serial++}`),
			this.discard && method === "PUT");
	}
	get(bucket, key) {
		return this.buckets.get(bucket).get(key);
	}
	put(bucket, key, body, facts) {
		const object = { key, size: body.size, modified: Math.floor(Date.now() / 1000), ...facts };
		if (this.dir && !this.discard) {
			const file = path.join(this.dir, bucket, key);
			fs.mkdirSync(path.dirname(file), { recursive: true });
			if (this.copies)
				this.#keep(key, body);
			fs.renameSync(body.file, file);
			// It may be killed at any moment, and reads this when it begins again.
			fs.writeFileSync(`${file}.part`, JSON.stringify(object));
			fs.renameSync(`${file}.part`, this.#metaFile(bucket, key));
		} else {
			Object.defineProperty(object, "bytes", { value: Buffer.concat(body.pieces) });
		}
		if (!this.buckets.get(bucket).has(key))
			this.sorted.delete(bucket);
		this.buckets.get(bucket).set(key, object);
		return object;
	}
	/** An object that nobody has sent: it is in memory, whatever the others are. */
	plant(bucket, key, bytes, modified = Math.floor(Date.now() / 1000)) {
		const object = { key, size: bytes.length, modified, etag: createHash("md5").update(bytes).digest("hex"), headers: {}, planted: true };
		Object.defineProperty(object, "bytes", { value: bytes });
		if (!this.buckets.get(bucket).has(key))
			this.sorted.delete(bucket);
		this.buckets.get(bucket).set(key, object);
	}
	read(bucket, object) {
		if (object.planted)
			return object.bytes;
		if (this.discard)
			return Buffer.alloc(object.size);
		return this.dir ? fs.readFileSync(path.join(this.dir, bucket, object.key)) : object.bytes;
	}
	delete(bucket, key) {
		if (!this.buckets.get(bucket).delete(key))
			return;
		this.sorted.delete(bucket);
		if (this.dir) {
			fs.rmSync(path.join(this.dir, bucket, key), { force: true });
			fs.rmSync(this.#metaFile(bucket, key), { force: true });
		}
	}
	/** Keys in the order of their UTF-8 bytes. */
	keys(bucket) {
		let keys = this.sorted.get(bucket);
		if (!keys) {
			keys = [...this.buckets.get(bucket).keys()].map((key) => [key, Buffer.from(key)])
				.sort((a, b) => Buffer.compare(a[1], b[1])).map(([key]) => key);
			this.sorted.set(bucket, keys);
		}
		return keys;
	}
	/** The place in `keys` of the first one that is not before `bytes`. */
	#placeOf(keys, bytes) {
		let from = 0, to = keys.length;
		while (from < to) {
			const middle = (from + to) >> 1;
			if (Buffer.compare(Buffer.from(keys[middle]), bytes) < 0)
				from = middle + 1;
			else
				to = middle;
		}
		return from;
	}
	/** A page of LIST v2: { objects, prefixes, more }; `after`: a key or a common prefix that was the last one. */
	list(bucket, { prefix, delimiter, after, max }) {
		const page = { objects: [], prefixes: [], more: undefined }, keys = this.keys(bucket);
		let last = after;
		for (let i = Math.max(this.#placeOf(keys, Buffer.from(prefix)), this.#placeOf(keys, Buffer.from(after))); i < keys.length; i++) {
			const key = keys[i];
			if (!key.startsWith(prefix))
				break;
			if (key === after)
				continue;
			const end = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
			const common = end < 0 ? undefined : key.slice(0, end + delimiter.length);
			if (common !== undefined && (common === page.prefixes.at(-1) || common === after))
				continue;
			if (page.objects.length + page.prefixes.length >= max) {
				page.more = last;
				break;
			}
			if (common === undefined)
				page.objects.push(this.get(bucket, key));
			else
				page.prefixes.push(common);
			last = common ?? key;
		}
		return page;
	}
}
