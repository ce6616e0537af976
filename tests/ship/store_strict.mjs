// SPDX-License-Identifier: Apache-2.0
// s3d.mjs refuses what a store would: else what passes it proves nothing.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { test } from "node:test";

import { sign, startStore } from "./store_client.mjs";

const store = await startStore("--key", "ID:secret:token");
const host = new URL(store.address).host;
const hash = (text) => createHash("sha256").update(text).digest();

/** The status and the code that a request gets; it is right, but for what `change` says. */
async function put(change = {}) {
	const { body = "body", sent = body, at = Date.now(), region = "eu-west-1", id = "ID", secret = "secret", token = "token", more = [], unsigned = [], without = [], chunked = false } = change;
	const payload = change.payload ?? hash(body).toString("hex");
	const headers = [["host", host], ["x-amz-date", new Date(at).toISOString().replace(/[-:]|\.\d+/g, "")], ["x-amz-content-sha256", payload],
		["x-amz-security-token", token], ...more].filter(([name]) => !without.includes(name));
	const [signed] = sign([{ method: "PUT", path: "/bucket/k", headers, payload, region, id, secret, at: Math.floor(at / 1000) }]);
	const all = Object.fromEntries([...headers, ...unsigned, [chunked ? "transfer-encoding" : "content-length", chunked ? "chunked" : String(sent.length)]]);
	if (!change.anonymous)
		all.authorization = (change.twist ?? ((text) => text))(signed.authorization);
	return new Promise((resolve, reject) => {
		const request = httpRequest(store.address + signed.target, { method: "PUT", headers: all, setHost: false }, (response) => {
			let text = "";
			response.on("data", (piece) => { text += piece; });
			response.on("end", () => resolve(`${response.statusCode} ${/<Code>(.*?)<\/Code>/.exec(text)?.[1] ?? ""}`.trim()));
		});
		request.on("error", reject);
		request.end(sent);
	});
}

test("takes what is right", async () => {
	const checksum = hash("body").toString("base64");
	assert.equal(await put({ more: [["x-amz-checksum-sha256", checksum], ["x-amz-meta-a", "1"], ["x-amz-meta-a-b", "2"]] }), "200");
	assert.equal(await put({ payload: "UNSIGNED-PAYLOAD" }), "200");
	assert.equal(await put({ at: Date.now() - 600_000 }), "200");
});

test("refuses who does not sign, or not all, or not with the key, its token, in time, for the region", async () => {
	assert.equal(await put({ anonymous: true }), "403 AccessDenied");
	assert.equal(await put({ unsigned: [["x-amz-meta-a", "1"]] }), "403 AccessDenied");
	assert.equal(await put({ without: ["host"], unsigned: [["host", host]] }), "403 AccessDenied");
	assert.equal(await put({ without: ["x-amz-content-sha256"] }), "400 InvalidRequest");
	assert.equal(await put({ without: ["x-amz-date"] }), "403 AccessDenied");
	assert.equal(await put({ secret: "Secret" }), "403 SignatureDoesNotMatch");
	assert.equal(await put({ id: "NOBODY" }), "403 InvalidAccessKeyId");
	assert.equal(await put({ token: "other" }), "403 InvalidToken");
	assert.equal(await put({ at: Date.now() - 3600_000 }), "403 RequestTimeTooSkewed");
	assert.equal(await put({ at: Date.now() + 3600_000 }), "403 RequestTimeTooSkewed");
	assert.equal(await put({ region: "us-east-1" }), "400 AuthorizationHeaderMalformed");
	assert.equal(await put({ twist: (text) => text.replace(/Signature=./, "Signature=x") }), "400 AuthorizationHeaderMalformed");
	assert.equal(await put({ twist: (text) => text.replace("host;x-amz-content-sha256", "x-amz-content-sha256;host") }), "403 SignatureDoesNotMatch");
});

test("refuses a body that is not the one promised, or of a length that nobody knows", async () => {
	assert.equal(await put({ sent: "bodY" }), "400 XAmzContentSHA256Mismatch");
	assert.equal(await put({ more: [["x-amz-checksum-sha256", hash("other").toString("base64")]] }), "400 BadDigest");
	assert.equal(await put({ more: [["content-md5", createHash("md5").update("other").digest("base64")]] }), "400 BadDigest");
	assert.equal(await put({ chunked: true }), "501 NotImplemented");
});

test.after(() => store.stop());
