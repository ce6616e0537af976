// SPDX-License-Identifier: Apache-2.0
// Whether what the first finding about a program promises ("callbacks would wait 3 ms, not 41 ms") is what its innocent twin
// shows, or not better than that by a factor of 2.  What may differ all the same: a millisecond, a hundredth of what waited, as both are
// measured, and the longest time for which a machine that is busy kept either from a CPU.
//	check_gain.mjs REPORT TWINS-REPORT
import { readFileSync } from "node:fs";

const machine = /^(incomplete-data|degraded-hooks|short-of-cpu|cpu-contention)$/;
const keys = { p99: ["p99", "p99_ns"], "p99.9": ["p999", "p999_ns"], longest: ["longest", "max_ns"] };
const [guilty, twin] = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, "utf8")));
const finding = guilty.findings.find((f) => !machine.test(f.check));

// Where others had the CPU for a quarter of the time, how they took it decides what either program's callbacks waited for.
const taken = Math.max(...[guilty, twin].flatMap((r) => r.workers.map((w) => w.account.taken_ns / w.account.total_ns)));

if (!finding?.gain || taken > 0.25) {
	console.log(finding?.gain ? `the machine took ${Math.round(100 * taken)} % of a loop's time: ${finding.gain.text}` : "no gain is told");
	process.exit(0);
}
const [key, shown] = keys[/\((\S+)\)$/.exec(finding.gain.text)[1]];
const { before_ns, after_ns, after_least_ns } = finding.gain[key];
const twin_ns = twin.wake_to_poll[shown];
const kept = [guilty, twin].flatMap((r) => r.workers.map((w) => w.kernel_waits.max_ns ?? 0));
const slack_ns = 1e6 + before_ns / 100 + Math.max(0, ...kept);
const ms = (ns) => `${(ns / 1e6).toFixed(2)} ms`;

console.log(`${finding.gain.text}: its twin's wait ${ms(twin_ns)}; the machine, and measuring, may make ${ms(slack_ns)}`);
// Of loops that stand in one lock the others stay in it: too little is promised, and that is said and no fault.
if (after_least_ns > 2 * twin_ns + slack_ns) console.log("that is too little");
process.exit(twin_ns > 2 * after_ns + slack_ns ? 1 : 0);
