// From the JSON in the page to typed arrays: decoded once, never copied again.

/** @param {string} text base64 */
function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array} bytes @returns {Promise<ArrayBuffer>} */
function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

const COLUMN_TYPES = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array};

/** @param {{type?: string, count: number, base: number, unit: number, delta?: boolean, wide?: boolean, deflate: string}} stored @returns {Promise<any>} */
async function decodeColumn(stored) {
  const {count, base, unit} = stored;
  const steps = stored.type ? new COLUMN_TYPES[stored.type](await inflate(bytesOf(stored.deflate))) : null;
  stored.deflate = '';
  if (steps && base === 0 && unit === 1 && !stored.delta) return steps;
  const numbers = stored.wide ? new Float64Array(count) : new Int32Array(count);
  if (!steps) numbers.fill(base);
  else for (let i = 0; i < count; ++i) numbers[i] = base + unit * steps[i];
  if (stored.delta) for (let i = 1; i < count; ++i) numbers[i] += numbers[i - 1];
  return numbers;
}

/** Decodes every column of a table. @param {Object<string, any>} table @returns {Promise<any>} */
async function decodeTable(table) {
  const names = Object.keys(table).filter((name) => name !== 'count');
  const columns = await Promise.all(names.map((name) => decodeColumn(table[name])));
  const out = {count: table.count};
  names.forEach((name, i) => { out[name] = columns[i]; });
  return out;
}

/** @param {any} stored */
async function decodeSeconds(stored) {
  const gaps = await decodeColumn(stored.gaps);
  const seconds = new Float64Array(gaps.length);
  let now = 0;
  for (let i = 0; i < gaps.length; ++i) seconds[i] = now += gaps[i] * stored.unit;
  return seconds;
}

/** @param {any[]} stored one entry per memory */
async function decodeSeries(stored) {
  const out = [];
  for (const memory of stored) {
    const by = {};
    for (const grouping of Object.keys(memory)) {
      const series = memory[grouping];
      const groups = await Promise.all(series.groups.map(decodeColumn));
      const totals = new Float64Array(series.buckets);
      for (const group of groups) for (let b = 0; b < totals.length; ++b) totals[b] += group[b];
      by[grouping] = {ticksPerBucket: series.ticks_per_bucket, buckets: series.buckets, groups, totals};
    }
    out.push(by);
  }
  return out;
}

/** @param {Int32Array} texts @param {Uint8Array} groupOfText */
function groupsOf(texts, groupOfText) {
  const out = new Uint8Array(texts.length);
  for (let b = 0; b < texts.length; ++b) out[b] = groupOfText[texts[b]];
  return out;
}

// Bands stand in order of their beginning; a block of them that ends before the view can be skipped whole.
const BLOCK = 256;

/** The last end in every block of bands. @param {any} bands */
function lastEnds(bands) {
  const out = new Int32Array(Math.ceil(bands.count / BLOCK));
  for (let b = 0; b < bands.count; ++b) if (bands.end[b] > out[b >> 8]) out[b >> 8] = bands.end[b];
  return out;
}

/** @param {any} stored an account as the file holds it @param {string[]} groupColors @returns {Promise<any>} */
async function decodeAccount(stored, groupColors) {
  const [bands, operators, reserved, seconds, layerGroup, phaseGroup] = await Promise.all([
    decodeTable(stored.bands), decodeTable(stored.operators), decodeTable(stored.reserved), decodeSeconds(stored.seconds),
    decodeColumn(stored.layer_group_of_text), decodeColumn(stored.phase_group_of_text)]);
  bands.end = new Int32Array(bands.count);
  for (let b = 0; b < bands.count; ++b) bands.end[b] = bands.begin[b] + bands.length[b];
  bands.blockEnd = lastEnds(bands);
  const other = groupColors[groupColors.length - 1];
  const colorsFor = (names) => names.map((name, i) => name === 'other' ? other : groupColors[i % groupColors.length]);
  const account = {...stored, bands, operators, reserved, seconds, duration: seconds[seconds.length - 1]};
  account.series = stored.series ? await decodeSeries(stored.series) : null;
  account.colorOf = Object.fromEntries(stored.kinds.map((kind) => [kind.name, kind.color]));
  account.phaseColors = colorsFor(stored.phase_groups);
  account.groupings = {
    kind: {names: stored.kinds.map((k) => k.name), colors: stored.kinds.map((k) => k.color), of: bands.kind},
    layer: {names: stored.layer_groups, colors: colorsFor(stored.layer_groups),
            of: groupsOf(bands.layer, layerGroup)},
    phase: {names: stored.phase_groups, colors: account.phaseColors,
            of: groupsOf(bands.phase, phaseGroup)},
  };
  account.tickWord = stored.source === 'plan' ? 'step' : 'event';
  return account;
}
