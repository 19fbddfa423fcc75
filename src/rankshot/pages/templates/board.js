// Sorts and searches the table of ratings, and shows the votes of one judge.
"use strict";
const table = document.querySelector("table.board");
const body = table.tBodies[0];
const rows = [...body.rows];
const controls = document.querySelector(".controls");
const search = controls.querySelector("[type=search]");
const judge = controls.querySelector("select");
const count = controls.querySelector("output");
const judges = JSON.parse(document.querySelector("#judges").textContent);
const original = rows.map((row) => [row.cells[7].textContent, row.cells[8].textContent]);

function show() {
  const wanted = search.value.trim().toLowerCase();
  const chosen = judge && judge.value !== "" ? judges[Number(judge.value)].votes : null;
  let shown = 0;
  rows.forEach((row, i) => {
    const found = chosen ? chosen[i] : null;
    const [votes, share] = found ? [String(found[0]), found[1].toFixed(2)] : original[i];
    for (const [cell, text] of [[row.cells[7], votes], [row.cells[8], share]]) {
      cell.textContent = text;
      cell.dataset.value = text.replaceAll(",", "");
    }
    const named = row.cells[1].textContent.toLowerCase().includes(wanted);
    row.hidden = !named || (chosen !== null && found === null);
    shown += !row.hidden;
  });
  count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} items`;
}

function sort(heading, column) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  const isName = column === 1;
  const value = (row) => (isName ? row.cells[1].textContent : Number(row.cells[column].dataset.value));
  const compare = (x, y) => (isName ? value(x).localeCompare(value(y)) : value(x) - value(y));
  const sorted = [...rows].sort((x, y) => (down ? compare(y, x) : compare(x, y)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...sorted);
}

for (const heading of table.tHead.querySelectorAll("th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => sort(heading, heading.cellIndex));
}
search.addEventListener("input", show);
if (judge) judge.addEventListener("change", show);
controls.hidden = false;
