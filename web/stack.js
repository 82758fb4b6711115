// Bytes by group for every column of pixels. No peak is lost at any zoom: a column shows the fullest
// moment inside it. Windows of up to EXACT_TIME_STEPS time steps are summed here from the allocations themselves;
// wider ones use the selection's series.

const EXACT_TIME_STEPS = 65536;

class Stacker {
  /** @param {any} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.key = '';
    this.sums = new Float64Array(0);  // [time step][group], running
    this.totals = new Float64Array(0);
    this.first = 0;
  }

  /** Running sums over [first, last), kept until another window or grouping is asked for.
   * @param {string} grouping @param {AllocationSelection} selection @param {number} first @param {number} last */
  prepare(grouping, selection, first, last) {
    if (this.timeline.time_steps <= EXACT_TIME_STEPS) { first = 0; last = Math.max(1, this.timeline.time_steps); }
    const key = grouping + '/' + selection.key + '/' + first + '/' + last;
    if (key === this.key) return;
    const {allocations, groupings} = this.timeline;
    const {names, of} = groupings[grouping];
    const count = names.length;
    const timeSteps = last - first;
    if (this.sums.length < (timeSteps + 1) * count) this.sums = new Float64Array((timeSteps + 1) * count);
    else this.sums.fill(0, 0, (timeSteps + 1) * count);
    if (this.totals.length < timeSteps) this.totals = new Float64Array(timeSteps);
    const {begin, end, bytes, blockEnd} = allocations;
    const {shown} = selection;
    for (let b = 0; b < allocations.count; ++b) {
      if ((b & 255) === 0) while (b < allocations.count && blockEnd[b >> 8] <= first) b += BLOCK;
      if (b >= allocations.count || begin[b] >= last) break;
      if (end[b] <= first || !shown[b]) continue;
      this.sums[(begin[b] > first ? begin[b] - first : 0) * count + of[b]] += bytes[b];
      this.sums[(end[b] < last ? end[b] - first : timeSteps) * count + of[b]] -= bytes[b];
    }
    for (let t = 0; t < timeSteps; ++t) {
      let total = 0;
      for (let g = 0; g < count; ++g) {
        if (t > 0) this.sums[t * count + g] += this.sums[(t - 1) * count + g];
        total += this.sums[t * count + g];
      }
      this.totals[t] = total;
    }
    this.key = key;
    this.first = first;
  }

  /** Stacks for columns whose time steps are [edges[c], edges[c + 1]), at least one each.
   * @param {string} grouping @param {AllocationSelection} selection @param {Int32Array} edges
   * @returns {{groups: Float64Array[], totals: Float64Array}} */
  columns(grouping, selection, edges) {
    const width = edges.length - 1;
    const count = this.timeline.groupings[grouping].names.length;
    const out = {groups: Array.from({length: count}, () => new Float64Array(width)), totals: new Float64Array(width)};
    const first = edges[0];
    const last = Math.max(edges[width], first + 1);
    if (last - first > EXACT_TIME_STEPS) this.fromSeries(selection.seriesOf(grouping), edges, out);
    else this.fromSums(grouping, selection, first, last, edges, out);
    return out;
  }

  /** @param {any} series @param {Int32Array} edges @param {any} out */
  fromSeries(series, edges, out) {
    const per = series.timeStepsPerBucket;
    for (let c = 0; c + 1 < edges.length; ++c) {
      let best = Math.min(series.buckets - 1, Math.floor(edges[c] / per));
      const end = Math.min(series.buckets, Math.ceil(edges[c + 1] / per));
      for (let b = best + 1; b < end; ++b) if (series.totals[b] > series.totals[best]) best = b;
      out.totals[c] = series.totals[best];
      for (let g = 0; g < out.groups.length; ++g) out.groups[g][c] = series.groups[g][best];
    }
  }

  /** @param {string} grouping @param {AllocationSelection} selection @param {number} first @param {number} last
   * @param {Int32Array} edges @param {any} out */
  fromSums(grouping, selection, first, last, edges, out) {
    this.prepare(grouping, selection, first, last);
    const count = out.groups.length;
    for (let c = 0; c + 1 < edges.length; ++c) {
      let best = edges[c] - this.first;
      const end = Math.max(edges[c + 1], edges[c] + 1) - this.first;
      for (let t = best + 1; t < end; ++t) if (this.totals[t] > this.totals[best]) best = t;
      out.totals[c] = this.totals[best];
      for (let g = 0; g < count; ++g) out.groups[g][c] = this.sums[best * count + g];
    }
  }

  /** The composition at one time step, summed from the allocations. @param {string} grouping @param {AllocationSelection} selection @param {number} timeStep */
  at(grouping, selection, timeStep) {
    const {allocations, groupings} = this.timeline;
    const out = new Float64Array(groupings[grouping].names.length);
    for (let b = 0; b < allocations.count && allocations.begin[b] <= timeStep; ++b) {
      if (allocations.end[b] > timeStep && selection.shown[b]) out[groupings[grouping].of[b]] += allocations.bytes[b];
    }
    return out;
  }
}

/** Indices of what is alive at a time step, largest first. @param {AllocationSelection} selection @param {number} timeStep */
function aliveAt(selection, timeStep) {
  const {allocations} = selection.timeline;
  const found = [];
  for (let b = 0; b < allocations.count && allocations.begin[b] <= timeStep; ++b) {
    if (allocations.end[b] > timeStep && selection.shown[b]) found.push(b);
  }
  return found.sort((a, b) => allocations.bytes[b] - allocations.bytes[a]);
}

/** The last operator that begins at or before a time step; -1 for none. @param {any} timeline @param {number} timeStep */
function operatorAt(timeline, timeStep) {
  const timeSteps = timeline.operators.time_step;
  let low = 0;
  let high = timeSteps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeSteps[middle] <= timeStep) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// The x axis: steps or seconds, with the part of it that is in view.
class Axis {
  /** @param {any} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.mode = 'step';
    this.reset();
  }

  get span() { return this.mode === 'step' ? Math.max(1, this.timeline.time_steps) : this.timeline.duration; }

  reset() { this.from = 0; this.to = this.span; }

  /** @param {string} mode */
  setMode(mode) {
    const first = this.timeStepAt(this.from);
    const last = Math.min(this.timeline.time_steps, this.timeStepAt(this.to) + 1);
    const all = this.from <= 0 && this.to >= this.span;
    this.mode = mode;
    if (all) this.reset(); else this.show(this.position(first), this.position(last));
  }

  /** @param {number} timeStep */
  position(timeStep) { return this.mode === 'step' ? timeStep : this.timeline.seconds[Math.min(timeStep, this.timeline.time_steps)]; }

  /** The time step that covers a position. @param {number} position */
  timeStepAt(position) {
    const last = Math.max(0, this.timeline.time_steps - 1);
    if (this.mode === 'step') return Math.min(last, Math.max(0, Math.floor(position)));
    const {seconds} = this.timeline;
    let low = 0;
    let high = this.timeline.time_steps;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (seconds[middle] <= position) low = middle + 1; else high = middle;
    }
    return Math.min(last, Math.max(0, low - 1));
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    const least = this.mode === 'step' ? 2 : this.span / 1e7;
    let width = Math.min(this.span, Math.max(least, to - from));
    if (!(width > 0)) width = 1;
    const start = Math.min(Math.max(0, from), Math.max(0, this.span - width));
    this.from = start;
    this.to = start + width;
  }

  /** @param {number} factor above 1 zooms out @param {number} share where in the view stays still, 0 to 1 */
  zoom(factor, share) {
    const width = (this.to - this.from) * factor;
    const still = this.from + (this.to - this.from) * share;
    this.show(still - width * share, still + width * (1 - share));
  }

  /** @param {number} share of the width */
  pan(share) {
    const shift = (this.to - this.from) * share;
    this.show(this.from + shift, this.to + shift);
  }

  /** Time steps at the borders of `width` columns. @param {number} width */
  edges(width) {
    const out = new Int32Array(width + 1);
    for (let c = 0; c <= width; ++c) {
      const position = this.from + (this.to - this.from) * c / width;
      out[c] = c === width && this.to >= this.span ? this.timeline.time_steps : this.timeStepAt(position);
    }
    return out;
  }
}
