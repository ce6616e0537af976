// SPDX-License-Identifier: Apache-2.0
// dial9-store and dial9 ship against radosgw, which somebody else wrote, with the policies of core/ship/share, which it
// judges; check_radosgw.sh has started it at $RADOSGW, with TLS at $RADOSGW_TLS.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { ask, classes, folder, sign, writeFile } from "./store_client.mjs";

const { RADOSGW: plain, RADOSGW_TLS: endpoint, NODE_EXTRA_CA_CERTS: ca, BUILD, SHARE } = process.env;
const keysOf = (name) => ({ AWS_ACCESS_KEY_ID: `ID${name}`, AWS_SECRET_ACCESS_KEY: `secret-${name}`, AWS_REGION: "default" });
const small = writeFile("small", "a segment");
const back = join(folder, "back");
const safe = { endpoint, ca };

/** A request that our signer has signed, as that user: its status and text. */
async function request(user, method, path, { query = [], body = "", at = endpoint, headers: more = [] } = {}) {
	const payload = createHash("sha256").update(body).digest("hex");
	const seconds = Math.floor(Date.now() / 1000);
	const headers = [["host", new URL(at).host], ["x-amz-content-sha256", payload],
		["x-amz-date", new Date(1000 * seconds).toISOString().replace(/[-:]|\.000/g, "")], ...more];
	const [signed] = sign([{ method, path, query, headers, payload, region: "default", id: `ID${user}`, secret: `secret-${user}`, at: seconds }]);
	const answer = await fetch(at + signed.target, { method, body: body || undefined, headers: [...headers.slice(1), ["authorization", signed.authorization]] });
	return { status: answer.status, text: await answer.text() };
}
const status = async (...args) => (await request(...args)).status;

/** A file of core/ship/share for this bucket. */
const shared = (name) => JSON.parse(readFileSync(join(SHARE, name), "utf8").replaceAll("BUCKET", "bucket").replaceAll("PREFIX", "p"));
const xml = (value, tag) => Array.isArray(value) ? value.map((one) => xml(one, tag)).join("") :
	`<${tag}>${typeof value === "object" ? Object.entries(value).map(([name, inner]) => xml(inner, name === "Rules" ? "Rule" : name)).join("") : value}</${tag}>`;

/** dial9-store makes no buckets; the policies of roles are one of the bucket, where there is one user for each. */
before(async () => {
	assert.equal(await status("owner", "PUT", "/bucket"), 200);
	const statements = ["ship", "serve", "compact"].flatMap((name) => shared(`policy-${name}.json`).Statement.map((statement) => ({ ...statement, Principal: { AWS: [`arn:aws:iam:::user/${name}`] } })));
	const answer = await request("owner", "PUT", "/bucket", { query: [["policy", ""]], body: JSON.stringify({ Version: "2012-10-17", Statement: statements }) });
	assert.ok(answer.status < 300, answer.text);
});

test("stores, fetches, lists and links objects", async () => {
	const env = keysOf("owner");
	const odd = ["l/a&b+c%41", "l/b/1", "l/é", "l/version=1/date=2026-11-29/1-2.bin.zst"];
	assert.deepEqual(await classes({ endpoint: plain }, odd.map((key) => `put ${key} ${small}`), { env, together: true }), odd.map(() => "done"));
	const said = (await ask({ endpoint: plain }, [`get l/b/1 ${back} 2 3`, "head l/b/1", "head l/none", "list l/ / - - 0", "list l/ - l/a&b+c%41 - 2", "presign l/é 60"], { env })).answers;
	assert.deepEqual(said.slice(0, 3).map((answer) => [answer.class, answer.bytes]), [["done", 3], ["done", 9], ["absent", undefined]]);
	assert.equal(readFileSync(back, "utf8"), "seg");
	assert.deepEqual([said[3].keys, said[3].prefixes], [["l/a&b+c%41", "l/é"], ["l/b/", "l/version=1/"]]);
	assert.deepEqual(said[4].keys, ["l/b/1", "l/version=1/date=2026-11-29/1-2.bin.zst"]);
	const rest = await ask({ endpoint: plain }, [`list l/ - - ${said[4].more} 2`], { env });
	assert.deepEqual([rest.answers[0].keys, rest.answers[0].more], [["l/é"], undefined]);
	assert.equal(await (await fetch(said[5].url)).text(), "a segment");
});

test("sends a large body in parts", async () => {
	const large = writeFile("large", Buffer.alloc(40 << 20, "0123456789"));
	const said = await ask({ ...safe, single_max: 1 << 20 }, [`put large ${large}`, `get large ${back} 0 0`], { env: keysOf("owner") });
	assert.deepEqual(said.answers.map((answer) => [answer.class, answer.bytes]), [["done", 40 << 20], ["done", 40 << 20]]);
	assert.ok(readFileSync(back).equals(readFileSync(large)));
});

test("is told what is wrong, and writes what must be new once", async () => {
	const env = keysOf("owner");
	assert.deepEqual(await classes(safe, [`put k ${small}`], { env: { ...env, AWS_SECRET_ACCESS_KEY: "wrong" } }), ["unusable SignatureDoesNotMatch"]);
	assert.deepEqual(await classes(safe, [`put k ${small}`], { env: { ...env, AWS_ACCESS_KEY_ID: "NOBODY" } }), ["unusable InvalidAccessKeyId"]);
	assert.deepEqual(await classes({ ...safe, bucket: "absent" }, [`put k ${small}`], { env }), ["unusable NoSuchBucket"]);
	const other = writeFile("other", "another");
	await classes(safe, [`put new ${small} new`, `put new ${other} new`], { env });
	assert.deepEqual(await classes(safe, [`get new ${back} 0 0`], { env }), ["done"]);
	assert.equal(readFileSync(back, "utf8"), "a segment");
});

test("the shipper's policy is enough for dial9 ship, and for nothing else", async () => {
	const large = writeFile("parts", Buffer.alloc(12 << 20, "0123456789"));
	assert.deepEqual(await classes({ ...safe, single_max: 1 << 20 }, [`put p/a ${small}`, `put p/a ${small}`, `put p/new ${small} new`, `put p/parts ${large}`], { env: keysOf("ship") }), ["done", "done", "done", "done"]);
	assert.deepEqual(await classes(safe, [`put q/a ${small}`, `put pa ${small}`, "list p/ - - - 0", "list - - - - 0"], { env: keysOf("ship") }),
		["unusable AccessDenied", "unusable AccessDenied", "unusable AccessDenied", "unusable AccessDenied"]);
	assert.equal(await status("ship", "DELETE", "/bucket/p/a"), 403);
	assert.equal(await status("ship", "GET", "/bucket/l/b/1"), 403);
	assert.equal(await status("ship", "GET", "/bucket", { query: [["location", ""]] }), 403);
	assert.equal(await status("ship", "PUT", "/bucket", { query: [["policy", ""]], body: "{}" }), 403);
	assert.equal(await status("ship", "POST", "/bucket/p/m", { query: [["uploads", ""]] }), 200);
	assert.equal(await status("ship", "POST", "/bucket/q/m", { query: [["uploads", ""]] }), 403);
	/* Not without TLS. */
	assert.deepEqual(await classes({ endpoint: plain }, [`put p/a ${small}`], { env: keysOf("ship") }), ["unusable AccessDenied"]);
});

test("serve's policy lets it list and read what is under the prefix, and no more", async () => {
	assert.deepEqual(await classes(safe, [`get p/a ${back} 0 0`, "head p/a", "list p/ / - - 0", "list p/version=1/ / - - 0"], { env: keysOf("serve") }), ["done", "done", "done", "done"]);
	assert.deepEqual(await classes(safe, [`get l/b/1 ${back} 0 0`, "list l/ - - - 0", "list - - - - 0", `put p/a ${small}`], { env: keysOf("serve") }),
		["unusable AccessDenied", "unusable AccessDenied", "unusable AccessDenied", "unusable AccessDenied"]);
	assert.equal(await status("serve", "DELETE", "/bucket/p/a"), 403);
	assert.deepEqual(await classes({ endpoint: plain }, [`get p/a ${back} 0 0`, "list p/ / - - 0"], { env: keysOf("serve") }), ["unusable AccessDenied", "unusable AccessDenied"]);
});

test("the policy of the compaction lets it replace rows, and keeps segments", async () => {
	assert.deepEqual(await classes(safe, [`put p/parquet/v1/a ${small}`, `get p/a ${back} 0 0`, "list p/parquet/ - - - 0"], { env: keysOf("compact") }), ["done", "done", "done"]);
	assert.deepEqual(await classes(safe, [`put p/a ${small}`], { env: keysOf("compact") }), ["unusable AccessDenied"]);
	assert.equal(await status("compact", "DELETE", "/bucket/p/a"), 403);
	assert.equal(await status("compact", "DELETE", "/bucket/p/parquet/v1/a"), 204);
});

test("the lifecycle rule is one", async () => {
	const body = xml(shared("lifecycle.json"), "LifecycleConfiguration");
	const md5 = createHash("md5").update(body).digest("base64");
	const set = await request("owner", "PUT", "/bucket", { query: [["lifecycle", ""]], body, headers: [["content-md5", md5]] });
	assert.equal(set.status, 200, set.text);
	const { text } = await request("owner", "GET", "/bucket", { query: [["lifecycle", ""]] });
	assert.match(text, /<DaysAfterInitiation>1<\/DaysAfterInitiation>/);
	for (const prefix of ["p/", "p/version=1/", "p/dumps/", "p/hours/"])
		assert.ok(text.includes(`<Prefix>${prefix}</Prefix>`), prefix);
});

test("dial9 ship stores segments with its policy, and keeps them where it is not let in", () => {
	const ship = (user, to = "s3://bucket/p") => spawnSync(join(BUILD, "core/dial9"), ["ship", "t", "--once", "--to", to, "--endpoint", endpoint, "--ca", ca, "--service", "svc"],
		{ cwd: folder, encoding: "utf8", env: { ...process.env, ...keysOf(user), AWS_EC2_METADATA_DISABLED: "true" } });
	const segment = join(folder, "t/abcd-1/trace.0.bin.zst");
	mkdirSync(join(folder, "t/abcd-1"), { recursive: true, mode: 0o700 });
	assert.equal(spawnSync(join(BUILD, "tests/cli/make_trace"), ["held", "zstd", segment, "1000000"]).status, 0);
	for (const [user, to] of [["serve"], ["ship", "s3://bucket/q"]]) {
		const said = ship(user, to);
		assert.deepEqual([said.status, existsSync(segment)], [1, true], said.stderr);
		assert.match(said.stderr, /^dial9 ship: s3:\/\/bucket\/[pq]: AccessDenied.*\n$/);
	}
	const said = ship("ship");
	assert.deepEqual([said.status, said.stderr, existsSync(segment)], [0, "", false]);
	assert.match(said.stdout, /^1 segment stored/);
});
