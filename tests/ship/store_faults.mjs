// SPDX-License-Identifier: Apache-2.0
// What dial9-store says of a store that does not work: each row of shipping.md 2.3 that concerns it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";

import { ask, classes, folder, keys, startStore, writeFile } from "./store_client.mjs";

const store = await startStore();
const endpoint = store.address;
const small = writeFile("small", "a segment");
const large = writeFile("large", Buffer.alloc(8 << 20, "0123456789"));
const back = join(folder, "back");

/** What is said of a request while the store has that fault. */
async function under(fault, line = `put k ${small}`, options = {}) {
	await store.faults([fault]);
	return (await ask({ endpoint, ...options }, [line])).answers[0];
}
const short = ({ class: name, code }) => `${name} ${code}`.trim();
const stored = async (key) => (await ask({ endpoint }, [`head ${key}`])).answers[0].class;

test("retries what may go better later, and passes on how long the store asks to wait, 5 min at most", async () => {
	for (const [status, code] of [[500, "InternalError"], [503, "SlowDown"], [429, "TooManyRequests"], [408, "RequestTimeout"], [400, "RequestTimeout"], [409, "OperationAborted"], [502, ""]])
		assert.equal(short(await under({ kind: "status", status, code })), `retry ${code || `Status${status}`}`.trim());
	assert.equal((await under({ kind: "status", status: 503, code: "SlowDown", retryAfter: 7 })).retry_after, 7);
	assert.equal((await under({ kind: "status", status: 503, code: "SlowDown", retryAfter: 3600 })).retry_after, 300);
});

test("retries where nobody listens, a connection breaks, or no answer comes in time", async () => {
	const closed = createServer();
	const port = await new Promise((resolve) => closed.listen(0, "127.0.0.1", () => resolve(closed.address().port)));
	await new Promise((resolve) => closed.close(resolve));
	assert.deepEqual(await classes({ endpoint: `http://127.0.0.1:${port}` }, [`put k ${small}`]), ["retry NoConnection"]);
	assert.match((await classes({ endpoint: "http://no.such.host.invalid", allow_http: 1 }, [`put k ${small}`]))[0], /^retry (NoSuchHost|Timeout)/);
	assert.equal(short(await under({ kind: "reset" })), "retry Connection");
	assert.equal(short(await under({ kind: "reset", after: 1 << 20, key: "big" }, `put big ${large}`)), "retry Connection");
	assert.equal(await stored("big"), "absent");
	assert.equal(short(await under({ kind: "silence" }, `put k ${small}`, { stall: 1 })), "retry Timeout");
});

test("retries where the answer was lost, though the object is there", async () => {
	assert.equal(short(await under({ kind: "swallow" }, `put lost ${small}`)), "retry Connection");
	assert.equal(await stored("lost"), "done");
	assert.match(short(await under({ kind: "cut", after: 60 }, `put cut ${small}`)), /^retry (Connection|Timeout)/);
	assert.equal(await stored("cut"), "done");
});

test("takes nothing for stored that the store does not confirm", async () => {
	assert.equal(short(await under({ kind: "wrong-etag" })), "retry WrongETag");
	assert.equal(short(await under({ kind: "error-in-200", code: "InternalError" })), "retry InternalError");
	assert.equal((await under({ kind: "delay", ms: 300 })).class, "done");
	/* A proxy, a page for logging in, a web server: success is not a store's. */
	for (const page of [{}, { text: "<html>log in</html>" }, { etag: '"5e1-abc"' }, { etag: '"5e1-abc"', text: "OK" }])
		assert.equal(short(await under({ kind: "page", ...page }, `put page ${small}`)), "retry NoETag");
	assert.equal(short(await under({ kind: "page", text: "<Complete><ETag></ETag></Complete>", method: "POST", skip: 1, key: "parts" }, `put parts ${large}`, { single_max: 1 << 20 })), "retry BadAnswer");
	assert.equal(await stored("page"), "absent");
});

test("is flooded by no answer", async () => {
	assert.equal((await under({ kind: "big-head", bytes: 90000 })).class, "done");
	assert.equal((await under({ kind: "big-head", bytes: 4 << 20 })).class, "retry");
	assert.equal(short(await under({ kind: "endless" }, "list - - - - 0")), "retry TooLongAnswer");
	assert.equal(short(await under({ kind: "endless", key: "lost" }, `get lost ${back} 0 9`)), "retry TooLongAnswer");
});

test("corrects its clock once by that of the store, in either direction", async () => {
	for (const offset of [3600, -3600]) {
		const skewed = await startStore(`--clock-offset=${offset}`);
		assert.deepEqual(await classes({ endpoint: skewed.address }, [`put k ${small}`, `put l ${small}`, "head k"]), ["done", "done", "done"]);
		assert.deepEqual((await skewed.log()).map((entry) => entry.status), [403, 200, 200, 200]);
		skewed.stop();
		/* Nobody tells a HEAD why it was refused. */
		const mute = await startStore(`--clock-offset=${offset}`);
		assert.deepEqual(await classes({ endpoint: mute.address }, ["head k"]), ["absent Status404"]);
		mute.stop();
	}
	await store.faults([{ kind: "status", status: 403, code: "RequestTimeTooSkewed", times: 0 }]);
	assert.deepEqual(await classes({ endpoint }, [`put k ${small}`]), ["unusable RequestTimeTooSkewed"]);
});

test("learns the region once from what the store says", async () => {
	const env = { ...keys, AWS_REGION: "us-east-1" };
	await store.faults([]);
	const before = (await store.log()).length;
	assert.deepEqual(await classes({ endpoint }, [`put r1 ${small}`, `put r2 ${small}`], { env }), ["done", "done"]);
	assert.deepEqual((await store.log()).slice(before).map((entry) => entry.status), [400, 200, 200]);
	assert.deepEqual(await classes({ endpoint }, ["head r1"], { env }), ["done"]);
	const many = Array.from({ length: 8 }, () => `put r1 ${small}`);
	assert.deepEqual(await classes({ endpoint, parallel: 8 }, many, { env, together: true }), many.map(() => "done"));
	await store.faults([{ kind: "redirect", key: "r3" }]);
	assert.deepEqual(await classes({ endpoint }, [`put r3 ${small}`], { env }), ["done"]);
	await store.faults([{ kind: "redirect", key: "r4", times: 0, region: "eu-central-1" }]);
	assert.deepEqual(await classes({ endpoint }, [`put r4 ${small}`]), ["unusable PermanentRedirect"]);
});

test("calls the store unusable, and no object refused, where keys, policy or bucket are wrong", async () => {
	await store.faults([]);
	assert.deepEqual(await classes({ endpoint }, [`put k ${small}`, "head k", "list - - - - 0"], { env: { ...keys, AWS_SECRET_ACCESS_KEY: "wrong" } }),
		["unusable SignatureDoesNotMatch", "unusable Status403", "unusable SignatureDoesNotMatch"]);
	assert.deepEqual(await classes({ endpoint }, [`put k ${small}`], { env: { ...keys, AWS_ACCESS_KEY_ID: "NOBODY" } }), ["unusable InvalidAccessKeyId"]);
	assert.deepEqual(await classes({ endpoint, bucket: "absent" }, [`put k ${small}`, `get k ${back} 0 0`]), ["unusable NoSuchBucket", "unusable NoSuchBucket"]);
	assert.equal(short(await under({ kind: "status", status: 403, code: "AccessDenied" })), "unusable AccessDenied");
	assert.equal(short(await under({ kind: "expired", times: 0 })), "unusable ExpiredToken");
	assert.equal(short(await under({ kind: "expired" })), "done");
});

test("refuses the object alone where the store does", async () => {
	for (const [status, code] of [[400, "InvalidRequest"], [413, "EntityTooLarge"], [405, "MethodNotAllowed"], [400, "KeyTooLongError"]])
		assert.equal(short(await under({ kind: "status", status, code })), `refused ${code}`);
	assert.match(short(await under({}, `put k ${folder}`)), /^refused LocalFile/);
	assert.match(short(await under({}, `get lost /dev/full 0 0`)), /^refused LocalFile/);
});

test("leaves a header out that the store names, and says so once", async () => {
	const picky = await startStore("--dislike", "x-amz-checksum-sha256");
	const said = (await ask({ endpoint: picky.address }, [`put a ${small}`, `put b ${small}`])).answers;
	assert.deepEqual(said.map(({ class: name, note }) => [name, note]),
		[["done", "the store takes no checksum headers: objects are stored without them"], ["done", ""]]);
	assert.deepEqual((await picky.log()).map((entry) => entry.status), [400, 200, 200]);
	picky.stop();
	await store.faults([{ kind: "status", status: 501, code: "NotImplemented" }]);
	assert.deepEqual(await classes({ endpoint }, [`put new1 ${small} new`]), ["done"]);
	const unencrypted = await startStore("--dislike", "x-amz-server-side-encryption");
	const plain = (await ask({ endpoint: unencrypted.address, sse: "AES256" }, [`put a ${small}`])).answers[0];
	assert.deepEqual([plain.class, plain.note], ["done", "the store takes no encryption headers: objects are stored without them"]);
	unencrypted.stop();
});

test("sends no large body before the store has agreed to it", async () => {
	await store.faults([]);
	const before = (await store.log()).length;
	await ask({ endpoint }, [`put k ${large}`], { env: { ...keys, AWS_SECRET_ACCESS_KEY: "wrong" } });
	const [entry] = (await store.log()).slice(before);
	assert.deepEqual([entry.expects, entry.bytes, entry.status], [true, 0, 403]);
});

test("keeps to the rate that it was given", async () => {
	const body = writeFile("rate", Buffer.alloc(256 << 10));
	const begun = process.hrtime.bigint();
	assert.deepEqual(await classes({ endpoint, max_rate: 256 << 10, parallel: 1 }, [`put rate ${body}`]), ["done"]);
	assert.ok(process.hrtime.bigint() - begun > 300_000_000n);
});

test("cuts what a store says to one line of 200 characters", async () => {
	const { message } = await under({ kind: "status", status: 403, code: "Odd", message: `a\n\u001b[31m${"x".repeat(900)}` });
	assert.equal(message.length, 200);
	assert.match(message, /^[ -~]+$/);
});

test("trusts no certificate that nobody vouches for, and one that --ca does", async (t) => {
	const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
	spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
		"-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
	if (!existsSync(cert))
		return t.skip("there is no openssl");
	const safe = await startStore("--tls-key", key, "--tls-cert", cert);
	assert.deepEqual(await classes({ endpoint: safe.address }, [`put k ${small}`]), ["unusable Certificate"]);
	assert.deepEqual(await classes({ endpoint: safe.address, ca: cert }, [`put k ${small}`]), ["done"]);
	assert.deepEqual(await classes({ endpoint: safe.address }, [`put k ${small}`], { env: { ...keys, AWS_CA_BUNDLE: cert } }), ["done"]);
	safe.stop();
	return undefined;
});

test.after(() => store.stop());
