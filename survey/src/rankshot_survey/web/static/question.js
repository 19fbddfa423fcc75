// A question: the participant orders items by tapping, buttons, keys or dragging.
//
// Without this script, the page has one <select> per item for its place. The script hides these
// and keeps them equal to the lists: the form sends them.
'use strict';

(() => {
  const element = (id) => document.getElementById(id);
  const form = element('answer');
  const byHand = element('by-hand');
  const ranking = element('ranking');
  const bar = element('bar');
  const texts = JSON.parse(form.dataset.texts); // in the language of the page
  const selects = Array.from(form.querySelectorAll('select'));
  const names = selects.map((select) => select.dataset.name);
  const items = Array.from(names.keys()); // an item is the index of its name
  const choices = items.map((item) => copy('choice', item));
  const rows = items.map((item) => copy('row', item));
  let order = []; // the ranked items, best first
  let held = null; // the item that a pointer drags, and where
  // Sentences have one column, and buttons on the active row alone: a tap or the focus activates it.
  const isWide = names.some((name) => name.length > 40);
  form.classList.toggle('wide', isWide);
  if (isWide) rows.forEach((row) => row.setAttribute('tabindex', '0'));

  function text(key, values = {}) {
    // Unicode's marks of isolation: a name may have another direction than the text around it.
    const isolate = document.dir === 'rtl' ? (name) => `\u2068${name}\u2069` : (name) => name;
    const fields = { ...values, name: isolate(values.name) };
    return texts[key].replace(/\{(\w+)\}/g, (_, field) => fields[field]);
  }

  function copy(id, item) {
    const node = element(id).content.firstElementChild.cloneNode(true);
    node.dataset.item = item;
    const name = node.querySelector('.name');
    const { language, image: source, alt, altLanguage } = selects[item].dataset;
    name.textContent = names[item];
    name.lang = language;
    if (source) {
      // Without a text of its own, the name is hidden, and is what the image shows.
      name.classList.toggle('unseen', !alt);
      const image = new Image();
      Object.assign(image, { src: source, alt, lang: altLanguage, dir: 'auto', draggable: false });
      name.before(image);
    }
    for (const button of node.querySelectorAll('.tool')) {
      const label = text(button.dataset.action, { name: names[item] });
      button.setAttribute('aria-label', label);
      if (!name.classList.contains('unseen')) button.title = label;
    }
    return node;
  }

  // ---- What the page shows ----
  // The other rows are moved around the active one. It stays in its place in the document, and so
  // keeps the focus and the pointer.
  function draw(active) {
    const place = order.indexOf(active);
    items.filter((item) => !order.includes(item)).forEach((item) => rows[item].remove());
    if (place >= 0) {
      if (!rows[active].isConnected) ranking.append(rows[active]);
      order.slice(0, place).forEach((item) => rows[active].before(rows[item]));
    }
    order.slice(place + 1).forEach((item) => ranking.append(rows[item]));
    items.forEach((item) => {
      const at = order.indexOf(item);
      const pointless = { up: at === 0, first: at === 0, down: at === order.length - 1 };
      rows[item].classList.toggle('latest', item === active);
      rows[item].querySelector('.place').textContent = at + 1;
      for (const button of rows[item].querySelectorAll('button')) {
        // Not `disabled`: that would lose the focus.
        button.setAttribute('aria-disabled', pointless[button.dataset.action] === true);
      }
      // The empty slot stays: the next tap may be on its way to another item of the pool.
      choices[item].classList.toggle('slot', at >= 0);
      choices[item].setAttribute('aria-hidden', at >= 0);
      selects[item].value = at < 0 ? '' : String(at + 1);
    });
    element('n-left').textContent = names.length - order.length;
    element('none-ranked').hidden = order.length > 0;
    element('all-ranked').classList.toggle('slot', order.length < names.length);
  }

  function activate(item) {
    rows.forEach((row, other) => row.classList.toggle('latest', other === item));
  }

  // Nothing moves by itself. Who wants to see more of the ranking folds the pool.
  element('fold').addEventListener('click', () => {
    const isFolded = byHand.classList.toggle('folded');
    element('fold').setAttribute('aria-expanded', !isFolded);
  });

  // Scrolls the ranking only, never the page.
  function reveal(item) {
    if (!order.includes(item)) return;
    const { top, height } = rows[item].getBoundingClientRect();
    // The buttons of a sentence are below it.
    const bottom = top + height + (isWide ? rows[item].querySelector('.tools').offsetHeight : 0);
    const view = ranking.getBoundingClientRect();
    if (top < view.top || height > view.height) ranking.scrollTop += top - view.top;
    else if (bottom > view.bottom) ranking.scrollTop += bottom - view.bottom;
  }

  // The style sheet has to know how much of the screen is taken, above the lists and by the bar.
  function measure() {
    const root = document.documentElement.style;
    root.setProperty('--above', `${byHand.querySelector('.lists').offsetTop}px`);
    root.setProperty('--bar', `${bar.offsetHeight}px`);
  }

  // At the end of a page that becomes shorter, the browser would move everything down.
  const keepHeight = () => {
    document.body.style.minHeight = `${document.body.offsetHeight}px`;
  };

  // A question may take several lines. Other texts only repeat what is seen, and the bar must not
  // grow over the item that is tapped next.
  function say(words, isQuestion = false) {
    const status = element('status');
    status.classList.toggle('question', isQuestion);
    // A screen reader repeats a text only if it differs.
    status.textContent = status.textContent === words ? `${words}\u00a0` : words;
  }

  function complain(words) {
    element('problem').textContent = words;
    element('problem').hidden = !words;
  }

  // ---- Changes ----
  const without = (item, from = order) => from.filter((other) => other !== item);

  function insert(item, place, into = order) {
    const others = without(item, into);
    return [...others.slice(0, place), item, ...others.slice(place)];
  }

  function change(item, newOrder) {
    const before = order.indexOf(item) + 1;
    keepHeight();
    order = newOrder;
    complain('');
    draw(item);
    reveal(item);
    keepDraft();
    askedToSkip = false;
    const place = order.indexOf(item) + 1;
    const moved = before === place ? 'stays' : 'moved';
    const key = place === 0 ? 'removed' : before === 0 ? 'placed' : moved;
    say(text(key, { name: names[item], place, total: names.length }));
  }

  function move(item, place) {
    if (order.includes(item)) change(item, insert(item, Math.max(0, place)));
  }

  // Each returns the element that gets the focus, or nothing if the focus stays.
  const actions = {
    up: (item) => move(item, order.indexOf(item) - 1),
    down: (item) => move(item, order.indexOf(item) + 1),
    first: (item) => move(item, 0),
    choose(item) {
      if (order.includes(item)) return null;
      change(item, [...order, item]);
      const left = items.filter((other) => !order.includes(other));
      const following = left.find((other) => other > item) ?? left[0];
      // Not the button that sends: an extra Enter must not send the answer.
      return following === undefined ? element('ranked') : choices[following].firstElementChild;
    },
    remove(item) {
      const place = order.indexOf(item);
      if (place < 0) return null;
      change(item, without(item));
      const neighbour = order[Math.min(place, order.length - 1)];
      if (neighbour === undefined) return choices[item].firstElementChild;
      activate(neighbour);
      return rows[neighbour].querySelector('[data-action="remove"]');
    },
  };

  // ---- Tapping, buttons and keys ----
  const itemOf = (node) => Number(node.closest('li').dataset.item);
  let last = {}; // the action, the item and the point of the last click; empty if it did nothing
  // Clicks outside the lists also end a double click.
  document.addEventListener('click', (event) => {
    const action = event.target.closest('[data-action]')?.dataset.action;
    if (!action || (dragged && event.detail > 0)) {
      last = {};
      const row = event.target.closest('#ranking .row');
      if (row && !dragged) activate(itemOf(row));
      return;
    }
    // A double click means one row, even if another row is now under the pointer. Two quick taps on
    // different points, which a browser also counts as double, mean two; so do two in the pool,
    // where nothing moves.
    const { clientX: x, clientY: y } = event;
    const isNear = Math.hypot(x - last.x, y - last.y) < 16;
    const isAgain = event.detail > 1 && last.action !== undefined && isNear && action !== 'choose';
    if (isAgain && last.action !== action) return;
    last = { action, item: isAgain ? last.item : itemOf(event.target), x, y };
    actions[action](last.item)?.focus({ preventScroll: event.detail > 0 });
  });

  ranking.addEventListener('focusin', (event) => activate(itemOf(event.target)));

  const KEYS = { ArrowUp: 'up', ArrowDown: 'down', Home: 'first', Delete: 'remove', Backspace: 'remove' };
  ranking.addEventListener('keydown', (event) => {
    const action = KEYS[event.key];
    if (!action || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (event.repeat && action === 'remove') return;
    const next = actions[action](itemOf(event.target)) ?? event.target;
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  });

  form.addEventListener('keydown', (event) => {
    // Holding a key down must not rank one item after the other.
    if (event.repeat && event.key === 'Enter') event.preventDefault();
  });

  // ---- Dragging ----
  let dragged = false; // whether the last press became a drag, and so is not a click

  byHand.addEventListener('pointerdown', (event) => {
    // A second finger changes nothing. A new first press means that we missed the last release.
    if (!event.isPrimary) return;
    drop(false);
    dragged = false;
    const node = event.target.closest('li:not(.slot)');
    if (!node || event.button !== 0 || event.target.closest('.tools')) return;
    // A finger drags only by the dots: elsewhere it scrolls the page.
    if (event.pointerType !== 'mouse' && !event.target.closest('.handle')) return;
    const { left, top } = node.getBoundingClientRect();
    const { clientX: x, clientY: y, pointerId: id } = event;
    held = { item: itemOf(node), node, id, x, y, inX: x - left, inY: y - top, before: order };
  });

  window.addEventListener('pointermove', (event) => {
    if (event.pointerId !== held?.id) return;
    if (!(event.buttons & 1)) {
      // It was released where we get no event, for example outside of the window.
      drop(false);
      return;
    }
    const { clientX: x, clientY: y } = event;
    if (!dragged) {
      if (Math.hypot(x - held.x, y - held.y) < 6) return;
      dragged = true;
      held.node.setPointerCapture(held.id);
      // A copy follows the pointer: the list would cut off the row itself at its edges.
      held.ghost = held.node.cloneNode(true);
      held.ghost.classList.add('ghost');
      held.ghost.inert = true;
      held.ghost.style.width = `${held.node.offsetWidth}px`;
      form.append(held.ghost);
      document.documentElement.classList.add('sorting');
      requestAnimationFrame(scrollAtEdge);
    }
    Object.assign(held, { x, y });
    follow();
  });

  function isOverRanking() {
    const { left, right, top, bottom } = element('ranked').getBoundingClientRect();
    const { x, y } = held;
    return x > left - 16 && x < right + 16 && y > top - 16 && y < bottom + 16;
  }

  // The ranking and the bar may cover a part of the pool, which does not count.
  const isOverPool = () => element('pool').contains(document.elementFromPoint(held.x, held.y));

  // A ranked item is removed only over the pool; another item is added only over the ranking.
  const isIn = () => (held.before.includes(held.item) ? !isOverPool() : isOverRanking());

  // Shows the order as it would be; the dragged item follows the pointer.
  function follow() {
    const { item, ghost, before, x, y } = held;
    const middle = (row) => row.getBoundingClientRect().top + row.offsetHeight / 2;
    const place = without(item).filter((other) => middle(rows[other]) < y).length;
    const preview = isIn() ? insert(item, place, before) : before;
    if (preview.join() !== order.join()) {
      order = preview;
      draw(item);
    }
    ghost.style.transform = `translate(${x - held.inX}px, ${y - held.inY}px)`;
  }

  function scrollAtEdge() {
    if (!held) return;
    const list = isOverRanking() ? ranking : element('choices');
    const isOverList = isOverRanking() || isOverPool();
    const [scroller, edges] =
      isOverList && list.scrollHeight > list.clientHeight
        ? [list, list.getBoundingClientRect()]
        : [document.scrollingElement, { top: 0, bottom: window.innerHeight - 48 }];
    scroller.scrollTop += held.y < edges.top + 32 ? -8 : held.y > edges.bottom - 32 ? 8 : 0;
    follow();
    requestAnimationFrame(scrollAtEdge);
  }

  function drop(isMeant) {
    if (!held) return;
    const { item, ghost, before } = held;
    const isOut = !isIn();
    const dropped = isOut ? without(item, before) : order;
    held = null;
    if (!dragged) return;
    ghost.remove();
    document.documentElement.classList.remove('sorting');
    order = before;
    draw(item);
    if (!isMeant || dropped.join() === before.join()) return;
    change(item, dropped);
    (isOut ? choices : rows)[item].querySelector('button').focus({ preventScroll: true });
  }

  window.addEventListener('pointerup', (event) => event.pointerId === held?.id && drop(true));
  window.addEventListener('pointercancel', (event) => event.pointerId === held?.id && drop(false));
  window.addEventListener('keydown', (event) => event.key === 'Escape' && drop(false));

  // ---- A draft of the order survives a reload, and a failed attempt to send ----
  const DRAFT = `rankshot:${form.dataset.draft}`;

  function keepDraft() {
    try {
      sessionStorage.setItem(DRAFT, JSON.stringify(order));
    } catch {
      // Storage is full or not allowed: then the order is only on the page.
    }
  }

  function readDraft() {
    try {
      // Drafts of other questions are not needed any more.
      Object.keys(sessionStorage)
        .filter((key) => key.startsWith('rankshot:') && key !== DRAFT)
        .forEach((key) => sessionStorage.removeItem(key));
      // The name of the draft stands for one order of the items on the screen, in any language.
      const kept = JSON.parse(sessionStorage.getItem(DRAFT));
      return kept.every((item) => items.includes(item)) ? kept : [];
    } catch {
      return [];
    }
  }

  // The order that the server sent back with an error.
  function rejectedOrder() {
    const place = (item) => Number(selects[item].value);
    return items.filter((item) => place(item) > 0).sort((a, b) => place(a) - place(b));
  }

  // ---- Sending ----
  let sending = false;
  let askedToSkip = false;

  function setSending(value) {
    if (value !== sending) say(value ? text('sending') : '');
    sending = value;
    form.classList.toggle('sending', value);
  }

  // A computer without a network may still reach a survey that it serves itself.
  let isReached = false;
  function reachServer(goOn) {
    const probe = new Image();
    probe.onload = () => {
      isReached = true;
      goOn();
    };
    probe.src = `${document.querySelector('link[rel="icon"]').href}?${Date.now()}`;
  }

  form.addEventListener('submit', (event) => {
    if (!navigator.onLine && !isReached) {
      // The browser would show a page of its own instead of this one.
      event.preventDefault();
      say(text('offline'), true);
      reachServer(() => form.requestSubmit(event.submitter));
      return;
    }
    const isSkip = event.submitter?.name === 'skip';
    const wanted = Number(form.dataset.wanted ?? order.length);
    const isWhole = order.length > 0 && order.length === wanted;
    if (!sending && (isSkip ? order.length === 0 || askedToSkip : isWhole)) {
      setSending(true);
      // The request may have been stopped. The same answer sent twice is stored once.
      setTimeout(setSending, 10000, false);
      return;
    }
    event.preventDefault();
    if (sending) return;
    if (isSkip) {
      askedToSkip = true;
      say(text('skip_again', { n: order.length }), true);
    } else {
      const problem = order.length ? 'exactly' : 'nothing_ranked';
      complain(text(problem, { expected: wanted, n: order.length }));
      element('ranked').focus();
    }
  });

  form.addEventListener('click', (event) => {
    if (event.detail > 1 && event.target.type === 'submit') event.preventDefault();
  });

  window.addEventListener('pageshow', () => setSending(false)); // also after the Back button

  order = rejectedOrder();
  if (order.length === 0) order = readDraft();
  element('choices').append(...choices);
  element('by-number').hidden = true;
  byHand.hidden = false;
  const observer = new ResizeObserver(measure);
  [bar, element('prompt')].forEach((node) => observer.observe(node));
  window.addEventListener('resize', () => {
    document.body.style.minHeight = '';
  });
  measure();
  draw(order.at(-1));
  reveal(order.at(-1));
  element('error')?.focus();
})();
