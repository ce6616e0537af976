// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of documents in $D9_WORK, where "traces" is a trace, with the programs of $D9_PROGRAMS.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const core = fileURLToPath(new URL('../../core/', import.meta.url));
const { D9_WORK: work, D9_PROGRAMS: programs } = process.env;
const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, COLUMNS: '80' };

const run = (program, ...args) => spawnSync(program, args, { cwd: work, env, encoding: 'utf8', maxBuffer: 2 ** 28, input: '' });

/** Blocks of Markdown: [{language, text, line}]. */
function blocksOf(markdown) {
	return [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map((match) => ({ language: match[1], text: match[2], line: markdown.slice(0, match.index).split('\n').length }));
}

/** The commands of a manual page's examples, as a shell reads them. */
function examplesOf(roff) {
	const examples = roff.slice(roff.indexOf('.SH EXAMPLES'), roff.indexOf('.SH SEE ALSO'));
	return [...examples.matchAll(/^\.nf\n([\s\S]*?)^\.fi$/gm)].map((match) => ({ language: 'sh', text: match[1].replace(/\\-/g, '-').replace(/\\e/g, '\\'), line: 0 }));
}

function check({ language, text }) {
	const answer = language === 'js' ? (writeFileSync(join(work, 'block.mjs'), text), run('node', 'block.mjs')) : run('sh', '-e', '-c', text);
	assert.equal(answer.status, 0, `${text}\n${answer.stdout.slice(0, 2000)}\n${answer.stderr}`);
	assert.doesNotMatch(answer.stderr, /Error|error|no such/, text);
}

run('dial9', 'agents', 'toolkit', 'toolkit');

const skills = readdirSync(join(core, 'agents')).filter((name) => name.endsWith('.md'));
for (const path of [...skills.map((name) => join('agents', name)), join('doc', 'ANALYSIS.md')]) {
	test(`every block of ${path} runs`, () => {
		const blocks = blocksOf(readFileSync(join(core, path), 'utf8'));
		assert.ok(blocks.length > 0);
		for (const block of blocks) check(block);
	});
}

for (const name of ['dial9-query.1', 'dial9-agents.1']) {
	test(`the examples of ${name} run`, () => {
		const blocks = examplesOf(readFileSync(join(core, 'man', name), 'utf8'));
		assert.ok(blocks.length > 0);
		for (const block of blocks) check(block);
	});
}

test('a skill has the name of its file and says what it is for', () => {
	for (const file of skills) {
		const [, name, description] = /^---\nname: (.*)\ndescription: (.*)\n---\n/.exec(readFileSync(join(core, 'agents', file), 'utf8')) ?? [];
		assert.equal(`${name}.md`, file);
		assert.match(name, /^[a-z0-9-]{1,64}$/);
		assert.ok(description.length > 40 && description.length <= 1024, file);
	}
});

test('each check of dial9 report has a recipe with a command, and a line that says what it means', () => {
	const checks = [...readFileSync(join(core, 'analyze', 'findings.c'), 'utf8').matchAll(/\{ "([a-z-]+)", D9__ABOUT_/g)].map(([, name]) => name);
	assert.ok(checks.length > 40);
	const read = (skill) => readFileSync(join(core, 'agents', `${skill}.md`), 'utf8'), named = (text) => [...text.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name);
	const recipes = read('dial9-diagnoses').split(/^(?=\*\*)/m).slice(1).filter((text) => text.includes('```sh\n'));
	assert.deepEqual(recipes.flatMap((text) => named(/^\*\*.*?\*\* \((.*?)\)/.exec(text)[1])).sort(), [...checks].sort());
	const lines = read('dial9-red-flags').split('\n').filter((line) => line.startsWith('| `'));
	assert.deepEqual(lines.flatMap((line) => named(line.split('|')[1])).sort(), [...checks].sort());
});

test('skills name only commands, options and skills that there are', () => {
	const known = new Set(skills.map((file) => file.slice(0, -3))), commands = new Set(run('dial9', 'help').stdout.match(/^ {2}[a-z]+/gm).map((line) => line.trim()));
	for (const file of skills) {
		const text = readFileSync(join(core, 'agents', file), 'utf8');
		for (const [, name] of text.matchAll(/`(?:dial9 agents skill )?(dial9-[a-z-]+)`/g)) assert.ok(known.has(name), `${file}: ${name}`);
		for (const [, command] of text.matchAll(/(?:`|^|; )dial9 ([a-z]+)/gm)) assert.ok(commands.has(command), `${file}: dial9 ${command}`);
	}
});

test('skills and toolkit are unpacked where they are wanted, and never over a file of somebody else', () => {
	assert.equal(run('dial9', 'agents', 'skills', 'skills').status, 0);
	assert.deepEqual(readdirSync(join(work, 'skills')).sort(), skills.map((file) => file.slice(0, -3)).sort());
	assert.equal(readFileSync(join(work, 'skills', 'dial9-runtime', 'SKILL.md'), 'utf8'), readFileSync(join(core, 'agents', 'dial9-runtime.md'), 'utf8'));
	assert.equal(run('dial9', 'agents', 'skill', 'dial9-runtime').stdout, readFileSync(join(core, 'agents', 'dial9-runtime.md'), 'utf8'));
	assert.equal(run('dial9', 'agents', 'skills', 'skills').status, 0);
	writeFileSync(join(work, 'skills', 'dial9-runtime', 'SKILL.md'), 'mine\n');
	const { status, stderr } = run('dial9', 'agents', 'skills', 'skills');
	assert.deepEqual([status, stderr], [2, 'dial9 agents: skills/dial9-runtime/SKILL.md exists and differs; --force overwrites it\n']);
	assert.equal(readFileSync(join(work, 'skills', 'dial9-runtime', 'SKILL.md'), 'utf8'), 'mine\n');
	assert.equal(run('dial9', 'agents', '--force', 'skills', 'skills').status, 0);
	for (const args of [['skill', 'none'], ['toolkit'], ['nothing', 'here'], ['toolkit', '/nonexistent/folder'], ['--wrong']]) {
		const answer = run('dial9', 'agents', ...args);
		assert.deepEqual([answer.status, answer.stdout, answer.stderr.split('\n').length], [2, '', 2], args.join(' '));
	}
});
