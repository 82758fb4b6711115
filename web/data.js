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
      by[grouping] = {timeStepsPerBucket: series.time_steps_per_bucket, buckets: series.buckets, groups, totals};
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

// Allocations stand in order of their beginning; a block of them that ends before the view can be skipped whole.
const BLOCK = 256;

/** The last end in every block of allocations. @param {any} allocations */
function lastEnds(allocations) {
  const out = new Int32Array(Math.ceil(allocations.count / BLOCK));
  for (let b = 0; b < allocations.count; ++b) if (allocations.end[b] > out[b >> 8]) out[b >> 8] = allocations.end[b];
  return out;
}

/** Borders between the groups of sizes, for recordings that know nothing else of their allocations. */
const SIZE_BORDERS = [1 << 20, 16 << 20, 128 << 20, 512 << 20];
const SIZE_NAMES = ['below 1 MiB', '1 to 16 MiB', '16 to 128 MiB', '128 to 512 MiB', '512 MiB and more'];
/** Kinds that are known all the same. */
const OTHER_KINDS = ['outside the allocator', 'allocated before recording'];

/** @param {any} allocations @param {any[]} kinds @param {string[]} groupColors */
function sizeGrouping(allocations, kinds, groupColors) {
  const of = new Uint8Array(allocations.count);
  for (let b = 0; b < allocations.count; ++b) {
    const kind = OTHER_KINDS.indexOf(kinds[allocations.kind[b]].name);
    let size = 0;
    while (size < SIZE_BORDERS.length && allocations.bytes[b] >= SIZE_BORDERS[size]) ++size;
    of[b] = kind >= 0 ? kind : OTHER_KINDS.length + size;
  }
  return {names: [...OTHER_KINDS, ...SIZE_NAMES], colors: [...OTHER_KINDS.map((name) => kinds.find((kind) => kind.name === name).color), ...SIZE_NAMES.map((_, i) => groupColors[i])], of};
}

/** Groupings that tell allocations apart, the best first. A kind or layer that says nothing is no help. @param {any} timeline @returns {string[]} */
function usefulGroupings(timeline) {
  const {allocations, kinds, layer_groups: layers, phase_groups: phases} = timeline;
  const count = (of, names, mute) => { const used = new Set(of); return [...used].filter((g) => names[g] !== undefined && !mute.includes(names[g])).length; };
  const {groupings} = timeline;
  const useful = {
    kind: count(groupings.kind.of, kinds.map((kind) => kind.name), ['unlabelled', ...OTHER_KINDS]),
    layer: count(groupings.layer.of, layers, ['(no layer)', 'other']),
    phase: count(groupings.phase.of, phases, ['(no phase)', 'before recording', 'outside the allocator']),
  };
  const out = [];
  if (useful.kind > 0) out.push('kind');
  if (useful.layer > 0) out.push('layer');
  if (useful.kind === 0 && timeline.source !== 'plan') out.push('size');
  if (useful.phase > 1) out.push('phase');
  if (useful.kind === 0) out.push('kind');
  return allocations.count === 0 ? ['kind'] : out;
}

/** @param {any} stored a timeline as the file holds it @param {string[]} groupColors @returns {Promise<any>} */
async function decodeTimeline(stored, groupColors) {
  const [allocations, operators, reserved, seconds, layerGroup, phaseGroup] = await Promise.all([
    decodeTable(stored.allocations), decodeTable(stored.operators), decodeTable(stored.reserved), decodeSeconds(stored.seconds),
    decodeColumn(stored.layer_group_of_text), decodeColumn(stored.phase_group_of_text)]);
  allocations.end = new Int32Array(allocations.count);
  for (let b = 0; b < allocations.count; ++b) allocations.end[b] = allocations.begin[b] + allocations.length[b];
  allocations.blockEnd = lastEnds(allocations);
  const other = groupColors[groupColors.length - 1];
  const colorsFor = (names) => names.map((name, i) => name === 'other' ? other : groupColors[i % groupColors.length]);
  const timeline = {...stored, allocations, operators, reserved, seconds, duration: seconds[seconds.length - 1]};
  timeline.series = stored.series ? await decodeSeries(stored.series) : null;
  timeline.colorOf = Object.fromEntries(stored.kinds.map((kind) => [kind.name, kind.color]));
  timeline.phaseColors = colorsFor(stored.phase_groups);
  timeline.groupings = {
    kind: {names: stored.kinds.map((k) => k.name), colors: stored.kinds.map((k) => k.color), of: allocations.kind},
    layer: {names: stored.layer_groups, colors: colorsFor(stored.layer_groups),
            of: groupsOf(allocations.layer, layerGroup)},
    phase: {names: stored.phase_groups, colors: timeline.phaseColors,
            of: groupsOf(allocations.phase, phaseGroup)},
  };
  if (stored.source !== 'plan') timeline.groupings.size = sizeGrouping(allocations, stored.kinds, groupColors);
  if (stored.graph) {
    const [nodes, edges, owners] = await Promise.all([decodeTable(stored.graph.nodes), decodeTable(stored.graph.edges), decodeColumn(stored.graph.node_of_allocation)]);
    timeline.graph = {nodes, edges, node_of_allocation: owners};
  }
  timeline.useful = usefulGroupings(timeline);
  timeline.timeStepWord = stored.source === 'plan' ? 'step' : 'event';
  return timeline;
}
