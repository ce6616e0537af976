// SPDX-License-Identifier: Apache-2.0
// For tests of dial9-store: a store, somebody who asks it, files.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

export const folder = mkdtempSync(join(process.env.WORK, "ship."));
export const keys = { AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: "secret", AWS_REGION: "eu-west-1" };
export const program = join(process.env.BUILD, "core/dial9-store");
const script = fileURLToPath(new URL("s3d.mjs", import.meta.url));

/** A store of its own, which ends with this process: { address, faults(list), log(), stop() }. */
export async function startStore(...args) {
	const child = spawn(process.execPath, [script, ...args], { stdio: ["pipe", "pipe", "inherit"] });
	const [address] = await new Promise((resolve) => createInterface(child.stdout).once("line", (...line) => resolve(line)));
	const control = async (path, body) => (await fetch(`${address}/-/${path}`, body && { method: "POST", body: JSON.stringify(body) })).json();
	return {
		address,
		faults: (list) => control("faults", list),
		setKeys: (list) => control("keys", list),
		left: () => control("faults"),
		log: () => control("log"),
		stop: () => child.stdin.end(),
	};
}

export function writeFile(name, content) {
	const path = join(folder, name);
	writeFileSync(path, content);
	return path;
}

/** Answers to the lines, one after the other or, with `together`, as they come. */
export async function ask(options, lines, { env = keys, together = false, asker = join(process.env.BUILD, "tests/ship/ask_store"), path = program } = {}) {
	const child = spawn(asker, [path, JSON.stringify(options)],
		{ env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
	let stdout = "";
	let stderr = "";
	child.stdout.on("data", (piece) => { stdout += piece; });
	child.stderr.on("data", (piece) => { stderr += piece; });
	child.stdin.on("error", () => {});
	child.stdin.end(lines.map((line) => `${line}\n`).join(together ? "" : "wait\n"));
	const status = await new Promise((resolve) => child.on("close", resolve));
	/* What a sanitizer says, or anybody. */
	assert.equal(stderr, "");
	const said = stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
	return { status, stdout, stderr, address: said[0], answers: said.slice(1) };
}

/** The answers of `ask`, in short. */
export async function classes(options, lines, more) {
	return (await ask(options, lines, more)).answers.map((answer) => `${answer.class ?? answer.error} ${answer.code ?? ""}`.trim());
}

export function sign(requests) {
	const run = spawnSync(join(process.env.BUILD, "tests/ship/sign_requests"), { input: requests.map((r) => `${JSON.stringify(r)}\n`).join(""), maxBuffer: 2 ** 28 });
	return run.stdout.toString().split("\n").filter(Boolean).map((line) => JSON.parse(line));
}
