// Numbers and moments as text, the same way the command line prints them; and small DOM pieces. Every
// string of a model enters the page through textContent here.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** "1.50 GiB": four significant digits, binary units. @param {number} bytes */
function human(bytes) {
  const sign = bytes < 0 ? '-' : '';
  let amount = Math.abs(bytes);
  if (amount < 1024) return sign + amount + ' B';
  let unit = 0;
  while (amount >= 1024 && unit + 1 < UNITS.length) { amount /= 1024; ++unit; }
  const digits = amount >= 100 ? 1 : 2;
  return sign + amount.toFixed(digits) + ' ' + UNITS[unit];
}

/** "1,610,612,736" @param {number} number */
function grouped(number) { return Math.round(number).toLocaleString('en-US'); }

/** @param {number} bytes */
function signedHuman(bytes) { return (bytes > 0 ? '+' : '') + human(bytes); }

/** Three significant digits, never an exponent: as human_seconds() of the program. @param {number} seconds */
function duration(seconds) {
  if (seconds === 0) return '0 s';
  if (seconds < 0) return '-' + duration(-seconds);
  if (seconds >= 1e7) return grouped(seconds);  // no step takes months: a DAG weighed by another cost
  // A unit is left once its three digits would round to a thousand.
  for (const [scale, unit] of /** @type {[number, string][]} */ ([[1e6, 'µs'], [1e3, 'ms']])) {
    const amount = seconds * scale;
    if (amount < .001) return '0 ' + unit;
    if (amount < 999.5) return amount.toFixed(amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0) + ' ' + unit;
  }
  return seconds.toFixed(seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0) + ' s';
}

/** Cut in the middle: the end of a name tells more than what lies before it. @param {string} text @param {number} most characters */
function shorten(text, most) {
  if (text.length <= most) return text;
  const room = Math.max(2, most - 1);
  const tail = Math.ceil(room * .6);
  return text.slice(0, room - tail) + '…' + text.slice(text.length - tail);
}

/** @param {string} color "#4477aa" */
function luminance(color) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255).map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
}

/** How well one colour reads on another, 1 to 21; text needs 4.5. @param {string} a @param {string} b */
function contrast(a, b) {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + .05) / (dark + .05);
}

/** Black or white, whichever reads better: at least 4.58 on any colour. @param {string} ground */
function textOn(ground) { return contrast('#000000', ground) >= contrast('#ffffff', ground) ? '#000000' : '#ffffff'; }

/** @param {string} color @param {string} ground @param {number} share of the colour */
function mixed(color, ground, share) {
  return '#' + [1, 3, 5].map((at) => Math.round(parseInt(color.slice(at, at + 2), 16) * share + parseInt(ground.slice(at, at + 2), 16) * (1 - share)).toString(16).padStart(2, '0')).join('');
}

/** A DOM element with attributes and children; strings become text nodes.
 * @param {string} tag @param {Object<string, *>} [attributes] @param {...*} children */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') made.className = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(made.style, value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** @param {string} color */
function swatch(color) { return element('i', {class: 'swatch', style: {background: color}}); }

/** @param {string} id @returns {any} */
function byId(id) { return document.getElementById(id); }

/** @type {Map<string, string>} asked for once per theme: computing a style is slow inside a frame */
const themeColors = new Map();

/** @param {string} variable a CSS custom property */
function themeColor(variable) {
  let color = themeColors.get(variable);
  if (color === undefined) {
    color = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
    themeColors.set(variable, color);
  }
  return color;
}

/** "#4477aa" as the 32 bits of a pixel, mixed with a ground colour. @param {string} color @param {string} ground @param {number} share of the colour */
function pixel(color, ground, share) {
  const parse = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [a, b] = [parse(color), parse(ground)];
  const mixed = a.map((part, i) => Math.round(part * share + b[i] * (1 - share)));
  return (255 << 24 | mixed[2] << 16 | mixed[1] << 8 | mixed[0]) >>> 0;
}

// Light becomes dark and back; whoever draws draws again.
function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  themeColors.clear();
}

/** One number with its label, for the row at the top. @param {string} id @param {string} label @param {string} value @param {string} small @param {number} [bytes] exact */
function card(id, label, value, small, bytes) {
  return element('dl', {class: 'card', id: 'card-' + id, 'data-bytes': bytes === undefined ? '' : bytes}, element('dt', {}, label), element('dd', {}, value), element('small', {}, small));
}
