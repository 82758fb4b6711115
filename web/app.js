// What happens when: state, controls, keys.

const TABS = [['timeline', 'Timeline'], ['peak', 'Peak'], ['graph', 'Graph'], ['operators', 'Operators'], ['layers', 'Layers'], ['remedies', 'Remedies'], ['ranks', 'Ranks'], ['compare', 'Compare'], ['curve', 'Curve']];

class App {
  /** @param {any} report @param {any[]} timelines */
  constructor(report, timelines) {
    this.report = report;
    this.timelines = timelines;
    this.stackers = timelines.map((timeline) => new Stacker(timeline));
    this.wholes = timelines.map((timeline) => new AllocationSelection(timeline, 0, -1));
    this.tab = 'timeline';
    this.frame = 0;
    this.functions = {duration, shorten, textOn, contrast, mixed, MAP_SHADES};  // for tests
    this.state = {};
    this.chart = new StackChart(byId('stack'), this.state);
    this.map = new AddressMap(byId('map'), this.state);
    this.useTimeline(0);
    this.bind();
    if (report.comparison) this.show('compare');
    if (report.ranks) this.show('ranks');
  }

  /** @param {number} index */
  useTimeline(index) {
    const timeline = this.timelines[index];
    Object.assign(this.state, {timeline, stacker: this.stackers[index], axis: new Axis(timeline), grouping: timeline.useful.includes(this.state.grouping) ? this.state.grouping : timeline.useful[0],
      selection: this.wholes[index], cursorTimeStep: null, pinnedTimeStep: null, pinnedAllocation: -1, matches: null});
    this.map.reset();
    this.header();
    this.controls();
    this.panels();
    this.legend();
    this.inspectTimeStep(this.state.selection.peak.time_step, false);
    this.draw();
  }

  header() {
    const {timeline} = this.state;
    const {report} = this;
    document.title = report.title + ' · Plimsoll';
    const words = {plan: 'a plan: what will be in memory, step by step', trace: 'a trace: what was in memory, event by event', snapshot: 'a PyTorch snapshot: what its allocator did'};
    const {headline, advice, reserved, replayed} = timeline.diagnosis;
    // The problem is the headline; what the report is of stands below it.
    const problem = !report.comparison && !report.ranks && headline !== '';
    byId('title').textContent = problem ? headline : report.title;
    byId('subtitle').textContent = report.ranks ? grouped(report.ranks.length) + ' ranks that trained together: what was in their memory' : report.comparison ? 'Two timelines: ' + this.timelines.map((a) => a.title).join(' and ') : (problem ? report.title + ' · ' : '') + words[timeline.source];
    byId('advice').hidden = advice.length === 0;
    byId('advice').replaceChildren(...advice.map((text) => element('li', {}, text)));
    byId('notes').hidden = timeline.notes.length === 0;
    byId('notes').textContent = timeline.notes.join(' · ');
    const cards = [card('peak', 'Alive at the peak', human(timeline.peak.bytes), grouped(timeline.peak.bytes) + ' bytes', timeline.peak.bytes)];
    if (timeline.source !== 'plan' && reserved > 0) cards.push(card('reserved', 'Reserved', human(reserved), reserved > timeline.diagnosis.alive ? ((reserved / timeline.diagnosis.alive - 1) * 100).toFixed(1) + ' % more than is alive' : 'all of it alive', reserved));
    const ours = replayed.find((figure) => figure.name === 'plimsoll');
    if (ours) cards.push(card('replayed', 'With plimsoll’s allocator', human(ours.reserved), 'reserved, when replayed', ours.reserved));
    if (timeline.arena_bytes) {
      const gap = timeline.arena_bytes - timeline.peak.bytes;
      cards.push(card('arena', 'Arena, packed', human(timeline.arena_bytes), gap === 0 ? 'no byte lost between buffers' : (gap / timeline.peak.bytes * 100).toFixed(2) + ' % above what is alive', timeline.arena_bytes));
    }
    if (timeline.budget_bytes) cards.push(card('budget', 'Budget', human(timeline.budget_bytes), human(timeline.budget_bytes - timeline.arena_bytes) + ' left', timeline.budget_bytes));
    cards.push(card('when', 'Peak at', timeline.timeStepWord + ' ' + grouped(timeline.peak.time_step), 'of ' + grouped(timeline.time_steps)));
    cards.push(card('allocations', timeline.source === 'plan' ? 'Buffers' : 'Allocations', grouped(timeline.allocations.count), grouped(timeline.peak_set_count) + ' alive at the peak'));
    const waits = timeline.predicted_seconds - timeline.duration;  // for copies that do not fit beside the work
    const seconds = waits > 0 ? timeline.predicted_seconds : timeline.duration;
    if (seconds > 0) cards.push(card('time', timeline.source === 'plan' ? 'Predicted time' : 'Recorded time', duration(seconds), waits > timeline.duration * .01 ? duration(waits) + ' of it waiting for copies' : timeline.operators.count > 0 ? grouped(timeline.operators.count) + ' operators' : 'first to last event'));
    byId('cards').replaceChildren(...cards);
  }

  controls() {
    const {timeline} = this.state;
    const groupings = {kind: 'Kind', layer: timeline.file_layers ? 'Source' : 'Layer', size: 'Size', phase: 'Phase'};
    this.fillSwitch('group-switch', timeline.useful.map((grouping) => [grouping, groupings[grouping]]), this.state.grouping, (grouping) => { this.state.grouping = grouping; this.legend(); this.inspectAgain(); this.draw(); });
    byId('group-switch').hidden = timeline.useful.length < 2;
    const axes = [['step', timeline.source === 'plan' ? 'Steps' : 'Events']];
    if (timeline.duration > 0) axes.push(['time', 'Time']);
    this.fillSwitch('axis-switch', axes, this.state.axis.mode, (mode) => { this.state.axis.setMode(mode); this.draw(); });
    byId('memory-choice').hidden = timeline.memories.length < 2;
    byId('memory').replaceChildren(...timeline.memories.map((name, i) => element('option', {value: i}, name)));
    byId('stream-choice').hidden = timeline.streams.length < 2;
    byId('stream').replaceChildren(element('option', {value: -1}, 'all'), ...timeline.streams.map((name, i) => element('option', {value: i}, name)));
    byId('timeline-label').hidden = this.timelines.length < 2;
    if (byId('timeline-choice').options.length === 0) byId('timeline-choice').replaceChildren(...this.timelines.map((a, i) => element('option', {value: i}, a.title)));
  }

  /** @param {string} id @param {string[][]} choices @param {string} chosen @param {(value: string) => void} choose */
  fillSwitch(id, choices, chosen, choose) {
    const box = byId(id);
    const span = element('span');
    for (const [value, label] of choices) {
      span.append(element('button', {type: 'button', 'data-value': value, 'aria-pressed': String(value === chosen), onclick: () => {
        for (const button of span.children) button.setAttribute('aria-pressed', String(/** @type {any} */ (button).dataset.value === value));
        choose(value);
      }}, label));
    }
    box.replaceChildren(box.querySelector('legend'), span);
  }

  panels() {
    const {timeline} = this.state;
    const compare = this.report.comparison;
    // Built when first shown: a table of a million rows should not delay the chart.
    const open = (allocation) => { this.pin(allocation, true); this.show('timeline'); };
    this.unbuilt = new Map();
    this.graph = null;
    if (timeline.peak_set.length > 0) this.unbuilt.set('peak', () => peakPanel(timeline, open));
    if (timeline.graph && timeline.graph.nodes.count > 0) this.unbuilt.set('graph', () => { this.graph = new GraphTab(timeline, open); return this.graph.panel(); });
    if (timeline.operators.count > 0 || hasSites(timeline)) this.unbuilt.set('operators', () => operatorsPanel(timeline));
    if (timeline.layers.some((row) => row.path !== '(no layer)')) this.unbuilt.set('layers', () => layersPanel(timeline));
    if (hasRemedies(timeline)) this.unbuilt.set('remedies', () => remediesPanel(timeline));
    if (compare) this.unbuilt.set('compare', () => comparePanel(compare, this.timelines));
    if (this.report.ranks) this.unbuilt.set('ranks', () => ranksPanel(this.report, this.timelines, () => this.draw()));
    if (this.report.curve) this.unbuilt.set('curve', () => curvePanel(this.report.curve));
    // A tab with nothing in it is no tab.
    for (const [id] of TABS) if (id !== 'timeline') byId('panel-' + id).toggleAttribute('data-empty', !this.unbuilt.has(id));
    if (this.tab !== 'timeline' && !this.unbuilt.has(this.tab)) this.tab = 'timeline';
    for (const [id] of TABS) byId('panel-' + id).hidden = id !== this.tab;
    this.build(this.tab);
    const planned = this.timelines.length === 2 && this.timelines[0].source === 'plan' && this.timelines[1].source !== 'plan';
    const tabs = TABS.filter(([id]) => !byId('panel-' + id).hasAttribute('data-empty')).map(([id, label]) =>
      element('button', {type: 'button', role: 'tab', id: 'tab-' + id, 'aria-controls': 'panel-' + id, 'aria-selected': String(id === this.tab), onclick: () => this.show(id)},
        id === 'compare' ? planned ? 'Planned vs measured' : 'Difference' : id === 'operators' && timeline.operators.count === 0 ? 'Sites' : id === 'layers' && timeline.file_layers ? 'Sources' : label));
    byId('tabs').replaceChildren(...tabs);
  }

  /** @param {string} tab */
  build(tab) {
    const make = this.unbuilt.get(tab);
    if (!make) return;
    this.unbuilt.delete(tab);
    byId('panel-' + tab).replaceChildren(...make());
  }

  /** @param {string} tab */
  show(tab) {
    if (!byId('tab-' + tab)) return;
    this.tab = tab;
    this.build(tab);
    for (const [id] of TABS) {
      byId('panel-' + id).hidden = id !== tab;
      const button = byId('tab-' + id);
      if (button) button.setAttribute('aria-selected', String(id === tab));
    }
    byId('tip').hidden = true;
    this.draw();
  }

  legend() {
    const {timeline, grouping, selection, stacker} = this.state;
    const {names, colors} = timeline.groupings[grouping];
    const at = stacker.at(grouping, selection, selection.peak.time_step);
    byId('legend').replaceChildren(...names.map((name, g) => at[g] > 0 || timeline.groupings[grouping].of.includes(g) ?
      element('span', {'data-group': name, 'data-bytes': at[g], title: name}, swatch(colors[g]), element('b', {}, shorten(name, 44)), human(at[g])) : null).filter((entry) => entry));
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.drawNow(); });
  }

  drawNow() {
    if (this.tab === 'timeline') {
      this.chart.draw();
      drawPhases(byId('phases'), this.state);
      this.map.draw();
    } else if (this.tab === 'graph' && this.graph) this.graph.fit();
    else if (this.tab === 'operators' && byId('operator-chart')) drawOperators(byId('operator-chart'), this.state.timeline);
    else if (this.tab === 'remedies' && byId('lanes')) drawLanes(byId('lanes'), this.state.timeline);
    else if (this.tab === 'compare' && byId('compare-chart')) drawComparison(byId('compare-chart'), this.timelines, this.stackers, this.wholes);
    else if (this.tab === 'ranks' && byId('ranks-chart')) drawRanks(byId('ranks-chart'), this.report, this.timelines, Number(byId('rank-step').value));
    else if (this.tab === 'curve' && byId('curve-chart')) drawCurve(byId('curve-chart'), this.report.curve);
  }

  // Everything that prints, drawn although it is hidden.
  drawAll() {
    const tab = this.tab;
    for (const [id] of TABS) {
      this.tab = id;
      this.build(id);
      this.drawNow();
    }
    this.tab = tab;
  }

  /** @param {number} allocation @param {boolean} zoom */
  pin(allocation, zoom) {
    const {timeline, axis} = this.state;
    const {begin, end} = timeline.allocations;
    this.state.pinnedAllocation = allocation;
    this.state.pinnedTimeStep = null;
    if (zoom) {
      const [from, to] = [axis.position(begin[allocation]), axis.position(end[allocation])];
      axis.show(from - (to - from) * .3 - (axis.mode === 'step' ? 4 : 0), to + (to - from) * .3 + (axis.mode === 'step' ? 4 : 0));
    }
    this.inspectAllocation(allocation);
    this.draw();
  }

  unpin() {
    this.state.pinnedAllocation = -1;
    this.state.pinnedTimeStep = null;
    this.inspectTimeStep(this.state.selection.peak.time_step, false);
    this.draw();
  }

  /** @param {number} memory @param {number} stream */
  select(memory, stream) {
    this.state.selection = new AllocationSelection(this.state.timeline, memory, stream);
    this.map.reset();
    this.legend();
    this.unpin();
  }

  /** @param {number} b */
  facts(b) {
    const {timeline} = this.state;
    const {allocations, texts} = timeline;
    const producer = operatorName(timeline, allocations.producer[b]);
    const reader = operatorName(timeline, allocations.last_reader[b]);
    const facts = [['Bytes', grouped(allocations.bytes[b]) + ' (' + human(allocations.bytes[b]) + ')'], ['Type', texts[allocations.type[b]]], ['Kind', timeline.kinds[allocations.kind[b]].name],
      ['Layer', texts[allocations.layer[b]]], ['Phase', texts[allocations.phase[b]]],
      ['Alive', timeline.timeStepWord + 's ' + grouped(allocations.begin[b]) + ' to ' + grouped(allocations.end[b] - 1)],
      [timeline.source === 'plan' ? 'Offset' : 'Place', grouped(allocations.place[b])],
      [timeline.source === 'plan' ? 'Made by' : 'Made for', producer], [timeline.source === 'plan' ? 'Last reader' : 'Freed after', reader]];
    if (timeline.streams.length > 1) facts.push(['Stream', timeline.streams[allocations.stream[b]]]);
    return facts.filter(([, value]) => value !== '');
  }

  /** @param {number} b */
  inspectAllocation(b) {
    const {timeline} = this.state;
    const {allocations, texts} = timeline;
    const row = timeline.peak_set.find((entry) => entry.allocation === b);
    const shares = [];
    for (let o = 0; o < allocations.count && shares.length < 400; ++o) {
      if (o !== b && allocations.memory[o] === allocations.memory[b] && allocations.place[o] < allocations.place[b] + allocations.bytes[b] && allocations.place[b] < allocations.place[o] + allocations.bytes[o]) shares.push(o);
    }
    const parts = [element('h2', {id: 'inspected'}, allocationName(timeline, b)), element('p', {class: 'sub'}, 'pinned · Esc lets go'),
      element('dl', {}, ...this.facts(b).flatMap(([label, value]) => [element('dt', {}, label), element('dd', {}, value)]))];
    if (row) {
      parts.push(element('h3', {}, 'Why alive at the peak'), element('p', {class: 'sub'}, row.why));
      for (const price of row.prices) parts.push(element('div', {}, priceChip(price)), element('p', {class: 'sub'}, price.detail));
    }
    if (texts[allocations.origin[b]] !== '') parts.push(element('h3', {}, 'Allocated by'), element('pre', {}, texts[allocations.origin[b]]));
    parts.push(element('h3', {}, shares.length === 0 ? 'Shares its memory with nothing' : 'Shares its memory with ' + grouped(shares.length) + (shares.length >= 400 ? ' or more' : '')), this.allocationList(shares.slice(0, 12)));
    byId('inspector').replaceChildren(...parts);
  }

  /** @param {number[]} list */
  allocationList(list) {
    const {timeline} = this.state;
    const {allocations, texts} = timeline;
    const {colors, of} = timeline.groupings[this.state.grouping];
    return element('ol', {}, ...list.map((b) => element('li', {}, swatch(colors[of[b]]),
      element('button', {type: 'button', title: texts[allocations.name[b]], onclick: () => this.pin(b, false)}, shorten(allocationName(timeline, b), 23)), element('span', {class: 'num'}, human(allocations.bytes[b])))));
  }

  /** The same moment or allocation in the colours of another grouping. */
  inspectAgain() {
    const {pinnedAllocation, pinnedTimeStep, selection} = this.state;
    if (pinnedAllocation >= 0) this.inspectAllocation(pinnedAllocation);
    else this.inspectTimeStep(pinnedTimeStep === null ? selection.peak.time_step : pinnedTimeStep, pinnedTimeStep !== null);
  }

  /** @param {number} timeStep @param {boolean} pinned */
  inspectTimeStep(timeStep, pinned) {
    const {timeline, selection, stacker} = this.state;
    const alive = aliveAt(selection, timeStep);
    const total = alive.reduce((sum, b) => sum + timeline.allocations.bytes[b], 0);
    const op = operatorAt(timeline, timeStep);
    const {grouping} = this.state;
    const {names, colors} = timeline.groupings[grouping];
    const groups = stacker.at(grouping, selection, timeStep);
    const parts = [element('h2', {id: 'inspected'}, timeline.timeStepWord + ' ' + grouped(timeStep) + (timeStep === selection.peak.time_step ? ' · the peak' : '')),
      element('p', {class: 'sub'}, (op >= 0 ? operatorName(timeline, op) : '') + (timeline.duration > 0 ? (op >= 0 ? ' · ' : '') + 'at ' + duration(timeline.seconds[Math.min(timeStep, timeline.seconds.length - 1)]) : '')),
      element('dl', {}, element('dt', {}, 'Alive'), element('dd', {id: 'inspected-bytes', 'data-bytes': total}, human(total) + ' in ' + grouped(alive.length)))];
    parts.push(bar(names.map((name, g) => ({color: colors[g], share: groups[g] / Math.max(1, total), title: name}))));
    parts.push(element('h3', {}, 'Largest'), this.allocationList(alive.slice(0, 14)));
    if (!pinned) parts.push(element('p', {class: 'sub', style: {marginTop: '10px'}}, 'Click the chart to see another ' + timeline.timeStepWord + ', a rectangle to see an allocation.'));
    byId('inspector').replaceChildren(...parts);
  }

  /** @param {MouseEvent} event @param {string} title @param {string[]} lines */
  tip(event, title, lines) {
    const tip = byId('tip');
    tip.replaceChildren(element('b', {}, title), ...lines.map((line) => element('span', {}, line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8) + 'px';
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - box.height - 8) + 'px';
  }

  /** @param {string} query */
  search(query) {
    const {timeline} = this.state;
    const wanted = query.trim().toLowerCase();
    this.state.matches = null;
    byId('search-result').textContent = '';
    if (wanted !== '') {
      const {allocations, texts} = timeline;
      const hit = texts.map((text) => text.toLowerCase().includes(wanted));
      const {shown, peak} = this.state.selection;
      const matches = new Uint8Array(allocations.count);
      let count = 0;
      let bytes = 0;
      for (let b = 0; b < allocations.count; ++b) {
        if (!hit[allocations.name[b]] && !hit[allocations.layer[b]] && !hit[allocations.origin[b]]) continue;
        matches[b] = 1;
        ++count;
        if (allocations.begin[b] <= peak.time_step && peak.time_step < allocations.end[b] && shown[b]) bytes += allocations.bytes[b];
      }
      this.state.matches = matches;
      byId('search-result').textContent = grouped(count) + ' found, ' + human(bytes) + ' at the peak';
    }
    this.state.pinnedAllocation = -1;
    this.draw();
  }

  // The largest match.
  jumpToMatch() {
    const {matches, timeline} = this.state;
    if (!matches) return;
    let best = -1;
    matches.forEach((match, b) => { if (match && (best < 0 || timeline.allocations.bytes[b] > timeline.allocations.bytes[best])) best = b; });
    if (best >= 0) this.pin(best, true);
  }

  zoomToPeak() {
    const {axis, timeline} = this.state;
    const middle = axis.position(this.state.selection.peak.time_step);
    const half = (axis.mode === 'step' ? Math.max(12, timeline.time_steps / 40) : timeline.duration / 40);
    axis.show(middle - half, middle + half);
    this.draw();
  }

  resetView() {
    this.state.axis.reset();
    this.map.reset();
    this.draw();
  }

  bind() {
    const {state} = this;
    this.bindCanvas(byId('stack'), (event, x, y) => {
      const hit = this.chart.hit(x, y);
      state.cursorTimeStep = hit ? hit.timeStep : null;
      if (!hit) { byId('tip').hidden = true; return; }
      const op = operatorAt(state.timeline, hit.timeStep);
      const {names} = state.timeline.groupings[state.grouping];
      const lines = [human(hit.total) + ' alive'];
      if (hit.group >= 0) lines.unshift(names[hit.group] + ' ' + human(this.chart.columns.groups[hit.group][hit.column]));
      if (op >= 0) lines.push(operatorName(state.timeline, op));
      this.tip(event, state.timeline.timeStepWord + ' ' + grouped(hit.timeStep), lines);
    }, (x, y) => {
      const hit = this.chart.hit(x, y);
      if (!hit) return;
      state.pinnedTimeStep = hit.timeStep;
      state.pinnedAllocation = -1;
      this.inspectTimeStep(hit.timeStep, true);
    });
    this.bindCanvas(byId('map'), (event, x, y) => {
      const b = this.map.hit(x, y);
      if (b < 0) { byId('tip').hidden = true; return; }
      this.tip(event, allocationName(state.timeline, b), this.facts(b).slice(0, 9).map(([label, value]) => label + ': ' + value));
    }, (x, y) => {
      const b = this.map.hit(x, y);
      if (b >= 0) this.pin(b, false); else this.unpin();
    });
    byId('search').addEventListener('input', (event) => this.search(event.target.value));
    byId('search').addEventListener('keydown', (event) => { if (event.key === 'Enter') this.jumpToMatch(); });
    for (const id of ['memory', 'stream']) byId(id).addEventListener('change', () => this.select(Number(byId('memory').value), Number(byId('stream').value)));
    byId('timeline-choice').addEventListener('change', (event) => this.useTimeline(Number(event.target.value)));
    byId('zoom-in').addEventListener('click', () => { state.axis.zoom(.6, .5); this.draw(); });
    byId('zoom-out').addEventListener('click', () => { state.axis.zoom(1 / .6, .5); this.draw(); });
    byId('zoom-peak').addEventListener('click', () => this.zoomToPeak());
    byId('zoom-all').addEventListener('click', () => this.resetView());
    byId('theme').addEventListener('click', () => this.switchTheme());
    byId('help-button').addEventListener('click', () => this.help());
    window.addEventListener('resize', () => this.draw());
    let theme;
    // Paper is white, whatever the screen is.
    window.addEventListener('beforeprint', () => { theme = document.documentElement.dataset.theme; this.useTheme('light'); this.drawAll(); });
    window.addEventListener('afterprint', () => { this.useTheme(theme); this.draw(); });
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { themeColors.clear(); this.draw(); });
    document.addEventListener('keydown', (event) => this.key(event));
  }

  /** Wheel zooms, dragging pans, a click without a drag picks.
   * @param {HTMLCanvasElement} canvas @param {(event: MouseEvent, x: number, y: number) => void} hover @param {(x: number, y: number) => void} pick */
  bindCanvas(canvas, hover, pick) {
    let drag = null;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      const amount = Math.exp(Math.max(-1, Math.min(1, (event.deltaY || event.deltaX) / 300)));
      if (event.shiftKey && canvas.id === 'map') this.map.zoom(amount, 1 - (event.clientY - box.top) / box.height);
      else this.state.axis.zoom(amount, Math.min(1, Math.max(0, (event.clientX - box.left - PLOT_LEFT) / (box.width - PLOT_LEFT - PLOT_RIGHT))));
      this.draw();
    }, {passive: false});
    canvas.addEventListener('pointerdown', (event) => { drag = {x: event.clientX, y: event.clientY, moved: false}; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener('pointermove', (event) => {
      const box = canvas.getBoundingClientRect();
      if (!drag) {
        hover(event, event.clientX - box.left, event.clientY - box.top);
        if (canvas.id === 'stack') this.draw();
        return;
      }
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag = {x: event.clientX, y: event.clientY, moved: true};
      this.state.axis.pan(-dx / (box.width - PLOT_LEFT - PLOT_RIGHT));
      if (canvas.id === 'map') this.map.pan(dy / box.height);
      byId('tip').hidden = true;
      this.draw();
    });
    canvas.addEventListener('pointerup', (event) => {
      const box = canvas.getBoundingClientRect();
      if (drag && !drag.moved) pick(event.clientX - box.left, event.clientY - box.top);
      drag = null;
      this.draw();
    });
    canvas.addEventListener('pointerleave', () => { byId('tip').hidden = true; this.state.cursorTimeStep = null; this.draw(); });
    canvas.addEventListener('dblclick', () => this.resetView());
  }

  switchTheme() {
    switchTheme();
    this.draw();
  }

  /** @param {string | undefined} theme nothing: what the system prefers */
  useTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    themeColors.clear();
  }

  help() {
    const keys = [['← →', 'move along the axis'], ['+ −', 'zoom in and out'], ['0', 'show all'], ['↑ ↓', 'move along the addresses, on the map'], ['[ ]', 'zoom addresses out and in'], ['p', 'go to the peak'], ['x', 'steps or time'], ['g', 'stack by kind, layer or phase'],
      ['/', 'search; Enter jumps to the largest match'], ['1 … 8', 'tabs, from the left'], ['arrows, Enter', 'in the graph: move, open and fold'], ['t', 'light or dark'], ['Esc', 'let go of what is pinned']];
    const dialog = byId('help');
    dialog.replaceChildren(element('h2', {style: {margin: 0, fontSize: '16px'}}, 'Keys'), element('dl', {}, ...keys.flatMap(([key, what]) => [element('dt', {}, key), element('dd', {}, what)])),
      element('p', {class: 'sub'}, 'Scroll zooms where the pointer is, dragging moves, a double click shows all.'), element('form', {method: 'dialog'}, element('button', {}, 'Close')));
    dialog.showModal();
  }

  /** @param {string} id presses the button after the chosen one */
  nextOf(id) {
    const buttons = [...byId(id).querySelectorAll('button')];
    const chosen = buttons.findIndex((button) => button.getAttribute('aria-pressed') === 'true');
    buttons[(chosen + 1) % buttons.length].click();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') { if (target.id === 'search') target.blur(); this.unpin(); return; }
    if (['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName)) return;
    if (['ArrowUp', 'ArrowDown'].includes(event.key) && target.tagName !== 'CANVAS') return;  // scrolls the page
    const {axis} = this.state;
    const actions = {ArrowLeft: () => axis.pan(-.15), ArrowRight: () => axis.pan(.15), '+': () => axis.zoom(.6, .5), '=': () => axis.zoom(.6, .5), '-': () => axis.zoom(1 / .6, .5),
      ArrowUp: () => this.map.pan(.15), ArrowDown: () => this.map.pan(-.15), '[': () => this.map.zoom(1 / .6, .5), ']': () => this.map.zoom(.6, .5),
      '0': () => this.resetView(), p: () => this.zoomToPeak(), t: () => this.switchTheme(), '?': () => this.help(), x: () => this.nextOf('axis-switch'), g: () => this.nextOf('group-switch'),
      '/': () => { this.show('timeline'); byId('search').focus(); }};
    const tab = '12345678'.indexOf(event.key);
    const tabs = byId('tabs').children;
    if (tab >= 0) { if (tab < tabs.length) this.show(tabs[tab].id.slice(4)); }
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
    this.draw();
  }
}

async function start() {
  const source = byId('data');
  const report = JSON.parse(source.textContent);
  source.textContent = '';
  const timelines = [];
  for (const stored of report.timelines) timelines.push(await decodeTimeline(stored, report.group_colors));
  const app = timelines.length > 0 ? new App(report, timelines) : new CurvePage(report);
  app.drawNow();
  // Milliseconds since navigation.
  document.body.setAttribute('data-ready', String(Math.round(performance.now())));
  window['plimsollReport'] = app;
}

start().catch((problem) => {
  document.body.setAttribute('data-failed', '');
  byId('title').textContent = 'This report cannot be shown';
  byId('subtitle').textContent = String(problem) + '. Browsers since 2023 can show it.';
});
