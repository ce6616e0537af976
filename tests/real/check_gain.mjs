// SPDX-License-Identifier: Apache-2.0
// Whether what the first finding about a program promises ("callbacks would wait 3 ms, not 41 ms") is what its innocent twin
// shows, within a factor of 2 both ways.  Too small to matter are
// - a millisecond, and a hundredth of what waited: both are measured, and who waits 30 ms instead of 3 s asks for no more;
// - of what the twin shows beyond the promise, how late its timers usually are (clocks have ticks, and timeouts are whole
//   milliseconds), and the longest time for which a machine that is busy kept either from a CPU;
// - of what is promised beyond the twin's, a fifth of all that the machine took from one loop: it takes the CPU for some
//   ten milliseconds at once, from a loop that is awake, as the twin's hardly is, and in few of the waits.
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
const kept_ns = Math.max(0, ...[guilty, twin].flatMap((r) => r.workers.map((w) => w.kernel_waits.max_ns ?? 0)));
const late_ns = twin.timers?.lateness?.p50_ns ?? 0;
const taken_ns = Math.max(...guilty.workers.map((w) => w.account.taken_ns));
const small_ns = 1e6 + before_ns / 100;
const ms = (ns) => `${(ns / 1e6).toFixed(2)} ms`;

console.log(`${finding.gain.text}: its twin's wait ${ms(twin_ns)}; ${ms(small_ns)} are no matter, nor ${ms(late_ns + kept_ns)} more and ${ms(taken_ns / 5)} less`);
if (after_least_ns > 2 * twin_ns + small_ns + taken_ns / 5) {
	console.log("too little is promised");
	process.exit(1);
}
if (twin_ns > 2 * after_ns + small_ns + late_ns + kept_ns) {
	console.log("too much is promised");
	process.exit(1);
}
