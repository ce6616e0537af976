// SPDX-License-Identifier: Apache-2.0
// Where dial9-store finds credentials: each source, their order, their end, and what it says without any.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";

import { ask, classes, folder, keys, startStore, writeFile } from "./store_client.mjs";

const store = await startStore("--key", "ONE:secret-one", "--key", "TWO:secret-two:token-two", "--key", "AKIDEXAMPLE:secret");
const endpoint = store.address;
const small = writeFile("small", "a segment");
const put = [`put k ${small}`];
const region = { AWS_REGION: "eu-west-1" };

/** A profile's file, for its owner alone. */
function profile(name, text, mode = 0o600) {
	const path = writeFile(name, text);
	chmodSync(path, mode);
	return path;
}

/** A server of credentials on loopback. */
async function startGiver(answer) {
	const asked = [];
	const server = createServer((request, response) => {
		asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? request.headers["x-aws-ec2-metadata-token"] ?? ""}`.trim());
		answer(request, response);
	});
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	/* A test that fails must not wait for it. */
	server.unref();
	return { url: `http://127.0.0.1:${server.address().port}`, asked, stop: () => server.close() };
}
const given = (id, more = {}) => JSON.stringify({ AccessKeyId: id, SecretAccessKey: `secret-${id.toLowerCase()}`, ...more });

test("takes those of the environment before all others", async () => {
	const env = { ...keys, AWS_SHARED_CREDENTIALS_FILE: profile("wrong", "[default]\naws_access_key_id=X\naws_secret_access_key=Y\n") };
	assert.deepEqual(await classes({ endpoint }, put, { env }), ["done"]);
});

test("reads the profile that is asked for, and its region", async () => {
	const credentials = profile("credentials", "[default]\naws_access_key_id = ONE\naws_secret_access_key = secret-one\n\n# c\n[ two ]\naws_access_key_id=TWO\r\naws_secret_access_key=secret-two\naws_session_token=token-two\n");
	const config = profile("config", "[profile two]\nregion = eu-west-1\ns3 =\n  aws_access_key_id = nested\n");
	const env = { AWS_SHARED_CREDENTIALS_FILE: credentials, AWS_CONFIG_FILE: config };
	assert.deepEqual(await classes({ endpoint }, put, { env: { ...env, ...region } }), ["done"]);
	assert.deepEqual(await classes({ endpoint }, put, { env: { ...env, AWS_PROFILE: "two" } }), ["done"]);
	assert.deepEqual(await classes({ endpoint, profile: "two" }, put, { env: { ...env, AWS_PROFILE: "none" } }), ["done"]);
	assert.equal((await store.log()).filter((entry) => entry.method === "HEAD").length, 0);
	const home = join(folder, "home");
	mkdirSync(join(home, ".aws"), { recursive: true });
	writeFileSync(join(home, ".aws/credentials"), "[default]\naws_access_key_id=ONE\naws_secret_access_key=secret-one\n", { mode: 0o600 });
	assert.deepEqual(await classes({ endpoint }, put, { env: { ...region, HOME: home } }), ["done"]);
});

test("refuses a file with a secret that others may read", async () => {
	const env = { ...region, AWS_SHARED_CREDENTIALS_FILE: profile("open", "[default]\naws_access_key_id=ONE\naws_secret_access_key=secret-one\n", 0o604) };
	const [answer] = (await ask({ endpoint }, put, { env })).answers;
	assert.deepEqual([answer.class, answer.code], ["unusable", "NoCredentials"]);
	assert.match(answer.message, /open has a secret and others may read it: chmod 600/);
});

test("runs the command that a profile names, without a shell and without keys", async () => {
	const giver = profile("giver", `#!/bin/sh\n[ "$1" = "a b" ] && [ "$2" = '$HOME' ] || exit 1\nprintf '%s' '${given("TWO", { Version: 1, SessionToken: "token-two", Expiration: "2038-01-01T00:00:00Z" })}'\n`, 0o700);
	const env = (command) => ({ ...region, AWS_SHARED_CREDENTIALS_FILE: "/nonexistent", AWS_CONFIG_FILE: profile("process", `[default]\ncredential_process = ${command}\n`) });
	assert.deepEqual(await classes({ endpoint }, put, { env: env(`${giver} "a b" '$HOME'`) }), ["done"]);
	const told = async (command) => (await ask({ endpoint }, put, { env: env(command) })).answers[0].message;
	assert.match(await told("/nonexistent/giver x"), /credential_process '\/nonexistent\/giver': No such file/);
	assert.match(await told("/bin/false"), /credential_process '\/bin\/false' failed/);
	assert.match(await told("/bin/echo '{}'"), /no JSON with AccessKeyId/);
	assert.match(await told("/bin/echo 'open"), /credential_process: .*quote/);
});

test("asks a container's endpoint, with the token that its file has by then", async () => {
	const giver = await startGiver((request, response) => response.end(given("TWO", { Token: "token-two", Expiration: new Date(Date.now() + 60000).toISOString() })));
	const env = { ...region, AWS_CONTAINER_CREDENTIALS_FULL_URI: `${giver.url}/role`, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: writeFile("token", "Bearer 1\n") };
	assert.deepEqual(await classes({ endpoint }, [...put, ...put], { env }), ["done", "done"]);
	/* Their end is nearer than 10 min: they are asked for anew. */
	assert.deepEqual(giver.asked, ["GET /role Bearer 1", "GET /role Bearer 1"]);
	giver.stop();
	const far = { ...region, AWS_CONTAINER_CREDENTIALS_FULL_URI: "http://192.0.2.1/role" };
	assert.match((await ask({ endpoint }, put, { env: far })).answers[0].message, /neither https nor this machine/);
});

/** What STS answers in its own words. */
const sts = (id, expires) => `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Audience>sts.amazonaws.com</Audience>
	<Credentials><SessionToken>token-${id.toLowerCase()}</SessionToken><SecretAccessKey>secret-${id.toLowerCase()}</SecretAccessKey><Expiration>${expires}</Expiration><AccessKeyId>${id}</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`;
const role = "arn:aws:iam::123456789012:role/ship+1";

/** STS on loopback, which keeps the forms that it got. */
async function startSts(answer) {
	const forms = [];
	const giver = await startGiver((request, response) => {
		let form = "";
		request.on("data", (piece) => { form += piece; });
		request.on("end", () => {
			forms.push(Object.fromEntries(new URLSearchParams(form)));
			answer(response, forms.length);
		});
	});
	return { ...giver, forms, env: { ...region, AWS_ENDPOINT_URL_STS: giver.url, AWS_ROLE_ARN: role, AWS_WEB_IDENTITY_TOKEN_FILE: writeFile("identity", "first.token+\n") } };
}

test("asks STS for a role with the token of the cluster that its file has by then, and before a profile", async () => {
	const giver = await startSts((response) => {
		writeFile("identity", "second");
		response.end(sts("TWO", new Date(Date.now() + 60000).toISOString()));
	});
	const env = { ...giver.env, AWS_ROLE_SESSION_NAME: "pod&1", AWS_SHARED_CREDENTIALS_FILE: profile("wrong", "[default]\naws_access_key_id=X\naws_secret_access_key=Y\n") };
	assert.deepEqual(await classes({ endpoint }, [...put, ...put], { env }), ["done", "done"]);
	const form = { Action: "AssumeRoleWithWebIdentity", Version: "2011-06-15", RoleArn: role, RoleSessionName: "pod&1" };
	assert.deepEqual(giver.forms, [{ ...form, WebIdentityToken: "first.token+" }, { ...form, WebIdentityToken: "second" }]);
	/* Unsigned. */
	assert.deepEqual(giver.asked, ["POST /", "POST /"]);
	assert.deepEqual(await classes({ endpoint }, put, { env: { ...keys, ...env } }), ["done"]);
	assert.equal(giver.asked.length, 2);
	giver.stop();
});

test("says what of a web identity is wrong, and never the token", async () => {
	const told = async (env) => {
		const { message } = (await ask({ endpoint }, put, { env })).answers[0];
		assert.doesNotMatch(message, /CANARY/);
		return message;
	};
	const answers = [[(response) => response.writeHead(403).end("<ErrorResponse><Error><Code>AccessDenied</Code><Message>CANARY</Message></Error></ErrorResponse>"), /web identity: STS refuses AWS_ROLE_ARN for the token: AccessDenied; see/],
		[(response) => response.writeHead(400).end("<Code>a b\u001b[31m</Code>"), /web identity: STS answers with status 400;/],
		[(response) => response.end(sts("ONE", "2038-01-01T00:00:00Z").replace(/<SessionToken>.*<.SessionToken>/, "")), /web identity: STS answers without AccessKeyId/],
		[(response) => response.end(sts("ONE", "some day")), /web identity: STS answers without/],
		[(response) => response.end(sts("x".repeat(2000), "2038-01-01T00:00:00Z")), /web identity: STS answers without/],
		[(response) => response.destroy(), /web identity: STS does not answer/],
		[(response) => response.end("x".repeat(100000)), /web identity: STS does not answer/]];
	for (const [answer, expected] of answers) {
		const giver = await startSts(answer);
		assert.match(await told({ ...giver.env, AWS_WEB_IDENTITY_TOKEN_FILE: writeFile("identity", "CANARY") }), expected);
		giver.stop();
	}
	const env = { ...region, AWS_ROLE_ARN: role, AWS_WEB_IDENTITY_TOKEN_FILE: writeFile("identity", "CANARY"), AWS_ENDPOINT_URL_STS: "http://192.0.2.1" };
	assert.match(await told(env), /web identity: AWS_ENDPOINT_URL_STS, or .* neither https nor this machine/);
	assert.match(await told({ ...env, AWS_ROLE_ARN: "" }), /web identity: AWS_WEB_IDENTITY_TOKEN_FILE is there, AWS_ROLE_ARN is not/);
	const local = { ...env, AWS_ENDPOINT_URL_STS: endpoint };
	assert.match(await told({ ...local, AWS_WEB_IDENTITY_TOKEN_FILE: "/nonexistent" }), /AWS_WEB_IDENTITY_TOKEN_FILE cannot be read/);
	assert.match(await told({ ...local, AWS_WEB_IDENTITY_TOKEN_FILE: writeFile("blank", "\n") }), /AWS_WEB_IDENTITY_TOKEN_FILE cannot be read/);
	assert.match(await told({ ...local, AWS_WEB_IDENTITY_TOKEN_FILE: writeFile("long", "C".repeat(9000)) }), /AWS_WEB_IDENTITY_TOKEN_FILE cannot be read, or is no token/);
	assert.match(await told({ ...local, AWS_ROLE_ARN: "r".repeat(40000) }), /AWS_ROLE_ARN or AWS_ROLE_SESSION_NAME is too long/);
	const { message } = (await ask({ endpoint, region: "eu-west-1" }, put, { env: { ...env, AWS_ENDPOINT_URL_STS: "", AWS_REGION: "evil.example/" } })).answers[0];
	assert.match(message, /web identity: AWS_REGION: that is no region/);
});

test("asks instance metadata with a token, in its second version alone", async () => {
	const giver = await startGiver((request, response) => {
		if (request.method === "PUT")
			return response.end(request.headers["x-aws-ec2-metadata-token-ttl-seconds"] ? "tok" : "");
		if (request.headers["x-aws-ec2-metadata-token"] !== "tok")
			return response.writeHead(401).end();
		return response.end(request.url.endsWith("/") ? "role-1\n" : given("ONE", { Expiration: "2038-01-01T00:00:00Z" }));
	});
	const env = { ...region, AWS_EC2_METADATA_DISABLED: "false", AWS_EC2_METADATA_SERVICE_ENDPOINT: giver.url, AWS_METADATA_SERVICE_TIMEOUT: "30" };
	assert.deepEqual(await classes({ endpoint }, put, { env }), ["done"]);
	assert.deepEqual(giver.asked, ["PUT /latest/api/token", "GET /latest/meta-data/iam/security-credentials/ tok", "GET /latest/meta-data/iam/security-credentials/role-1 tok"]);
	giver.stop();
	const off = await ask({ endpoint }, put, { env: { ...env, AWS_EC2_METADATA_DISABLED: "true" } });
	assert.match(off.answers[0].message, /instance: off by AWS_EC2_METADATA_DISABLED/);
});

test("keeps those that it has until their end where no new ones come, and does not ask each time", async () => {
	let n = 0;
	const giver = await startGiver((request, response) => n++ ? response.writeHead(500).end() :
		response.end(given("ONE", { Expiration: new Date(Date.now() + 300000).toISOString() })));
	const env = { ...region, AWS_CONTAINER_CREDENTIALS_FULL_URI: giver.url };
	assert.deepEqual(await classes({ endpoint }, [...put, ...put, ...put], { env }), ["done", "done", "done"]);
	/* Once, and twice for the second request, since it failed. */
	assert.equal(giver.asked.length, 3);
	giver.stop();
});

test("takes new ones once where the store calls them expired", async () => {
	let n = 0;
	const giver = await startGiver((request, response) => response.end(n++ ? given("TWO", { Token: "token-two" }) : given("ONE")));
	await store.faults([{ kind: "expired" }]);
	assert.deepEqual(await classes({ endpoint }, put, { env: { ...region, AWS_CONTAINER_CREDENTIALS_FULL_URI: giver.url } }), ["done"]);
	assert.equal(giver.asked.length, 2);
	giver.stop();
});

test("names each source and what is wrong with it where none yields, and no value", async () => {
	const [answer] = (await ask({ endpoint }, put, { env: { ...region, AWS_ACCESS_KEY_ID: "CANARYID", AWS_PROFILE: "p" } })).answers;
	assert.deepEqual([answer.class, answer.code], ["unusable", "NoCredentials"]);
	assert.match(answer.message, /^no credentials: environment: .* one is missing .*; web identity: none there; profile: none there; container: none there; instance: off/);
	assert.ok(!answer.message.includes("CANARYID"));
});

test("is bounded in what it takes from a source", async () => {
	const odd = [(response) => response.end("x".repeat(100000)), (response) => response.end('{"AccessKeyId":1}'), (response) => response.end(`{"AccessKeyId":"a\\n","SecretAccessKey":"b"}`),
		(response) => response.end("[".repeat(5000)), (response) => response.writeHead(404).end(), (response) => response.destroy()];
	for (const say of odd) {
		const giver = await startGiver((request, response) => say(response));
		assert.deepEqual(await classes({ endpoint }, put, { env: { ...region, AWS_CONTAINER_CREDENTIALS_FULL_URI: giver.url } }), ["unusable NoCredentials"]);
		giver.stop();
	}
	assert.ok(existsSync(small));
});

test.after(() => store.stop());
