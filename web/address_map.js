// The address map: time to the right, addresses upwards, every allocation a rectangle. Filled pixel by
// pixel into an image, so that half a million rectangles cost a few milliseconds and no DOM node.

/** "#4477aa" as the 32 bits of a pixel, mixed with a ground colour. @param {string} color @param {string} ground @param {number} share of the colour */
function pixel(color, ground, share) {
  const parse = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [a, b] = [parse(color), parse(ground)];
  const mixed = a.map((part, i) => Math.round(part * share + b[i] * (1 - share)));
  return (255 << 24 | mixed[2] << 16 | mixed[1] << 8 | mixed[0]) >>> 0;
}

class AddressMap {
  /** @param {HTMLCanvasElement} canvas @param {any} state */
  constructor(canvas, state) {
    this.canvas = canvas;
    this.state = state;
    this.low = 0;
    this.high = 1;
    this.image = null;
  }

  get full() { return this.state.highest[this.state.memory] || 1; }

  reset() { this.low = 0; this.high = this.full; }

  /** @param {number} factor @param {number} share from the bottom */
  zoom(factor, share) {
    const height = Math.min(this.full, Math.max(256, (this.high - this.low) * factor));
    const still = this.low + (this.high - this.low) * share;
    this.low = Math.min(Math.max(0, still - height * share), this.full - height);
    this.high = this.low + height;
  }

  /** @param {number} share of the height */
  pan(share) {
    const height = this.high - this.low;
    this.low = Math.min(Math.max(0, this.low + height * share), this.full - height);
    this.high = this.low + height;
  }

  draw() {
    const surface = prepareCanvas(this.canvas);
    this.surface = surface;
    const {context, ratio, left, plot} = surface;
    const height = surface.height - 4;
    const wide = Math.max(1, Math.floor(plot * ratio));
    const tall = Math.max(1, Math.floor(height * ratio));
    if (!this.image || this.image.width !== wide || this.image.height !== tall) this.image = context.createImageData(wide, tall);
    const pixels = new Uint32Array(this.image.data.buffer);
    const ground = themeColor('--soft');
    pixels.fill(pixel(ground, ground, 1));
    const labels = this.fill(pixels, wide, tall, ground);
    context.putImageData(this.image, left * ratio, 0);
    this.drawScale(context, left, height);
    this.drawLabels(context, labels, left, ratio);
    this.drawPinned(context, left, plot, height);
  }

  /** Which bands stand out: those sharing memory with the pinned one, or those searched for; null for all. */
  standsOut() {
    const {pinnedBand, matches, account} = this.state;
    if (pinnedBand >= 0) {
      const {place, bytes, memory} = account.bands;
      const low = place[pinnedBand];
      const high = low + bytes[pinnedBand];
      return (b) => place[b] < high && low < place[b] + bytes[b] && memory[b] === memory[pinnedBand];
    }
    if (matches) return (b) => matches[b] === 1;
    return null;
  }

  /** @param {Uint32Array} pixels @param {number} wide @param {number} tall @param {string} ground */
  fill(pixels, wide, tall, ground) {
    const {account, axis, grouping, memory} = this.state;
    const {bands} = account;
    const {colors, of} = account.groupings[grouping];
    // Neighbours of one colour differ a little, so that each can be seen.
    const shades = [1, .9, .8].map((share) => Uint32Array.from(colors, (color) => pixel(color, ground, share)));
    const edge = Uint32Array.from(colors, (color) => pixel(color, '#000000', .72));
    const faded = Uint32Array.from(colors, (color) => pixel(color, ground, .16));
    const out = this.standsOut();
    const steps = axis.mode === 'step';
    const {seconds} = account;
    const scaleX = wide / (axis.to - axis.from);
    const scaleY = tall / (this.high - this.low);
    const labels = [];
    const {begin, end, place, bytes, blockEnd} = bands;
    const memories = bands.memory;
    const count = bands.count;
    const [low, high] = [this.low, this.high];
    const firstTick = axis.tickAt(axis.from);
    const lastTick = axis.tickAt(axis.to) + 1;
    for (let b = 0; b < count; ++b) {
      if ((b & 255) === 0) while (b < count && blockEnd[b >> 8] <= firstTick) b += BLOCK;
      if (b >= count || begin[b] > lastTick) break;
      if (end[b] <= firstTick || memories[b] !== memory || place[b] >= high || place[b] + bytes[b] <= low) continue;
      const from = steps ? begin[b] : seconds[begin[b]];
      const to = steps ? end[b] : seconds[end[b]];
      const x0 = Math.max(0, Math.floor((from - axis.from) * scaleX));
      const x1 = Math.min(wide, Math.max(x0 + 1, Math.floor((to - axis.from) * scaleX)));
      const y0 = Math.max(0, Math.floor(tall - (place[b] + bytes[b] - low) * scaleY));
      const y1 = Math.min(tall, Math.max(y0 + 1, Math.floor(tall - (place[b] - low) * scaleY)));
      const bright = out === null || out(b);
      const color = (bright ? shades[b % 3] : faded)[of[b]];
      if (x1 - x0 < 12) {
        for (let y = y0; y < y1; ++y) for (let x = y * wide + x0, stop = y * wide + x1; x < stop; ++x) pixels[x] = color;
      } else {
        for (let y = y0; y < y1; ++y) pixels.fill(color, y * wide + x0, y * wide + x1);
      }
      if (!bright || x1 - x0 < 4 || y1 - y0 < 4) continue;
      pixels.fill(edge[of[b]], y0 * wide + x0, y0 * wide + x1);
      for (let y = y0; y < y1; ++y) pixels[y * wide + x0] = edge[of[b]];
      if (labels.length < 300 && x1 - x0 > 70 && y1 - y0 > 15) labels.push([b, x0, x1, y0, y1]);
    }
    return labels;
  }

  /** @param {CanvasRenderingContext2D} context @param {number[][]} labels @param {number} left @param {number} ratio */
  drawLabels(context, labels, left, ratio) {
    const {account} = this.state;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillStyle = '#0c141b';
    for (const [b, x0, x1, y0, y1] of labels) {
      const room = Math.floor(((x1 - x0) / ratio - 8) / 6);
      const name = account.texts[account.bands.name[b]];
      const text = name.length <= room ? name : name.slice(0, Math.max(0, room - 1)) + '…';
      if (room > 4) context.fillText(text, left + x0 / ratio + 5, (y0 + y1) / 2 / ratio);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {number} left @param {number} height */
  drawScale(context, left, height) {
    context.fillStyle = themeColor('--quiet');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (let i = 0; i <= 4; ++i) {
      const y = Math.min(height - 6, Math.max(7, height * (1 - i / 4)));
      context.fillText(human(Math.round(this.low + (this.high - this.low) * i / 4)), left - 7, y);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {number} left @param {number} plot @param {number} height */
  drawPinned(context, left, plot, height) {
    const {account, axis, pinnedBand} = this.state;
    if (pinnedBand < 0) return;
    const {begin, end, place, bytes} = account.bands;
    const x = (tick) => left + Math.min(plot, Math.max(0, (axis.position(tick) - axis.from) / (axis.to - axis.from) * plot));
    const y = (at) => Math.min(height, Math.max(0, height * (1 - (at - this.low) / (this.high - this.low))));
    context.strokeStyle = themeColor('--ink');
    context.lineWidth = 2;
    const [x0, x1, y0, y1] = [x(begin[pinnedBand]), x(end[pinnedBand]), y(place[pinnedBand] + bytes[pinnedBand]), y(place[pinnedBand])];
    context.strokeRect(x0, y0, Math.max(2, x1 - x0), Math.max(2, y1 - y0));
  }

  /** The allocation under a point, or -1. @param {number} x @param {number} y */
  hit(x, y) {
    const {account, axis, memory} = this.state;
    const {surface} = this;
    if (!surface || x < surface.left || x > surface.left + surface.plot) return -1;
    const position = axis.from + (x - surface.left) / surface.plot * (axis.to - axis.from);
    const tick = axis.tickAt(position);
    const height = surface.height - 4;
    const at = this.low + (1 - y / height) * (this.high - this.low);
    const slack = (this.high - this.low) / height;
    const {bands} = account;
    let near = -1;
    for (let b = 0; b < bands.count && bands.begin[b] <= tick; ++b) {
      if (bands.end[b] <= tick || bands.memory[b] !== memory) continue;
      if (bands.place[b] <= at && at < bands.place[b] + bands.bytes[b]) return b;
      if (bands.place[b] - slack <= at && at < bands.place[b] + bands.bytes[b] + slack) near = b;
    }
    return near;
  }
}
