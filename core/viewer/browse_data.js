// SPDX-License-Identifier: Apache-2.0
// What the server knows of its segments: services, their recordings, and cells of time.  Draws nothing.

export const NO_SERVICE = '(not read yet)';
const COLUMNS_MAX = 72;
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE;
// Lengths of a cell that people count in.
const CELL_LENGTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat([1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
	[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12, 24, 48, 96, 168].map((n) => n * HOUR));

/** The segments of a server, kept up to date by refresh(). */
export class Archive {
	constructor() {
		this.segments = new Map();
		this.version = 0;
		this.reading = 0;
		this.place = null;
		this.range = null;
	}

	/** Whether a bucket is still being listed. */
	get listing() {
		return Boolean(this.place?.listing);
	}

	/** Ask for what has changed; whether anything has. */
	async refresh() {
		const range = this.range ? `&from_ms=${this.range[0]}&to_ms=${this.range[1]}` : '', response = await fetch(`api/map?since=${this.version}${range}`);
		if (!response.ok) throw new Error(await response.text());
		const answer = await response.json();
		const changed = answer.all || answer.segments.length > 0 || answer.reading !== this.reading || JSON.stringify(answer.place ?? null) !== JSON.stringify(this.place);
		if (answer.all) this.segments.clear();
		for (const segment of answer.segments) this.segments.set(segment.name, segment);
		this.place = answer.place ?? null;
		this.version = answer.version;
		this.reading = answer.reading;
		return changed;
	}

	/** Of a bucket, only what is of the time that is looked at: the server knows of more. */
	get known() {
		const [from, to] = (this.place && this.range) ?? [-Infinity, Infinity];
		return [...this.segments.values()].filter((segment) => segment.process !== undefined && segment.from_ms < to && segment.to_ms >= from);
	}

	/** Segments that nobody can read, and those that nobody has read yet. */
	get unplaced() {
		return [...this.segments.values()].filter((segment) => segment.process === undefined);
	}

	/** [{name, hosts, processes, findings, longest, last}], the one with the longest call first. */
	services() {
		const found = new Map();
		for (const segment of this.known) {
			let service = found.get(segment.service);
			if (!service) found.set(segment.service, service = { name: segment.service, hosts: new Set(), processes: new Set(), findings: 0, longest: 0, last: 0 });
			service.hosts.add(segment.host);
			service.processes.add(segment.process);
			service.findings += segment.findings?.length ?? 0;
			service.longest = Math.max(service.longest, segment.longest_ns ?? 0);
			service.last = Math.max(service.last, segment.to_ms);
		}
		if (!found.size && this.segments.size && !this.place) return [{ name: NO_SERVICE, hosts: new Set(), processes: new Set(), findings: 0, longest: 0, last: 0 }];
		return [...found.values()].sort((a, b) => b.longest - a.longest || (a.name < b.name ? -1 : 1));
	}

	/** Recordings of a service: [{process, label, host, segments}], by host, then by when they began. */
	recordings(service) {
		const found = new Map();
		for (const segment of this.known) {
			if (segment.service !== service) continue;
			if (!found.has(segment.process)) found.set(segment.process, { process: segment.process, host: segment.host, pid: segment.pid ?? '', segments: [] });
			found.get(segment.process).segments.push(segment);
		}
		const rows = [...found.values()];
		for (const row of rows) row.segments.sort((a, b) => a.from_ms - b.from_ms);
		rows.sort((a, b) => a.host.localeCompare(b.host, 'en', { numeric: true }) || a.segments[0].from_ms - b.segments[0].from_ms);
		const sameHost = (row) => rows.filter((other) => other.host === row.host).length > 1;
		for (const row of rows) row.label = [row.host || row.segments[0].name.split('/')[0], sameHost(row) ? row.pid : ''].filter(Boolean).join(' ');
		return rows;
	}
}

/** Begin and end of what |rows| hold. */
export function spanOfRows(rows) {
	let from = Infinity, to = -Infinity;
	for (const { segments } of rows)
		for (const segment of segments) {
			from = Math.min(from, segment.from_ms);
			to = Math.max(to, segment.to_ms);
		}
	return from < to ? [from, to] : Number.isFinite(from) ? [from, from + 1] : [0, 1];
}

/** Whether |rows| have hours of which only a key was read: then no cell is shorter. */
export function areHours(rows) {
	return rows.some(({ segments }) => segments.some(({ kind, state }) => kind === 'hour' && state === 'listed'));
}

/** Columns of equal, round length, |least| or longer, that cover [from, to]: {from, length, n}. */
export function columnsOf(from, to, most = COLUMNS_MAX, least = 0) {
	const longest = CELL_LENGTHS.at(-1), length = CELL_LENGTHS.find((ms) => ms >= least && (to - from) / ms <= most - 1) ?? Math.ceil((to - from) / (most - 1) / longest) * longest;
	const first = Math.floor(from / length) * length;
	return { from: first, length, n: Math.max(1, Math.floor((to - first) / length) + 1) };
}

function cellAt(row, column) {
	row.cells[column] ??= { longest: 0, busy: 0, covered: 0, lost: 0, bytes: 0, missing: 0, finding: false, open: false, cut: false, unread: 0 };
	return row.cells[column];
}

function fillFromBins(row, segment, columns, first) {
	const step = segment.bin_ns / 1e6;
	for (let i = 0; i + 1 < segment.bins.length; i += 2) {
		const from = first + i / 2 * step;
		for (let column = Math.max(0, Math.floor((from - columns.from) / columns.length));
			column < columns.n && columns.from + column * columns.length < from + step; column++) {
			if (!row.cells[column]) continue;
			const cell = row.cells[column], begin = columns.from + column * columns.length;
			const share = (Math.min(from + step, begin + columns.length) - Math.max(from, begin)) / step;
			// When in a bin its longest call ran is not told: most likely in the cell that has most of it.
			if (share >= 0.5 || columns.length <= step) cell.longest = Math.max(cell.longest, segment.bins[i]);
			cell.busy += segment.bins[i + 1] * Math.max(0, share);
		}
	}
}

/** When |segment| holds something: an hour's summary, once it is read, may tell of a part of the hour. */
function extentOf(segment) {
	const { kind, bins, from_ms: hour, to_ms: end, first_ms: first } = segment;
	if (kind !== 'hour' || !bins?.length || !(first >= hour && first < end)) return [hour, end];
	return [first, Math.min(end, first + (segment.bins_after_ns + bins.length / 2 * segment.bin_ns) / 1e6)];
}

/** Give every row its cells: undefined where nothing is stored. */
export function fillCells(rows, columns) {
	for (const row of rows) {
		row.cells = new Array(columns.n);
		for (const segment of row.segments) {
			const [from, to] = extentOf(segment), first = Math.floor((from - columns.from) / columns.length);
			const last = Math.min(columns.n - 1, Math.floor((to - columns.from) / columns.length));
			for (let column = Math.max(0, first); column <= last; column++) {
				const cell = cellAt(row, column), begin = columns.from + column * columns.length;
				cell.covered += Math.max(0, Math.min(to, begin + columns.length) - Math.max(from, begin));
				cell.lost += segment.lost ?? 0;
				cell.bytes += (segment.stored_bytes ?? segment.bytes) / (last - first + 1);
				cell.missing += segment.missing ?? 0;
				if (!segment.bins) {
					cell.unread++;
					cell.longest = Math.max(cell.longest, segment.longest_ns ?? 0);
				}
				cell.cut ||= segment.damaged || (segment.truncated && !segment.active);
				cell.open ||= segment.active;
				cell.loops = Math.max(cell.loops ?? 0, segment.loops ?? 0);
			}
			if (segment.bins) fillFromBins(row, segment, columns, (segment.first_ms ?? segment.from_ms) + segment.bins_after_ns / 1e6);
		}
		markFindings(row, columns);
	}
}

/** A finding stands in the cell of the segment's longest call. */
function markFindings(row, columns) {
	for (const segment of row.segments) {
		if (!segment.findings?.length) continue;
		const first = Math.max(0, Math.floor((segment.from_ms - columns.from) / columns.length));
		const last = Math.min(columns.n - 1, Math.floor((segment.to_ms - columns.from) / columns.length));
		let worst = null;
		for (let column = first; column <= last; column++)
			if (row.cells[column] && (!worst || row.cells[column].longest > worst.longest)) worst = row.cells[column];
		if (worst) worst.finding ||= segment.findings[0];
	}
}

/** Segments of |rows| that reach into [from, to). */
export function segmentsIn(rows, from, to) {
	return rows.flatMap(({ segments }) => segments.filter((segment) => segment.from_ms < to && segment.to_ms >= from));
}

/** Share of the time of a cell that its loops were in callbacks. */
export function busyShare(cell) {
	return cell.covered > 0 ? Math.min(1, cell.busy / 1e6 / cell.covered / Math.max(1, cell.loops)) : 0;
}
