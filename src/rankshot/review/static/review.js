// The page of a review. Names, ids and texts are only ever set as text, never as HTML.
const find = (id) => document.getElementById(id);
const grid = find('grid');
const NONE = 'none of these';
const POLL = 1000;
const cards = new Map(); // by row
let rows = []; // what the page shows, in its order
let active = null; // a row
let selected = new Set();
let anchor = null;
let view = 'groups';
let page = 0;
let nPages = 1;
let shownVersion = 0;
let state = { n_history: 0, version: 0, classes: [], audit: null };
let undone = []; // what to restore: lists of rows and labels
let drawn = null; // the audited row that is shown

const percent = (p) => `${Math.round(100 * p)}\u00a0%`;
const say = (text) => { find('said').textContent = text; };

function make(tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

function show(text) {
  find('error').textContent = text;
  find('error').hidden = !text;
}

async function ask(path, body) {
  const options = body && {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  };
  let reply;
  try {
    reply = await fetch(`api/${path}`, options);
  } catch {
    throw new Error('The server cannot be reached. What you do now is not saved.');
  }
  const found = await reply.json().catch(() => ({ error: `The server failed (${reply.status}).` }));
  if (!reply.ok) throw new Error(found.error);
  return found;
}

// ---- Cards

function fill(card, row) {
  const { label, proba, second, second_proba: other, given } = row;
  card.classList.toggle('labelled', given !== null && given === label);
  card.classList.toggle('corrected', given !== null && given !== label);
  const texts = {
    label: `${label} ${percent(proba)}`,
    second: second === label ? '' : `then ${second} ${percent(other)}`,
    given: row.saving ? 'saving …' : given === null ? '' : `${given === label ? '✓' : '✎'} ${given}`,
  };
  for (const [name, text] of Object.entries(texts)) {
    const node = card.querySelector(`.${name}`);
    if (node.textContent !== text) node.textContent = text;
  }
}

function media(row, large) {
  if (row.kind === 'image') {
    const image = make('img');
    image.alt = '';
    image.loading = large ? 'eager' : 'lazy';
    image.addEventListener('load', () => image.classList.toggle('tiny', image.naturalWidth <= 48));
    image.addEventListener('error', () => image.replaceWith(make('span', '', 'The image is missing, or cannot be read.')));
    image.src = `${large ? 'images' : 'thumbnails'}/${row.row}`;
    return image;
  }
  if (row.kind === 'sound' && large) {
    const player = make('audio');
    player.controls = true;
    player.preload = 'none';
    player.src = `sounds/${row.row}`;
    player.setAttribute('aria-label', `Sound of ${row.id}`);
    return player;
  }
  return large ? make('p', '', row.text) : make('span', 'clip', row.kind === 'sound' ? '♪ sound' : row.text);
}

function makeCard(row) {
  const card = make('div', 'card');
  card.setAttribute('role', 'option');
  card.setAttribute('aria-selected', 'false');
  card.dataset.row = row.row;
  card.tabIndex = -1;
  const box = make('div', row.kind === 'image' ? '' : 'media');
  box.append(media(row, false));
  const tick = make('span', 'tick');
  tick.setAttribute('aria-hidden', 'true');
  card.append(box, make('span', 'label'), make('span', 'second'), make('span', 'given'), make('span', 'id', row.id), tick);
  fill(card, row);
  cards.set(row.row, card);
  return card;
}

function draw(found, groups) {
  const hadFocus = grid.contains(document.activeElement);
  cards.clear();
  rows = found;
  selected = new Set();
  anchor = null;
  const parts = [];
  let box = null;
  let last = null;
  for (const row of rows) {
    const name = groups ? row.label : '';
    if (name !== last) {
      const part = make('div');
      part.setAttribute('role', 'group');
      part.setAttribute('aria-label', name || 'Inputs');
      const heading = make('div', 'heading', name);
      heading.setAttribute('aria-hidden', 'true');
      box = make('div', row.kind === 'text' || row.kind === 'row' ? 'cards lines' : 'cards');
      box.setAttribute('role', 'presentation');
      part.append(...(groups ? [heading] : []), box);
      parts.push(part);
      last = name;
    }
    box.append(makeCard(row));
  }
  grid.replaceChildren(...parts);
  setActive(rows.length ? rows[0].row : null, hadFocus);
}

const rowOf = (number) => rows.find((row) => row.row === number);

function setActive(number, focus) {
  cards.get(active)?.classList.remove('active');
  if (cards.has(active)) cards.get(active).tabIndex = -1;
  active = number;
  const row = rowOf(number);
  const card = cards.get(number);
  if (card) {
    card.classList.add('active');
    card.tabIndex = 0;
    if (focus) card.focus();
  }
  find('name').textContent = row ? row.id : 'No input';
  find('preview').replaceChildren(...(row ? [media(row, true)] : []));
  describe();
}

function describe() {
  const row = rowOf(active);
  const many = selected.size;
  find('guess').textContent = !row ? '' : many ? `${many} selected`
    : `${row.label} ${percent(row.proba)}${row.second === row.label ? '' : `, then ${row.second} ${percent(row.second_proba)}`}`;
  find('correct').textContent = many ? `These ${many} are correct` : 'Correct';
  if (find('why').open) explain();
}

let asking = 0;
function explain() {
  clearTimeout(asking);
  const number = active;
  asking = setTimeout(async () => {
    if (number === null) return;
    let text;
    try { ({ text } = await ask(`explanation/${number}`)); } catch (error) { text = error.message; }
    if (number === active) find('why').querySelector('pre').textContent = text;
  }, 150);
}

function select(numbers, isSelected) {
  for (const number of numbers) {
    if (isSelected) selected.add(number); else selected.delete(number);
    cards.get(number)?.setAttribute('aria-selected', String(isSelected));
  }
  describe();
}

function selectTo(number) {
  const places = [anchor ?? active, number].map((each) => rows.findIndex((row) => row.row === each));
  select(rows.slice(Math.min(...places), Math.max(...places) + 1).map((row) => row.row), true);
}

// ---- Lists of inputs

async function load(toPage = 0, fromEnd = false) {
  try {
    if (view === 'audit') { await loadAudit(); return; }
    const form = new FormData(find('filter'));
    const query = new URLSearchParams({ order: view, page: toPage });
    for (const name of ['name', 'text', 'labelled']) if (form.get(name)) query.set(name, form.get(name));
    for (const name of ['least', 'most']) query.set(name, Math.min(100, Math.max(0, form.get(name) || 0)) / 100);
    const found = await ask(`rows?${query}`);
    show('');
    ({ page, n_pages: nPages, version: shownVersion } = found);
    draw(found.rows, view === 'groups');
    if (fromEnd && rows.length) setActive(rows.at(-1).row, grid.contains(document.activeElement));
    find('count').textContent = found.n === 1 ? '1 input' : `${found.n.toLocaleString('en')} inputs`;
    find('page').textContent = `Page ${(page + 1).toLocaleString('en')} of ${nPages.toLocaleString('en')}`;
    find('previous').disabled = page === 0;
    find('next').disabled = page + 1 >= nPages;
    find('reorder').hidden = true;
  } catch (error) { show(error.message); }
}

async function refresh() {
  // New predictions of what is shown; nothing changes its place.
  if (!rows.length || view === 'audit') return;
  const found = await ask(`rows?only=${rows.map((row) => row.row).join(',')}`);
  for (const fresh of found.rows) {
    const row = rowOf(fresh.row);
    if (!row) continue;
    Object.assign(row, fresh, { given: row.saving ? row.given : fresh.given });
    fill(cards.get(row.row), row);
  }
  describe();
}

// ---- Labels

async function send(labels, undo) {
  const before = labels.map(([number]) => [number, rowOf(number)?.given ?? null]);
  for (const [number, label] of labels) {
    const row = rowOf(number);
    if (row) { Object.assign(row, { given: label, saving: true }); fill(cards.get(number), row); }
  }
  try {
    await ask('labels', { labels });
    if (!undo) undone.push(before);
    show('');
    const names = new Set(labels.map(([, label]) => label));
    const what = names.size > 1 ? 'labels' : [...names][0] ?? 'no label';
    say(labels.length > 1 ? `${what}: ${labels.length} inputs saved` : `${what}: saved`);
  } catch (error) {
    for (const [number, label] of before) if (rowOf(number)) rowOf(number).given = label;
    show(`Not saved: ${error.message}`);
  }
  for (const [number] of labels) {
    const row = rowOf(number);
    if (row) { row.saving = false; fill(cards.get(number), row); }
  }
  poll(true);
}

function decide(choose) {
  if (active === null) return;
  if (view === 'audit') { check(choose(rowOf(active))); return; }
  const numbers = selected.size ? [...selected] : [active];
  send(numbers.map((number) => [number, choose(rowOf(number))]), false);
  if (selected.size) { select(numbers, false); return; }
  const place = rows.findIndex((row) => row.row === active);
  const next = rows.slice(place + 1).find((row) => row.given === null);
  if (next) setActive(next.row, grid.contains(document.activeElement));
}

function undo() {
  if (view === 'audit') { changeAudit({ action: 'undo' }); return; }
  const labels = undone.pop();
  if (!labels) { say('Nothing to undo'); return; }
  send(labels, true);
  const shown = labels.find(([number]) => cards.has(number));
  if (shown) setActive(shown[0], grid.contains(document.activeElement));
}

// ---- Classes

const matching = () => {
  const typed = find('typed').value.trim().toLowerCase();
  const names = state.classes.map(([name]) => name).filter((name) => name !== NONE);
  const begin = names.filter((name) => name.toLowerCase().startsWith(typed));
  return [...begin, ...names.filter((name) => !begin.includes(name) && name.toLowerCase().includes(typed))];
};

function listClasses() {
  const typed = find('typed').value.trim();
  const all = state.classes.map(([name]) => name).filter((name) => name !== NONE);
  const names = matching();
  const nodes = names.map((name) => {
    const button = make('button');
    button.type = 'button';
    const digit = all.indexOf(name) < 10 ? `${(all.indexOf(name) + 1) % 10} ` : '';
    button.append(make('small', '', digit), name);
    button.dataset.name = name;
    return button;
  });
  if (typed && !all.includes(typed)) {
    const button = make('button', '', `New class “${typed}” …`);
    button.type = 'button';
    button.dataset.fresh = typed;
    nodes.push(button);
  }
  const list = find('classes');
  const key = nodes.map((node) => node.textContent).join('\n');
  // Nothing is drawn again without need: a button under the pointer stays.
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...nodes.map((node) => { const item = make('li'); item.append(node); return item; }));
}

function choose(name) {
  const wasTyping = find('typed') === document.activeElement;
  find('typed').value = '';
  listClasses();
  if (wasTyping) cards.get(active)?.focus();
  decide(() => name);
}

function openNewClass(name) {
  find('new-title').firstElementChild.textContent = `“${name}”`;
  find('ranking').replaceChildren();
  find('similar').value = '';
  find('new-class').dataset.name = name;
  find('new-class').showModal();
}

function addSimilar() {
  const { value } = find('similar');
  const known = [...find('items').options].some((option) => option.value === value);
  const there = [...find('ranking').children].some((item) => item.dataset.name === value);
  if (!known || there) return;
  const item = make('li', '', `${value} `);
  item.dataset.name = value;
  const remove = make('button', '', 'Remove');
  remove.type = 'button';
  remove.setAttribute('aria-label', `Remove ${value}`);
  remove.addEventListener('click', () => { item.remove(); find('similar').focus(); });
  item.append(remove);
  find('ranking').append(item);
  find('similar').value = '';
  find('similar').focus();
}

async function saveClass() {
  const ranking = [...find('ranking').children].map((item) => item.dataset.name);
  const dialog = find('new-class');
  try {
    const { name } = await ask('classes', { name: dialog.dataset.name, ranking });
    dialog.close();
    await poll(true);
    cards.get(active)?.focus();
    choose(name);
  } catch (error) { dialog.close(); show(error.message); }
}

// ---- The audit

function describeAudit() {
  const { audit, last_audit: last } = state;
  const found = audit ?? last;
  find('audit-open').hidden = Boolean(audit);
  find('audit-close').hidden = !audit;
  let text = 'Inputs without a label are drawn at random, and you judge their predictions: that tells how many are correct.';
  let advice = 'Until the audit is closed, predictions stay as they are. You may stop at any time.';
  if (found?.n_checked) {
    const { n_correct: right, n_checked: n, low, high, n_inputs: all } = found;
    text = `${audit ? '' : 'The last audit: '}${percent(right / n)} correct, between ${percent(low)} and ${percent(high)} (95 %), from ${n} checked at random of ${all.toLocaleString('en')}.`;
    if (audit) {
      advice = found.more ? `${found.more.toLocaleString('en')} more checks would halve the interval.` : '';
      if (found.unchecked.length) advice += ` Not checked yet: ${found.unchecked.slice(0, 10).join(', ')}${found.unchecked.length > 10 ? ' …' : ''}.`;
    }
  }
  for (const [id, said] of [['estimate', text], ['advice', advice]]) {
    if (find(id).textContent !== said) find(id).textContent = said;
  }
}

async function loadAudit() {
  describeAudit();
  find('count').textContent = '';
  const number = state.audit?.row ?? null;
  drawn = number;
  const found = number === null ? { rows: [] } : await ask(`rows?only=${number}`);
  draw(found.rows, false);
}

async function changeAudit(body) {
  try {
    const { audit } = await ask('audit', body);
    show('');
    state.audit = audit;
  } catch (error) { show(error.message); }
  await poll(true);
  if (state.audit?.row !== drawn || body.action !== 'check') await loadAudit();
}

async function check(label) {
  const row = active;
  active = null; // a second key must not judge the same input
  say(`${label}: checked`);
  await changeAudit({ action: 'check', row, label });
}

// ---- What others do, and what was learned

let timer = 0;
async function poll() {
  clearTimeout(timer);
  try {
    const found = await ask(`state?since=${state.n_history}`);
    const isNew = found.version !== state.version;
    const wasDrawn = state.audit?.row;
    state = found;
    for (const [number, label] of found.history) {
      const row = rowOf(number);
      if (row && !row.saving && row.given !== label) { row.given = label; fill(cards.get(number), row); }
    }
    tell(isNew);
    listClasses();
    describeAudit();
    if (isNew) await refresh();
    if (view === 'audit' && wasDrawn !== undefined && state.audit?.row !== drawn) await loadAudit();
  } catch (error) { show(error.message); }
  clearTimeout(timer);
  timer = setTimeout(poll, document.hidden ? 10 * POLL : POLL);
}

function tell(isNew) {
  const { n_labelled: n, n_inputs: all, changes, is_learning: learning, problem, notes } = state;
  find('progress').textContent = `${n.toLocaleString('en')} of ${all.toLocaleString('en')} labelled${learning ? ', learning …' : ''}`;
  if (problem) show(problem);
  else if (notes.length && isNew && state.version === 1) show(notes.join('; '));
  if (isNew && state.version > 1) {
    const changed = changes.n === 1 ? '1 prediction changed' : `${changes.n.toLocaleString('en')} predictions changed`;
    find('news').firstElementChild.textContent = changes.n ? `${changed}, most: ${changes.before} → ${changes.after}.` : 'No prediction changed.';
    find('reorder').hidden = view === 'audit' || state.version === shownVersion;
  }
  const choice = find('filter').elements.name;
  const options = [['', 'all classes'], ...state.classes.map(([name, guessed, given]) => [name, `${name} (${guessed + given})`])];
  if (document.activeElement !== choice) {
    const { value } = choice;
    choice.replaceChildren(...options.map(([name, text]) => new Option(text, name, false, name === value)));
  }
}

// ---- Keys and clicks

function move(key, extend) {
  const place = rows.findIndex((row) => row.row === active);
  let next = place + ({ ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0);
  if (key === 'Home') next = 0;
  if (key === 'End') next = rows.length - 1;
  if (key === 'ArrowUp' || key === 'ArrowDown') {
    // Groups break lines, so the places on the screen count.
    const boxes = rows.map((row) => cards.get(row.row).getBoundingClientRect());
    const { left, top } = boxes[place];
    const isBeyond = (box) => (key === 'ArrowDown' ? box.top > top + 2 : box.top < top - 2);
    const distance = (box) => Math.abs(box.top - top) * 1000 + Math.abs(box.left - left);
    const found = boxes.map((box, i) => [i, box]).filter(([, box]) => isBeyond(box)).sort((a, b) => distance(a[1]) - distance(b[1]));
    next = found.length ? found[0][0] : key === 'ArrowDown' ? rows.length : -1;
  }
  if (view === 'audit') return;
  if (next >= rows.length) { if (page + 1 < nPages) load(page + 1); return; }
  if (next < 0) { if (page > 0) load(page - 1, true); return; }
  if (extend) { anchor ??= active; selectTo(rows[next].row); } else anchor = null;
  setActive(rows[next].row, true);
}

function pressed(event) {
  const { key } = event;
  if (event.altKey || (event.ctrlKey && key !== 'a') || event.metaKey) return;
  const names = state.classes.map(([name]) => name).filter((name) => name !== NONE);
  if (event.ctrlKey) select(rows.map((row) => row.row), true);
  else if (key.startsWith('Arrow') || key === 'Home' || key === 'End') move(key, event.shiftKey);
  else if (key === 'Enter') decide((row) => row.label);
  else if (key === ' ') select([active], !selected.has(active));
  else if (key === 'Escape') select([...selected], false);
  else if (key === 'x') decide(() => NONE);
  else if (key === 'u') undo();
  else if (key === '?') { find('why').open = true; explain(); }
  else if (key === '.') { const player = document.querySelector('#preview audio'); if (player?.paused) player.play(); else player?.pause(); }
  else if (/^\d$/.test(key)) { const name = names[(Number(key) + 9) % 10]; if (name) decide(() => name); }
  else if (key === '/' || /^\p{L}$/u.test(key)) { find('typed').value = key === '/' ? '' : key; find('typed').focus(); listClasses(); }
  else return;
  event.preventDefault();
}

grid.addEventListener('keydown', pressed);
grid.addEventListener('click', (event) => {
  const card = event.target.closest('.card');
  if (!card) return;
  const number = Number(card.dataset.row);
  if (event.shiftKey) { anchor ??= active; selectTo(number); }
  else if (event.ctrlKey || event.metaKey || event.target.closest('.tick')) { anchor = number; select([number], !selected.has(number)); }
  setActive(number, true);
});
find('typed').addEventListener('input', listClasses);
find('typed').addEventListener('keydown', (event) => {
  const [first] = matching();
  if (event.key === 'Escape') { event.target.value = ''; listClasses(); cards.get(active)?.focus(); }
  if (event.key !== 'Enter' || !event.target.value.trim()) return;
  event.preventDefault();
  if (first) choose(first); else openNewClass(event.target.value.trim());
});
find('classes').addEventListener('click', (event) => {
  const { name, fresh } = event.target.closest('button')?.dataset ?? {};
  if (name) choose(name);
  if (fresh) openNewClass(fresh);
});
find('similar').addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); addSimilar(); } });
find('add-similar').addEventListener('click', addSimilar);
find('save-class').addEventListener('click', saveClass);
find('correct').addEventListener('click', () => decide((row) => row.label));
find('none').addEventListener('click', () => decide(() => NONE));
find('undo').addEventListener('click', undo);
find('all').addEventListener('click', () => select(rows.map((row) => row.row), selected.size < rows.length));
find('why').addEventListener('toggle', () => { if (find('why').open) explain(); });
find('reorder').addEventListener('click', () => { load(0); cards.get(active)?.focus(); });
find('previous').addEventListener('click', () => load(page - 1));
find('next').addEventListener('click', () => load(page + 1));
find('audit-open').addEventListener('click', () => changeAudit({ action: 'open' }));
find('audit-close').addEventListener('click', () => changeAudit({ action: 'close' }));
let typing = 0;
find('filter').addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(() => load(0), 250); });
find('filter').addEventListener('submit', (event) => event.preventDefault());
for (const button of document.querySelectorAll('[data-view]')) {
  button.addEventListener('click', () => {
    ({ view } = button.dataset);
    for (const each of document.querySelectorAll('[data-view]')) each.setAttribute('aria-pressed', String(each === button));
    find('audit').hidden = view !== 'audit';
    document.body.classList.toggle('auditing', view === 'audit');
    load(0);
  });
}
await poll();
await load(0);
