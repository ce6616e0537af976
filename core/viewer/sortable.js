// SPDX-License-Identifier: Apache-2.0
// A table of any number of rows: sortable columns, one row with the focus, and elements only for what is in sight.

import { element } from './dom.js';

const ROW = 24, TALLEST = 8e6, AROUND = 8;

function classOf(column) {
	return [column.number ? 'number' : '', column.class ?? ''].filter(Boolean).join(' ') || false;
}

/**
 * |columns|: [{key, title, number, hint, value(row), cell(row)}]; one without value() cannot be sorted.  |order|
 * is 'key' or '-key', downwards.  |onOrder|(order) and |onEnter|(row) may be missing.  The rows are a list, or
 * {length, at(i)} that is in its order already.  |role| treegrid: attributesOf(row) tells the levels, and onKey(event,
 * row), which may take a key, moves between them.  |onFocus|(row) hears which row has the focus.
 */
export class SortableTable {
	constructor({ label, columns, order = '', onOrder = null, onEnter = null, empty = '', isMarked = null, role = 'grid', attributesOf = null, onKey = null, onFocus = null }) {
		Object.assign(this, { columns, order, onOrder, onEnter, empty, isMarked, attributesOf, onKey, onFocus, rows: [], shown: [], focused: 0, first: -1 });
		this.headers = columns.map((column) => element(column.title ? 'th' : 'td', { scope: column.title ? 'col' : false, class: classOf(column), title: column.hint },
			column.value ? element('button', { class: 'sort', onclick: () => this.sortBy(column) }, column.title) : element('span', {}, column.title)));
		this.body = element('tbody');
		this.table = element('table', { class: 'sortable', role, 'aria-label': label }, element('thead', {}, element('tr', {}, ...this.headers)), this.body);
		this.box = element('div', { class: 'rows' }, this.table);
		this.box.addEventListener('scroll', () => this.draw());
		this.body.addEventListener('keydown', (event) => this.key(event));
		this.body.addEventListener('focusin', ({ target }) => {
			if (!target.dataset.row) return;
			this.focused = Number(target.dataset.row);
			this.onFocus?.(this.at(this.focused));
		});
		this.body.addEventListener('click', (event) => this.click(event));
		this.markHeaders();
	}

	sortBy(column) {
		// Numbers first go from the greatest.
		const down = this.order.replace('-', '') === column.key ? !this.order.startsWith('-') : Boolean(column.number);
		this.order = `${down ? '-' : ''}${column.key}`;
		this.markHeaders();
		this.setRows(this.rows);
		this.onOrder?.(this.order);
	}

	/** Take |order|, or |fallback| where no column has it. */
	orderBy(order, fallback) {
		this.order = this.columns.some((column) => column.value && column.key === order.replace('-', '')) ? order : fallback;
		this.markHeaders();
	}

	markHeaders() {
		this.columns.forEach((column, i) => {
			if (!column.value) return;
			const on = this.order.replace('-', '') === column.key;
			this.headers[i].setAttribute('aria-sort', !on ? 'none' : this.order.startsWith('-') ? 'descending' : 'ascending');
		});
	}

	setRows(rows) {
		this.rows = rows;
		const down = this.order.startsWith('-'), column = this.columns.find((c) => c.key === this.order.replace('-', ''));
		this.shown = rows;
		if (Array.isArray(rows) && column?.value) {
			const keyed = rows.map((row, i) => ({ row, i, value: column.value(row) }));
			const sign = down ? -1 : 1;
			keyed.sort((a, b) => sign * (typeof a.value === 'string' ? a.value.localeCompare(b.value) : (a.value ?? -Infinity) - (b.value ?? -Infinity)) || a.i - b.i);
			this.shown = keyed.map(({ row }) => row);
		}
		this.focused = Math.min(this.focused, Math.max(0, this.shown.length - 1));
		this.table.setAttribute('aria-rowcount', String(this.shown.length + 1));
		this.first = -1;
		this.draw();
	}

	get height() {
		return Math.min(this.shown.length * ROW, TALLEST);
	}

	/** The first row in sight; where rows are more than a browser can scroll, their share. */
	firstInSight() {
		const { scrollTop, clientHeight } = this.box, all = this.shown.length * ROW;
		if (all <= TALLEST) return Math.floor(scrollTop / ROW);
		return Math.floor(scrollTop / Math.max(1, TALLEST - clientHeight) * (this.shown.length - Math.floor(clientHeight / ROW)));
	}

	at(i) {
		return Array.isArray(this.shown) ? this.shown[i] : this.shown.at(i);
	}

	draw() {
		const room = Math.ceil((this.box.clientHeight || 600) / ROW), inSight = Math.max(0, this.firstInSight());
		const first = Math.max(0, Math.min(inSight, this.shown.length - 1) - AROUND), last = Math.min(this.shown.length, inSight + room + AROUND);
		if (first === this.first && last === this.last) return;
		const focused = this.body.contains(document.activeElement);
		Object.assign(this, { first, last });
		const above = this.shown.length * ROW <= TALLEST ? first * ROW : Math.max(0, this.box.scrollTop - (inSight - first) * ROW);
		const below = Math.max(0, this.height - above - (last - first) * ROW);
		const rows = [];
		for (let i = first; i < last; i++) rows.push(this.row(this.at(i), i));
		if (!rows.length) rows.push(element('tr', {}, element('td', { class: 'nothing', colspan: String(this.columns.length) }, this.empty)));
		this.body.replaceChildren(this.space(above), ...rows, this.space(below));
		if (focused) this.body.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
	}

	space(height) {
		const row = element('tr', { class: 'space', role: 'presentation' });
		row.style.height = `${height}px`;
		row.hidden = !height;
		return row;
	}

	row(data, i) {
		const made = element('tr', { 'aria-rowindex': String(i + 2), tabindex: i === Math.min(this.last - 1, Math.max(this.first, this.focused)) ? '0' : '-1', 'data-row': String(i), class: this.isMarked?.(data) ? 'marked' : false, ...this.attributesOf?.(data) });
		made.append(...this.columns.map((column) => {
			const shown = column.cell(data), text = typeof shown === 'string';
			return element('td', { class: classOf(column), title: text && shown.length > 24 ? shown : false }, shown);
		}));
		return made;
	}

	/** Move the focus to row |i|, into sight. */
	focus(i) {
		this.focused = Math.max(0, Math.min(this.shown.length - 1, i));
		const { clientHeight } = this.box, inSight = Math.floor(clientHeight / ROW) - 2, first = this.firstInSight();
		if (this.focused < first || this.focused > first + inSight) {
			const wanted = this.focused < first ? this.focused : this.focused - inSight;
			this.box.scrollTop = this.shown.length * ROW <= TALLEST ? wanted * ROW : wanted / Math.max(1, this.shown.length - Math.floor(clientHeight / ROW)) * (TALLEST - clientHeight);
		}
		this.first = -1;
		this.draw();
		this.body.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
	}

	key(event) {
		if (event.target.tagName === 'TR' && this.onKey?.(event, this.at(this.focused))) {
			event.preventDefault();
			event.stopPropagation();
			return;
		}
		const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 2);
		const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.shown.length, End: this.shown.length };
		if (event.key in steps) this.focus(this.focused + steps[event.key]);
		else if (event.key === 'Enter' && event.target.tagName === 'TR') this.onEnter?.(this.at(this.focused));
		else return;
		event.preventDefault();
		event.stopPropagation();
	}

	click(event) {
		const row = event.target.closest('tr[data-row]');
		if (!row || event.target.closest('button')) return;
		this.focus(Number(row.dataset.row));
		this.onEnter?.(this.at(this.focused));
	}
}
