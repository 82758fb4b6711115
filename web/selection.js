// Which allocations are drawn: those of one memory, of one stream or of all. Everything on the timeline asks
// the selection, so a filter needs no second kind of chart.

const MOST_BUCKETS = 32768;

/** Bytes by group in buckets of time steps, each with the composition at its fullest moment: what the file holds
 * for whole memories, made here for a filter. @param {any} timeline @param {string} grouping @param {Uint8Array} shown */
function makeSeries(timeline, grouping, shown) {
  const {allocations, time_steps: timeSteps, groupings} = timeline;
  const {names, of} = groupings[grouping];
  const timeStepsPerBucket = Math.max(1, Math.ceil(timeSteps / MOST_BUCKETS));
  const buckets = Math.max(1, Math.ceil(timeSteps / timeStepsPerBucket));
  const groups = names.map(() => new Float64Array(buckets));
  const totals = new Float64Array(buckets);
  const endings = byEnd(allocations, timeSteps, shown);
  const alive = new Float64Array(names.length);
  let [sum, opened, closed] = [0, 0, 0];
  for (let bucket = 0; bucket < buckets; ++bucket) {
    let most = -1;
    for (let timeStep = bucket * timeStepsPerBucket; timeStep < Math.min(timeSteps, (bucket + 1) * timeStepsPerBucket); ++timeStep) {
      for (; closed < endings.length && allocations.end[endings[closed]] <= timeStep; ++closed) {
        const b = endings[closed];
        alive[of[b]] -= allocations.bytes[b];
        sum -= allocations.bytes[b];
      }
      for (; opened < allocations.count && allocations.begin[opened] <= timeStep; ++opened) {
        if (!shown[opened]) continue;
        alive[of[opened]] += allocations.bytes[opened];
        sum += allocations.bytes[opened];
      }
      if (sum <= most) continue;
      most = sum;
      totals[bucket] = sum;
      for (let g = 0; g < groups.length; ++g) groups[g][bucket] = alive[g];
    }
  }
  return {timeStepsPerBucket, buckets, groups, totals};
}

/** The shown allocations in order of their end, by counting. @param {any} allocations @param {number} timeSteps @param {Uint8Array} shown */
function byEnd(allocations, timeSteps, shown) {
  const place = new Int32Array(timeSteps + 2);
  let count = 0;
  for (let b = 0; b < allocations.count; ++b) if (shown[b]) { ++place[allocations.end[b] + 1]; ++count; }
  for (let t = 1; t < place.length; ++t) place[t] += place[t - 1];
  const out = new Int32Array(count);
  for (let b = 0; b < allocations.count; ++b) if (shown[b]) out[place[allocations.end[b]]++] = b;
  return out;
}

class AllocationSelection {
  /** @param {any} timeline @param {number} memory @param {number} stream below 0: all */
  constructor(timeline, memory, stream) {
    this.timeline = timeline;
    this.memory = memory;
    this.stream = stream;
    this.key = memory + '/' + stream;
    /** @type {Object<string, any>} */
    this.series = stream < 0 && timeline.series && timeline.series[memory] ? {...timeline.series[memory]} : {};
    const {allocations} = timeline;
    this.shown = new Uint8Array(allocations.count);
    this.highest = memory === 0 && timeline.arena_bytes ? timeline.arena_bytes : 1;
    for (let b = 0; b < allocations.count; ++b) {
      if (allocations.memory[b] !== memory || (stream >= 0 && allocations.stream[b] !== stream)) continue;
      this.shown[b] = 1;
      this.highest = Math.max(this.highest, allocations.place[b] + allocations.bytes[b]);
    }
    this.peak = memory === 0 && stream < 0 ? timeline.peak : this.findPeak();
  }

  findPeak() {
    const {allocations, time_steps: timeSteps} = this.timeline;
    const change = new Float64Array(timeSteps + 1);
    for (let b = 0; b < allocations.count; ++b) {
      if (!this.shown[b]) continue;
      change[allocations.begin[b]] += allocations.bytes[b];
      change[allocations.end[b]] -= allocations.bytes[b];
    }
    const peak = {time_step: 0, bytes: 0};
    let sum = 0;
    for (let t = 0; t < timeSteps; ++t) {
      sum += change[t];
      if (sum > peak.bytes) { peak.time_step = t; peak.bytes = sum; }
    }
    return peak;
  }

  /** @param {string} grouping */
  seriesOf(grouping) {
    if (!this.series[grouping]) this.series[grouping] = makeSeries(this.timeline, grouping, this.shown);
    return this.series[grouping];
  }

  /** What the allocator holds of this memory, on top of what lies outside it, as [first time step, bytes, height] until
   * the next; empty: not known, or filtered. */
  get reserved() {
    const {reserved, allocations, kinds} = this.timeline;
    const out = [];
    let ground = 0;
    for (let b = 0; b < allocations.count && allocations.begin[b] === 0; ++b) if (this.shown[b] && kinds[allocations.kind[b]].name === 'outside the allocator') ground += allocations.bytes[b];
    if (this.stream < 0) for (let r = 0; r < reserved.count; ++r) if (reserved.memory[r] === this.memory) out.push([reserved.time_step[r], reserved.bytes[r], ground + reserved.bytes[r]]);
    return out;
  }
}
