// SPDX-License-Identifier: Apache-2.0
// Every text that a person sees: durations, sizes, times, and names that others chose.

const THIN = '\u2009';
const NAME_MAX = 200;
const DURATION_UNITS = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]];

/** ns in a unit of time, as schemas name it. */
export const NS_OF_UNIT = new Map([['ns', 1], ['us', 1e3], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]]);

function threeDigits(value) {
	return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** "182 ms", three digits, of ns. */
export function showDuration(ns) {
	if (!Number.isFinite(ns)) return '–';
	const sign = ns < 0 ? '−' : '', size = Math.abs(ns);
	if (size < 1000) return `${sign}${Math.round(size)}${THIN}ns`;
	const unit = DURATION_UNITS.findLast(([, scale]) => size >= scale * 0.9995);
	return sign + threeDigits(size / unit[1]) + THIN + unit[0];
}

/** "1.2 M", of a count. */
export function showCount(n) {
	if (n < 10000) return Math.round(n).toLocaleString('en-US').replace(',', THIN);
	const unit = [['k', 1e3], ['M', 1e6], ['G', 1e9]].findLast(([, scale]) => n >= scale * 0.9995);
	return threeDigits(n / unit[1]) + THIN + unit[0];
}

export function showSize(bytes) {
	if (bytes < 1024) return `${bytes}${THIN}B`;
	const unit = [['KiB', 2 ** 10], ['MiB', 2 ** 20], ['GiB', 2 ** 30]].findLast(([, scale]) => bytes >= scale);
	return threeDigits(bytes / unit[1]) + THIN + unit[0];
}

export function showShare(part, whole) {
	if (!(whole > 0)) return '–';
	const percent = 100 * part / whole;
	return (percent >= 9.95 ? percent.toFixed(0) : percent.toFixed(1)) + THIN + '%';
}

/**
 * A time of a trace on one of the clocks rel, local, utc, with |digits| behind the seconds.  |wall| is ns
 * since 1970 as BigInt, or null where the trace has no clock anchor.
 */
export function showTime(relative, wall, clock, digits = 3) {
	if (clock === 'rel' || wall === null) return (relative / 1e9).toFixed(digits) + THIN + 's';
	const ms = Number(wall / 1000000n), date = new Date(ms), local = clock === 'local';
	const part = (name, width = 2) => String(local ? date[`get${name}`]() : date[`getUTC${name}`]()).padStart(width, '0');
	const fraction = String(wall % 1000000000n).padStart(9, '0').slice(0, digits);
	return `${part('Hours')}:${part('Minutes')}:${part('Seconds')}${digits ? `.${fraction}` : ''}`;
}

// Controls, what turns the direction of text, and what takes no room: a name must not pretend to be another.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

/** A name out of a trace: what cannot be seen is shown as its number, what is long is cut. */
export function showName(text, max = NAME_MAX) {
	const safe = String(text).slice(0, 4 * max).replace(INVISIBLE, (c) => `‹${c.codePointAt(0).toString(16)}›`);
	return safe.length > max ? `${safe.slice(0, max - 1)}…` : safe;
}

const LETTERS_ENOUGH = 20; // to know a name by its ends, however long it is

/** |text| in at most |room| letters: whole, or without its middle, never without its start; else nothing. */
export function fitName(text, room) {
	if (text.length <= room) return text;
	if (room < 8 || (room < text.length * 0.6 && room < LETTERS_ENOUGH)) return '';
	const head = Math.ceil((room - 1) * 0.6);
	return `${text.slice(0, head)}…${text.slice(text.length - (room - 1 - head))}`;
}

/** CALLBACK @ SITE in its two parts. */
export function splitLocation(location) {
	const at = location.indexOf(' @ ');
	return at < 0 ? [location, ''] : [location.slice(0, at), location.slice(at + 3)];
}

/** The seven classes of durations, by decade. */
export function durationClass(ns) {
	return ns < 1e3 ? 0 : ns < 1e4 ? 1 : ns < 1e5 ? 2 : ns < 1e6 ? 3 : ns < 1e7 ? 4 : ns < 1e8 ? 5 : 6;
}
