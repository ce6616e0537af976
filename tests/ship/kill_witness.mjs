// SPDX-License-Identifier: Apache-2.0
// For kill_1000.sh: what there was, and whether all of it is in the store.
//
//   node kill_witness.mjs watch TREE WITNESS             link every sealed segment of TREE, BOOT_ID/trace.N.*, into
//                                                        WITNESS as BOOT_ID-N, until standard input ends
//   node kill_witness.mjs judge WITNESS STORE COPIES TREE DIAL9

import * as fs from "node:fs";
import * as path from "node:path";
import { execFileSync } from "node:child_process";

const SEALED = /^trace\.([0-9]+)\.bin\.zst$/;

function list(folder) {
	try {
		return fs.readdirSync(folder);
	} catch {
		return [];
	}
}

function look(tree, witness, seen) {
	for (const boot of list(tree))
		for (const name of list(path.join(tree, boot))) {
			const index = SEALED.exec(name)?.[1];
			const as = `${boot}-${index}`;
			if (index === undefined || seen.has(as))
				continue;
			try {
				fs.linkSync(path.join(tree, boot, name), path.join(witness, as));
				seen.add(as);
			} catch (error) {
				if (error.code !== "ENOENT") // it was shipped at this very moment
					throw error;
			}
		}
}

function* files(folder) {
	for (const name of list(folder)) {
		const file = path.join(folder, name);
		if (fs.statSync(file).isDirectory())
			yield* files(file);
		else
			yield file;
	}
}

const decoded = (dial9, file) => execFileSync(dial9, ["export", "--format", "trc", "-o", "-", file], { maxBuffer: 1 << 30 });

/** Gaps that somebody wrote down: "BOOT_ID-N" of what metadata of stored segments calls missing. */
function writtenDown(store) {
	const gaps = new Set();
	for (const file of files(path.join(store, ".s3d", "bucket"))) {
		if (!file.endsWith(".json")) // a body that the store was killed in
			continue;
		const { headers } = JSON.parse(fs.readFileSync(file, "utf8"));
		for (const range of (headers?.["x-amz-meta-missing"] ?? "").split(",").filter(Boolean)) {
			const [from, to] = range.split("-").map(Number);
			for (let index = from; index <= (to ?? from); index++)
				gaps.add(`${headers["x-amz-meta-boot-id"]}-${index}`);
		}
	}
	return gaps;
}

function judge(witness, store, copies, tree, dial9) {
	const stored = new Map();
	for (const file of files(path.join(store, "bucket"))) {
		const found = /\/boot=([a-z]+-[0-9]+)\/[0-9]+-([0-9]+)\.bin\.zst$/.exec(file);
		if (found)
			stored.set(`${found[1]}-${found[2]}`, path.relative(path.join(store, "bucket"), file));
	}
	const gaps = writtenDown(store);
	const faults = [];
	let several = 0, missing = 0;
	for (const name of list(witness)) {
		const key = stored.get(name);
		if (key === undefined) {
			const [, boot, index] = /^(.*)-([0-9]+)$/.exec(name);
			const refused = list(path.join(tree, boot, "refused")).includes(`trace.${index}.bin.zst`);
			missing++;
			if (!refused && !gaps.has(name))
				faults.push(`${name} is not stored, and nobody says so`);
			continue;
		}
		const contents = list(path.join(copies, key)).map((sum) => path.join(copies, key, sum));
		several += contents.length > 1;
		const bytes = fs.readFileSync(path.join(witness, name));
		for (const file of contents)
			if (!fs.readFileSync(file).equals(bytes) && !decoded(dial9, file).equals(decoded(dial9, path.join(witness, name))))
				faults.push(`${file} is another segment than ${name} was`);
		if (!contents.length)
			faults.push(`${key} was never put`);
	}
	const left = [...files(tree)].filter((file) => SEALED.test(path.basename(file)));
	for (const file of left)
		faults.push(`${file} is left`);
	for (const fault of faults)
		console.log(fault);
	console.log(`${list(witness).length} segments seen, ${stored.size} stored, ${missing} in gaps that are written down, ` +
		`${several} with several contents, ${faults.length} faults`);
	process.exitCode = faults.length || !stored.size ? 1 : 0;
}

const [how, ...rest] = process.argv.slice(2);
if (how === "watch") {
	const seen = new Set();
	const timer = setInterval(() => look(rest[0], rest[1], seen), 5);
	process.stdin.on("end", () => {
		clearInterval(timer);
		look(rest[0], rest[1], seen);
	}).resume();
} else {
	judge(...rest);
}
