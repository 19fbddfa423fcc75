// The page of a review. Names, ids and texts are only ever set as text, never as HTML.
const find = (id) => document.getElementById(id);
const make = (tag, values) => Object.assign(document.createElement(tag), values);
const percent = (share) => `${Math.round(100 * share)}%`;
const format = (n, what) => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;
const grid = find('grid');
const typed = find('typed');
const NONE = 'none of these';
const GONE = 'The server cannot be reached. What you do now is not saved.';
const rows = new Map(); // what the page shows, in its order, by number
const selected = new Set();
const undone = []; // what to restore: lists of numbers and labels
let active = null;
let anchor = null;
let view = 'groups';
let list = { page: 0, n_pages: 1, version: 0 };
let state = { version: 0, n_changes: 0, classes: [], audit: null, problem: '' };
let failure = '';

const say = (text) => { find('said').textContent = text; };

function show(text = failure) {
  failure = text;
  find('error').textContent = text || state.problem;
  find('error').hidden = !(text || state.problem);
}

async function ask(path, body) {
  const headers = { 'content-type': 'application/json' };
  const sent = body && { method: 'POST', headers, body: JSON.stringify(body) };
  const reply = await fetch(`api/${path}`, sent).catch(() => { throw new Error(GONE); });
  const found = await reply.json().catch(() => ({ error: `The server failed (${reply.status}).` }));
  if (!reply.ok) throw new Error(found.error);
  return found;
}

// ---- Cards

const describeOdds = ({ label, proba, second, second_proba: other }) => (
  percent(proba) + (second === label || other < 0.005 ? '' : `, then ${second} ${percent(other)}`)
);

function fill(row) {
  const { card, label, given } = row;
  card.classList.toggle('labelled', given === label);
  card.classList.toggle('corrected', given !== null && given !== label);
  const said = given === null ? '' : `${given === label ? '✓' : '✎'} ${given}`;
  const texts = { label, odds: describeOdds(row), given: row.saving ? 'saving …' : said, id: row.id };
  for (const [name, text] of Object.entries(texts)) {
    const node = card.querySelector(`.${name}`);
    if (node.textContent !== text) node.textContent = text;
  }
}

function makeMedia(row, isLarge) {
  if (row.kind === 'image') {
    const src = `images/${row.row}${isLarge ? '?large=true' : ''}`;
    const image = make('img', { alt: '', loading: isLarge ? 'eager' : 'lazy', src });
    image.onload = () => image.classList.toggle('tiny', image.naturalWidth <= 48);
    image.onerror = () => image.replaceWith('The image is missing, or cannot be read.');
    return image;
  }
  if (row.kind === 'sound' && isLarge) {
    return make('audio', { controls: true, preload: 'none', src: `sounds/${row.row}`, ariaLabel: row.id });
  }
  const textContent = row.kind === 'sound' ? '♪ sound' : row.text;
  return make('p', { className: isLarge ? '' : 'clip', textContent });
}

function makeCard(row) {
  row.card = make('div', { className: 'card', role: 'option', ariaSelected: 'false', tabIndex: -1 });
  row.card.dataset.row = row.row;
  const media = make('div', { className: row.kind === 'image' ? '' : 'media' });
  media.append(makeMedia(row, false));
  const names = ['odds', 'given', 'id'];
  const top = make('div', { className: 'top' });
  top.append(...['label', 'tick'].map((className) => make('span', { className })));
  row.card.append(media, top, ...names.map((className) => make('span', { className })));
  fill(row);
  return row.card;
}

function makeGroup([name, group]) {
  const box = make('div', { className: 'group', role: 'group', ariaLabel: name || 'Inputs' });
  box.append(...group.map(makeCard));
  if (name) box.firstChild.classList.add('first');
  return box;
}

function draw(found, isGrouped) {
  const hadFocus = grid.contains(document.activeElement);
  const groups = new Map();
  rows.clear();
  selected.clear();
  anchor = null;
  for (const row of found) {
    const name = isGrouped ? row.label : '';
    rows.set(row.row, row);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  grid.replaceChildren(...[...groups].map(makeGroup));
  grid.classList.toggle('lines', found.some(({ kind }) => kind === 'text' || kind === 'row'));
  // The keys work from the first second.
  setActive(found[0]?.row ?? null, hadFocus || document.activeElement === document.body);
}

function setActive(number, hasFocus) {
  for (const card of grid.querySelectorAll('[tabindex="0"]')) card.tabIndex = -1;
  active = number;
  const row = rows.get(number);
  find('name').textContent = row ? row.id : 'No input';
  find('preview').replaceChildren(...(row ? [makeMedia(row, true)] : []));
  describe();
  if (!row) return;
  row.card.tabIndex = 0;
  if (hasFocus) row.card.focus();
}

const focusActive = () => rows.get(active)?.card.focus();

function describe() {
  const row = rows.get(active);
  const guess = row ? `${row.label} ${describeOdds(row)}` : '';
  find('guess').textContent = selected.size ? `${selected.size} selected` : guess;
  find('correct').textContent = selected.size > 1 ? `These ${selected.size} are correct` : 'Correct';
  for (const id of ['correct', 'none', 'typed']) find(id).disabled = !row;
  find('undo').disabled = view === 'audit' ? !state.audit?.n_checked : !undone.length;
  listClasses();
  if (find('why').open) explain();
}

async function explain() {
  const number = active;
  if (number === null) { find('reasons').replaceChildren(); return; }
  let parts;
  try {
    const { target, rival, tables } = await ask(`explanation/${number}`);
    const textContent = `Why ${target} rather than ${rival}: × multiplies its odds, ÷ divides them.`;
    parts = [make('p', { textContent }), ...tables.map(makeTable)];
  } catch (error) { parts = [error.message]; }
  if (number === active) find('reasons').replaceChildren(...parts);
}

function makeTable({ caption, bars, note }) {
  const box = make('div', { className: 'reason' });
  const table = make('table', {});
  table.append(make('caption', { textContent: caption }));
  const isTwoSided = !caption.startsWith('Prob');
  for (const { name, text, length, clipped } of bars) {
    const row = table.insertRow();
    row.append(make('th', { scope: 'row', textContent: name }));
    const track = make('span', { className: isTwoSided ? 'track two-sided' : 'track' });
    const bar = make('span', { className: `bar${length < 0 ? ' against' : ''}${clipped ? ' clipped' : ''}` });
    bar.style.width = `${(isTwoSided ? 50 : 100) * Math.abs(length)}%`;
    track.append(bar);
    const cell = row.insertCell();
    cell.ariaHidden = 'true';
    cell.append(track);
    row.insertCell().textContent = text;
  }
  box.append(table);
  if (note) box.append(make('p', { textContent: note }));
  return box;
}

function select(numbers, isSelected) {
  for (const number of numbers) {
    if (isSelected) selected.add(number); else selected.delete(number);
    rows.get(number).card.ariaSelected = String(isSelected);
  }
  describe();
}

function selectTo(number) {
  const numbers = [...rows.keys()];
  anchor ??= active;
  const [begin, end] = [anchor, number].map((each) => numbers.indexOf(each)).sort((a, b) => a - b);
  select(numbers.slice(begin, end + 1), true);
}

// ---- Lists of inputs

async function load(page = 0, isFromEnd = false) {
  try {
    find('empty').hidden = true;
    if (view === 'audit') { await loadAudit(); return; }
    const form = new FormData(find('filter'));
    const query = new URLSearchParams({ order: view, page });
    for (const [name, value] of form) if (value) query.set(name, value);
    list = await ask(`rows?${query}`);
    show('');
    draw(list.rows, view === 'groups');
    if (isFromEnd && rows.size) setActive(list.rows.at(-1).row, grid.contains(document.activeElement));
    find('count').textContent = format(list.n, 'input');
    find('page').textContent = `Page ${(list.page + 1).toLocaleString('en')} of ${list.n_pages.toLocaleString('en')}`;
    find('previous').disabled = list.page === 0;
    find('next').disabled = list.page + 1 >= list.n_pages;
    find('page').parentElement.hidden = list.n_pages === 1;
    find('reorder').hidden = true;
    find('empty').hidden = list.n > 0;
    find('all').hidden = list.n === 0;
  } catch (error) { show(error.message); }
}

async function refresh() {
  // New predictions and labels of what is shown; nothing changes its place.
  if (!rows.size || view === 'audit') return;
  const found = await ask(`rows?only=${[...rows.keys()].join(',')}`);
  for (const fresh of found.rows) {
    const row = rows.get(fresh.row);
    if (row) fill(Object.assign(row, fresh, { given: row.saving ? row.given : fresh.given }));
  }
  describe();
}

// ---- Labels

async function send(labels, isUndo) {
  const before = labels.map(([number]) => [number, rows.get(number)?.given ?? null]);
  const change = (pairs, saving) => {
    for (const [number, given] of pairs) {
      const row = rows.get(number);
      if (row) fill(Object.assign(row, { given, saving }));
    }
  };
  change(labels, true);
  if (!isUndo) undone.push(before);
  describe();
  try {
    await ask('labels', { labels });
    change(labels, false);
    show('');
    const names = new Set(labels.map(([, label]) => label ?? 'no label'));
    say(`${[...names].join(', ')}: ${labels.length} saved`);
  } catch (error) {
    change(before, false);
    if (!isUndo) undone.splice(undone.indexOf(before), 1);
    describe();
    show(`Not saved: ${error.message}`);
  }
  poll();
}

function decide(choose) {
  if (active === null) return;
  if (view === 'audit') { check(choose(rows.get(active))); return; }
  const numbers = selected.size ? [...selected] : [active];
  send(numbers.map((number) => [number, choose(rows.get(number))]), false);
  if (selected.size) { select(numbers, false); return; }
  const all = [...rows.values()];
  const next = all.slice(all.indexOf(rows.get(active)) + 1).find((row) => row.given === null);
  if (next) setActive(next.row, grid.contains(document.activeElement));
}

function undo() {
  if (view === 'audit') { changeAudit({ action: 'undo' }); return; }
  const labels = undone.pop();
  if (!labels) { say('Nothing to undo'); return; }
  send(labels, true);
  describe();
  const shown = labels.find(([number]) => rows.has(number));
  if (shown) setActive(shown[0], grid.contains(document.activeElement));
}

// ---- Classes

const listNames = () => state.classes.map(([name]) => name).filter((name) => name !== NONE);

function findMatching() {
  const text = typed.value.trim().toLowerCase();
  const found = listNames().filter((name) => name.toLowerCase().includes(text));
  const begins = (name) => name.toLowerCase().startsWith(text);
  return [...found.filter(begins), ...found.filter((name) => !begins(name))];
}

function listClasses() {
  const text = typed.value.trim();
  const all = listNames();
  const names = findMatching();
  const given = rows.get(active)?.given;
  const key = JSON.stringify([all, names, text, given]);
  // Nothing is drawn again without need: a button under the pointer stays.
  if (find('classes').dataset.key === key) return;
  find('classes').dataset.key = key;
  const buttons = names.map((name) => {
    const place = all.indexOf(name);
    const button = make('button', { type: 'button', onclick: () => choose(name) });
    if (name === given) button.ariaPressed = 'true';
    button.append(make('small', { textContent: place < 10 ? `${(place + 1) % 10} ` : '' }), name);
    return button;
  });
  if (text && !all.includes(text)) {
    const textContent = `New class “${text}” …`;
    buttons.push(make('button', { type: 'button', textContent, onclick: () => openNewClass(text) }));
  }
  find('classes').replaceChildren(...buttons);
}

function choose(name) {
  const wasTyping = typed === document.activeElement;
  typed.value = '';
  listClasses();
  if (wasTyping) focusActive();
  decide(() => name);
}

function openNewClass(name) {
  find('new-class').querySelector('form').reset();
  find('new-name').textContent = name;
  find('new-error').textContent = '';
  find('new-class').showModal();
}

async function saveClass() {
  const fields = new FormData(find('new-class').querySelector('form'));
  const ranking = fields.getAll('similar').map((name) => name.trim()).filter(Boolean);
  try {
    const { name } = await ask('classes', { name: find('new-name').textContent, ranking });
    find('new-class').close();
    await poll();
    choose(name);
  } catch (error) { find('new-error').textContent = error.message; }
}

// ---- The audit

function describeAudit() {
  const { audit, last_audit: last } = state;
  const found = audit ?? last;
  find('audit-open').hidden = Boolean(audit);
  find('audit-close').hidden = !audit;
  let text = 'Inputs without a label are drawn at random, and you judge their predictions: this estimates how many are correct.';
  let advice = 'Predictions do not change until the audit is closed. You may stop at any time.';
  if (found?.n_checked) {
    const { n_correct: right, n_checked: n, low, high, n_inputs: all } = found;
    text = `${audit ? '' : 'The last audit: '}${percent(right / n)} correct (95% interval: ${percent(low)} to ${percent(high)}), from ${n} of ${all.toLocaleString('en')} inputs, drawn at random.`;
    advice = '';
  }
  for (const [id, said] of [['estimate', text], ['advice', advice]]) {
    if (find(id).textContent !== said) find(id).textContent = said;
  }
}

async function loadAudit() {
  describeAudit();
  const number = state.audit?.row ?? null;
  draw(number === null ? [] : (await ask(`rows?only=${number}`)).rows, false);
}

async function changeAudit(body) {
  try {
    state.audit = (await ask('audit', body)).audit;
    show('');
  } catch (error) { show(error.message); }
  await load();
  poll();
}

function check(label) {
  const row = active;
  active = null; // a second key must not judge the same input
  say(`${label}: checked`);
  changeAudit({ action: 'check', row, label });
}

// ---- What others do, and what was learned

let timer = 0;
async function poll() {
  clearTimeout(timer);
  try {
    const before = state;
    state = await ask('state');
    show(failure === GONE ? '' : failure);
    tell(before);
    listClasses();
    describeAudit();
    if (view === 'audit') describe();
    if (state.version !== before.version || state.n_changes !== before.n_changes) await refresh();
    if (view === 'audit' && before.audit && !rows.has(state.audit?.row)) await loadAudit();
  } catch (error) { show(error.message); }
  clearTimeout(timer);
  timer = setTimeout(poll, document.hidden ? 10_000 : 1000);
}

function tell(before) {
  const { n_labelled: n, n_inputs: all, changes, is_learning: isLearning } = state;
  find('progress').textContent = `${n.toLocaleString('en')} of ${all.toLocaleString('en')} labelled${isLearning ? ', learning …' : ''}`;
  find('bar').style.width = percent(n / all);
  const news = find('news').firstElementChild;
  if (!before.version) {
    news.textContent = state.notes.join('. ');
  } else if (state.version !== before.version) {
    const changed = `${format(changes.n, 'prediction')} changed, most often ${changes.before} → ${changes.after}.`;
    news.textContent = changes.n ? changed : 'No prediction changed.';
    find('reorder').hidden = view === 'audit' || state.version === list.version;
  }
  const choice = find('filter').elements.name;
  if (document.activeElement === choice) return;
  const options = state.classes.map(([name, guessed, given]) => [`${name} (${guessed + given})`, name]);
  const { value } = choice;
  choice.replaceChildren(...[['all classes', ''], ...options].map((pair) => new Option(...pair)));
  choice.value = value;
}

// ---- Keys and clicks

function findBelow(place, key) {
  // Groups break lines, so the places on the screen count.
  const boxes = [...rows.values()].map(({ card }) => card.getBoundingClientRect());
  const { left, top } = boxes[place];
  const down = key === 'ArrowDown' ? 1 : -1;
  const distances = boxes.map((box) => {
    const below = down * (box.top - top);
    return below > 2 ? 1000 * below + Math.abs(box.left - left) : Infinity;
  });
  const nearest = Math.min(...distances);
  return nearest < Infinity ? distances.indexOf(nearest) : down * Infinity;
}

function move(key, isExtended) {
  if (view === 'audit' || active === null) return;
  const numbers = [...rows.keys()];
  const place = numbers.indexOf(active);
  const steps = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: rows.size - 1 };
  const next = steps[key] ?? findBelow(place, key);
  if (next >= rows.size) {
    if (list.page + 1 < list.n_pages) load(list.page + 1);
  } else if (next < 0) {
    if (list.page > 0) load(list.page - 1, true);
  } else {
    if (isExtended) selectTo(numbers[next]); else anchor = null;
    setActive(numbers[next], true);
  }
}

function zoom() {
  const row = rows.get(active);
  if (row?.kind !== 'image') return;
  find('zoom').replaceChildren(makeMedia(row, true));
  find('zoom').showModal();
}

function startTyping(text) {
  typed.value = text;
  typed.focus();
  listClasses();
}

const KEYS = {
  Enter: () => decide((row) => row.label),
  ' ': () => select([active], !selected.has(active)),
  Escape: () => select([...selected], false),
  x: () => decide(() => NONE),
  u: undo,
  '?': () => { find('why').open = true; },
  '+': zoom,
  '.': () => {
    const player = document.querySelector('#preview audio');
    if (player?.paused) player.play(); else player?.pause();
  },
  '/': () => startTyping(''),
};

document.onkeydown = (event) => {
  const { key, target } = event;
  if (target !== document.body && !grid.contains(target)) return;
  const name = /^\d$/.test(key) && listNames()[(Number(key) + 9) % 10];
  if (event.altKey || event.metaKey || (event.ctrlKey && key !== 'a')) return;
  if (event.ctrlKey) select(rows.keys(), true);
  else if (/^(Arrow.*|Home|End)$/.test(key)) move(key, event.shiftKey);
  else if (KEYS[key]) KEYS[key]();
  else if (name) decide(() => name);
  else if (/^\p{L}$/u.test(key)) startTyping(key);
  else return;
  event.preventDefault();
};
grid.onclick = (event) => {
  const card = event.target.closest('.card');
  if (!card) return;
  const number = Number(card.dataset.row);
  if (number === active && event.target.tagName === 'IMG') zoom();
  if (event.shiftKey) selectTo(number);
  else if (event.ctrlKey || event.metaKey || event.target.closest('.tick')) {
    anchor = number;
    select([number], !selected.has(number));
  }
  setActive(number, true);
};
find('preview').onclick = zoom;
find('zoom').onclick = () => find('zoom').close();
find('zoom').onkeydown = find('zoom').onclick;
find('zoom').onclose = focusActive;
typed.oninput = listClasses;
typed.onkeydown = (event) => {
  const text = typed.value.trim();
  const [first] = findMatching();
  if (event.key === 'Escape') { startTyping(''); focusActive(); }
  if (event.key !== 'Enter' || !text) return;
  event.preventDefault();
  if (first) choose(first); else openNewClass(text);
};
find('new-class').onclose = () => { startTyping(''); focusActive(); };
find('new-class').onkeydown = (event) => {
  if (event.key !== 'Enter' || event.target.tagName === 'BUTTON') return;
  event.preventDefault();
  saveClass();
};
const CLICKS = {
  'save-class': saveClass,
  correct: KEYS.Enter,
  none: KEYS.x,
  undo,
  all: () => select(rows.keys(), selected.size < rows.size),
  reorder: () => { load(0); focusActive(); },
  clear: () => { find('filter').reset(); focusActive(); load(); },
  previous: () => load(list.page - 1),
  next: () => load(list.page + 1),
  'audit-open': () => changeAudit({ action: 'open' }),
  'audit-close': () => changeAudit({ action: 'close' }),
};
for (const [id, act] of Object.entries(CLICKS)) find(id).onclick = act;
find('why').ontoggle = describe;
let typing = 0;
find('filter').oninput = () => { clearTimeout(typing); typing = setTimeout(load, 250); };
find('filter').onsubmit = (event) => event.preventDefault();
const views = document.querySelectorAll('[data-view]');
for (const button of views) {
  button.onclick = () => {
    ({ view } = button.dataset);
    for (const each of views) each.ariaPressed = String(each === button);
    find('audit').hidden = view !== 'audit';
    document.body.classList.toggle('auditing', view === 'audit');
    load();
  };
}
await poll();
await load();
