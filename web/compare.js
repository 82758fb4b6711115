// Two accounts side by side: planned against measured, or before against after.

/** @param {number} bytes */
function change(bytes) {
  return element('span', {class: bytes > 0 ? 'up' : bytes < 0 ? 'down' : '', 'data-bytes': bytes}, bytes === 0 ? '0' : signedHuman(bytes));
}

/** Operators that compute; a trace has no line for drops, and its copies need not stand in the order of the plan. @param {any} account */
function computing(account) {
  const {operators, texts} = account;
  return Array.from({length: operators.count}, (_, o) => o).filter((o) => ['compute', 'recompute'].includes(texts[operators.what[o]]));
}

/** How often the second account repeats the first one's operators; 0: they cannot be laid over each other. @param {any[]} accounts */
function repeats(accounts) {
  const [once, often] = accounts.map((account) => computing(account).length);
  return once > 0 && often % once === 0 ? often / once : 0;
}

/** Bytes for every column: of operator after operator, the most of all repeats; else of each one's own progress.
 * @param {any[]} accounts @param {number} i @param {Stacker[]} stackers @param {BandSelection[]} selections @param {number} width */
function comparedColumns(accounts, i, stackers, selections, width) {
  const {operators} = accounts[i];
  const [count, own] = [computing(accounts[0]).length, computing(accounts[i])];
  if (repeats(accounts) === 0) return stackers[i].columns('kind', selections[i], new Axis(accounts[i]).edges(width)).totals;
  return Float64Array.from({length: width}, (_, c) => {
    const first = Math.floor(c / width * count);
    const end = Math.max(first + 1, Math.floor((c + 1) / width * count));
    let most = 0;
    for (let o = first; o < end; ++o) for (let r = o; r < own.length; r += count) most = Math.max(most, operators.alive[own[r]]);
    return most;
  });
}

/** Both totals on one scale. @param {HTMLCanvasElement} canvas @param {any[]} accounts @param {Stacker[]} stackers @param {BandSelection[]} selections */
function drawComparison(canvas, accounts, stackers, selections) {
  const surface = prepareCanvas(canvas);
  const {context, left, plot} = surface;
  const height = surface.height - 20;
  const top = Math.max(1, ...accounts.map((account) => Math.max(account.peak.bytes, account.arena_bytes, account.budget_bytes))) * 1.04;
  const y = (bytes) => height - bytes / top * (height - 10);
  drawByteAxis(surface, top, height);
  accounts.forEach((account, i) => {
    const columns = comparedColumns(accounts, i, stackers, selections, Math.max(1, Math.floor(plot)));
    context.beginPath();
    columns.forEach((bytes, c) => { context.lineTo(left + c, y(bytes)); context.lineTo(left + c + 1, y(bytes)); });
    const color = (i === 0 ? account.colorOf.weights : account.colorOf.gradients);
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
  if (accounts[0].arena_bytes) drawLevel(surface, y(accounts[0].arena_bytes), themeColor('--quiet'), 'arena of ' + accounts[0].title + ' ' + human(accounts[0].arena_bytes), 'right');
  context.fillStyle = themeColor('--quiet');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const times = repeats(accounts);
  context.fillText(times === 0 ? 'from beginning to end of each' : 'operator by operator' + (times > 1 ? ', the most of ' + grouped(times) + ' steps' : ''), left + plot, height + 12);
}

/** @param {any} comparison @param {any[]} accounts */
function comparePanel(comparison, accounts) {
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
      element('div', {class: 'legend'}, ...accounts.map((account, i) => element('span', {}, swatch((i === 0 ? account.colorOf.weights : account.colorOf.gradients)), element('b', {}, account.title), human(account.peak.bytes) + ' alive at most'))),
      element('canvas', {id: 'compare-chart', style: {height: '240px'}, role: 'img', 'aria-label': 'Both accounts over their progress'})),
    bytesTable('By kind, at the two peaks', comparison.by_kind),
    bytesTable('By layer, at the two peaks', comparison.by_layer),
    bytesTable('Tensors that changed', comparison.by_tensor)];
}
