// The curve of a sweep: peak memory against time, a point for every plan.

/** @param {number} share */
function percent(share) { return (share * 100).toFixed(Math.abs(share) < .0995 ? 2 : 1) + ' %'; }

/** 1, 2 or 5 times a power of ten, so that about four of them make the span. @param {number} span */
function roundUnit(span) {
  const power = Math.pow(10, Math.floor(Math.log10(span / 4)));
  return [1, 2, 5, 10].map((times) => power * times).find((unit) => span / unit <= 6);
}

/** Where points lie on the canvas. @param {any} surface @param {any} curve */
function curveScale(surface, curve) {
  const {points} = curve;
  const margin = Math.max(1, (points[points.length - 1].peak - points[0].peak) * .06);
  const [low, high] = [points[0].peak - margin, points[points.length - 1].peak + margin];
  const slowest = Math.max(1e-4, ...points.map((point) => point.overhead)) * 1.12;
  const height = surface.height - 44;
  return {low, high, slowest, height, x: (bytes) => surface.left + (bytes - low) / (high - low) * surface.plot, y: (overhead) => height - overhead / slowest * (height - 14)};
}

/** @param {HTMLCanvasElement} canvas @param {any} curve */
function drawCurve(canvas, curve) {
  const surface = prepareCanvas(canvas);
  const {context, left, plot} = surface;
  const {points} = curve;
  const scale = curveScale(surface, curve);
  for (let at = 0; at <= scale.slowest; at += roundUnit(scale.slowest)) {
    drawRule(surface, scale.y(at), '+' + Number((at * 100).toPrecision(3)) + ' %');
  }
  context.fillStyle = themeColor('--quiet');
  for (let i = 0; i <= 4; ++i) {
    context.textAlign = i === 0 ? 'left' : i === 4 ? 'right' : 'center';
    context.fillText(human(Math.max(0, Math.round(scale.low + (scale.high - scale.low) * i / 4))), left + plot * i / 4, scale.height + 14);
  }
  context.textAlign = 'center';
  context.fillText('peak memory', left + plot / 2, scale.height + 32);
  if (points.some((point) => point.lower_bound_overhead > 0)) {
    // What is proven for a point holds for every smaller budget.
    const bound = points.flatMap((point, i) => (i === 0 ? [point] : [points[i - 1], point]).map((at) => [scale.x(at.peak), scale.y(point.lower_bound_overhead)]));
    strokePoints(context, bound, themeColor('--shrink'), [5, 4]);
  }
  const stairs = points.flatMap((point, i) => i === 0 ? [[scale.x(point.peak), scale.y(point.overhead)]] : [[scale.x(point.peak), scale.y(points[i - 1].overhead)], [scale.x(point.peak), scale.y(point.overhead)]]);
  strokePoints(context, stairs, themeColor('--accent'), []);
  for (const point of points) {
    context.beginPath();
    context.arc(scale.x(point.peak), scale.y(point.overhead), 4.5, 0, 7);
    context.fillStyle = themeColor('--card');
    context.fill();
    context.stroke();
  }
}

/** @param {CanvasRenderingContext2D} context @param {number[][]} points @param {string} color @param {number[]} dash */
function strokePoints(context, points, color, dash) {
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.setLineDash(dash);
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  context.stroke();
  context.setLineDash([]);
}

/** @param {any} curve */
function curvePanel(curve) {
  const {points} = curve;
  const [smallest, largest] = [points[0], points[points.length - 1]];
  const bounded = points.some((point) => point.lower_bound_overhead > 0);
  const canvas = element('canvas', {id: 'curve-chart', style: {height: '380px'}, role: 'img', 'aria-label': 'More time against peak memory; the table below has the numbers'});
  return [
    element('div', {class: 'sheet'}, element('h2', {}, 'Peak memory against time'),
      element('p', {}, human(largest.peak) + ' at full speed; ' + human(smallest.peak) + ' (' + percent(smallest.peak / Math.max(1, largest.peak)) + ' of it) at ' + percent(smallest.overhead) + ' more time. Every point is a plan; between two points the plan of the smaller one is the best that was found.' +
        (bounded ? ' Dashed: below it no plan can be.' : '')), canvas),
    element('div', {class: 'sheet'}, pagedTable([
      {title: 'Peak', number: true, sort: (p) => p.peak, cell: (p) => element('span', {title: grouped(p.peak) + ' bytes', 'data-bytes': p.peak}, human(p.peak))},
      {title: 'More time', number: true, sort: (p) => p.overhead, cell: (p) => percent(p.overhead)},
      {title: 'At least', number: true, cell: (p) => percent(p.lower_bound_overhead)},
      {title: 'Step', number: true, sort: (p) => p.seconds, cell: (p) => duration(p.seconds)},
      {title: 'Recomputed', number: true, sort: (p) => p.recomputed, cell: (p) => grouped(p.recomputed)},
      {title: 'Swapped', number: true, sort: (p) => p.swapped, cell: (p) => human(p.swapped)},
      {title: 'Encoded', number: true, sort: (p) => p.encoded, cell: (p) => human(p.encoded)}], points))];
}

// A report of a curve alone: the same header and panel, no timeline.
class CurvePage {
  /** @param {any} report */
  constructor(report) {
    const {points} = report.curve;
    this.curve = report.curve;
    document.title = report.title + ' · Plimsoll';
    byId('title').textContent = report.title;
    byId('subtitle').textContent = 'A sweep: the fastest plan found for every budget';
    const [smallest, largest] = [points[0], points[points.length - 1]];
    byId('cards').replaceChildren(card('largest', 'At full speed', human(largest.peak), grouped(largest.peak) + ' bytes', largest.peak),
      card('smallest', 'Smallest', human(smallest.peak), grouped(smallest.peak) + ' bytes', smallest.peak),
      card('slower', 'There, slower by', percent(smallest.overhead), duration(smallest.seconds) + ' a step'), card('points', 'Plans', grouped(points.length), 'one for each budget'));
    for (const id of ['timeline', 'peak', 'graph', 'operators', 'layers', 'remedies', 'ranks', 'compare']) { byId('panel-' + id).hidden = true; byId('panel-' + id).setAttribute('data-empty', ''); }
    byId('tabs').hidden = true;
    byId('help-button').hidden = true;
    byId('panel-curve').replaceChildren(...curvePanel(report.curve));
    byId('panel-curve').hidden = false;
    const restyle = () => { switchTheme(); this.drawNow(); };
    byId('theme').addEventListener('click', restyle);
    document.addEventListener('keydown', (event) => { if (event.key === 't') restyle(); });
    for (const event of ['resize', 'beforeprint']) window.addEventListener(event, () => this.drawNow());
  }

  drawNow() { drawCurve(byId('curve-chart'), this.curve); }
}
