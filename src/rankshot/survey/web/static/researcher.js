'use strict';

// Renews the figures while the page is looked at. The server makes the HTML, with all names
// escaped; it is parsed into nodes, and a script in it would not run (nor let the policy it).
const SECONDS = 10;
const renewed = document.getElementById('renewed');
const standing = document.getElementById('standing');

async function renew() {
  if (document.hidden) return;
  // What somebody reads or scrolls with the keyboard is not pulled away under them.
  if (standing.contains(document.activeElement)) return;
  try {
    const response = await fetch(renewed.dataset.url, { credentials: 'same-origin' });
    if (response.status === 401) {
      location.reload();
      return;
    }
    if (!response.ok) throw new Error(response.statusText);
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    standing.replaceChildren(...fresh.body.childNodes);
    renewed.textContent = `As of ${new Date().toLocaleTimeString()}; renewed every ${SECONDS} seconds.`;
  } catch {
    renewed.textContent = 'The survey does not answer at the moment; these are the last figures.';
  }
}

// The sentence is for eyes: spoken every few seconds it would only disturb.
renewed.setAttribute('aria-live', 'off');
setInterval(renew, SECONDS * 1000);
