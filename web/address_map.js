// The address map: time to the right, addresses upwards, every allocation a rectangle. Filled pixel by
// pixel into an image, so that half a million rectangles cost a few milliseconds and no DOM node.

/** Shares of a colour: neighbours differ a little, so that each can be seen. */
const MAP_SHADES = [1, .9, .8];

class AddressMap {
  /** @param {HTMLCanvasElement} canvas @param {any} state */
  constructor(canvas, state) {
    this.canvas = canvas;
    this.state = state;
    this.low = 0;
    this.high = 1;
    this.image = null;
    this.drawn = null;
  }

  get full() { return this.state.selection.highest; }

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
    if (!this.image || this.image.width !== wide || this.image.height !== tall) {
      this.image = context.createImageData(wide, tall);
      this.drawn = null;
    }
    this.paint(new Uint32Array(this.image.data.buffer), wide, tall);
    context.putImageData(this.image, left * ratio, 0);
    this.drawScale(context, left, height);
    this.drawLabels(context, this.labels(wide, tall), left, ratio);
    this.drawPinned(context, left, plot, height);
  }

  /** Fills the image. A view that only moved sideways keeps its pixels and fills what came into sight.
   * @param {Uint32Array} pixels @param {number} wide @param {number} tall */
  paint(pixels, wide, tall) {
    const {timeline, axis, grouping, selection, pinnedAllocation, matches} = this.state;
    const ground = themeColor('--soft');
    const span = axis.to - axis.from;
    const look = [timeline, axis.mode, grouping, selection, pinnedAllocation, matches, ground, span.toPrecision(9), this.low, this.high];
    const before = this.drawn;
    let [first, end] = [0, wide];
    let from = axis.from;
    if (before && look.every((part, i) => part === before.look[i])) {
      const shift = Math.round((axis.from - before.from) / span * wide);
      if (Math.abs(shift) < wide) {
        from = before.from + shift * span / wide;
        if (shift >= 0) {
          pixels.copyWithin(0, shift);
          first = wide - shift;
        } else {
          pixels.copyWithin(-shift, 0);
          end = -shift;
        }
      }
    }
    this.drawn = {look, from};
    if (first >= end) return;
    const empty = pixel(ground, ground, 1);
    for (let y = 0; y < tall; ++y) pixels.fill(empty, y * wide + first, y * wide + end);
    this.fill(pixels, wide, tall, ground, from, first, end);
  }

  /** Which allocations stand out: those sharing memory with the pinned one, or those searched for; null for all. */
  standsOut() {
    const {pinnedAllocation, matches, timeline} = this.state;
    if (pinnedAllocation >= 0) {
      const {place, bytes, memory} = timeline.allocations;
      const low = place[pinnedAllocation];
      const high = low + bytes[pinnedAllocation];
      return (b) => place[b] < high && low < place[b] + bytes[b] && memory[b] === memory[pinnedAllocation];
    }
    if (matches) return (b) => matches[b] === 1;
    return null;
  }

  /** Draws the allocations that meet columns [first, stop) of the image, whose left border is at `left`.
   * @param {Uint32Array} pixels @param {number} wide @param {number} tall @param {string} ground
   * @param {number} left @param {number} first @param {number} stop */
  fill(pixels, wide, tall, ground, left, first, stop) {
    const {timeline, axis, grouping, selection} = this.state;
    const {begin, end, place, bytes, blockEnd, count} = timeline.allocations;
    const {shown} = selection;
    const {colors, of} = timeline.groupings[grouping];
    const shades = MAP_SHADES.map((share) => Uint32Array.from(colors, (color) => pixel(color, ground, share)));
    const edge = Uint32Array.from(colors, (color) => pixel(color, '#000000', .72));
    const faded = Uint32Array.from(colors, (color) => pixel(color, ground, .16));
    const out = this.standsOut();
    const steps = axis.mode === 'step';
    const {seconds} = timeline;
    const scaleX = wide / (axis.to - axis.from);
    const scaleY = tall / (this.high - this.low);
    const [low, high] = [this.low, this.high];
    const firstTimeStep = axis.timeStepAt(left + (first - 1) / scaleX);
    const lastTimeStep = axis.timeStepAt(left + stop / scaleX) + 1;
    for (let b = 0; b < count; ++b) {
      if ((b & 255) === 0) while (b < count && blockEnd[b >> 8] <= firstTimeStep) b += BLOCK;
      if (b >= count || begin[b] > lastTimeStep) break;
      if (end[b] <= firstTimeStep || !shown[b] || place[b] >= high || place[b] + bytes[b] <= low) continue;
      const from = steps ? begin[b] : seconds[begin[b]];
      const to = steps ? end[b] : seconds[end[b]];
      const whole = Math.floor((from - left) * scaleX);
      const x0 = Math.max(first, whole);
      const x1 = Math.min(stop, Math.max(whole + 1, Math.floor((to - left) * scaleX)));
      if (x0 >= x1) continue;
      const y0 = Math.max(0, Math.floor(tall - (place[b] + bytes[b] - low) * scaleY));
      const y1 = Math.min(tall, Math.max(y0 + 1, Math.floor(tall - (place[b] - low) * scaleY)));
      const bright = out === null || out(b);
      const color = (bright ? shades[b % 3] : faded)[of[b]];
      if (x1 - x0 < 12) {
        for (let y = y0; y < y1; ++y) for (let x = y * wide + x0, last = y * wide + x1; x < last; ++x) pixels[x] = color;
      } else {
        for (let y = y0; y < y1; ++y) pixels.fill(color, y * wide + x0, y * wide + x1);
      }
      if (!bright || (to - from) * scaleX < 4 || y1 - y0 < 4) continue;
      pixels.fill(edge[of[b]], y0 * wide + x0, y0 * wide + x1);
      if (whole >= first) for (let y = y0; y < y1; ++y) pixels[y * wide + x0] = edge[of[b]];
    }
  }

  /** Allocations with room for a name: [allocation, x0, x1, y0, y1] in pixels. @param {number} wide @param {number} tall */
  labels(wide, tall) {
    const {timeline, axis, selection} = this.state;
    const {begin, end, place, bytes, count} = timeline.allocations;
    const scaleX = wide / (axis.to - axis.from);
    const scaleY = tall / (this.high - this.low);
    const least = 15 / scaleY;
    const out = this.standsOut();
    const found = [];
    for (let b = 0; b < count && found.length < 300; ++b) {
      if (bytes[b] < least || !selection.shown[b] || (out !== null && !out(b))) continue;
      const x0 = Math.max(0, (axis.position(begin[b]) - axis.from) * scaleX);
      const x1 = Math.min(wide, (axis.position(end[b]) - axis.from) * scaleX);
      const y0 = Math.max(0, tall - (place[b] + bytes[b] - this.low) * scaleY);
      const y1 = Math.min(tall, tall - (place[b] - this.low) * scaleY);
      if (x1 - x0 > 70 && y1 - y0 > 15) found.push([b, x0, x1, y0, y1]);
    }
    return found;
  }

  /** @param {CanvasRenderingContext2D} context @param {number[][]} labels @param {number} left @param {number} ratio */
  drawLabels(context, labels, left, ratio) {
    const {timeline, grouping} = this.state;
    const {colors, of} = timeline.groupings[grouping];
    const ground = themeColor('--soft');
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    for (const [b, x0, x1, y0, y1] of labels) {
      const room = Math.floor(((x1 - x0) / ratio - 8) / 6.4);
      const name = timeline.texts[timeline.allocations.name[b]];
      if (room <= 6 || name === 'unnamed') continue;
      context.fillStyle = textOn(mixed(colors[of[b]], ground, MAP_SHADES[b % 3]));
      context.fillText(shorten(name, room), left + x0 / ratio + 5, (y0 + y1) / 2 / ratio);
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
    const {timeline, axis, pinnedAllocation} = this.state;
    if (pinnedAllocation < 0) return;
    const {begin, end, place, bytes} = timeline.allocations;
    const x = (timeStep) => left + Math.min(plot, Math.max(0, (axis.position(timeStep) - axis.from) / (axis.to - axis.from) * plot));
    const y = (at) => Math.min(height, Math.max(0, height * (1 - (at - this.low) / (this.high - this.low))));
    context.strokeStyle = themeColor('--ink');
    context.lineWidth = 2;
    const [x0, x1, y0, y1] = [x(begin[pinnedAllocation]), x(end[pinnedAllocation]), y(place[pinnedAllocation] + bytes[pinnedAllocation]), y(place[pinnedAllocation])];
    context.strokeRect(x0, y0, Math.max(2, x1 - x0), Math.max(2, y1 - y0));
  }

  /** The allocation under a point, or -1. @param {number} x @param {number} y */
  hit(x, y) {
    const {timeline, axis, selection} = this.state;
    const {surface} = this;
    if (!surface || x < surface.left || x > surface.left + surface.plot) return -1;
    const position = axis.from + (x - surface.left) / surface.plot * (axis.to - axis.from);
    const timeStep = axis.timeStepAt(position);
    const height = surface.height - 4;
    const at = this.low + (1 - y / height) * (this.high - this.low);
    const slack = (this.high - this.low) / height;
    const {allocations} = timeline;
    let near = -1;
    for (let b = 0; b < allocations.count && allocations.begin[b] <= timeStep; ++b) {
      if (allocations.end[b] <= timeStep || !selection.shown[b]) continue;
      if (allocations.place[b] <= at && at < allocations.place[b] + allocations.bytes[b]) return b;
      if (allocations.place[b] - slack <= at && at < allocations.place[b] + allocations.bytes[b] + slack) near = b;
    }
    return near;
  }
}
