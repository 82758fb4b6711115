// Which allocations are drawn: those of one memory, of one stream or of all. Everything on the timeline asks
// the selection, so a filter needs no second kind of chart.

const MOST_BUCKETS = 32768;

/** Bytes by group in buckets of ticks, each with the composition at its fullest moment: what the file holds
 * for whole memories, made here for a filter. @param {any} account @param {string} grouping @param {Uint8Array} shown */
function makeSeries(account, grouping, shown) {
  const {bands, ticks, groupings} = account;
  const {names, of} = groupings[grouping];
  const ticksPerBucket = Math.max(1, Math.ceil(ticks / MOST_BUCKETS));
  const buckets = Math.max(1, Math.ceil(ticks / ticksPerBucket));
  const groups = names.map(() => new Float64Array(buckets));
  const totals = new Float64Array(buckets);
  const endings = byEnd(bands, ticks, shown);
  const alive = new Float64Array(names.length);
  let [sum, opened, closed] = [0, 0, 0];
  for (let bucket = 0; bucket < buckets; ++bucket) {
    let most = -1;
    for (let tick = bucket * ticksPerBucket; tick < Math.min(ticks, (bucket + 1) * ticksPerBucket); ++tick) {
      for (; closed < endings.length && bands.end[endings[closed]] <= tick; ++closed) {
        const b = endings[closed];
        alive[of[b]] -= bands.bytes[b];
        sum -= bands.bytes[b];
      }
      for (; opened < bands.count && bands.begin[opened] <= tick; ++opened) {
        if (!shown[opened]) continue;
        alive[of[opened]] += bands.bytes[opened];
        sum += bands.bytes[opened];
      }
      if (sum <= most) continue;
      most = sum;
      totals[bucket] = sum;
      for (let g = 0; g < groups.length; ++g) groups[g][bucket] = alive[g];
    }
  }
  return {ticksPerBucket, buckets, groups, totals};
}

/** The shown bands in order of their end, by counting. @param {any} bands @param {number} ticks @param {Uint8Array} shown */
function byEnd(bands, ticks, shown) {
  const place = new Int32Array(ticks + 2);
  let count = 0;
  for (let b = 0; b < bands.count; ++b) if (shown[b]) { ++place[bands.end[b] + 1]; ++count; }
  for (let t = 1; t < place.length; ++t) place[t] += place[t - 1];
  const out = new Int32Array(count);
  for (let b = 0; b < bands.count; ++b) if (shown[b]) out[place[bands.end[b]]++] = b;
  return out;
}

class BandSelection {
  /** @param {any} account @param {number} memory @param {number} stream below 0: all */
  constructor(account, memory, stream) {
    this.account = account;
    this.memory = memory;
    this.stream = stream;
    this.key = memory + '/' + stream;
    /** @type {Object<string, any>} */
    this.series = stream < 0 && account.series && account.series[memory] ? {...account.series[memory]} : {};
    const {bands} = account;
    this.shown = new Uint8Array(bands.count);
    this.highest = memory === 0 && account.arena_bytes ? account.arena_bytes : 1;
    for (let b = 0; b < bands.count; ++b) {
      if (bands.memory[b] !== memory || (stream >= 0 && bands.stream[b] !== stream)) continue;
      this.shown[b] = 1;
      this.highest = Math.max(this.highest, bands.place[b] + bands.bytes[b]);
    }
    this.peak = memory === 0 && stream < 0 ? account.peak : this.findPeak();
  }

  findPeak() {
    const {bands, ticks} = this.account;
    const change = new Float64Array(ticks + 1);
    for (let b = 0; b < bands.count; ++b) {
      if (!this.shown[b]) continue;
      change[bands.begin[b]] += bands.bytes[b];
      change[bands.end[b]] -= bands.bytes[b];
    }
    const peak = {tick: 0, bytes: 0};
    let sum = 0;
    for (let t = 0; t < ticks; ++t) {
      sum += change[t];
      if (sum > peak.bytes) { peak.tick = t; peak.bytes = sum; }
    }
    return peak;
  }

  /** @param {string} grouping */
  seriesOf(grouping) {
    if (!this.series[grouping]) this.series[grouping] = makeSeries(this.account, grouping, this.shown);
    return this.series[grouping];
  }

  /** What the allocator holds of this memory, on top of what lies outside it, as [first tick, bytes, height] until
   * the next; empty: not known, or filtered. */
  get reserved() {
    const {reserved, bands, kinds} = this.account;
    const out = [];
    let ground = 0;
    for (let b = 0; b < bands.count && bands.begin[b] === 0; ++b) if (this.shown[b] && kinds[bands.kind[b]].name === 'outside the allocator') ground += bands.bytes[b];
    if (this.stream < 0) for (let r = 0; r < reserved.count; ++r) if (reserved.memory[r] === this.memory) out.push([reserved.tick[r], reserved.bytes[r], ground + reserved.bytes[r]]);
    return out;
  }
}
