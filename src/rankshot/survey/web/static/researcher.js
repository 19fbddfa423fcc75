'use strict';

// Updates the figures while the page is visible. The server makes the HTML, with all names
// escaped. It is parsed into nodes. A script in it would not run, and the policy forbids it.
const updated = document.getElementById('updated');
const progress = document.getElementById('progress');
const seconds = Number(updated.dataset.seconds);

// Changes only what differs, so that the focus, the selection, the scroll position of a table and
// the position of a screen reader stay.
function update(node, fresh) {
  const before = Array.from(node.childNodes);
  const after = Array.from(fresh.childNodes);
  before.slice(after.length).forEach((child) => child.remove());
  after.forEach((child, i) => {
    if (i >= before.length) node.append(child);
    else if (before[i].cloneNode().isEqualNode(child.cloneNode())) update(before[i], child);
    else before[i].replaceWith(child);
  });
}

async function fetchUpdate() {
  const signal = AbortSignal.timeout(60000);
  const response = await fetch(updated.dataset.url, { credentials: 'same-origin', signal });
  if (response.status === 401) location.reload(); // the login has expired
  if (!response.ok) throw new Error(response.statusText);
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  update(progress, fresh.body);
  updated.textContent = `State at ${new Date().toLocaleTimeString()}, updated every ${seconds} seconds.`;
}

// The next update waits for the last one, however long it takes.
async function keepUpdating() {
  try {
    if (!document.hidden) await fetchUpdate();
  } catch {
    updated.textContent = 'The survey does not respond at the moment. These are the last figures.';
  }
  setTimeout(keepUpdating, seconds * 1000);
}

setTimeout(keepUpdating, seconds * 1000);
