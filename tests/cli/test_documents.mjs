// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of documents in $D9_WORK, where "traces" is a trace, with the programs of $D9_PROGRAMS, of which those in
// $D9_STAND_INS take the place; $D9_LIVING is the id of a process that is being recorded,
// which serves HTTP on $D9_PORT.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const core = fileURLToPath(new URL('../../core/', import.meta.url));
const { D9_WORK: prepared, D9_PROGRAMS: programs } = process.env;
let work = prepared;
const env = { ...process.env, PATH: `${process.env.D9_STAND_INS}:${programs}:${process.env.PATH}`, COLUMNS: '80', CCACHE_DISABLE: '1' };

const run = (program, ...args) => spawnSync(program, args, { cwd: work, env, encoding: 'utf8', maxBuffer: 2 ** 28, input: '' });

/** Blocks of Markdown: [{language, text, expected}]; |expected|, of a block behind it in "text", is what it prints. */
function blocksOf(markdown) {
	const blocks = [];
	let behind = 0;
	for (const match of markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$|(?<=\n\n)(?:^ {4}.*\n)+/gm)) {
		const [whole, language = 'sh', text = whole.replace(/^ {4}/gm, '')] = match;
		if (language === 'text' && !markdown.slice(behind, match.index).trim()) blocks.at(-1).expected = text;
		else if (text.startsWith('$ ')) blocks.push({ language: 'sh', text: text.slice(2, text.indexOf('\n') + 1), expected: text.slice(text.indexOf('\n') + 1) });
		else blocks.push({ language, text });
		behind = match.index + whole.length;
	}
	return blocks;
}

/** What a manual page shows as it is typed, but for the synopsis: as a shell or a compiler reads it. */
function examplesOf(roff, name) {
	const text = roff.slice(roff.indexOf('.SH DESCRIPTION')).replace(/\\-/g, '-').replace(/\\e/g, '\\').replace(/\\\(aq/g, "'").replace(/\\&/g, '');
	return [...text.matchAll(/^\.nf\n([\s\S]*?)^\.fi$/gm)].map(([, block]) => ({ language: name.endsWith('.3') && !/^(cc|dial9|#) /.test(block) ? 'c' : 'sh', text: block })).filter(({ text: block }) => !block.startsWith('.B'));
}

function check({ language, text, expected }) {
	const typed = text.replaceAll('/var/tmp/', `${work}/`).replace(/\bPID\b/g, process.env.D9_LIVING);
	// As for a reader, who has not recorded anything yet.
	if (typed.startsWith('dial9 record -o traces ')) rmSync(join(work, 'traces'), { recursive: true });
	// Of the last seconds of a program that did nothing there is no dump.
	if (typed.includes('dial9 dump ')) run('node', '-e', `fetch('http://127.0.0.1:${process.env.D9_PORT}/hello')`);
	const answer = language === 'js' ? (writeFileSync(join(work, 'block.mjs'), typed), run('node', 'block.mjs')) : run('sh', '-e', '-c', typed);
	assert.equal(answer.status, 0, `${text}\n${answer.stdout.slice(0, 2000)}\n${answer.stderr}`);
	assert.doesNotMatch(answer.stderr, /Error|error|no such/, text);
	if (expected !== undefined) assert.equal(answer.stdout, expected, text);
}

/** |text| compiles, as the body of a function of a program that has what |before| declares. */
function compile(text, before) {
	writeFileSync(join(work, 'block.c'), `${before}\nint program(void);\nint program(void) {\n${text}\nreturn 0; }\n`);
	const { status, stderr } = run('sh', '-c', `${process.env.CC} -fsyntax-only -Wall -Werror -I ${core}include -I ${core}../adapters/include -I ${programs}/include block.c $(pkg-config --cflags glib-2.0 2>/dev/null)`);
	assert.equal(status, 0, `${text}\n${stderr}`);
}

const skills = readdirSync(join(core, 'agents')).filter((name) => name.endsWith('.md'));

/** Blocks that do not run here: what they begin with, and why not. */
const NOT_RUN = {
	'../README.md': [['examples/demo.sh ', 'installs packages and builds; it is tests/run.sh that runs here'],
		['dial9 record --ship=', 'ship/test_ship_record.sh, test_serve_bucket.sh and test_ship_tables.sh'],
		['#include <event2/event.h>', 'install/check_readme.sh builds and records it'], ['cc server.c ', 'install/check_readme.sh runs it']],
	'doc/STORES.md': [['rclone move ', 'ship/test_ship_others.sh'], ['aws s3 cp ', 'the same']],
	'man/dial9-libevent.3': [['# libevent.a', 'adapters/check_libevent_static.sh']],
	'man/dial9-libev.3': [['cc server.c $(pkg-config --static', 'adapters/check_libev_static.sh'], ['#define D9_EV_SOURCE', 'adapters/check_libev_embed.sh']],
	'man/dial9-loop.3': [['d9_loop_register()  ', 'an order of calls; examples/own_loop.c makes them']],
	'man/dial9-memory.3': [['dial9 record --memory=64K', 'takes a program that leaks for a while; cli/test_memory.sh']],
	'man/dial9-record.1': [['# /etc/systemd', 'a unit; install/check_uninstall.sh has systemd verify it'], ['ExecStart=', 'the same']],
	'man/dial9-recover.1': [['dial9 recover /var/tmp/traces', 'deals with all programs of the machine, as two users; cli/test_left_rings.sh']],
	'man/dial9-dumps.1': [['FIRED (UTC)', 'what a list looks like; cli/test_manifests.sh']],
	'man/dial9-serve.1': [['config, browse', 'a table'], ['dial9 serve --bucket', 'ship/test_serve_bucket.sh']],
	'man/dial9-ship.1': [['ExecStopPost=-', 'a line of a unit; ship/test_ship_unit.sh']],
	'man/dial9-report.1': [['svc  5.00 s', 'what a report looks like; cli/test_report.sh']],
	'man/dial9-enable.1': [['DIAL9_ENABLED=false frobd &', 'takes a moment between its lines; cli/test_control.sh']],
};
/** What asks how all programs of the machine do runs only where it is the test's own. */
const WHOLE_MACHINE = /dial9 status *(#|$)/m;

/** What the C of a manual page stands in. */
const DECLARED = {
	'dial9-glib.3': '#include <glib.h>\n#include <dial9/glib.h>\n#include <dial9/dial9.h>\nstatic GMainLoop *loop;',
	'dial9-libevent.3': '#include <stdio.h>\n#include <event2/event.h>\n#include <dial9/libevent.h>\n#include <dial9/dial9.h>',
	'dial9-reader.3': '#include <stdio.h>\n#include <dial9/reader.h>',
	'dial9-span.3': '#include <dial9/span.h>\nstatic struct request { struct d9_span span, query; } *request;\nstatic unsigned n_rows;\nstatic void start_query(struct request *r) { (void)r; }',
	'dial9-stack.3': '#define _GNU_SOURCE\n#include <sys/mman.h>\n#include <dial9/stack.h>\nstatic unsigned long size;',
	'dial9.3': '#include <dial9/event.h>\nstatic unsigned took_us;',
};

/** Every block of |path| runs, but for those that are told above. */
function runAll(path, blocks, title) {
	test(title, () => {
		const name = path.split('/').pop(), left = new Map(NOT_RUN[path] ?? []);
		assert.ok(blocks.length > 0);
		work = mkdtempSync(join(prepared, 'document.'));
		cpSync(join(prepared, 'fresh'), work, { recursive: true });
		for (const block of blocks) {
			const excused = [...left.keys()].find((begin) => block.text.startsWith(begin));
			if (excused) left.delete(excused);
			else if (block.language === 'c') compile(block.text, DECLARED[name]);
			else if (process.env.D9_OWN_SHM || !WHOLE_MACHINE.test(block.text)) check(block);
		}
		assert.deepEqual([...left], [], `${path} has no such block any more`);
	});
}

for (const path of [...skills.map((name) => join('agents', name)), join('doc', 'ANALYSIS.md'), join('doc', 'STORES.md'), '../README.md'])
	runAll(path, blocksOf(readFileSync(join(core, path), 'utf8')), `every block of ${path} runs, and prints what it is said to`);

for (const name of readdirSync(join(core, 'man')).filter((file) => /\.[135]$/.test(file))) {
	const examples = examplesOf(readFileSync(join(core, 'man', name), 'utf8'), name);
	if (examples.length) runAll(join('man', name), examples, `the examples of ${name} run`);
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
	const checks = [...readFileSync(join(core, 'findings', 'checks.c'), 'utf8').matchAll(/\{ "([a-z-]+)", D9__ABOUT_/g)].map(([, name]) => name);
	assert.ok(checks.length > 40);
	const read = (skill) => readFileSync(join(core, 'agents', `${skill}.md`), 'utf8'), named = (text) => [...text.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name);
	const recipes = read('dial9-diagnoses').split(/^(?=\*\*)/m).slice(1).filter((text) => text.includes('```sh\n'));
	assert.deepEqual(recipes.flatMap((text) => named(/^\*\*.*?\*\* \((.*?)\)/.exec(text)[1])).sort(), [...checks].sort());
	const lines = read('dial9-red-flags').split('\n').filter((line) => line.startsWith('| `'));
	assert.deepEqual(lines.flatMap((line) => named(line.split('|')[1])).sort(), [...checks].sort());
});

test('each key of the report has a place in its document, and each table and view of a query in its manual page', () => {
	work = join(prepared, 'fresh');
	const keys = new Set(), document = readFileSync(join(core, 'doc', 'REPORT-JSON.md'), 'utf8'), page = readFileSync(join(core, 'man', 'dial9-query.1'), 'utf8');
	const collect = (value, of) => {
		if (Array.isArray(value)) value.forEach((item) => collect(item, of));
		else if (value && typeof value === 'object')
			for (const [key, inner] of Object.entries(value)) {
				// The keys of these are names of what was recorded.
				if (!/^(events|loss|metadata|by_reason|left_out|frames)$/.test(of)) keys.add(key);
				collect(inner, key);
			}
	};
	collect(JSON.parse(run('dial9', 'report', '--json', 'traces').stdout), '');
	assert.ok(keys.size > 100);
	assert.deepEqual([...keys].filter((key) => !new RegExp(`\`([a-z_.]+\\.)?${key}(\\[\\])?\``).test(document)), []);
	const tables = [...run('dial9', 'query', '--schema').stdout.matchAll(/^CREATE (?:TABLE|VIEW) (\w+)/gm)].map(([, name]) => name);
	assert.ok(tables.length > 15);
	const told = new Set([...page.matchAll(/^\.B ([a-z, ]+)$/gm)].flatMap(([, names]) => names.split(', ')));
	assert.deepEqual(tables.filter((name) => !told.has(name)), []);
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
	for (const args of [['skill', 'none'], ['toolkit'], ['nothing', 'here'], ['toolkit', 'none/folder'], ['--wrong']]) {
		const answer = run('dial9', 'agents', ...args);
		assert.deepEqual([answer.status, answer.stdout, answer.stderr.split('\n').length], [2, '', 2], args.join(' '));
	}
});
