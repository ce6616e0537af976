// SPDX-License-Identifier: Apache-2.0
// What `dial9 serve --bucket` makes of a bucket: lists, hours, segments, dumps, and everything that can be wrong with it.

import { after, test } from "node:test";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, truncateSync } from "node:fs";

import { BEGAN_MS, HOUR_MS, SECRET, WORK, environment, hourKey, hourSummary, oldKey, refuse, segmentKey, serveBucket, settled, startStore, storedSegment, summaryOf } from "./bucket.mjs";

const running = [];
after(async () => {
	for (const one of running.reverse()) await one.stop();
});
async function store(...options) {
	running.push(await startStore(...options));
	return running.at(-1);
}
async function serve(...options) {
	running.push(await serveBucket(...options));
	return running.at(-1);
}

const WHOLE = `from_ms=${BEGAN_MS - HOUR_MS}&to_ms=${BEGAN_MS + 4 * HOUR_MS}`;
const HOST = `process=${encodeURIComponent("echo-server/web-1")}&${WHOLE}`;
const lists = async (of) => (await of.log()).filter(({ method, key }) => method === "GET" && !key).length;
const gets = async (of) => (await of.log()).filter(({ method, key }) => method === "GET" && key).map(({ key }) => key);
const cacheOf = (server) => `${server.env.HOME}/.cache/dial9/fleet`;
const names = (map) => map.segments.map(({ name }) => name);

/** A host with three segments in an hour, the second with a call of 182 ms, and that hour's summary. */
function hostWithHour(options = {}) {
	const segments = [0, 1, 2].map((i) => storedSegment({ ...options, after: 60 + 10 * i, index: i, calls: i === 1 ? [[4, 182]] : [] }));
	const parts = segments.map(({ key, bytes }) => [key, { ...summaryOf(bytes), spans: [{ name: "request", calls: 2, total_ns: 3000000, longest_ns: 2000000, at_ns: 5, worker: 0, durations: [80, 2] }] }]);
	return { segments, parts };
}

test("segments of a bucket are listed by their keys, and one is fetched when it is opened", async () => {
	const place = await store(), segment = storedSegment({ after: 60 });
	await place.plant([segment]);
	const server = await serve(place, { args: ["--prefix", "p"] }), map = await server.map();
	assert.deepEqual(names(map), ["echo-server/web-1/boot-1/1795255260-0.bin"]);
	assert.deepEqual([map.segments[0].state, map.segments[0].service, map.segments[0].host, map.segments[0].bytes], ["listed", "echo-server", "web-1", segment.bytes.length]);
	assert.deepEqual(await gets(place), []);
	const listing = await server.json(`api/segments?${HOST}`), body = await (await server.get(listing.segments[0].url)).arrayBuffer();
	assert.deepEqual(Buffer.from(body), Buffer.from(segment.bytes));
	assert.equal((await server.json(`api/report?${HOST}`)).trace.segments, 1);
	assert.deepEqual(await gets(place), [segment.key], "once");
	const files = readdirSync(cacheOf(server)).map((name) => statSync(`${cacheOf(server)}/${name}`));
	assert.deepEqual([statSync(cacheOf(server)).mode & 0o777, ...files.map(({ mode }) => mode & 0o777)], [0o700, 0o600]);
});

test("a segment that an address names is found by a server that has listed nothing", async () => {
	const place = await store();
	await place.plant([storedSegment({ after: 60 }), storedSegment({ after: 70, index: 1 })]);
	const server = await serve(place, { args: ["--prefix", "p/"] });
	const listing = await server.json(`api/segments?trace=${encodeURIComponent("segment/echo-server/web-1/boot-1/1795255270-1.bin")}`);
	assert.deepEqual(listing.segments.map(({ name }) => name), ["echo-server/web-1/boot-1/1795255270-1.bin"]);
});

test("segments in the original's layout are read, too", async () => {
	const place = await store();
	await place.plant([{ key: oldKey({ prefix: "", after: 60 }), text: "x" }, { key: oldKey({ prefix: "", after: 7200, host: "web-2" }), text: "x" }]);
	const server = await serve(place);
	assert.deepEqual(names(await server.map()), ["echo-server/web-1/boot-1/1795255260-0.bin.gz", "echo-server/web-2/boot-1/1795262400-0.bin.gz"]);
});

test("a service whose name the original has escaped is shown, and opens where it is too large to be listed", async () => {
	const place = await store(), segment = storedSegment({ prefix: "", service: "shop%2Fcart", after: 180 });
	const others = Array.from({ length: 3001 }, (_, i) => ({ key: segmentKey({ prefix: "", service: "shop%2Fcart", host: `web-${i + 2}`, after: i < 3000 ? 0 : 60 }), text: "x" }));
	await place.plant([segment, ...others, storedSegment({ prefix: "", service: "z\u00fcrich%3D", after: 60 }), { key: "smoke-test/2026-11-21/x", text: "x" }]);
	const server = await serve(place), map = await server.map(), name = "shop_cart/web-1/boot-1/1795255380-0.bin";
	assert.deepEqual([...new Set(map.segments.map(({ service }) => service))], ["shop_cart", "z__rich_"]);
	assert.ok(map.place.sampled && !names(map).includes(name));
	for (const of of [server, await serve(place)]) {
		const { segments: [one] } = await of.json(`api/segments?trace=segment/${encodeURIComponent(name)}`);
		assert.deepEqual(Buffer.from(await (await of.get(one.url)).arrayBuffer()), Buffer.from(segment.bytes));
	}
});

test("a service that stores no summaries is shown beside one that does", async () => {
	const place = await store(), { segments, parts } = hostWithHour();
	await place.plant([...segments, { key: hourKey(), text: JSON.stringify(hourSummary(parts)) }, storedSegment({ service: "raw", host: "web-9", after: 60 })]);
	const server = await serve(place, { args: ["--prefix", "p"] });
	assert.deepEqual((await server.map()).segments.map(({ service, kind }) => [service, kind ?? "segment"]), [["echo-server", "hour"], ["raw", "segment"]]);
});

test("an hour costs no object until somebody wants to know more, and then one", async () => {
	const place = await store(), { segments, parts } = hostWithHour();
	const key = hourKey({ worst: "182", missing: 2 });
	await place.plant([...segments, { key, text: JSON.stringify(hourSummary(parts)) }]);
	const server = await serve(place, { args: ["--prefix", "p"] }), map = await server.map();
	assert.deepEqual(map.segments.map(({ kind, name, bytes, missing, segments: n, longest_ns: longest }) => [kind, name, bytes, missing, n, longest]),
		[["hour", "echo-server/web-1/boot-1/2026-11-21T10.hour", 12000, 2, 3, 182000000]], "the segments of the hour are in it");
	assert.equal(map.segments[0].to_ms, BEGAN_MS + HOUR_MS - 1);
	const table = await settled(() => server.json(`api/callbacks?${HOST}`), ({ coverage }) => coverage.read === 1);
	assert.deepEqual(table.callbacks.map(({ name, longest_ns: longest, segment }) => [name, longest, segment]),
		[["flush_log", 182000000, "echo-server/web-1/boot-1/1795255270-1.bin"], ["on_read", 50000, "echo-server/web-1/boot-1/1795255260-0.bin"]]);
	assert.deepEqual((await server.json(`api/spans?${HOST}`)).spans.map(({ name, calls, total_ns: total }) => [name, calls, total]), [["request", 6, 9000000]]);
	assert.ok((await server.json(`api/stacks?${HOST}`)).samples > 0);
	assert.deepEqual(await gets(place), [key]);
	const listing = await server.json(`api/segments?${HOST}`);
	assert.equal(listing.segments.length, 3, "they are listed when somebody opens the hour");
});

test("of the hour that runs nothing counts twice: a process that has ended left a summary of it", async () => {
	const place = await store(), hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS, objects = [];
	const kinds = (map, host) => map.segments.filter((one) => one.host === host).map(({ kind }) => kind ?? "segment");
	const plant = (host, listed, told) => {
		for (let i = 0; i < listed; i++) objects.push({ key: segmentKey({ host, began: hour, index: i }), text: "x" });
		objects.push({ key: hourKey({ host, at: hour, segments: told }), text: "{}" });
	};
	plant("ended", 3, 3);
	plant("not-all-told", 3, 2);
	plant("not-all-listed", 1, 60);
	await place.plant(objects);
	const server = await serve(place, { args: ["--prefix", "p"] }), map = await server.map(hour - HOUR_MS, hour + HOUR_MS);
	if (Date.now() >= hour + HOUR_MS) return; // it is over: its summaries count
	assert.deepEqual(kinds(map, "ended"), ["hour"]);
	assert.ok(map.segments.find(({ host }) => host === "ended").to_ms <= Date.now(), "it tells of nothing that is still to come");
	assert.deepEqual(kinds(map, "not-all-told"), ["segment", "segment", "segment"], "these are more than the summary has");
	assert.deepEqual(kinds(map, "not-all-listed"), ["hour"], "one minute in ten may be all that is listed");
	const opened = await server.json(`api/segments?process=${encodeURIComponent("echo-server/ended")}&from_ms=${hour}&to_ms=${hour + HOUR_MS}`);
	assert.equal(opened.segments.length, 3, "they are listed when somebody opens it");
});

test("a summary that says something else than its key counts, and the lie is told", async () => {
	const place = await store(), { parts } = hostWithHour();
	await place.plant([{ key: hourKey({ segments: 60, bytes: 9, missing: 0 }), text: JSON.stringify(hourSummary(parts)) },
		{ key: hourKey({ host: "web-2" }), text: JSON.stringify(hourSummary(parts, { hour: "2026-11-20T10", wall_ns: 5 })) },
		{ key: hourKey({ host: "web-3" }), text: "[[[[" }, { key: hourKey({ host: "web-4" }), text: "" },
		{ key: hourKey({ host: "web-5", missing: 7 }), text: JSON.stringify(hourSummary(parts, { missing: "41-57,60" })) },
		{ key: hourKey({ host: "web-6", bytes: 5 }), text: JSON.stringify(hourSummary(parts)) }]);
	const server = await serve(place, { args: ["--prefix", "p"] });
	await server.map();
	await settled(() => server.json(`api/callbacks?${WHOLE}`), ({ coverage }) => coverage.read === 4 && coverage.failed === 2);
	const hours = (await server.map()).segments;
	assert.deepEqual(hours.map(({ host, state, segments, stored_bytes: bytes, lie, from_ms: from }) => [host, state, segments, bytes, lie, from]), [
		["web-1", "known", 3, 12000, "its key tells of 60 segments, its summary of 3", BEGAN_MS],
		["web-2", "known", 3, 12000, "its key is of the hour 2026-11-21T10, its summary of another", BEGAN_MS],
		["web-3", "failed", 3, undefined, undefined, BEGAN_MS], ["web-4", "failed", 3, undefined, undefined, BEGAN_MS],
		["web-5", "known", 3, 12000, "its key tells of 7 missing segments, its summary of 18", BEGAN_MS],
		["web-6", "known", 3, 12000, "its key tells of 5 bytes, its summary of 12000", BEGAN_MS]]);
	assert.equal(hours[4].missing, 18, "what the summary says counts");
});

test("of two summaries of one hour that of more segments counts", async () => {
	const place = await store();
	await place.plant([{ key: hourKey({ segments: 3 }), text: "{}" }, { key: hourKey({ segments: 20, bytes: 77 }), text: "{}" }, { key: hourKey({ segments: 4 }), text: "{}" }]);
	const server = await serve(place, { args: ["--prefix", "p"] });
	assert.deepEqual((await server.map()).segments.map(({ segments, bytes }) => [segments, bytes]), [[20, 77]]);
});

test("keys that are made to harm are left out, and no part of one becomes a path", async () => {
	const place = await store(), good = segmentKey({ after: 60 });
	const odd = [good.replace("web-1", "../../etc"), good.replace("web-1", ".."), `${good}/../../x`, good.replace("1795255260-0", "-1-0"), good.replace("1795255260-0", "99999999999999999999-0"),
		"p/hours/2026-11-21/10/echo-server/web-1/b.-1.0.-.0", "p/hours/2026-11-21/10/echo-server/web-1/b.1.2.3", "p/hours/2026-11-21/10/<script>/x\u0001y/b.1.2.-.0",
		"p/hours/2026-11-21/10/echo-server/web-1/b.999999999999999999.999999999999999999.999999999999999999.999999999999999999", "p/dumps/../../x.json", "p/dumps/.json", "p/version=1/x"];
	await place.plant(odd.map((key) => ({ key, text: "x" })));
	const server = await serve(place, { args: ["--prefix", "p"] });
	await server.map();
	await server.json(`api/segments?${HOST}`);
	const map = await server.map();
	for (const segment of map.segments) assert.match(segment.name, /^[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+$/);
	assert.deepEqual(names(map).filter((name) => /(^|\/)\.\.?(\/|$)/.test(name)), []);
	assert.ok(map.place.strange >= 5, `${map.place.strange} are told`);
	await settled(() => server.json(`api/callbacks?${WHOLE}`), ({ coverage }) => coverage.waiting === 0);
	for (const name of readdirSync(cacheOf(server))) assert.match(name, /^[0-9a-f]{40}\.(json|bin)$/);
	assert.equal((await server.get("segment/..%2F..%2Fetc%2Fpasswd")).status, 404);
});

test("a dump opens with the segments that its manifest lists", async () => {
	const place = await store(), segments = [0, 1].map((i) => storedSegment({ after: 60 + 10 * i, index: i }));
	const id = "01JD7A0000000000000000DUMP";
	await place.plant([...segments, { key: `p/dumps/${id}.json`, text: JSON.stringify({ id, keys: [segments[0].key, "q/other", 7, segmentKey({ host: "gone" })], missing: [] }) }]);
	const server = await serve(place, { args: ["--prefix", "p"] });
	assert.deepEqual((await server.json(`api/segments?dump=${id}`)).segments.map(({ name }) => name), ["echo-server/web-1/boot-1/1795255260-0.bin"]);
	const answer = await server.get("api/segments?dump=..%2Fx");
	assert.deepEqual([answer.status, await answer.text()], [502, "there is no such dump in the bucket"]);
});

test("a thousand hosts for a day, and the hour that runs, cost 90 lists and no object", { timeout: 120000 }, async () => {
	const place = await store(), now = Date.now(), hour = Math.floor(now / HOUR_MS) * HOUR_MS, objects = [];
	for (let at = hour - 24 * HOUR_MS; at < hour; at += HOUR_MS)
		for (let host = 0; host < 1000; host++) objects.push({ key: hourKey({ service: `svc${host % 20}`, host: `host-${host}`, at, segments: 60 }) });
	for (let host = 0; host < 1000; host++)
		for (let minute = 0; minute < 60; minute++) objects.push({ key: segmentKey({ service: `svc${host % 20}`, host: `host-${host}`, began: hour, after: 60 * minute, index: minute }) });
	await place.plant(objects);
	const server = await serve(place, { args: ["--prefix", "p"] });
	const map = await server.map(hour - 24 * HOUR_MS, hour + HOUR_MS), asked = await lists(place);
	assert.equal(map.segments.filter(({ kind }) => kind === "hour").length, 24000);
	assert.ok(map.segments.length >= 25000, "and the first minute of the hour that runs");
	assert.ok(asked <= 90, `${asked} lists`);
	assert.equal(map.place.lists, asked);
	assert.deepEqual([await gets(place), map.place.truncated, map.place.sampled], [[], false, false]);
	await server.map(hour - 24 * HOUR_MS, hour);
	assert.ok(await lists(place) - asked <= 2, "what is over is known");
});

test("more segments than a few lists hold are told by one minute in ten, and that is said", async () => {
	const place = await store(), objects = [];
	for (let minute = 0; minute < 120; minute++)
		for (let host = 0; host < 100; host++) objects.push({ key: segmentKey({ host: `web-${host}`, after: 60 * minute }) });
	await place.plant(objects);
	const server = await serve(place, { args: ["--prefix", "p"] }), map = await server.map();
	assert.equal(map.place.sampled, true);
	assert.ok(map.segments.length >= 3000 + 900 && map.segments.length < 5000, `${map.segments.length} segments`);
	assert.ok(await lists(place) < 20);
});

test("a store that fails is told, once and in one line, and what was fetched stays", async () => {
	const place = await store(), segments = [storedSegment({ after: 60 }), storedSegment({ after: 70, index: 1 })];
	await place.plant(segments);
	const server = await serve(place, { args: ["--prefix", "p"] });
	const { segments: [one, other] } = await server.json(`api/segments?${HOST}`);
	assert.equal((await server.get(one.url)).status, 200);
	await place.stop();
	assert.equal((await server.get(other.url)).status, 502);
	const map = await server.json(`api/map?${WHOLE}`);
	assert.match(map.place.error, /^http:\/\/127\.0\.0\.1:\d+\/bucket: [^\n]*$/);
	assert.equal(map.segments.length, 2);
	assert.equal((await server.get(one.url)).status, 200, "it is here");
});

test("a process that lists and fetches and is killed is started again", async () => {
	const place = await store(), segment = storedSegment({ after: 60 });
	await place.plant([segment]);
	const server = await serve(place, { args: ["--prefix", "p"] }), child = Number(readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, "utf8"));
	await server.map();
	await place.faults([{ kind: "silence", key: segment.key, times: 1 }]);
	const { segments: [one] } = await server.json(`api/segments?${HOST}`), waiting = server.get(one.url);
	await settled(() => gets(place), (keys) => keys.length === 1);
	process.kill(child, "SIGKILL");
	assert.equal((await waiting).status, 502);
	assert.match((await server.json(`api/map?${WHOLE}`)).place.error, /dial9-store was ended by signal 9/);
	await settled(() => server.get(one.url), ({ status }) => status === 200);
});

test("what is fetched is what the list said, also where a file of it was cut or the object replaced", async () => {
	const place = await store(), segment = storedSegment({ after: 60 }), other = storedSegment({ after: 70, index: 1 });
	await place.plant([segment, other, { key: segmentKey({ host: "web-2", after: 60 }), text: "no trace" }, { key: hourKey({ host: "web-3" }), text: "hello" }]);
	const server = await serve(place, { args: ["--prefix", "p"] }), { segments: [one, two] } = await server.json(`api/segments?${HOST}`);
	assert.equal((await server.get(one.url)).status, 200);
	truncateSync(`${cacheOf(server)}/${readdirSync(cacheOf(server))[0]}`, 10);
	assert.deepEqual(Buffer.from(await (await server.get(one.url)).arrayBuffer()), Buffer.from(segment.bytes), "it is fetched again");
	await place.plant([{ ...other, bytes: Buffer.concat([other.bytes, Buffer.from("more")]) }]);
	const answer = await server.get(two.url);
	assert.deepEqual([answer.status, await answer.text()], [502, "it is not as long as the bucket's list says"]);
	await server.map();
	await settled(() => server.json(`api/callbacks?${WHOLE}`), ({ coverage }) => coverage.waiting === 0);
	assert.deepEqual((await server.map()).segments.flatMap(({ host, why }) => (why ? [[host, why.split(";")[0]]] : [])).filter(([host]) => host !== "web-1"),
		[["web-2", "offset 0: this is not a TRC stream"], ["web-3", "its summary cannot be read"]]);
});

test("a store that says no more than a number is told by that", async () => {
	const place = await store();
	await place.plant([storedSegment({ after: 60 })]);
	const server = await serve(place, { args: ["--prefix", "p"] });
	await place.faults([{ kind: "status", status: 500, code: "InternalError", message: "", times: 0 }]);
	const { place: { error } } = await settled(() => server.json(`api/map?${WHOLE}`), (map) => map.place.error !== null);
	assert.match(error, /^http:\S+: it answers 500 InternalError$/);
});

test("a list that names the page that it has just given is given up", async () => {
	const asked = [], liar = createServer((request, response) => {
		asked.push(request.url);
		response.end(`<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>AAAA</NextContinuationToken>${/hours/.test(decodeURIComponent(request.url)) ? `<Contents><Key>${hourKey({ prefix: "" })}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified><ETag>"x"</ETag><Size>3</Size></Contents>` : "<CommonPrefixes><Prefix>hours/</Prefix></CommonPrefixes>"}</ListBucketResult>`);
	});
	liar.listen(0, "127.0.0.1");
	await once(liar, "listening");
	running.push({ stop: () => liar.close() });
	const map = await (await serve({ address: `http://127.0.0.1:${liar.address().port}` })).map();
	assert.deepEqual([names(map), map.place.truncated], [["echo-server/web-1/boot-1/2026-11-21T10.hour"], true]);
	assert.ok(asked.length < 20, `${asked.length} requests`);
});

test("a list that never ends is given up", async () => {
	const place = await store();
	await place.plant([storedSegment({ after: 60 })]);
	const server = await serve(place, { args: ["--prefix", "p"] });
	await place.faults([{ kind: "endless", times: 0 }]);
	await settled(() => server.json(`api/map?${WHOLE}`), ({ place: { error } }) => error !== null);
	await place.faults([]);
	assert.equal((await settled(() => server.json(`api/map?${WHOLE}`), ({ place: { error }, segments }) => error === null && segments.length)).segments.length, 1);
});

test("a store that is not there at the start is waited for", async () => {
	const gone = await startStore();
	await gone.stop();
	const server = await serve(gone);
	assert.match(server.said.text, /^dial9 serve: warning: [^\n]*; the page goes on asking\n$/);
	assert.match((await server.json("api/map")).place.error, /127\.0\.0\.1/);
});

test("what is wrong with bucket and credentials is one line each, and the secret is nowhere", async () => {
	const place = await store(), args = ["--bucket", "bucket", "--endpoint", place.address];
	const said = (env, list = args) => {
		const { status, stdout, stderr } = refuse({ args: list, env: environment(env) });
		assert.equal(stdout, "");
		assert.doesNotMatch(stderr, /canary/);
		assert.match(stderr, /^dial9 serve: [^\n]*\n$/);
		return `${status} ${stderr}`;
	};
	assert.match(said({}, ["--bucket", "nowhere", "--endpoint", place.address]), /^2 .*no such bucket.*NoSuchBucket/);
	assert.match(said({ AWS_SECRET_ACCESS_KEY: "canary-wrong" }), /^2 .*the secret key is not the one of this key id/);
	assert.match(said({ AWS_ACCESS_KEY_ID: "AKIDOTHER" }), /^2 .*does not know this key id/);
	assert.match(said({ AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined }), /^2 .*credentials/);
	assert.match(said({}, ["--prefix", "p"]), /^2 .*are of a --bucket/);
	assert.match(said({}, ["--bucket", "bucket", "traces"]), /^2 .*it takes no TRACE/);
	assert.match(said({}, [...args, "--prefix", "../x y"]), /^2 .*--prefix has parts of/);
	assert.match(said({ HOME: undefined }), /^2 .*set HOME/);
	assert.match(said({}, ["--bucket", "bucket", "--endpoint", "http://store.example"]), /^2 .*https/);
	assert.match(said({}, ["--local-dir", "/nonexistent"]), /^2 .*\/nonexistent/);
	assert.match(said({}, ["--local-dir", "/nonexistent", "/nonexistent"]), /^2 .*one TRACE at a time/);
});

test("a bucket of another region than was said is shown all the same", async () => {
	const place = await store();
	await place.plant([storedSegment({ after: 60 })]);
	const server = await serve(place, { args: ["--prefix", "p", "--region", "us-east-1"] });
	assert.equal((await server.map()).segments.length, 1);
});

test("an object that is refused is told, and others are fetched", async () => {
	const place = await store();
	await place.plant([storedSegment({ after: 60 }), storedSegment({ after: 70, index: 1 })]);
	const server = await serve(place, { args: ["--prefix", "p"] }), { segments: [one, other] } = await server.json(`api/segments?${HOST}`);
	await place.faults([{ kind: "status", status: 400, code: "InvalidObjectState", key: "1795255260-0", times: 0 }]);
	assert.deepEqual([(await server.get(one.url)).status, (await server.get(other.url)).status], [502, 200]);
	assert.equal((await server.json(`api/map?${WHOLE}`)).place.error, null);
});

test("the folder for what is fetched has to be ours, private, and no link", async () => {
	const place = await store(), args = ["--bucket", "bucket", "--endpoint", place.address];
	const tried = (prepare) => {
		const env = environment(), folder = `${env.HOME}/.cache/dial9`;
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		prepare(`${folder}/fleet`);
		const { status, stderr } = refuse({ args, env });
		assert.equal(status, 2);
		assert.match(stderr, /^dial9 serve: [^\n]*\n$/);
		return stderr;
	};
	mkdirSync(`${WORK}/elsewhere`, { mode: 0o700 });
	assert.match(tried((path) => symlinkSync(`${WORK}/elsewhere`, path)), /fleet: it is a link/);
	assert.match(tried((path) => {
		mkdirSync(path);
		chmodSync(path, 0o755);
	}), /fleet: it has to be a folder of yours that nobody else can look into/);
	assert.deepEqual(readdirSync(`${WORK}/elsewhere`), []);
});

test("what the page gets has no secret, and what is fetched has none", async () => {
	const place = await store();
	await place.plant([storedSegment({ after: 60 })]);
	const server = await serve(place, { args: ["--prefix", "p"] });
	await server.map();
	const { segments: [segment] } = await server.json(`api/segments?${HOST}`);
	await server.get(segment.url);
	const texts = [server.url, server.said.text, ...await Promise.all(["", "api/map", `api/segments?${HOST}`, `api/report?${HOST}`].map(async (path) => (await server.get(path)).text())),
		...readdirSync(cacheOf(server)).map((name) => readFileSync(`${cacheOf(server)}/${name}`, "latin1"))];
	for (const text of texts) assert.ok(!text.includes(SECRET) && !text.includes("canary") && !text.includes("X-Amz-"));
});

test("two ranges of a host are opened together", async () => {
	const place = await store();
	await place.plant([60, 3660, 7260].map((at) => storedSegment({ after: at, index: at })));
	const server = await serve(place, { args: ["--prefix", "p"] });
	const query = `process=echo-server%2Fweb-1&from_ms=${BEGAN_MS}&to_ms=${BEGAN_MS + HOUR_MS}&from2_ms=${BEGAN_MS + 2 * HOUR_MS}&to2_ms=${BEGAN_MS + 3 * HOUR_MS}`;
	assert.deepEqual((await server.json(`api/segments?${query}`)).segments.map(({ name }) => name.split("/").at(-1)), ["1795255260-60.bin", "1795262460-7260.bin"]);
});
