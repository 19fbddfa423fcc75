'use strict';

// Renews the figures while the page is looked at. The server makes the HTML, with all names
// escaped; it is parsed into nodes, and a script in it would not run (nor let the policy it).
const renewed = document.getElementById('renewed');
const standing = document.getElementById('standing');
const seconds = Number(renewed.dataset.seconds);

// Changes only what differs: the focus, what is selected, how far a table is scrolled and where a
// screen reader is in it stay.
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

async function renew() {
  const signal = AbortSignal.timeout(60000);
  const response = await fetch(renewed.dataset.url, { credentials: 'same-origin', signal });
  if (response.status === 401) location.reload(); // the login has ended
  if (!response.ok) throw new Error(response.statusText);
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  update(standing, fresh.body);
  renewed.textContent = `As of ${new Date().toLocaleTimeString()}; renewed every ${seconds} seconds.`;
}

// The next one waits for the last one, however long that takes.
async function keepRenewing() {
  try {
    if (!document.hidden) await renew();
  } catch {
    renewed.textContent = 'The survey does not answer at the moment; these are the last figures.';
  }
  setTimeout(keepRenewing, seconds * 1000);
}

setTimeout(keepRenewing, seconds * 1000);
