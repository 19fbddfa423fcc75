// A best-worst question: an item is the first or the last, not both.
'use strict';

(() => {
  const form = document.getElementById('answer');
  const isTouch = matchMedia('(pointer: coarse)').matches;
  const isSmall = window.innerWidth < 600 || (isTouch && window.innerHeight < 600);
  form.elements.screen.value = isSmall ? 'phone' : isTouch ? 'tablet' : 'desktop';
  form.addEventListener('change', ({ target }) => {
    const other = { first: 'last', last: 'first' }[target.name];
    form.elements[other].forEach((radio) => {
      if (radio.value === target.value) radio.checked = false;
    });
  });
})();
