// SPDX-License-Identifier: Apache-2.0
// What dial9-store does with a store that works: objects go there, come back and are listed; keys stay secret.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { test } from "node:test";

import { ask, classes, folder, keys, program, startStore, writeFile } from "./store_client.mjs";

const store = await startStore("--dir", join(folder, "objects"));
const endpoint = store.address;
const small = writeFile("small", "a segment");
const back = join(folder, "back");

test("stores a segment with its metadata, and fetches it, a range of it, and its size", async () => {
	const key = "p/version=1/date=2026-11-29/service=a b+c/time=0044/instance=h%3D1/boot=x/1-2.bin.zst";
	const said = await ask({ endpoint }, [`put ${key.replace(" ", "_")} ${small}`, `get ${key.replace(" ", "_")} ${back} 0 0`, `head ${key.replace(" ", "_")}`]);
	assert.deepEqual(said.answers.map((answer) => [answer.class, answer.status, answer.bytes]), [["done", 200, 9], ["done", 200, 9], ["done", 200, 9]]);
	assert.equal(readFileSync(back, "utf8"), "a segment");
	assert.equal(said.address.address, `${endpoint}/bucket`);
	const meta = readdirSync(join(folder, "objects/.s3d/bucket")).map((name) => JSON.parse(readFileSync(join(folder, "objects/.s3d/bucket", name))));
	const { headers } = meta.find((object) => object.key === key.replace(" ", "_"));
	assert.deepEqual([headers["content-type"], headers["x-amz-meta-dump"], headers["x-amz-meta-dump-id"], headers["x-amz-meta-service"]],
		["application/zstd", "1", "a,b", "two  words"]);
	assert.ok(headers["x-amz-checksum-sha256"]);
	const range = await ask({ endpoint }, [`get ${key.replace(" ", "_")} ${back} 2 3`]);
	assert.equal(range.answers[0].bytes, 3);
	assert.equal(readFileSync(back, "utf8"), "seg");
	const nothing = await ask({ endpoint }, [`put empty ${writeFile("empty", "")}`, `get empty ${back} 0 0`, "head empty"]);
	assert.deepEqual(nothing.answers.map((answer) => answer.class), ["done", "done", "done"]);
});

test("says of an object that is not there that it is absent, and of a key that cannot be that it is invalid", async () => {
	assert.deepEqual(await classes({ endpoint }, [`get no/such ${back} 0 0`, "head no/such", `get ${"k".repeat(1025)} ${back} 0 0`, "head /x"]),
		["absent NoSuchKey", "absent Status404", "Invalid argument", "Invalid argument"]);
});

test("lists keys in pages, by prefix, behind a key, and folders by a delimiter", async () => {
	const odd = ["l/a&b", "l/a<b", "l/b/1", "l/b/2", "l/c", "l/z%41", "l/é"];
	await ask({ endpoint }, odd.map((key) => `put ${key} ${small}`), { together: true });
	const all = (await ask({ endpoint }, ["list l/ - - - 0"])).answers[0];
	assert.deepEqual([all.keys, all.more], [odd, undefined]);
	const folders = (await ask({ endpoint }, ["list l/ / - - 0"])).answers[0];
	assert.deepEqual([folders.keys, folders.prefixes], [odd.filter((key) => !key.startsWith("l/b/")), ["l/b/"]]);
	const seen = [];
	for (let more = "-"; more; more = seen.at(-1).more)
		seen.push((await ask({ endpoint }, [`list l/ - l/a&b ${more} 2`])).answers[0]);
	assert.deepEqual(seen.map((page) => page.keys), [odd.slice(1, 3), odd.slice(3, 5), odd.slice(5)]);
});

test("stores an object once where only a new one is wanted", async () => {
	assert.deepEqual(await classes({ endpoint }, [`put once ${small} new`, `put once ${small} new`]), ["done", "there PreconditionFailed"]);
});

test("sends a large body in parts, and removes them if one is refused", async () => {
	const large = writeFile("large", Buffer.alloc(40 << 20, "0123456789"));
	const said = await ask({ endpoint, single_max: 1 << 20 }, [`put large ${large}`, `get large ${back} 0 0`]);
	assert.deepEqual(said.answers.map((answer) => [answer.class, answer.bytes]), [["done", 40 << 20], ["done", 40 << 20]]);
	assert.match(said.answers[0].etag, /^[0-9a-f]{32}-3$/);
	assert.ok(readFileSync(back).equals(readFileSync(large)));
	await store.faults([{ kind: "error-in-200", method: "POST", key: "broken", skip: 1 }]);
	assert.deepEqual(await classes({ endpoint, single_max: 1 << 20 }, [`put broken ${large}`]), ["retry InternalError"]);
	assert.deepEqual((await store.log()).at(-1).method, "DELETE");
});

test("puts the bucket into the host's name, and names its region in the signature after having asked for it", async () => {
	const virtual = endpoint.replace("127.0.0.1", "{bucket}.localhost");
	assert.deepEqual(await classes({ endpoint: virtual }, [`put v/1 ${small}`]), ["done"]);
	assert.equal((await store.log()).at(-1).style, "virtual");
	const { AWS_REGION, ...without } = keys;
	assert.deepEqual(await classes({ endpoint }, [`put v/2 ${small}`], { env: without }), ["done"]);
	assert.deepEqual((await store.log()).slice(-2).map((entry) => entry.method), ["HEAD", "PUT"]);
});

test("does many requests at a time, and answers each once", async () => {
	const lines = Array.from({ length: 60 }, (_, i) => `put many/${i} ${small}`);
	const said = await ask({ endpoint, parallel: 4 }, lines, { together: true });
	assert.deepEqual(said.answers.map((answer) => answer.token).sort((a, b) => a - b), lines.map((_, i) => i + 1));
	assert.ok(said.answers.every((answer) => answer.class === "done"));
});

test("makes URLs by which an object can be fetched without keys, for as long as they say", async () => {
	const said = await ask({ endpoint }, [`put link=1/a ${small}`, "presign link=1/a 60", "presign link=1/a 0"]);
	const answer = await fetch(said.answers[1].url);
	assert.equal(await answer.text(), "a segment");
	assert.equal((await fetch(said.answers[1].url.replace("link", "l1nk"))).status, 403);
	assert.equal(said.answers[2].error, "Invalid argument");
});

test("asks for encryption and sends Content-MD5 where it is told to", async () => {
	assert.deepEqual(await classes({ endpoint, sse: "aws:kms", sse_key: "k1", md5: 1 }, [`put kms ${small}`]), ["done"]);
});

test("survives the end of its child, answers what was under way, and starts another", async () => {
	await store.faults([{ kind: "silence", key: "held" }]);
	const said = await ask({ endpoint }, [`put held ${small}`, "kill", "wait", `put after ${small}`], { together: true });
	assert.deepEqual(said.answers.map((answer) => [answer.token, answer.class, answer.code]), [[1, "retry", "StoreEnded"], [2, "done", ""]]);
	assert.match(said.answers[0].message, /signal 9/);
});

test("answers each of many requests once though its child is killed again and again, and calls nothing stored that is not", async () => {
	const lines = [];
	for (let i = 0; i < 120; i++)
		lines.push(`put kill/${i} ${small}`, ...i % 3 ? [] : ["kill"], ...i % 7 ? [] : ["wait"], ...i % 40 ? [] : ["head kill/0"]);
	const said = await ask({ endpoint }, lines, { together: true });
	const asked = lines.filter((line) => /^(put|head)/.test(line));
	assert.deepEqual(said.answers.map((answer) => answer.token).sort((a, b) => a - b), asked.map((_, i) => i + 1));
	const done = said.answers.filter((answer) => answer.class === "done").map((answer) => asked[answer.token - 1].split(" ")[1]);
	const { keys: there } = (await ask({ endpoint }, ["list kill/ - - - 0"])).answers[0];
	assert.ok(done.every((key) => there.includes(key)));
	assert.ok(said.answers.every((answer) => answer.class === "done" || answer.class === "absent" || answer.code === "StoreEnded"));
	assert.ok(said.answers.some((answer) => answer.code === "StoreEnded"));
});

test("gives up a request that is cancelled", async () => {
	await store.faults([{ kind: "silence", key: "held" }]);
	assert.deepEqual(await classes({ endpoint }, [`put held ${small}`, "cancel 1"], { together: true }), ["retry Cancelled"]);
});

test("refuses addresses, buckets and regions that cannot be, in one line, before it sends anything", async () => {
	const refused = async (options, env = {}) => (await ask(options, [], { env })).address.error;
	assert.match(await refused({ endpoint: "http://store.example" }), /no TLS.*--allow-http$/);
	assert.match(await refused({ endpoint: "store.example" }), /write https:/);
	assert.match(await refused({ endpoint: "https://a:b@store.example" }), /takes no user, password/);
	assert.match(await refused({ endpoint, bucket: "../x" }), /^bucket '\.\.\/x': a name has/);
	assert.match(await refused({ endpoint, region: "eu west" }), /^region 'eu west': that is no region/);
	assert.match(await refused({ endpoint: "ftp://x" }), /write https:/);
	assert.match(await refused({ endpoint, sse: "aws:kms\r\nx-amz-acl: public-read" }), /^sse: .* no control characters/);
});

test("is found beside the program that was built with it, and in libexec where both were moved to, or is said to be missing", async () => {
	const asker = join(folder, "bin/ask_store");
	const missing = async () => (await ask({ endpoint }, [], { asker, path: "-" })).address.error;
	mkdirSync(join(folder, "bin"));
	mkdirSync(join(folder, "libexec/dial9"), { recursive: true });
	copyFileSync(join(process.env.BUILD, "tests/ship/ask_store"), asker);
	assert.match(await missing(), /^dial9-store is not there: install libcurl/);
	for (const place of ["bin", "libexec/dial9"]) {
		const path = join(folder, place, "dial9-store");
		copyFileSync(program, path);
		assert.deepEqual(await classes({ endpoint }, [`put place ${small}`], { asker, path: "-" }), ["done"]);
		rmSync(path);
	}
	assert.match((await ask({ endpoint }, [], { path: "/bin/true" })).address.error, /^\/bin\/true: dial9-store ended with status 0/);
});

test("is no command for people", () => {
	const run = spawnSync(program, { input: "" });
	assert.equal(run.status, 2);
	assert.equal(run.stderr.toString(), "dial9-store: it is started by dial9 ship and dial9 serve\n");
});

test("shows its keys to nobody: not in answers, outputs, arguments, nor in what /proc has of it", async () => {
	const canary = { id: "CANARYID1234", secret: "canarysecret/5678", token: `canarytoken${"9012".repeat(500)}` };
	const strict = await startStore("--key", `${canary.id}:${canary.secret}:other`);
	const env = { AWS_ACCESS_KEY_ID: canary.id, AWS_SECRET_ACCESS_KEY: canary.secret, AWS_SESSION_TOKEN: canary.token, AWS_REGION: "eu-west-1" };
	await strict.faults([{ kind: "status", status: 403, code: "Odd", message: `${canary.id} ${canary.secret} ${canary.token}`, key: "told" },
		{ kind: "status", status: 403, code: "Odd", message: `cut: ${canary.token}`, key: "cut" }, { kind: "silence", key: "held" }]);
	const said = await ask({ endpoint: strict.address }, [`put told ${small}`, `put cut ${small}`, `put wrong ${small}`, `get x ${back} 0 0`], { env });
	assert.deepEqual(said.answers.map((answer) => answer.class), ["unusable", "unusable", "unusable", "unusable"]);
	assert.deepEqual(said.answers.slice(0, 2).map((answer) => answer.message), ["*** *** ***", "cut: ***"]);
	const all = said.stdout + said.stderr;
	const child = spawn(join(process.env.BUILD, "tests/ship/ask_store"), [program, JSON.stringify({ endpoint: strict.address })], { env: { ...process.env, ...env } });
	const lines = createInterface(child.stdout);
	child.stdin.write(`put held ${small}\npid\n`);
	const pid = await new Promise((resolve) => lines.on("line", (line) => JSON.parse(line).pid && resolve(JSON.parse(line).pid)));
	while (!(await strict.log()).some((entry) => entry.key === "held"))
		;
	const visible = [readFileSync(`/proc/${pid}/cmdline`, "utf8"), readFileSync(`/proc/${pid}/comm`, "utf8")];
	/* root may read it still; then it has been wiped there. */
	if (process.getuid() === 0)
		visible.push(readFileSync(`/proc/${pid}/environ`, "utf8"));
	else
		for (const one of [pid, child.pid])
			assert.throws(() => readFileSync(`/proc/${one}/environ`), { code: "EACCES" });
	child.kill();
	for (const [what, value] of Object.entries(canary))
		assert.ok(![all, ...visible].some((text) => text.includes(value.slice(0, 12))), what);
	strict.stop();
});

test("goes through https_proxy, unless no_proxy names the store, and never with plain http", async (t) => {
	const [key, cert] = [join(folder, "proxy-key.pem"), join(folder, "proxy-cert.pem")];
	const made = spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
		"-days", "2", "-subj", "/CN=store.example", "-addext", "subjectAltName=DNS:store.example"]);
	if (made.error)
		return t.skip("there is no openssl");
	const safe = await startStore("--tls-key", key, "--tls-cert", cert);
	const asked = [];
	const proxy = createHttpServer((request, response) => {
		asked.push(request.url);
		response.writeHead(502).end();
	});
	proxy.on("connect", (request, socket) => {
		asked.push(request.url);
		const through = connect(new URL(safe.address).port, "127.0.0.1", () => {
			socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
			socket.pipe(through).pipe(socket);
		});
		for (const end of [socket, through])
			end.on("error", () => {});
	});
	await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
	const at = `http://127.0.0.1:${proxy.address().port}`;
	const env = { ...keys, https_proxy: at, http_proxy: at };
	const far = { endpoint: "https://store.example", ca: cert };
	assert.deepEqual(await classes(far, [`put k ${small}`], { env }), ["done"]);
	assert.deepEqual(asked, ["store.example:443"]);
	assert.match((await classes(far, [`put k ${small}`], { env: { ...env, no_proxy: "store.example" } }))[0], /^retry/);
	assert.deepEqual(await classes({ endpoint }, [`put k ${small}`], { env }), ["done"]);
	assert.deepEqual(asked, ["store.example:443"]);
	proxy.close();
	safe.stop();
	return undefined;
});

test("agrees with curl on requests that curl signs rightly", async (t) => {
	const curl = spawnSync("curl", ["--version"]);
	if (curl.error)
		return t.skip("there is no curl");
	const hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	const url = `${endpoint}/bucket/many/1`;
	const run = spawnSync("curl", ["-s", "--aws-sigv4", "aws:amz:eu-west-1:s3", "--user", "AKIDEXAMPLE:secret", "-H", `x-amz-content-sha256: ${hash}`, url]);
	assert.equal(run.stdout.toString(), "a segment");
	writeFileSync(back, "");
	assert.deepEqual(await classes({ endpoint }, [`get many/1 ${back} 0 0`]), ["done"]);
	assert.equal(readFileSync(back, "utf8"), "a segment");
	return undefined;
});

test.after(() => store.stop());
