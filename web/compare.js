// Two timelines side by side: planned against measured, or before against after.

/** @param {number} bytes */
function change(bytes) {
  return element('span', {class: bytes > 0 ? 'up' : bytes < 0 ? 'down' : '', 'data-bytes': bytes}, bytes === 0 ? '0' : signedHuman(bytes));
}

/** Operators that compute; a trace has no line for drops, and its copies need not stand in the order of the plan. @param {any} timeline */
function computing(timeline) {
  const {operators, texts} = timeline;
  return Array.from({length: operators.count}, (_, o) => o).filter((o) => ['compute', 'recompute'].includes(texts[operators.what[o]]));
}

/** How often the second timeline repeats the first one's operators; 0: they cannot be laid over each other. @param {any[]} timelines */
function repeats(timelines) {
  const [once, often] = timelines.map((timeline) => computing(timeline).length);
  return once > 0 && often % once === 0 ? often / once : 0;
}

/** Bytes for every column: of operator after operator, the most of all repeats; else of each one's own progress.
 * @param {any[]} timelines @param {number} i @param {Stacker[]} stackers @param {AllocationSelection[]} selections @param {number} width */
function comparedColumns(timelines, i, stackers, selections, width) {
  const {operators} = timelines[i];
  const [count, own] = [computing(timelines[0]).length, computing(timelines[i])];
  if (repeats(timelines) === 0) return stackers[i].columns('kind', selections[i], new Axis(timelines[i]).edges(width)).totals;
  return Float64Array.from({length: width}, (_, c) => {
    const first = Math.floor(c / width * count);
    const end = Math.max(first + 1, Math.floor((c + 1) / width * count));
    let most = 0;
    for (let o = first; o < end; ++o) for (let r = o; r < own.length; r += count) most = Math.max(most, operators.alive[own[r]]);
    return most;
  });
}

/** Both totals on one scale. @param {HTMLCanvasElement} canvas @param {any[]} timelines @param {Stacker[]} stackers @param {AllocationSelection[]} selections */
function drawComparison(canvas, timelines, stackers, selections) {
  const surface = prepareCanvas(canvas);
  const {context, left, plot} = surface;
  const height = surface.height - 20;
  const top = Math.max(1, ...timelines.map((timeline) => Math.max(timeline.peak.bytes, timeline.arena_bytes, timeline.budget_bytes))) * 1.04;
  const y = (bytes) => height - bytes / top * (height - 10);
  drawByteAxis(surface, top, height);
  timelines.forEach((timeline, i) => {
    const columns = comparedColumns(timelines, i, stackers, selections, Math.max(1, Math.floor(plot)));
    context.beginPath();
    columns.forEach((bytes, c) => { context.lineTo(left + c, y(bytes)); context.lineTo(left + c + 1, y(bytes)); });
    const color = (i === 0 ? timeline.colorOf.weights : timeline.colorOf.gradients);
    if (i === 0) {
      context.lineTo(left + plot, height);
      context.lineTo(left, height);
      context.fillStyle = color;
      context.globalAlpha = .45;
      context.fill();
      context.globalAlpha = 1;
    } else {
      context.strokeStyle = color;
      context.lineWidth = 2;
      context.stroke();
    }
  });
  if (timelines[0].arena_bytes) drawLevel(surface, y(timelines[0].arena_bytes), themeColor('--quiet'), 'arena of ' + timelines[0].title + ' ' + human(timelines[0].arena_bytes), 'right');
  context.fillStyle = themeColor('--quiet');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const times = repeats(timelines);
  context.fillText(times === 0 ? 'from beginning to end of each' : 'operator by operator' + (times > 1 ? ', the most of ' + grouped(times) + ' steps' : ''), left + plot, height + 12);
}

/** @param {any} comparison @param {any[]} timelines */
function comparePanel(comparison, timelines) {
  const difference = comparison.total_after - comparison.total_before;
  const row = (cells) => element('tr', {}, ...cells);
  const bytesTable = (title, rows) => element('div', {class: 'sheet'}, element('h2', {}, title), pagedTable([
    {title: 'Change', number: true, sort: (r) => Math.abs(r.after - r.before), cell: (r) => change(r.after - r.before)},
    {title: comparison.before, number: true, sort: (r) => r.before, cell: (r) => human(r.before)},
    {title: comparison.after, number: true, sort: (r) => r.after, cell: (r) => human(r.after)},
    {title: 'Name', class: 'name', cell: (r) => r.name}], rows, 40));
  return [
    element('div', {class: 'sheet'},
      element('h2', {}, human(comparison.total_before) + ' → ' + human(comparison.total_after) + ' '),
      element('p', {}, difference === 0 ? 'The same to the byte.' : grouped(difference) + ' bytes of difference, explained without a rest:'),
      element('table', {id: 'parts'}, element('tbody', {}, ...comparison.parts.map((part) => row([
        element('td', {class: 'num', style: {width: '120px'}}, change(part.bytes)), element('td', {class: 'name'}, part.name), element('td', {class: 'dim'}, part.detail)])),
        row([element('td', {class: 'num'}, element('b', {}, change(difference))), element('td', {}, element('b', {}, 'together')), element('td')])))),
    element('div', {class: 'sheet'},
      element('div', {class: 'legend'}, ...timelines.map((timeline, i) => element('span', {}, swatch((i === 0 ? timeline.colorOf.weights : timeline.colorOf.gradients)), element('b', {}, timeline.title), human(timeline.peak.bytes) + ' alive at most'))),
      element('canvas', {id: 'compare-chart', style: {height: '240px'}, role: 'img', 'aria-label': 'Both timelines over their progress'})),
    bytesTable('By kind, at the two peaks', comparison.by_kind),
    bytesTable('By layer, at the two peaks', comparison.by_layer),
    bytesTable('Tensors that changed', comparison.by_tensor)];
}
