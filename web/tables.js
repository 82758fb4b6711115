// The tabs that are tables: peak, operators, layers, remedies.

/** A bar of parts. @param {{color: string, share: number, title?: string}[]} parts @param {string} [className] */
function bar(parts, className) {
  return element('div', {class: 'bar ' + (className || '')}, ...parts.filter((part) => part.share > 0).map((part) =>
    element('i', {style: {width: (part.share * 100).toFixed(3) + '%', background: part.color}, title: part.title || ''})));
}

/** A table that shows `page` rows and a button for more. Columns: {title, number?, sort?, cell(row)}.
 * @param {any[]} columns @param {any[]} rows @param {number} [page] */
function pagedTable(columns, rows, page = 100) {
  const body = element('tbody');
  const box = element('div');
  let shown = 0;
  let order = rows;
  const more = element('button', {class: 'more', type: 'button', onclick: () => fill(page * 5)});
  const fill = (count) => {
    for (const row of order.slice(shown, shown + count)) {
      body.append(element('tr', {}, ...columns.map((column) => {
        const cell = column.cell(row);
        return element('td', {class: column.number ? 'num' : column.class || '', 'data-label': column.title}, cell);
      })));
    }
    shown = Math.min(order.length, shown + count);
    more.hidden = shown >= order.length;
    more.textContent = 'Show more (' + grouped(order.length - shown) + ' left)';
  };
  const sortBy = (column) => {
    order = [...rows].sort((a, b) => column.sort(b) - column.sort(a));
    shown = 0;
    body.replaceChildren();
    fill(page);
  };
  const heads = columns.map((column) => element('th', {class: column.number ? 'num' : column.class || ''},
    column.sort ? element('button', {type: 'button', title: 'Sort by this', onclick: () => sortBy(column)}, column.title + ' ↓') : column.title));
  box.append(element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body), more);
  fill(page);
  return box;
}

/** @param {any} timeline @param {number} index of an operator */
function operatorName(timeline, index) {
  return index < 0 ? '' : timeline.texts[timeline.operators.name[index]];
}

/** What to call an allocation: without a name, when it was made. @param {any} timeline @param {number} b */
function allocationName(timeline, b) {
  const name = timeline.texts[timeline.allocations.name[b]];
  return name === 'unnamed' ? 'event ' + grouped(timeline.allocations.begin[b]) : name;
}

/** @param {any} price */
function priceChip(price) {
  return element('span', {class: 'chip' + (price.seconds <= 1e-6 ? ' free' : '') + (price.lossless ? '' : ' lossy'), title: price.detail},
    element('b', {}, price.label), (price.remedy === 'encode' ? ' ' + price.detail.split(' while')[0] : '') + ' −' + human(price.saves) + (price.seconds <= 1e-6 ? ', hidden' : ', +' + duration(price.seconds)));
}

/** The composition at the peak, by what tells allocations apart best. @param {any} timeline */
function groupsAtPeak(timeline) {
  const {allocations, peak} = timeline;
  const {names, colors, of} = timeline.groupings[timeline.useful[0]];
  const out = names.map((name, g) => ({name, color: colors[g], bytes: 0}));
  for (let b = 0; b < allocations.count && allocations.begin[b] <= peak.time_step; ++b) if (allocations.memory[b] === 0 && allocations.end[b] > peak.time_step) out[of[b]].bytes += allocations.bytes[b];
  return out.filter((group) => group.bytes > 0);
}

/** @param {any} timeline @param {(allocation: number) => void} open */
function peakPanel(timeline, open) {
  const {allocations, texts} = timeline;
  const total = Math.max(1, timeline.peak.bytes);
  const groups = groupsAtPeak(timeline);
  const {colors, of} = timeline.groupings[timeline.useful[0]];
  const summary = element('div', {class: 'sheet'},
    element('h2', {}, human(timeline.peak.bytes) + ' alive at ' + timeline.timeStepWord + ' ' + grouped(timeline.peak.time_step)),
    element('p', {}, timeline.operators.count > 0 ? 'while ' + (operatorName(timeline, operatorAt(timeline, timeline.peak.time_step)) || 'nothing') + ' runs: ' + grouped(timeline.peak_set_count) + ' allocations.' : grouped(timeline.peak_set_count) + ' allocations.'),
    bar(groups.map((group) => ({color: group.color, share: group.bytes / total, title: group.name})), 'big'),
    element('div', {class: 'legend'}, ...groups.map((group) => element('span', {title: group.name}, swatch(group.color), element('b', {}, shorten(group.name, 44)), human(group.bytes) + ' · ' + (group.bytes / total * 100).toFixed(1) + ' %'))));
  const largest = timeline.peak_set.length > 0 ? allocations.bytes[timeline.peak_set[0].allocation] : 1;
  const says = (text) => timeline.peak_set.some((row) => text(row));
  const columns = [
    {title: 'Bytes', number: true, cell: (row) => element('span', {title: grouped(allocations.bytes[row.allocation]) + ' bytes', 'data-bytes': allocations.bytes[row.allocation]}, human(allocations.bytes[row.allocation]))},
    {title: '', class: 'share', cell: (row) => bar([{color: colors[of[row.allocation]], share: allocations.bytes[row.allocation] / largest}])},
    {title: 'Tensor', class: 'name', cell: (row) => element('a', {href: '#', onclick: (event) => { event.preventDefault(); open(row.allocation); }, style: {color: 'inherit'}, title: texts[allocations.name[row.allocation]]}, shorten(allocationName(timeline, row.allocation), 72))},
    timeline.useful.includes('kind') && timeline.useful[0] === 'kind' ? {title: 'Kind', class: 'short', cell: (row) => timeline.kinds[allocations.kind[row.allocation]].name} : null,
    says((row) => texts[allocations.type[row.allocation]]) ? {title: 'Type', class: 'short', cell: (row) => texts[allocations.type[row.allocation]]} : null,
    {title: 'Why alive', class: 'why', cell: (row) => row.why},
    says((row) => row.prices.length > 0) ? {title: 'Instead', cell: (row) => element('span', {}, ...row.prices.map(priceChip))} : null,
  ].filter((column) => column);
  const table = pagedTable(columns, timeline.peak_set);
  table.classList.add('stacking');
  const rest = timeline.peak_set_count - timeline.peak_set.length;
  const note = timeline.source === 'plan'
    ? 'Prices are for one tensor with everything else as planned; they do not add up. The best combination is what plimsoll plan --budget finds.'
    : 'A trace records when memory was freed, not which operator read it last.';
  return [summary, element('div', {class: 'sheet'}, element('h2', {}, 'What is alive, largest first'), element('p', {}, note + (rest > 0 ? ' The ' + grouped(rest) + ' smallest are not listed.' : '')), table)];
}

/** Footprint and what each operator touches, over all operators. @param {HTMLCanvasElement} canvas @param {any} timeline */
function drawOperators(canvas, timeline) {
  const surface = prepareCanvas(canvas);
  const {context, left, plot} = surface;
  const height = surface.height - 20;
  const {operators} = timeline;
  const count = operators.count;
  let top = 1;
  for (let o = 0; o < count; ++o) top = Math.max(top, operators.alive[o], operators.touched[o]);
  top *= 1.04;
  drawByteAxis(surface, top, height);
  const series = [[operators.alive, timeline.colorOf.weights, .35], [operators.touched, timeline.colorOf.gradients, 1]];
  for (const [numbers, color, opacity] of series) {
    context.globalAlpha = opacity;
    context.fillStyle = color;
    for (let x = 0; x < plot; ++x) {
      const first = Math.floor(x / plot * count);
      const end = Math.max(first + 1, Math.floor((x + 1) / plot * count));
      let most = 0;
      for (let o = first; o < end && o < count; ++o) most = Math.max(most, numbers[o]);
      const y = height - most / top * (height - 10);
      context.fillRect(left + x, y, 1, height - y);
    }
  }
  context.globalAlpha = 1;
  context.fillStyle = themeColor('--quiet');
  context.textAlign = 'right';
  context.fillText('operators in order', left + plot, height + 12);
}

/** Without operators, allocation sites: who allocates most. @param {any} timeline */
function siteRows(timeline) {
  const {allocations, texts} = timeline;
  const sites = new Map();
  for (let b = 0; b < allocations.count; ++b) {
    const name = allocations.name[b];
    const site = sites.get(name) || {name: texts[name], count: 0, total: 0, largest: 0, atPeak: 0};
    sites.set(name, site);
    ++site.count;
    site.total += allocations.bytes[b];
    site.largest = Math.max(site.largest, allocations.bytes[b]);
    if (allocations.begin[b] <= timeline.peak.time_step && timeline.peak.time_step < allocations.end[b]) site.atPeak += allocations.bytes[b];
  }
  return [...sites.values()].sort((a, b) => b.atPeak - a.atPeak || b.total - a.total);
}

/** @param {any} timeline */
function operatorsPanel(timeline) {
  const {operators, texts} = timeline;
  if (operators.count === 0) {
    return [element('div', {class: 'sheet'}, element('h2', {}, 'Allocation sites'),
      element('p', {}, 'This recording has no operators; allocations are grouped by name or by the innermost line of your own code.'),
      pagedTable([
        {title: 'At the peak', number: true, sort: (row) => row.atPeak, cell: (row) => human(row.atPeak)},
        {title: 'Allocated in all', number: true, sort: (row) => row.total, cell: (row) => human(row.total)},
        {title: 'Times', number: true, sort: (row) => row.count, cell: (row) => grouped(row.count)},
        {title: 'Largest', number: true, sort: (row) => row.largest, cell: (row) => human(row.largest)},
        {title: 'Where', class: 'name', cell: (row) => element('span', {title: row.name}, shorten(row.name, 110))}], siteRows(timeline)))];
  }
  const rows = Array.from({length: operators.count}, (_, o) => o).sort((a, b) => operators.alive[b] - operators.alive[a]);
  const canvas = element('canvas', {id: 'operator-chart', style: {height: '210px'}, role: 'img', 'aria-label': 'Memory per operator'});
  const knowsTouched = operators.touched.some((bytes) => bytes > 0);
  return [
    element('div', {class: 'sheet'}, element('h2', {}, 'Memory per operator'),
      element('p', {}, knowsTouched ? 'Pale: everything in memory while an operator runs. Strong: what it reads, writes and uses as scratch. No plan needs less than the tallest strong bar.' : 'Everything in memory while an operator runs.'), canvas),
    element('div', {class: 'sheet'}, pagedTable([
      {title: 'Step', number: true, sort: (o) => -operators.time_step[o], cell: (o) => grouped(operators.time_step[o])},
      {title: 'Operator', class: 'name', cell: (o) => texts[operators.name[o]]},
      {title: 'Phase', class: 'short', cell: (o) => texts[operators.phase[o]]},
      {title: 'Alive', number: true, sort: (o) => operators.alive[o], cell: (o) => human(operators.alive[o])},
      {title: 'Touches', number: true, sort: (o) => operators.touched[o], cell: (o) => knowsTouched ? human(operators.touched[o]) : ''},
      {title: '', class: 'wide', cell: (o) => bar([{color: timeline.colorOf.gradients, share: operators.touched[o] / Math.max(1, operators.alive[o])}])},
      {title: 'Time', number: true, sort: (o) => operators.seconds[o], cell: (o) => duration(operators.seconds[o])}], rows))];
}

/** @param {any} timeline */
function layersPanel(timeline) {
  const {layers, kinds} = timeline;
  const body = element('tbody');
  const largest = Math.max(1, ...layers.map((row) => row.depth === 0 ? row.total : 0));
  const hasChild = layers.map((row, i) => i + 1 < layers.length && layers[i + 1].depth > row.depth);
  const closed = new Set(layers.map((row, i) => hasChild[i] && row.depth >= 2 ? i : -1).filter((i) => i >= 0));
  const fill = () => {
    body.replaceChildren();
    let skip = Infinity;
    let shown = 0;
    layers.forEach((row, i) => {
      if (row.depth > skip || shown > 2000) return;
      skip = closed.has(i) ? row.depth : Infinity;
      ++shown;
      const twist = hasChild[i] ? element('button', {class: 'twist', type: 'button', 'aria-expanded': String(!closed.has(i)), onclick: () => { if (!closed.delete(i)) closed.add(i); fill(); }}, closed.has(i) ? '▸' : '▾') : element('span', {class: 'twist'}, '');
      const shortName = shorten(row.name, 90);
      body.append(element('tr', {},
        element('td', {class: 'name', style: {paddingLeft: row.depth * 18 + 'px'}, title: row.path}, twist, shortName),
        element('td', {class: 'num'}, human(row.at_peak)),
        element('td', {class: 'num'}, human(row.total)),
        element('td', {style: {width: '45%'}}, bar(row.by_kind.map((bytes, k) => ({color: kinds[k].color, share: bytes / largest, title: kinds[k].name + ' ' + human(bytes)}))))));
    });
  };
  fill();
  const used = kinds.filter((_, k) => layers.some((row) => row.by_kind[k] > 0));
  return [element('div', {class: 'sheet'}, element('h2', {}, 'Layers'),
    element('p', {}, 'At the peak: alive at the moment when most bytes are. In all: every allocation of the layer once, whether or not they are alive together.'),
    element('div', {class: 'legend'}, ...used.map((kind) => element('span', {}, swatch(kind.color), element('b', {}, kind.name)))),
    element('table', {}, element('thead', {}, element('tr', {}, element('th', {}, 'Layer'), element('th', {class: 'num'}, 'At the peak'), element('th', {class: 'num'}, 'In all'), element('th', {}, ''))), body))];
}

/** @param {any} timeline @returns {Object<string, string>} */
function laneColors(timeline) {
  const color = timeline.colorOf;
  return {compute: color.weights, recompute: color.gradients, send_out: color.temporaries, bring_in: color.outputs, encode: color.inputs, decode: color.staging, encode_lossy: color.unlabelled, decode_lossy: color.activations};
}

/** Busy stretches of every stream, one lane each. @param {HTMLCanvasElement} canvas @param {any} timeline */
function drawLanes(canvas, timeline) {
  const surface = prepareCanvas(canvas);
  const {context, left, plot} = surface;
  const {operators, texts, seconds} = timeline;
  const streams = [...new Set(operators.stream)].sort((a, b) => a - b);
  const colors = laneColors(timeline);
  const total = Math.max(timeline.duration, 1e-12);
  const busy = new Map(streams.map((stream) => [stream, 0]));
  const names = new Map();
  context.textBaseline = 'middle';
  for (let o = 0; o < operators.count; ++o) {
    const what = texts[operators.what[o]];
    const begin = Math.max(seconds[operators.time_step[o]], busy.get(operators.stream[o]));
    busy.set(operators.stream[o], begin + operators.seconds[o]);
    const lane = streams.indexOf(operators.stream[o]);
    if (!names.has(lane)) names.set(lane, what === 'send_out' ? 'copy out' : what === 'bring_in' ? 'copy in' : 'compute');
    context.fillStyle = colors[what] || themeColor('--quiet');
    context.fillRect(left + begin / total * plot, lane * 26 + 4, Math.max(.6, operators.seconds[o] / total * plot), 18);
  }
  context.fillStyle = themeColor('--quiet');
  context.textAlign = 'right';
  streams.forEach((_, lane) => context.fillText(names.get(lane), left - 7, lane * 26 + 13));
}

/** What a plan may do to fit, as a reader would say it. */
const REMEDIES = {recompute: 'recomputed', send_out: 'swapped out', bring_in: 'swapped in', encode: 'encoded, lossless', decode: 'decoded', encode_lossy: 'encoded, lossy', decode_lossy: 'decoded, lossy'};

/** @param {any} timeline */
function hasRemedies(timeline) {
  const {operators, texts} = timeline;
  return operators.what.some((what) => REMEDIES[texts[what]]);
}

/** Allocations that a name tells apart. @param {any} timeline */
function hasSites(timeline) {
  const {allocations, texts} = timeline;
  const mute = ['unnamed', 'allocated before the recording', 'outside the allocator', 'small allocations, summed'];
  return new Set(allocations.name).size > 0 && [...new Set(allocations.name)].some((name) => !mute.includes(texts[name]));
}

/** @param {any} timeline */
function remediesPanel(timeline) {
  const {operators, texts} = timeline;
  const rows = [];
  const sums = new Map();
  for (let o = 0; o < operators.count; ++o) {
    const what = texts[operators.what[o]];
    if (!REMEDIES[what]) continue;
    rows.push(o);
    const sum = sums.get(what) || {count: 0, seconds: 0, bytes: 0};
    sums.set(what, sum);
    ++sum.count;
    sum.seconds += operators.seconds[o];
    sum.bytes += operators.touched[o];
  }
  const streams = new Set(operators.stream).size;
  const canvas = element('canvas', {id: 'lanes', style: {height: streams * 26 + 8 + 'px'}, role: 'img', 'aria-label': 'What runs on each stream'});
  return [
    element('div', {class: 'sheet'}, element('h2', {}, 'What was done to fit'),
      element('div', {class: 'cards'}, ...[...sums].map(([what, sum]) => element('dl', {class: 'card'}, element('dt', {}, REMEDIES[what]), element('dd', {}, grouped(sum.count)), element('small', {}, duration(sum.seconds) + ' · touches ' + human(sum.bytes)))))),
    element('div', {class: 'sheet'}, element('h2', {}, 'Streams'), element('p', {}, 'Computation above, copies below it, over the planned time of one step.'),
      element('div', {class: 'legend'}, ...[['compute', 'computed'], ...Object.entries(REMEDIES)].filter(([what]) => what === 'compute' || sums.has(what)).map(([what, words]) => element('span', {}, swatch(laneColors(timeline)[what]), element('b', {}, words)))), canvas),
    element('div', {class: 'sheet'}, pagedTable([
      {title: 'Step', number: true, cell: (o) => grouped(operators.time_step[o])},
      {title: 'What', class: 'name', cell: (o) => texts[operators.name[o]]},
      {title: 'Layer', class: 'dim', cell: (o) => texts[operators.layer[o]]},
      {title: 'Touches', number: true, sort: (o) => operators.touched[o], cell: (o) => human(operators.touched[o])},
      {title: 'Time', number: true, sort: (o) => operators.seconds[o], cell: (o) => duration(operators.seconds[o])}], rows))];
}
