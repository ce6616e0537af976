// SPDX-License-Identifier: Apache-2.0
// dial9-store against OpenStack Swift, which somebody else wrote; check_swift.sh has started it at $SWIFT.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { ask, classes, folder, sign, writeFile } from "./store_client.mjs";

const endpoint = process.env.SWIFT;
const keys = { AWS_ACCESS_KEY_ID: "test:tester", AWS_SECRET_ACCESS_KEY: "secret", AWS_REGION: "eu-west-1" };
const small = writeFile("small", "a segment");
const back = join(folder, "back");

/** dial9-store makes no buckets: a request that our signer has signed. */
before(async () => {
	const payload = createHash("sha256").update("").digest("hex");
	const at = Math.floor(Date.now() / 1000);
	const headers = [["host", new URL(endpoint).host], ["x-amz-content-sha256", payload],
		["x-amz-date", new Date(1000 * at).toISOString().replace(/[-:]|\.000/g, "")]];
	const [signed] = sign([{ method: "PUT", path: "/bucket", headers, payload, region: "eu-west-1", id: "test:tester", secret: "secret", at }]);
	const answer = await fetch(endpoint + signed.target, { method: "PUT", headers: [...headers.slice(1), ["authorization", signed.authorization]] });
	assert.equal(answer.status, 200, await answer.text());
});

test("stores, fetches, lists and links objects", async () => {
	const odd = ["l/a&b+c%41", "l/b/1", "l/é", "l/version=1/date=2026-11-29/1-2.bin.zst"];
	assert.deepEqual(await classes({ endpoint }, odd.map((key) => `put ${key} ${small}`), { env: keys, together: true }), odd.map(() => "done"));
	const said = (await ask({ endpoint }, [`get l/b/1 ${back} 2 3`, "head l/b/1", "head l/none", "list l/ / - - 0", "list l/ - l/a&b+c%41 - 2", "presign l/é 60"], { env: keys })).answers;
	assert.deepEqual(said.slice(0, 3).map((answer) => [answer.class, answer.bytes]), [["done", 3], ["done", 9], ["absent", undefined]]);
	assert.equal(readFileSync(back, "utf8"), "seg");
	assert.deepEqual([said[3].keys, said[3].prefixes], [["l/a&b+c%41", "l/é"], ["l/b/", "l/version=1/"]]);
	assert.deepEqual(said[4].keys, ["l/b/1", "l/version=1/date=2026-11-29/1-2.bin.zst"]);
	const rest = await ask({ endpoint }, [`list l/ - - ${said[4].more} 2`], { env: keys });
	assert.deepEqual([rest.answers[0].keys, rest.answers[0].more], [["l/é"], undefined]);
	assert.equal(await (await fetch(said[5].url)).text(), "a segment");
});

test("sends a large body in parts", async () => {
	const large = writeFile("large", Buffer.alloc(40 << 20, "0123456789"));
	const said = await ask({ endpoint, single_max: 1 << 20 }, [`put large ${large}`, `get large ${back} 0 0`], { env: keys });
	assert.deepEqual(said.answers.map((answer) => [answer.class, answer.bytes]), [["done", 40 << 20], ["done", 40 << 20]]);
	assert.ok(readFileSync(back).equals(readFileSync(large)));
});

test("is told what is wrong", async () => {
	assert.deepEqual(await classes({ endpoint }, [`put k ${small}`], { env: { ...keys, AWS_SECRET_ACCESS_KEY: "wrong" } }), ["unusable SignatureDoesNotMatch"]);
	assert.deepEqual(await classes({ endpoint, bucket: "absent" }, [`put k ${small}`], { env: keys }), ["unusable NoSuchBucket"]);
	const many = Array.from({ length: 4 }, (_, i) => `put r/${i} ${small}`);
	assert.deepEqual(await classes({ endpoint, parallel: 4 }, many, { env: { ...keys, AWS_REGION: "us-east-1" }, together: true }), many.map(() => "done"));
});

test("leaves out what Swift does not have: encryption, conditions", async () => {
	const said = (await ask({ endpoint, sse: "AES256" }, [`put once ${small} new`], { env: keys })).answers[0];
	assert.deepEqual([said.class, said.note], ["done", "the store takes no encryption headers: objects are stored without them"]);
});
