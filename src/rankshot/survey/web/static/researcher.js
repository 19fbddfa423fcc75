'use strict';

// Updates the page while it is visible. The server makes the HTML, with all names escaped. It is
// parsed into nodes. A script in it would not run, and the policy forbids it.
const updated = document.getElementById('updated');
const progress = document.getElementById('progress');
const seconds = Number(updated.dataset.seconds);
let version = null;

// Changes only what differs, so that the focus, the scroll position
// of a table and the position of a screen reader stay. Rows of participants are found by their id.
function update(node, fresh) {
  const known = new Map(Array.from(node.children, (child) => [child.id, child]));
  let place = node.firstChild;
  for (const child of Array.from(fresh.childNodes)) {
    const same = (child.id && known.get(child.id)) || place;
    if (same && same.nodeName === child.nodeName && same.id === child.id) {
      if (same === place) place = place.nextSibling;
      else node.insertBefore(same, place);
      if (same.nodeType === Node.ELEMENT_NODE) {
        copyAttributes(same, child);
        update(same, child);
      } else if (same.data !== child.data) same.data = child.data;
    } else if (place && !place.id) {
      const next = place.nextSibling;
      place.replaceWith(child);
      place = next;
    } else node.insertBefore(child, place);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function copyAttributes(node, fresh) {
  for (const { name } of Array.from(node.attributes)) if (!fresh.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

async function fetchUpdate() {
  const signal = AbortSignal.timeout(60000);
  const headers = version ? { 'If-None-Match': version } : {};
  const response = await fetch(`${updated.dataset.url}?${location.search.slice(1)}`, { credentials: 'same-origin', headers, signal });
  if (response.status === 401) location.reload(); // the login has expired
  if (!response.ok && response.status !== 304) throw new Error(response.statusText);
  const text = response.status === 304 ? null : await response.text();
  if (text !== null) {
    const focused = document.activeElement;
    update(progress, new DOMParser().parseFromString(text, 'text/html').body);
    version = response.headers.get('etag');
    // A row that has moved has lost the focus.
    if (focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  }
  updated.textContent = `State at ${new Date().toLocaleTimeString()}, updated every ${seconds} seconds.`;
}

async function tryUpdate() {
  try {
    await fetchUpdate();
  } catch {
    updated.textContent = 'The survey does not respond at the moment. These are the last figures.';
  }
}

// The next update waits for the last one, however long it takes.
async function keepUpdating() {
  if (!document.hidden) await tryUpdate();
  setTimeout(keepUpdating, seconds * 1000);
}

setTimeout(keepUpdating, seconds * 1000);
