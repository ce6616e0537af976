// SPDX-License-Identifier: Apache-2.0
// The signer against AWS's published examples, and against a verifier that knows nothing of it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { sign } from "./store_client.mjs";
import { verify } from "./s3_signature.mjs";

const empty = createHash("sha256").update("").digest("hex");
const example = { id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region: "us-east-1", at: 1369353600 };
const host = ["host", "examplebucket.s3.amazonaws.com"];
const date = ["x-amz-date", "20130524T000000Z"];

test("signs the examples of Amazon's manual as they are signed there", () => {
	const put = createHash("sha256").update("Welcome to Amazon S3.").digest("hex");
	const answers = sign([
		{ ...example, path: "/test.txt", payload: empty, headers: [host, ["range", "bytes=0-9"], ["x-amz-content-sha256", empty], date] },
		{ ...example, method: "PUT", path: "/test$file.text", payload: put, headers: [["date", "Fri, 24 May 2013 00:00:00 GMT"], host, date,
			["x-amz-content-sha256", put], ["x-amz-storage-class", "REDUCED_REDUNDANCY"]] },
		{ ...example, query: [["lifecycle", ""]], payload: empty, headers: [host, ["x-amz-content-sha256", empty], date] },
		{ ...example, query: [["max-keys", "2"], ["prefix", "J"]], payload: empty, headers: [host, ["x-amz-content-sha256", empty], date] },
		{ ...example, path: "/test.txt", expires: 86400, headers: [host] },
	]);
	assert.deepEqual(answers.slice(0, 4).map((answer) => /Signature=(.*)/.exec(answer.authorization)[1]), [
		"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
		"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
		"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
	]);
	assert.equal(/X-Amz-Signature=(.*)/.exec(answers[4].target)[1], "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
});

/** The same numbers each time. */
function randomNumbers(seed) {
	let state = seed;
	return (below) => {
		state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0;
		return ((state ^ (state >>> 13)) >>> 0) % below;
	};
}

const alphabet = [..."abcXYZ019-_.~ /=+%&?#:;,@!$'()*\"<>[]{}|\\^`äß€😀"];
const names = ["prefix", "list-type", "uploads", "partNumber", "uploadId", "delimiter", "start-after", "max-keys", "x-id"];

function randomRequest(random) {
	const text = (most, from = alphabet) => Array.from({ length: random(most) }, () => from[random(from.length)]).join("");
	const some = (list) => list.filter(() => random(3) === 0);
	const meta = some(["a", "a-b", "a-b-c", "ab", "dump", "dump-id", "z_1"]).map((name) => [`x-amz-meta-${name}`, `v${text(20, [..."ab  c/=,"])}e`]);
	return {
		id: `ID${random(1000)}`, secret: `s/+${text(40, [..."abcABC123/+="])}`, region: ["eu-west-1", "us-east-1", "x"][random(3)],
		at: 1.6e9 + random(2 ** 29), method: ["GET", "PUT", "HEAD", "DELETE", "POST"][random(5)],
		path: `/${text(30)}`, query: some(names).map((name) => [name, text(12)]),
		payload: random(5) ? createHash("sha256").update(String(random(9))).digest("hex") : "UNSIGNED-PAYLOAD",
		meta, token: random(2) ? `T${text(30, [..."ab/+="])}` : undefined, expires: random(4) ? undefined : 1 + random(604800),
	};
}

/** `request` with the headers that a client sends; those of a presigned one are in its query. */
function complete(request) {
	const stamp = new Date(1000 * request.at).toISOString().replace(/[-:]|\.000/g, "");
	const headers = [["host", "h:1"]];
	if (!request.expires)
		headers.push(["x-amz-date", stamp], ["x-amz-content-sha256", request.payload], ...request.meta,
			...request.token ? [["x-amz-security-token", request.token]] : []);
	return { ...request, headers };
}

function judge(request, answer, change = {}) {
	const rawHeaders = request.headers.flat();
	if (answer.authorization)
		rawHeaders.push("Authorization", answer.authorization);
	const store = { keys: new Map([[request.id, { secret: request.secret, token: request.token, ...change }]]), region: request.region, now: request.at };
	return verify({ method: request.expires ? "GET" : request.method, rawUrl: answer.target, rawHeaders }, store);
}

test("signs 10,000 random requests as an independent verifier does, and none with another secret", () => {
	const random = randomNumbers(27);
	const requests = Array.from({ length: 10000 }, () => complete(randomRequest(random)));
	const answers = sign(requests.map((request) => request.expires ? { ...request, method: "GET" } : request));
	assert.equal(answers.length, requests.length);
	requests.forEach((request, i) => {
		assert.doesNotThrow(() => judge(request, answers[i]), JSON.stringify([request, answers[i]]));
		if (i % 10 === 0)
			assert.throws(() => judge(request, answers[i], { secret: `${request.secret}x` }), { code: "SignatureDoesNotMatch" });
	});
});
