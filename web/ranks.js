// Ranks side by side: what each holds, and its collectives under what it computes, on one clock.

const RANK_HEIGHT = 140;
const RANK_LANE = 16;

/** Where each step of a run begins: every operator ran as often in each. @param {any} timeline @returns {number[]} operators */
function stepBegins(timeline) {
  const {operators} = timeline;
  const counts = new Map();
  for (let o = 0; o < operators.count; ++o) counts.set(operators.name[o], (counts.get(operators.name[o]) || 0) + 1);
  const common = (a, b) => b === 0 ? a : common(b, a % b);
  const steps = [...counts.values()].reduce(common, 0) || 1;
  return Array.from({length: steps}, (_, s) => s * operators.count / steps);
}

/** Of a step, or with -1 of all of them, on the clock that ranks share. @param {any} timeline @param {any} view @param {number} step */
function rankOperators(timeline, view, step) {
  const {operators, seconds} = timeline;
  const begins = stepBegins(timeline);
  const first = step < 0 ? 0 : begins[Math.min(step, begins.length - 1)];
  const end = step < 0 || step + 1 >= begins.length ? operators.count : begins[step + 1];
  const collective = new Set(view.collectives);
  const out = [];
  for (let o = first; o < end; ++o) {
    const begin = seconds[operators.time_step[o]] + view.offset_seconds;
    out.push({o, begin, end: begin + operators.seconds[o], alive: operators.alive[o], collective: collective.has(o)});
  }
  return out;
}

/** @param {HTMLCanvasElement} canvas @param {any} report @param {any[]} timelines @param {number} step */
function drawRanks(canvas, report, timelines, step) {
  canvas.style.height = report.ranks.length * RANK_HEIGHT + 24 + 'px';
  const surface = prepareCanvas(canvas);
  const {context, left, plot} = surface;
  const rows = report.ranks.map((view, i) => rankOperators(timelines[i], view, step));
  let from = Infinity;
  let to = -Infinity;
  for (const op of rows.flat()) {
    from = Math.min(from, op.begin);
    to = Math.max(to, op.end);
  }
  const x = (seconds) => left + (seconds - from) / Math.max(1e-9, to - from) * plot;
  const top = Math.max(1, ...timelines.map((timeline) => timeline.peak.bytes));
  const plotHeight = RANK_HEIGHT - 2 * RANK_LANE - 26;
  const colors = {memory: timelines[0].colorOf.activations, compute: timelines[0].colorOf.weights, collective: timelines[0].colorOf.gradients};
  rows.forEach((row, i) => {
    const ground = i * RANK_HEIGHT + 14 + plotHeight;
    drawRule(surface, ground, '');
    drawRule(surface, ground - plotHeight, human(top));
    context.beginPath();
    context.moveTo(x(row[0].begin), ground);
    row.forEach((op, k) => {
      const y = ground - op.alive / top * plotHeight;
      context.lineTo(x(op.begin), y);
      context.lineTo(x(k + 1 < row.length ? row[k + 1].begin : op.end), y);
    });
    context.lineTo(x(row[row.length - 1].end), ground);
    context.globalAlpha = .4;
    context.fillStyle = colors.memory;
    context.fill();
    context.globalAlpha = 1;
    for (const op of row) {
      context.fillStyle = op.collective ? colors.collective : colors.compute;
      context.fillRect(x(op.begin), ground + 4 + (op.collective ? RANK_LANE : 0), Math.max(.6, x(op.end) - x(op.begin)), RANK_LANE - 3);
    }
    context.textBaseline = 'middle';
    context.fillStyle = themeColor('--ink');
    context.textAlign = 'left';
    context.fillText('rank ' + report.ranks[i].rank, left + 4, ground - plotHeight + 9);
    context.fillStyle = themeColor('--quiet');
    context.textAlign = 'right';
    context.fillText('computes', left - 7, ground + 4 + (RANK_LANE - 3) / 2);
    context.fillText('sends', left - 7, ground + 4 + RANK_LANE + (RANK_LANE - 3) / 2);
  });
  const bottom = rows.length * RANK_HEIGHT + 8;
  context.fillStyle = themeColor('--quiet');
  for (let i = 0; i <= 4; ++i) {
    context.textAlign = i === 0 ? 'left' : i === 4 ? 'right' : 'center';
    context.fillText(duration((to - from) * i / 4), left + plot * i / 4, bottom);
  }
}

/** @param {any} report @param {any[]} timelines @param {(step: number) => void} choose */
function ranksPanel(report, timelines, choose) {
  const {colorOf} = timelines[0];
  const steps = Math.min(...timelines.map((timeline) => stepBegins(timeline).length));
  const select = element('select', {id: 'rank-step', onchange: () => choose(Number(byId('rank-step').value))},
    ...Array.from({length: steps}, (_, s) => element('option', {value: s}, 'step ' + (s + 1))), element('option', {value: -1}, 'all steps'));
  /** @type {any} */ (select).value = String(steps - 1);
  const exposed = Math.max(...report.ranks.map((view) => view.exposed_seconds)) / steps;
  return [
    element('div', {class: 'sheet'},
      element('h2', {}, 'Memory and collectives of ' + report.ranks.length + ' ranks'),
      element('p', {}, 'On one clock: the ends of the first collectives lie over each other. ' + (exposed < 1e-6 ? 'No rank waits for a collective.' : 'At most ' + duration(exposed) + ' a step are not hidden by computation.')),
      element('div', {class: 'legend'}, element('label', {}, 'show ', select), element('span', {}, swatch(colorOf.activations), element('b', {}, 'bytes alive')), element('span', {}, swatch(colorOf.weights), element('b', {}, 'computation')), element('span', {}, swatch(colorOf.gradients), element('b', {}, 'collectives'))),
      element('canvas', {id: 'ranks-chart', style: {height: report.ranks.length * RANK_HEIGHT + 24 + 'px'}, role: 'img', 'aria-label': 'Memory, computation and collectives of every rank over time; the table below has the numbers'})),
    element('div', {class: 'sheet'}, element('h2', {}, steps === 1 ? 'In the step' : 'In all ' + steps + ' steps'), pagedTable([
      {title: 'Rank', number: true, sort: (r) => r.view.rank, cell: (r) => grouped(r.view.rank)},
      {title: 'Alive at most', number: true, sort: (r) => r.timeline.peak.bytes, cell: (r) => element('span', {title: grouped(r.timeline.peak.bytes) + ' bytes', 'data-bytes': r.timeline.peak.bytes}, human(r.timeline.peak.bytes))},
      {title: 'Collectives', number: true, sort: (r) => r.view.collectives.length, cell: (r) => grouped(r.view.collectives.length)},
      {title: 'In collectives', number: true, sort: (r) => r.view.communication_seconds, cell: (r) => duration(r.view.communication_seconds)},
      {title: 'Not hidden', number: true, sort: (r) => r.view.exposed_seconds, cell: (r) => duration(r.view.exposed_seconds)},
      {title: 'Computing', number: true, sort: (r) => r.view.computing_seconds, cell: (r) => duration(r.view.computing_seconds)}],
      report.ranks.map((view, i) => ({view, timeline: timelines[i]}))))];
}
