// The graph: what flows where, layers folded into boxes as wide as the memory they hold. Every layer is laid out
// by itself and drawn as one block of the layer above it, so the work is linear in what is open, and no edge
// leaves its frame: what enters or leaves a layer ends at the border of its box.

const BOX_HEIGHT = 58;
const ROW_GAP = 34;
const LANE = 11;
const OPEN_AT_FIRST = 40;
const MOST_BOXES = 2500;
const DEEPEST_LAYER = 32;
const MOST_CHILDREN = 300;

/** A layer, an operator, or what belongs to a layer as a whole. @param {string} kind @param {string} name @param {string} path @param {any} parent @param {number} kinds */
function graphItem(kind, name, path, parent, kinds) {
  return {kind, name, path, parent, depth: parent ? parent.depth + 1 : 0, children: [], byName: new Map(), order: Infinity, last: -1, operators: 0, firstOperators: [], open: false,
    allocations: [], edges: new Map(), peak: new Float64Array(kinds), all: new Float64Array(kinds), x: 0, y: 0, w: 0, h: 0, rank: 0, row: 0, box: null};
}

/** The tree of layers with operators as leaves; every item knows its bytes. @param {any} timeline */
function graphTree(timeline) {
  const {graph, texts, allocations, kinds, peak} = timeline;
  const root = graphItem('layer', '', '', null, kinds.length);
  const layers = new Map();
  const layerOf = (text) => {
    if (layers.has(text)) return layers.get(text);
    let at = root;
    const parts = texts[text] === '' ? [] : texts[text].split('.');
    if (parts.length > DEEPEST_LAYER) parts.push(parts.splice(DEEPEST_LAYER - 1).join('.'));
    parts.forEach((part, i) => {
      if (!at.byName.has(part)) {
        const child = graphItem('layer', part, parts.slice(0, i + 1).join('.'), at, kinds.length);
        at.byName.set(part, child);
        at.children.push(child);
      }
      at = at.byName.get(part);
    });
    layers.set(text, at);
    return at;
  };
  const operators = [];
  for (let n = 0; n < graph.nodes.count; ++n) {
    const layer = layerOf(graph.nodes.layer[n]);
    if (graph.nodes.phase[n] !== 0) { operators.push(null); continue; }
    const op = texts[graph.nodes.op[n]];
    const item = graphItem('operator', op, (layer.path ? layer.path + '/' : '') + op, layer, kinds.length);
    item.order = item.last = n;
    item.operators = 1;
    item.firstOperators.push(op);
    layer.children.push(item);
    operators.push(item);
    for (let up = layer; up; up = up.parent) {
      up.order = Math.min(up.order, n);
      up.last = n;
      ++up.operators;
      if (up.firstOperators.length < 4) up.firstOperators.push(op);
    }
  }
  for (let b = 0; b < allocations.count; ++b) {
    if (allocations.memory[b] !== 0) continue;
    const node = graph.node_of_allocation[b];
    let item = node >= 0 ? operators[node] : null;
    if (!item) {
      const layer = layerOf(allocations.layer[b]);
      if (!layer.rest) layer.rest = graphItem('rest', 'gradients and more', (layer.path ? layer.path + ': ' : '') + 'gradients and more', layer, kinds.length);
      item = layer.rest;
    }
    item.allocations.push(b);
    const alive = allocations.begin[b] <= peak.time_step && peak.time_step < allocations.end[b];
    for (let up = item; up; up = up.parent) {
      up.all[allocations.kind[b]] += allocations.bytes[b];
      if (alive) up.peak[allocations.kind[b]] += allocations.bytes[b];
    }
  }
  settle(root);
  root.children.forEach((child) => setDepth(child, 1));
  return {root, operators};
}

/** @param {any} item @param {number} depth */
function setDepth(item, depth) {
  item.depth = depth;
  item.children.forEach((child) => setDepth(child, depth + 1));
}

/** A layer of thousands (a model without layers, a stack of a thousand blocks) is shown as parts of a hundred. @param {any} layer */
function divide(layer) {
  while (layer.children.length > MOST_CHILDREN) {
    const parts = [];
    for (let first = 0; first < layer.children.length; first += 100) {
      const own = layer.children.slice(first, first + 100);
      const operators = own.every((child) => child.kind === 'operator');
      const name = operators ? 'operators ' + grouped(first + 1) + ' to ' + grouped(first + own.length) : own[0].name + ' … ' + own[own.length - 1].name;
      const part = graphItem('layer', name, (layer.path ? layer.path + ': ' : '') + name, layer, layer.peak.length);
      part.part = true;
      part.leaf = false;
      part.children = own;
      for (const child of own) {
        child.parent = part;
        part.order = Math.min(part.order, child.order);
        part.last = Math.max(part.last, child.last);
        part.operators += child.operators;
        if (part.firstOperators.length < 4) part.firstOperators.push(...child.firstOperators.slice(0, 4));
        child.peak.forEach((bytes, k) => { part.peak[k] += bytes; part.all[k] += child.all[k]; });
      }
      parts.push(part);
    }
    layer.children = parts;
  }
}

/** Merges layers that only hold one other layer, and gives what belongs to a whole layer its place. @param {any} layer */
function settle(layer) {
  layer.children = layer.children.map((child) => {
    let only = child;
    while (only.kind === 'layer' && only.children.length === 1 && only.children[0].kind === 'layer' && !only.rest) {
      const inner = only.children[0];
      inner.name = only.name + '.' + inner.name;
      inner.parent = layer;
      only = inner;
    }
    return only;
  });
  for (const child of layer.children) if (child.kind === 'layer') settle(child);
  // A layer of one operator is that operator with the layer's name.
  const single = layer.parent && layer.children.length <= 1 && layer.children.every((child) => child.kind === 'operator');
  if (layer.rest && layer.children.length > 0 && !single) layer.children.push(layer.rest);
  layer.children.sort((a, b) => a.order === b.order ? 0 : a.order - b.order);
  layer.leaf = single || layer.children.length === 0;
  divide(layer);
}

/** Lifts every edge to the innermost layer that holds both ends. @param {any} timeline @param {any[]} operators */
function liftEdges(timeline, operators) {
  const {edges} = timeline.graph;
  const add = (frame, from, to, e) => {
    const key = (from ? from.order + '/' + from.depth + '/' + from.path : 'in') + '\u0000' + (to ? to.order + '/' + to.depth + '/' + to.path : 'out');
    const known = frame.edges.get(key);
    if (known) { if (!known.values.has(edges.name[e])) { known.values.add(edges.name[e]); known.bytes += edges.bytes[e]; } }
    else frame.edges.set(key, {from, to, bytes: edges.bytes[e], type: edges.type[e], values: new Set([edges.name[e]])});
  };
  for (let e = 0; e < edges.count; ++e) {
    let [from, to] = [operators[edges.from[e]], operators[edges.to[e]]];
    if (!from || !to) continue;
    const [source, target] = [from, to];
    while (from.parent !== to.parent) {
      if (from.depth > to.depth || (from.depth === to.depth && from.parent.depth > to.parent.depth)) { if (!from.parent.leaf) add(from.parent, from, null, e); from = from.parent; }
      else if (to.depth > from.depth) { if (!to.parent.leaf) add(to.parent, null, to, e); to = to.parent; }
      else {
        if (!from.parent.leaf) add(from.parent, from, null, e);
        if (!to.parent.leaf) add(to.parent, null, to, e);
        [from, to] = [from.parent, to.parent];
      }
    }
    if (from !== to && source !== target && !from.parent.leaf) add(from.parent, from, to, e);
  }
}

/** Rows of a layer: every child stands below what it reads. @param {any} frame */
function rankChildren(frame) {
  const children = frame.parts;
  const place = new Map(children.map((child, i) => [child, i]));
  const edges = [...frame.edges.values()];
  const after = new Map(children.map((child) => [child, []]));
  for (const child of children) { child.rank = 0; child.reads = false; child.linked = false; }
  for (const edge of edges) {
    for (const end of [edge.from, edge.to]) if (end) end.linked = true;
    if (!edge.from) { if (edge.to) edge.to.reads = true; continue; }
    if (!edge.to || place.get(edge.to) <= place.get(edge.from)) continue;  // what leaves, or runs back up
    edge.to.reads = true;
    after.get(edge.from).push(edge.to);
  }
  for (const child of children) for (const next of after.get(child)) next.rank = Math.max(next.rank, child.rank + 1);
  let last = 0;
  for (const child of children) last = Math.max(last, child.rank);
  for (const child of children) {
    // What nothing feeds stands just above its first reader; what has no edge at all, below everything.
    if (!child.reads && after.get(child).length > 0) child.rank = Math.max(0, Math.min(...after.get(child).map((next) => next.rank)) - 1);
    if (!child.linked && children.some((other) => other.linked)) child.rank = last + 1;
  }
  const rows = [];
  for (const child of children) (rows[child.rank] = rows[child.rank] || []).push(child);
  return rows.filter((row) => row);
}

/** Places the children of an open layer; gives the size of the frame. @param {any} frame @param {any} view {width, widest} */
function layOut(frame, view) {
  frame.parts = view.parts(frame);
  for (const child of frame.parts) {
    if (child.open) layOut(child, view);
    else {
      child.w = Math.round(view.least + (view.most - view.least) * view.bytes(child) / view.largest);
      child.h = BOX_HEIGHT;
    }
  }
  const rows = [];
  for (const row of rankChildren(frame)) {  // a row that is too wide goes on below
    let [part, width] = [[], 0];
    for (const child of row) {
      if (part.length > 0 && width + child.w > view.width) { rows.push(part); part = []; width = 0; }
      part.push(child);
      width += child.w + 18;
    }
    rows.push(part);
  }
  rows.forEach((row, r) => { for (const child of row) child.row = r; });
  const into = new Map();
  for (const edge of frame.edges.values()) if (edge.from && edge.to && edge.from.row < edge.to.row) into.set(edge.to, [...(into.get(edge.to) || []), edge.from]);
  const pad = frame.parent ? 14 : 4;
  let y = frame.parent ? 40 : 6;
  if ([...frame.edges.values()].some((edge) => !edge.from)) y += 16;
  let inner = frame.parent ? 180 : 0;
  for (const row of rows) {
    const middle = (child) => { const from = into.get(child); return from ? from.reduce((sum, one) => sum + one.x + one.w / 2, 0) / from.length : 0; };
    const wanted = new Map(row.map((child) => [child, middle(child)]));
    row.sort((a, b) => wanted.get(a) - wanted.get(b));
    const width = row.reduce((sum, child) => sum + child.w + 18, -18);
    let x = -width / 2;
    for (const child of row) { child.x = x; child.y = y; x += child.w + 18; }
    inner = Math.max(inner, width);
    y += Math.max(...row.map((child) => child.h)) + ROW_GAP;
  }
  for (const child of frame.parts) child.x += pad + inner / 2;
  frame.lanes = assignLanes(frame, rows.length);
  frame.inner = pad + inner;
  frame.w = pad * 2 + inner + (frame.lanes > 0 ? frame.lanes * LANE + 8 : 0);
  frame.h = y - ROW_GAP + pad + ([...frame.edges.values()].some((edge) => !edge.to) ? 14 : 0);
}

/** Edges past a row run beside the boxes, in as few lanes as do not meet; those of one source share a lane.
 * @param {any} frame @param {number} rows */
function assignLanes(frame, rows) {
  const far = new Map();
  for (const edge of frame.edges.values()) {
    const [begin, end] = [edge.from ? edge.from.row : -1, edge.to ? edge.to.row : rows];
    edge.lane = -1;
    if (end - begin === 1) continue;
    const known = far.get(edge.from);
    const [low, high] = [Math.min(begin, end), Math.max(begin, end)];
    if (known) { known.edges.push(edge); known.begin = Math.min(known.begin, low); known.end = Math.max(known.end, high); }
    else far.set(edge.from, {edges: [edge], begin: low, end: high});
  }
  const busy = [];
  for (const {edges, begin, end} of [...far.values()].sort((a, b) => a.begin - b.begin || b.end - a.end)) {
    let lane = busy.findIndex((until) => until <= begin);
    if (lane < 0) lane = busy.length < 9 ? busy.length : busy.indexOf(Math.min(...busy));
    busy[lane] = Math.max(end, busy[lane] || 0);
    for (const edge of edges) edge.lane = lane;
  }
  return busy.length;
}

/** The namespace of pictures, as the mark of this page has it: an address written here would look like a request. */
const SVG = document.querySelector('svg').namespaceURI;

/** @param {string} tag @param {Object<string, any>} attributes */
function svgElement(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

class GraphTab {
  /** @param {any} timeline @param {(allocation: number) => void} open shows an allocation on the timeline */
  constructor(timeline, open) {
    this.timeline = timeline;
    this.open = open;
    this.by = 'peak';
    const {root, operators} = graphTree(timeline);
    this.root = root;
    this.operators = operators;
    liftEdges(timeline, operators);
    root.open = true;
    this.openAtFirst();
    this.selected = null;
    this.canvas = element('div', {class: 'graph', id: 'graph', role: 'tree', 'aria-label': 'Layers, from input to output. Arrow keys move, right opens, left folds.'});
    this.aside = element('aside', {id: 'graph-inspector', class: 'inspector', 'aria-live': 'polite'});
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  /** Opens whole levels while there is room to see them at once. */
  openAtFirst() {
    let level = this.root.children;
    let shown = level.length;
    for (;;) {
      const layers = level.filter((item) => !item.leaf && item.kind === 'layer' && item.children.some((child) => child.kind === 'layer'));
      const more = layers.reduce((sum, item) => sum + item.children.length - 1, 0);
      if (layers.length === 0 || shown + more > OPEN_AT_FIRST) return;
      for (const item of layers) item.open = true;
      shown += more;
      level = layers.flatMap((item) => item.children);
    }
  }

  panel() {
    const choose = (by) => { this.by = by; for (const button of widths.children) button.setAttribute('aria-pressed', String(button.getAttribute('data-value') === by)); this.render(); };
    const widths = element('span', {}, ...[['peak', 'At the peak'], ['all', 'In all']].map(([by, label]) =>
      element('button', {type: 'button', 'data-value': by, 'aria-pressed': String(by === this.by), onclick: () => choose(by)}, label)));
    const {kinds} = this.timeline;
    const used = kinds.filter((_, k) => this.root.all[k] > 0);
    this.found = element('span', {role: 'status'});
    const search = element('input', {type: 'search', id: 'graph-search', placeholder: 'layer or operator', autocomplete: 'off', spellcheck: 'false', onkeydown: (event) => { if (event.key === 'Enter') this.find(event.target.value); }});
    this.render();
    this.inspect(this.root);
    return [element('div', {class: 'controls'},
      element('fieldset', {class: 'switch'}, element('legend', {}, 'Width'), widths),
      element('label', {class: 'grow'}, 'find ', search), this.found,
      element('span', {class: 'buttons'}, element('button', {type: 'button', id: 'graph-fold', onclick: () => this.setAll(false)}, 'Fold all'), element('button', {type: 'button', id: 'graph-open', onclick: () => this.setAll(true)}, 'Open all'))),
    element('div', {class: 'legend'}, ...used.map((kind) => element('span', {}, swatch(kind.color), element('b', {}, kind.name)))),
    element('div', {class: 'timeline'}, element('div', {class: 'charts graph-box'}, this.canvas), this.aside)];
  }

  /** @param {any} item */
  bytes(item) { return item[this.by].reduce((sum, bytes) => sum + bytes, 0); }

  /** @param {boolean} open */
  setAll(open) {
    let shown = 0;
    const visit = (item) => {
      for (const child of item.children) {
        ++shown;
        child.open = open && !child.leaf && child.kind === 'layer' && shown < MOST_BOXES;
        if (child.open || !open) visit(child);
      }
    };
    visit(this.root);
    this.found.textContent = shown >= MOST_BOXES ? 'opened until ' + grouped(MOST_BOXES) + ' boxes were shown' : '';
    this.render();
  }

  /** Items that can be seen, from the top. */
  shown() {
    const out = [];
    const visit = (item) => { for (const child of this.parts(item)) { out.push(child); if (child.open) visit(child); } };
    visit(this.root);
    return out;
  }

  /** What is drawn of a layer: gradients only where there are any. @param {any} item */
  parts(item) { return item.children.filter((child) => child.kind !== 'rest' || this.bytes(child) > 0); }

  render() {
    const shown = this.shown();
    const room = Math.max(300, (this.canvas.parentElement ? this.canvas.parentElement.clientWidth : 900) - 30);
    const least = 190;
    const view = {width: Math.max(room - 120, 420), least, most: Math.min(430, Math.max(least + 60, room - 150)), largest: shown.reduce((most, item) => item.open ? most : Math.max(most, this.bytes(item)), 1), bytes: (item) => this.bytes(item), parts: (item) => this.parts(item)};
    this.drawnFor = room;
    layOut(this.root, view);
    // Twice the nearer border keeps the picture in the middle; what is wider scrolls.
    this.canvas.style.width = this.root.w + 'px';
    this.canvas.style.height = this.root.h + 'px';
    this.canvas.replaceChildren(this.edgesOf(this.root), ...this.root.parts.map((child) => this.boxOf(child, 1)));
    this.mark();
  }

  /** A number alone says nothing: "h.3", not "3". @param {any} item */
  nameOf(item) {
    let up = item.parent;
    while (up && up.part) up = up.parent;
    const above = up ? up.name.slice(up.name.lastIndexOf('.') + 1) : '';
    return (/^\d+$/.test(item.name) && above !== '' ? above + '.' : '') + (item.name || '(no name)');
  }

  /** @param {any} item @param {number} level @returns {HTMLElement} */
  boxOf(item, level) {
    const {timeline} = this;
    const bytes = this.bytes(item);
    const opens = item.kind === 'layer' && !item.leaf;
    const kinds = item[this.by];
    const size = human(bytes);
    const label = shorten(this.nameOf(item), Math.max(6, Math.floor((item.w - (opens ? 48 : 28) - size.length * 6.8) / 8.9)));
    const title = element('b', {}, label);
    const what = item.kind === 'rest' ? '' : item.kind === 'operator' ? timeline.texts[timeline.graph.nodes.type[item.order]].split('@')[0] : item.operators === 0 ? 'nothing in the forward pass' : item.operators <= 3 ? item.firstOperators.slice(0, item.operators).join(', ') : grouped(item.operators) + ' operators';
    const box = element('div', {class: 'box ' + item.kind + (item.open ? ' open' : ''), role: 'treeitem', tabindex: '-1', 'aria-level': level, 'aria-selected': 'false',
      'aria-label': item.path + ', ' + human(bytes) + (this.by === 'peak' ? ' at the peak' : ' in all') + (what ? ', ' + what : ''), 'data-path': item.path, 'data-bytes': bytes, title: item.path + (what ? '\n' + what : ''),
      style: {left: item.x + 'px', top: item.y + 'px', width: item.w + 'px', height: item.h + 'px'}});
    if (opens) box.setAttribute('aria-expanded', String(item.open));
    const head = element('div', {class: 'head'});
    if (opens) head.append(element('span', {class: 'twist', 'aria-hidden': 'true', onclick: (event) => { event.stopPropagation(); this.toggle(item); }}, item.open ? '▾' : '▸'));
    head.append(title, element('span', {class: 'size'}, size));
    box.append(head);
    if (item.open) box.append(this.edgesOf(item), element('div', {role: 'group'}, ...item.parts.map((child) => this.boxOf(child, level + 1))));
    else {
      box.append(element('span', {class: 'what'}, shorten(what, Math.floor((item.w - 20) / 7.2))));
      box.append(element('div', {class: 'bar', 'aria-hidden': 'true'}, ...timeline.kinds.map((kind, k) => kinds[k] > 0 ? element('i', {style: {width: (kinds[k] / Math.max(1, bytes) * 100).toFixed(2) + '%', background: kind.color}, title: kind.name + ' ' + human(kinds[k])}) : null)));
    }
    box.addEventListener('click', (event) => { event.stopPropagation(); this.select(item); });
    box.addEventListener('dblclick', (event) => { event.stopPropagation(); if (opens) this.toggle(item); });
    item.box = box;
    return box;
  }

  /** @param {any} frame */
  edgesOf(frame) {
    const svg = svgElement('svg', {width: frame.w, height: frame.h, 'aria-hidden': 'true', class: 'edges'});
    const most = [...frame.edges.values()].reduce((sum, edge) => Math.max(sum, edge.bytes), 1);
    const bottom = frame.h - 3;
    const top = frame.parent ? 34 : 0;
    for (const edge of frame.edges.values()) {
      const {from, to} = edge;
      const width = 1 + 3.5 * Math.sqrt(edge.bytes / most);
      let path;
      if (edge.lane < 0) {
        const [x0, y0] = from ? [from.x + from.w / 2, from.y + from.h] : [to.x + to.w / 2, top];
        const [x1, y1] = to ? [to.x + to.w / 2, to.y - 3] : [x0, bottom];
        path = `M${x0},${y0}C${x0},${(y0 + y1) / 2} ${x1},${(y0 + y1) / 2} ${x1},${y1}`;
        if (from && to && Math.abs(x1 - x0) < 40 && edge.values.size === 1) {
          const text = svgElement('text', {x: (x0 + x1) / 2 + 8, y: (y0 + y1) / 2 + 3});
          text.textContent = shorten(this.timeline.texts[edge.type].split('@')[0], 34);
          svg.append(text);
        }
      } else {
        const x = frame.inner + 8 + edge.lane * LANE;
        const y0 = from ? from.y + Math.min(from.h - 10, from.h * .6) : top;
        const y1 = to ? to.y + Math.min(14, to.h * .35) : bottom;
        path = (from ? `M${from.x + from.w},${y0}H${x}` : `M${x},${y0}`) + `V${y1}` + (to ? `H${to.x + to.w + 4}` : '');
      }
      const line = svgElement('path', {d: path, 'stroke-width': width.toFixed(1)});
      edge.line = line;
      svg.append(line);
      if (to) {
        const [x, y] = edge.lane < 0 ? [to.x + to.w / 2, to.y - 1] : [to.x + to.w + 1, to.y + Math.min(14, to.h * .35)];
        svg.append(svgElement('path', {class: 'arrow', d: edge.lane < 0 ? `M${x},${y}l-4.5,-7h9z` : `M${x},${y}l7,-4.5v9z`}));
      }
    }
    return svg;
  }

  /** @param {any} item */
  toggle(item) {
    item.open = !item.open;
    this.selected = item;
    this.render();
    if (item.box) item.box.focus({preventScroll: true});
    this.inspect(item);
  }

  /** @param {any} item */
  select(item) {
    this.selected = item;
    this.mark();
    if (item.box) item.box.focus({preventScroll: true});
    this.inspect(item);
  }

  /** One box can be reached with Tab: the chosen one, or the first. */
  mark() {
    const shown = this.shown();
    const chosen = shown.includes(this.selected) ? this.selected : null;
    for (const item of shown) {
      item.box.tabIndex = item === (chosen || shown[0]) ? 0 : -1;
      item.box.setAttribute('aria-selected', String(item === chosen));
    }
    const visit = (frame) => {
      for (const edge of frame.edges.values()) if (edge.line) edge.line.classList.toggle('hot', chosen !== null && (edge.from === chosen || edge.to === chosen));
      for (const child of frame.parts) if (child.open) visit(child);
    };
    visit(this.root);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = this.shown();
    const at = shown.findIndex((one) => one.box === document.activeElement);
    if (at < 0) return;
    const item = shown[at];
    const opens = item.kind === 'layer' && !item.leaf;
    const go = (next) => { if (next) { this.select(next); next.box.scrollIntoView({block: 'nearest', inline: 'nearest'}); } };
    const actions = {ArrowDown: () => go(shown[Math.min(shown.length - 1, at + 1)]), ArrowUp: () => go(shown[Math.max(0, at - 1)]), Home: () => go(shown[0]), End: () => go(shown[shown.length - 1]),
      ArrowRight: () => { if (!opens) return; if (item.open) go(item.parts[0]); else this.toggle(item); },
      ArrowLeft: () => { if (item.open) this.toggle(item); else if (item.parent !== this.root) go(item.parent); },
      Enter: () => { if (opens) this.toggle(item); else this.select(item); }, ' ': () => this.select(item)};
    if (!actions[event.key]) return;
    actions[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Opens what is above the first match after the chosen box, and chooses it. @param {string} query */
  find(query) {
    const wanted = query.trim().toLowerCase();
    if (wanted === '') return;
    const hits = [];
    const visit = (item) => { for (const child of item.children) { if (child.path.toLowerCase().includes(wanted)) hits.push(child); visit(child); } };
    visit(this.root);
    this.found.textContent = grouped(hits.length) + ' found';
    if (hits.length === 0) return;
    const hit = hits[(hits.indexOf(this.selected) + 1) % hits.length];
    for (let up = hit.parent; up && up !== this.root; up = up.parent) if (!up.leaf) up.open = true;
    let seen = hit;
    for (let up = hit.parent; up; up = up.parent) if (up.leaf) seen = up;
    this.selected = seen;
    this.render();
    this.inspect(seen);
    seen.box.scrollIntoView({block: 'center', inline: 'nearest'});
  }

  /** @param {any} item */
  inspect(item) {
    const {timeline} = this;
    const {allocations, texts, kinds, graph, peak} = timeline;
    const own = [];
    const gather = (one) => { for (const b of one.allocations) own.push(b); one.children.forEach(gather); if (one.rest && !one.children.includes(one.rest)) gather(one.rest); };
    gather(item);
    const alive = (b) => allocations.begin[b] <= peak.time_step && peak.time_step < allocations.end[b];
    own.sort((a, b) => Number(alive(b)) - Number(alive(a)) || allocations.bytes[b] - allocations.bytes[a]);
    // Inside a layer, its own name need not be repeated.
    const short = (name) => item.path !== '' && name.startsWith(item.path) && './'.includes(name[item.path.length]) ? name.slice(item.path.length + 1) : name;
    const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
    const facts = [['At the peak', human(sum(item.peak))], ['In all', human(sum(item.all))], ['Operators', grouped(item.operators)]];
    if (item.kind === 'operator') facts.push(['Makes', texts[graph.nodes.type[item.order]]]);
    const parts = [element('h2', {id: 'graph-inspected'}, item === this.root ? 'The whole model' : item.path), element('dl', {}, ...facts.flatMap(([label, value]) => [element('dt', {}, label), element('dd', {}, value)])),
      bar(kinds.map((kind, k) => ({color: kind.color, share: item.peak[k] / Math.max(1, sum(item.peak)), title: kind.name + ' ' + human(item.peak[k])})))];
    for (const label of item === this.root ? [] : ['Reads', 'Feeds']) {
      const list = this.flows(item, label === 'Reads');
      if (list.length > 0) parts.push(element('h3', {}, label), element('ol', {}, ...list.slice(0, 8).map(([other, type, bytes]) => element('li', {}, element('span'), element('button', {type: 'button', title: other.path + '\n' + type, onclick: () => this.reveal(other)}, shorten(other.path, 23)), element('span', {class: 'num'}, human(bytes))))),
        list.length > 8 ? element('p', {class: 'sub'}, 'and ' + grouped(list.length - 8) + ' more') : null);
    }
    if (own.length > 0) parts.push(element('h3', {}, 'Tensors, alive at the peak first'), element('ol', {id: 'graph-tensors'}, ...own.slice(0, 40).map((b) => element('li', {class: alive(b) ? '' : 'gone'}, swatch(kinds[allocations.kind[b]].color),
      element('button', {type: 'button', title: texts[allocations.name[b]] + '\n' + texts[allocations.type[b]] + (alive(b) ? '' : '\nnot alive at the peak'), onclick: () => this.open(b)}, shorten(short(texts[allocations.name[b]]), 23)), element('span', {class: 'num'}, human(allocations.bytes[b]))))),
    own.length > 40 ? element('p', {class: 'sub'}, grouped(own.length - 40) + ' more; open the layer to see them') : null);
    if (item === this.root) parts.unshift(element('p', {class: 'sub'}, 'Click a box for its tensors, the triangle or a double click to open it.'));
    this.aside.replaceChildren(...parts.filter((part) => part));
  }

  /** Tensors that cross the border of an item: [the operator on the other side, type, bytes]. @param {any} item @param {boolean} incoming */
  flows(item, incoming) {
    const {edges} = this.timeline.graph;
    const inside = (operator) => { for (let up = operator; up; up = up.parent) if (up === item) return true; return false; };
    const out = new Map();
    for (let e = 0; e < edges.count; ++e) {
      const [from, to] = [this.operators[edges.from[e]], this.operators[edges.to[e]]];
      if (!from || !to || inside(from) === inside(to) || inside(to) !== incoming) continue;
      const other = incoming ? from : to;
      out.set(other.order + '/' + edges.name[e], [other.parent.leaf ? other.parent : other, this.timeline.texts[edges.type[e]], edges.bytes[e]]);
    }
    return [...out.values()];
  }

  /** @param {any} item */
  reveal(item) {
    for (let up = item.parent; up && up !== this.root; up = up.parent) up.open = true;
    this.selected = item;
    this.render();
    this.inspect(item);
    item.box.scrollIntoView({block: 'center', inline: 'nearest'});
    item.box.focus({preventScroll: true});
  }

  /** Another width of the window. */
  fit() {
    const parent = this.canvas.parentElement;
    if (parent && Math.abs(Math.max(300, parent.clientWidth - 30) - this.drawnFor) > 8) this.render();
  }
}
