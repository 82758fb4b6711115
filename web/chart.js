// The stacked chart, and the strip of phases under it.

const PLOT_LEFT = 64;
const PLOT_RIGHT = 8;

/** Sizes a canvas to its box and gives its context in CSS pixels. @param {HTMLCanvasElement} canvas */
function prepareCanvas(canvas) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const width = Math.max(200, Math.floor(canvas.clientWidth));
  const height = Math.floor(canvas.clientHeight);
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11.5px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
  return {context, width, height, ratio, left: PLOT_LEFT, plot: width - PLOT_LEFT - PLOT_RIGHT};
}

/** Round steps of a bytes axis: powers of two, three to six lines. @param {number} top */
function byteLines(top) {
  const unit = Math.pow(2, Math.floor(Math.log2(Math.max(top, 4) / 3)));
  const lines = [];
  for (let at = 0; at <= top; at += unit) lines.push(at);
  return lines;
}

/** A line across the plot, with its label on the left. @param {any} surface @param {number} y @param {string} label */
function drawRule(surface, y, label) {
  const {context, left, plot} = surface;
  const middle = Math.round(y) + .5;
  context.lineWidth = 1;
  context.strokeStyle = themeColor('--line');
  context.beginPath();
  context.moveTo(left, middle);
  context.lineTo(left + plot, middle);
  context.stroke();
  context.fillStyle = themeColor('--quiet');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  context.fillText(label, left - 7, Math.max(8, middle));
}

/** @param {any} surface @param {number} top @param {number} height of the plot */
function drawByteAxis(surface, top, height) {
  for (const at of byteLines(top)) drawRule(surface, height - at / top * (height - 10), human(at));
}

/** @param {any} surface @param {Axis} axis @param {number} y */
function drawTimeAxis(surface, axis, y) {
  const {context, left, plot} = surface;
  context.fillStyle = themeColor('--quiet');
  context.textBaseline = 'middle';
  const marks = Math.max(2, Math.floor(plot / 150));
  for (let i = 0; i <= marks; ++i) {
    const position = axis.from + (axis.to - axis.from) * i / marks;
    context.textAlign = i === 0 ? 'left' : i === marks ? 'right' : 'center';
    const text = axis.mode === 'step' ? grouped(position) : duration(position);
    context.fillText(i === marks && axis.mode === 'step' ? text + ' ' + axis.timeline.timeStepWord + 's' : text, left + plot * i / marks, y);
  }
}

/** @param {any} surface @param {number} y @param {string} color @param {string} label @param {'left' | 'center' | 'right'} side */
function drawLevel(surface, y, color, label, side) {
  const {context, left, plot} = surface;
  context.save();
  context.strokeStyle = color;
  context.setLineDash([6, 4]);
  context.lineWidth = 1.4;
  context.beginPath();
  context.moveTo(left, y);
  context.lineTo(left + plot, y);
  context.stroke();
  context.textAlign = side;
  context.textBaseline = 'bottom';
  const [x, base] = [side === 'left' ? left + 4 : side === 'right' ? left + plot - 4 : left + plot / 2, Math.max(13, y - 2)];
  const width = context.measureText(label).width;
  context.fillStyle = themeColor('--card');  // another line may pass just above
  context.fillRect((side === 'left' ? x : side === 'right' ? x - width : x - width / 2) - 3, base - 13, width + 6, 13);
  context.fillStyle = color;
  context.fillText(label, x, base);
  context.restore();
}

class StackChart {
  /** @param {HTMLCanvasElement} canvas @param {any} state */
  constructor(canvas, state) {
    this.canvas = canvas;
    this.state = state;
    this.columns = null;
    this.image = null;
    this.top = 1;
  }

  draw() {
    const {timeline, axis, stacker, grouping, selection} = this.state;
    const surface = prepareCanvas(this.canvas);
    const {context, left, plot} = surface;
    const plotHeight = surface.height - 6;
    this.surface = surface;
    this.columns = stacker.columns(grouping, selection, axis.edges(Math.max(1, Math.floor(plot))));
    const whole = selection.memory === 0 && selection.stream < 0;
    const reserved = selection.reserved;
    this.top = 1.07 * Math.max(1, selection.peak.bytes, ...(whole ? [timeline.budget_bytes, timeline.arena_bytes, timeline.capacity_bytes] : []));
    for (const [, , height] of reserved) this.top = Math.max(this.top, height * 1.07);
    this.height = plotHeight;
    drawByteAxis(surface, this.top, plotHeight);
    this.drawAreas(surface);
    this.drawReserved(context, left, plot, reserved);
    if (whole) this.drawLevels(surface);
    this.drawPeak(context, left, plot);
    this.drawCursor(context, left, plot);
  }

  /** @param {number} bytes */
  y(bytes) { return this.height - bytes / this.top * (this.height - 10); }

  /** The peak of live bytes, the arena, the budget, the capacity. @param {any} surface */
  drawLevels(surface) {
    const {timeline} = this.state;
    const quiet = themeColor('--quiet');
    const live = timeline.peak.bytes;
    for (const [what, bytes] of [['budget', timeline.budget_bytes], ['capacity', timeline.capacity_bytes]]) {
      if (bytes) drawLevel(surface, this.y(bytes), themeColor('--warn'), what + ' ' + human(bytes), 'right');
    }
    if (timeline.arena_bytes && timeline.arena_bytes === live) drawLevel(surface, this.y(live), quiet, 'arena = live bytes ' + human(live), 'left');
    else if (timeline.arena_bytes) {
      drawLevel(surface, this.y(timeline.arena_bytes), quiet, 'arena ' + human(timeline.arena_bytes), 'left');
      drawLevel(surface, this.y(live), quiet, 'live bytes ' + human(live), 'center');
    }
  }

  /** What the allocator holds of the device, used or not, as a line over the stack.
   * @param {CanvasRenderingContext2D} context @param {number} left @param {number} plot @param {number[][]} reserved */
  drawReserved(context, left, plot, reserved) {
    if (reserved.length === 0) return;
    const {axis, timeline} = this.state;
    const x = (timeStep) => left + Math.min(plot, Math.max(0, (axis.position(timeStep) - axis.from) / (axis.to - axis.from) * plot));
    context.strokeStyle = themeColor('--ink');
    context.lineWidth = 1.2;
    context.beginPath();
    reserved.forEach(([timeStep, , height], i) => {
      context.lineTo(x(timeStep), this.y(height));
      context.lineTo(x(i + 1 < reserved.length ? reserved[i + 1][0] : timeline.time_steps), this.y(height));
    });
    context.stroke();
    const [, last, top] = reserved[reserved.length - 1];
    context.fillStyle = themeColor('--ink');
    context.textAlign = 'right';
    context.textBaseline = 'bottom';
    context.fillText('reserved ' + human(last), left + plot - 4, Math.max(13, this.y(top) - 3));
  }

  /** The stack, column by column into an image: areas of a thousand corners each would take a browser without
   * a graphics card longer than everything else together. @param {any} surface */
  drawAreas(surface) {
    const {context, ratio, left} = surface;
    const {groups, totals} = this.columns;
    const [wide, tall] = [Math.floor(totals.length * ratio), Math.floor(this.height * ratio)];
    if (!this.image || this.image.width !== wide || this.image.height !== tall) this.image = context.createImageData(wide, tall);
    const pixels = new Uint32Array(this.image.data.buffer);
    const ground = themeColor('--card');
    pixels.fill(pixel(ground, ground, 1));
    const line = pixel(themeColor('--line'), ground, 1);
    for (const at of byteLines(this.top)) pixels.fill(line, wide * Math.min(tall - 1, Math.round(this.y(at) * ratio)), wide * (1 + Math.min(tall - 1, Math.round(this.y(at) * ratio))));
    const colors = this.state.timeline.groupings[this.state.grouping].colors.map((color) => pixel(color, color, 1));
    for (let x = 0; x < wide; ++x) {
      const c = Math.floor(x / ratio);
      let sum = 0;
      let low = tall;
      for (let g = 0; g < groups.length; ++g) {
        if (groups[g][c] <= 0) continue;
        sum += groups[g][c];
        const high = Math.max(0, Math.round(this.y(sum) * ratio));
        for (let at = high * wide + x; at < low * wide; at += wide) pixels[at] = colors[g];
        low = high;
      }
    }
    context.putImageData(this.image, left * ratio, 0);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} left @param {number} plot */
  drawPeak(context, left, plot) {
    const {timeline, axis} = this.state;
    const {peak} = this.state.selection;
    if (peak.bytes === 0) return;
    const middle = (axis.position(peak.time_step) + axis.position(Math.min(timeline.time_steps, peak.time_step + 1))) / 2;
    const x = left + (middle - axis.from) / (axis.to - axis.from) * plot;
    if (x < left || x > left + plot) return;
    context.beginPath();
    context.arc(x, this.y(peak.bytes), 4.5, 0, 7);
    context.fillStyle = themeColor('--card');
    context.strokeStyle = themeColor('--ink');
    context.lineWidth = 1.8;
    context.fill();
    context.stroke();
  }

  /** @param {CanvasRenderingContext2D} context @param {number} left @param {number} plot */
  drawCursor(context, left, plot) {
    const {axis, cursorTimeStep, pinnedTimeStep} = this.state;
    for (const [timeStep, dash] of [[cursorTimeStep, [2, 3]], [pinnedTimeStep, []]]) {
      if (timeStep === null || timeStep < 0) continue;
      const x = left + (axis.position(timeStep) - axis.from) / (axis.to - axis.from) * plot;
      if (x < left || x > left + plot) continue;
      context.strokeStyle = themeColor('--ink');
      context.lineWidth = 1;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(Math.round(x) + .5, 0);
      context.lineTo(Math.round(x) + .5, this.height);
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** What lies under a point of the canvas. @param {number} x @param {number} y */
  hit(x, y) {
    const column = Math.floor(x - PLOT_LEFT);
    if (!this.columns || column < 0 || column >= this.columns.totals.length) return null;
    const bytes = (this.height - y) / (this.height - 10) * this.top;
    let sum = 0;
    let group = -1;
    for (let g = 0; g < this.columns.groups.length; ++g) {
      sum += this.columns.groups[g][column];
      if (bytes >= 0 && bytes < sum) { group = g; break; }
    }
    const {axis} = this.state;
    const timeStep = axis.timeStepAt(axis.from + (x - PLOT_LEFT) / this.columns.totals.length * (axis.to - axis.from));
    return {column, group, timeStep, total: this.columns.totals[column]};
  }
}

/** The phases of the operators as a strip, and the axis under it. @param {HTMLCanvasElement} canvas @param {any} state */
function drawPhases(canvas, state) {
  const surface = prepareCanvas(canvas);
  const {context, left, plot} = surface;
  const {timeline, axis} = state;
  const edges = axis.edges(Math.max(1, Math.floor(plot)));
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  let start = 0;
  let current = -1;
  const flush = (end) => {
    const name = current < 0 ? '' : timeline.texts[current];
    if (name !== '') {
      const group = timeline.phase_groups.indexOf(name);
      const color = group < 0 ? themeColor('--quiet') : timeline.phaseColors[group];
      context.fillStyle = color;
      context.fillRect(left + start, 2, end - start, 14);
      if (end - start > 8 * name.length) {
        context.fillStyle = textOn(color);
        context.fillText(name, left + (start + end) / 2, 9.5);
      }
    }
    start = end;
  };
  for (let c = 0; c < edges.length - 1; ++c) {
    const op = operatorAt(timeline, edges[c]);
    const phase = op < 0 ? -1 : timeline.operators.phase[op];
    // A copy belongs to no phase and interrupts none.
    if (phase !== current && phase !== 0) { flush(c); current = phase; }
  }
  flush(edges.length - 1);
  drawTimeAxis(surface, axis, 27);
}
