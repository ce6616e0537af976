// SPDX-License-Identifier: Apache-2.0
// What tests of `dial9 serve --bucket` share: a store with objects that nobody had to send, the server, and summaries of hours.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { BEGAN_MS, smallSegment } from "../viewer/many_traces.mjs";

const { DIAL9 } = process.env;
const S3D = fileURLToPath(new URL("s3d.mjs", import.meta.url));
export const WORK = mkdtempSync(`${process.env.WORK}/`);
export const HOUR_MS = 36e5;
export { BEGAN_MS };
/** No secret of ours: tests look for it where it must not be. */
export const SECRET = "canary+secret/0123456789";

/** An environment with credentials of the store, a folder of its own for what is fetched, and none of the caller's. */
export function environment(more = {}) {
	const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(AWS_|XDG_|DIAL9_)|_proxy$/i.test(name)));
	const home = mkdtempSync(`${WORK}/home.`);
	return { ...env, HOME: home, AWS_EC2_METADATA_DISABLED: "true", AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: SECRET, AWS_REGION: "eu-west-1", ...more };
}

/** A store: {address, plant, log, faults, stop}. */
export async function startStore(...options) {
	const child = spawn(process.execPath, [S3D, "--key", `AKIDEXAMPLE:${SECRET}`, ...options], { stdio: ["pipe", "pipe", "inherit"] });
	const [line] = await once(child.stdout, "data");
	const address = String(line).trim();
	const post = (path, value) => fetch(`${address}/-/${path}`, { method: "POST", body: JSON.stringify(value) });
	return {
		address,
		plant: (objects) => post("objects", objects.map(({ key, bytes, ...rest }) => ({ key, ...(bytes ? { base64: Buffer.from(bytes).toString("base64") } : {}), ...rest }))),
		faults: (list) => post("faults", list),
		log: async () => (await fetch(`${address}/-/log`)).json(),
		stop: async () => {
			child.stdin.end();
			if (child.exitCode === null) await once(child, "exit");
		},
	};
}

/** `dial9 serve --bucket`: {url, get, json, said, stop}. */
export async function serveBucket(store, { args = [], env = environment(), bucket = "bucket" } = {}) {
	const child = spawn(DIAL9, ["serve", "--bucket", bucket, "--endpoint", store.address, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
	const said = { text: "" };
	child.stderr.on("data", (piece) => { said.text += piece; });
	const [line] = await Promise.race([once(child.stdout, "data"), once(child, "exit").then(() => [""])]);
	const url = String(line).trim();
	const get = (path) => fetch(url + path);
	return {
		url, said, env, get, pid: child.pid,
		json: async (path) => (await get(path)).json(),
		/** The map of the hours around BEGAN_MS as soon as everything is listed. */
		map: (from = BEGAN_MS - HOUR_MS, to = BEGAN_MS + 4 * HOUR_MS) => settled(async () => (await get(`api/map?from_ms=${from}&to_ms=${to}`)).json(),
			(map) => !map.place.listing && map.place.lists > 1),
		stop: async () => {
			child.kill("SIGINT");
			if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
		},
	};
}

/** Ask until the answer is as |wanted|. */
export async function settled(ask, wanted) {
	for (const deadline = Date.now() + 60000; ;) {
		const answer = await ask();
		if (wanted(answer)) return answer;
		if (Date.now() > deadline) throw new Error(`still ${JSON.stringify(answer).slice(0, 2000)}`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

/** Run `dial9 serve --bucket` that ends by itself: {status, stdout, stderr}. */
export function refuse({ args, env = environment() }) {
	return spawnSync(DIAL9, ["serve", ...args], { env, encoding: "utf8", timeout: 60000 });
}

const two = (n) => String(n).padStart(2, "0");
const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);
const minuteOf = (ms) => `${two(new Date(ms).getUTCHours())}${two(new Date(ms).getUTCMinutes())}`;
export const hourOf = (ms) => new Date(ms).toISOString().slice(0, 13);

export function segmentKey({ prefix = "p/", service = "echo-server", host = "web-1", boot = "boot-1", after = 0, index = 0, began = BEGAN_MS, ending = ".bin" } = {}) {
	const at = began + after * 1000;
	return `${prefix}version=1/date=${dayOf(at)}/service=${service}/time=${minuteOf(at)}/instance=${host}/boot=${boot}/${Math.floor(at / 1000)}-${index}${ending}`;
}

export function oldKey({ prefix = "p/", service = "echo-server", host = "web-1", boot = "boot-1", after = 0, index = 0 } = {}) {
	const at = BEGAN_MS + after * 1000;
	return `${prefix}${dayOf(at)}/${minuteOf(at)}/${service}/${host}/${boot}/${Math.floor(at / 1000)}-${index}.bin.gz`;
}

export function hourKey({ prefix = "p/", service = "echo-server", host = "web-1", boot = "boot-1", at = BEGAN_MS, segments = 3, bytes = 12000, worst = "182", missing = 0 } = {}) {
	return `${prefix}hours/${dayOf(at)}/${hourOf(at).slice(11)}/${service}/${host}/${boot}.${segments}.${bytes}.${worst}.${missing}`;
}

/** A segment as it lies in the bucket. */
export function storedSegment(options = {}) {
	return { key: segmentKey(options), bytes: smallSegment(options), modified: Math.floor((BEGAN_MS + (options.after ?? 0) * 1000 + 11000) / 1000) };
}

/** What `dial9 serve --summary` says of a segment. */
export function summaryOf(bytes) {
	const path = `${WORK}/segment.bin`;
	writeFileSync(path, bytes);
	return JSON.parse(spawnSync(DIAL9, ["serve", "--summary", path], { encoding: "utf8" }).stdout);
}

function addDurations(into, from) {
	const steps = new Map();
	for (const list of [into, from]) for (let i = 0; i + 1 < list.length; i += 2) steps.set(list[i], (steps.get(list[i]) ?? 0) + list[i + 1]);
	return [...steps].sort(([a], [b]) => a - b).flat();
}

/** The sum of |parts| = [[key, summary]...] as the shipper makes it of an hour; |more|: keys that are added. */
export function hourSummary(parts, more = {}) {
	const sums = (key) => {
		const found = new Map();
		for (const [segment, summary] of parts)
			for (const one of summary[key] ?? []) {
				const name = `${one.name}\n${one.source ?? ""}`, before = found.get(name), longer = !before || one.longest_ns > before.longest_ns;
				found.set(name, !before ? { ...one, segment } : { ...(longer ? { ...one, segment } : before), calls: before.calls + one.calls, total_ns: before.total_ns + one.total_ns,
					durations: addDurations(before.durations, one.durations) });
			}
		return [...found.values()];
	};
	const all = parts.map(([, summary]) => summary), first = all[0], add = (key) => all.reduce((sum, summary) => sum + (summary[key] ?? 0), 0);
	return { ...first, last_ns: Math.max(...all.map((summary) => summary.last_ns)), events: add("events"), lost: add("lost"), busy_ns: add("busy_ns"), samples: add("samples"),
		nodes: all.find(({ samples }) => samples)?.nodes ?? [], // of one: who adds them up is tested elsewhere
		callbacks: sums("callbacks"), spans: sums("spans"), segments: parts.length, bytes: 4000 * parts.length, indexes: `0-${parts.length - 1}`, missing: "", hour: hourOf(BEGAN_MS), ...more };
}
