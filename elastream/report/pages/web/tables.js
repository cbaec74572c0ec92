// Tables: sorted by a click on a head, filtered by words.

/** The number in a cell, or null: "1,234 ms" is 1234. */
function numberIn(words) {
  const found = words.replace(/,/g, "").match(/^\s*[<>]?\s*(-?\d+(\.\d+)?(e[+-]?\d+)?)/i);
  return found ? Number(found[1]) : null;
}

/** Numbers by size, before words in their order. */
function compare(a, b) {
  const [first, second] = [numberIn(a), numberIn(b)];
  if (first !== null && second !== null) return first - second;
  if (first !== null || second !== null) return first !== null ? -1 : 1;
  return a.localeCompare(b);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    head.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const cell = (row) => row.cells[column].textContent;
      const rows = [...body.rows].sort((a, b) => compare(cell(a), cell(b)));
      body.append(...(up ? rows : rows.reverse()));
    });
  });
}

function makeSearchable(box) {
  const [input, told] = [box.querySelector("input[type=search]"), box.querySelector("output")];
  if (!input) return;
  const rows = [...box.querySelectorAll("tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    rows.forEach((row, n) => {
      row.hidden = !words.every((word) => texts[n].includes(word));
      found += row.hidden ? 0 : 1;
    });
    told.textContent = words.length ? `${found} of ${rows.length}` : "";
  });
}
