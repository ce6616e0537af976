// SPDX-License-Identifier: Apache-2.0
// Light or dark: the system's, unless the reader chose; and the colours of canvases, read from the CSS.

const THEME_KEY = 'dial9.theme';
const COLOUR_NAMES = ['bg', 'panel', 'raised', 'line', 'line-2', 'text', 'text-2', 'text-3', 'accent', 'alarm',
	'accent-wash', 'f-own1', 'f-own2', 'f-own3', 'f-lib1', 'f-lib2', 'f-ker1', 'f-ker2', 'p-ready', 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'd0', 'd1', 'd2', 'd3', 'd4', 'd5', 'd6'];

let chosenTheme = null;
let colourTable = null;

/** The reader's choice; storage may be forbidden. */
function storedTheme() {
	try {
		return localStorage.getItem(THEME_KEY);
	} catch {
		return null;
	}
}

function applyTheme(redraw) {
	const dark = matchMedia('(prefers-color-scheme: dark)').matches, forced = matchMedia('(forced-colors: active)').matches;
	document.documentElement.dataset.theme = (forced ? null : chosenTheme) ?? (dark ? 'dark' : 'light');
	colourTable = null;
	redraw();
}

/** Follow the system and the button; |redraw| is called after each change. */
export function startTheme(redraw) {
	const stored = storedTheme();
	if (stored === 'dark' || stored === 'light') chosenTheme = stored;
	applyTheme(redraw);
	for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) matchMedia(query).addEventListener('change', () => applyTheme(redraw));
}

export function switchTheme(redraw) {
	chosenTheme = isDark() ? 'light' : 'dark';
	try {
		localStorage.setItem(THEME_KEY, chosenTheme);
	} catch {
		// It lasts as long as the page.
	}
	applyTheme(redraw);
}

function isDark() {
	return document.documentElement.dataset.theme === 'dark';
}

/** Colours by their names in the CSS, d0 to d6 also as a list, and the fonts of canvases. */
export function colours() {
	if (colourTable) return colourTable;
	const style = getComputedStyle(document.documentElement);
	colourTable = Object.fromEntries(COLOUR_NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
	colourTable.classes = [0, 1, 2, 3, 4, 5, 6].map((i) => colourTable[`d${i}`]);
	colourTable.tones = [0, 1, 2, 3, 4, 5].map((i) => colourTable[`c${i}`]);
	// Letters on the bars: the ramp is light where it means long in the dark theme, and dark in the light one.
	colourTable.ink = [0, 1, 2, 3, 4, 5, 6].map((i) => (isDark() && i > 1 ? '#15181d' : '#ffffff'));
	colourTable.sans = `12px ${style.getPropertyValue('--sans')}`;
	colourTable.mono = `12px ${style.getPropertyValue('--mono')}`;
	return colourTable;
}
