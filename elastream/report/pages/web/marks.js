// The decisions under the replicas: a row for each operator, a triangle for each change, its reason when it is asked for.

const NEAR = 5;
const MOST_NEAR = 4;

/** What is in the table of decisions. */
function readDecisions() {
  return [...document.querySelectorAll("#decisions tbody tr")].map((row) => ({
    t: Number(row.dataset.t),
    ink: row.dataset.ink,
    before: Number(row.dataset.before),
    after: Number(row.dataset.after),
    operator: row.cells[1].textContent,
    reason: row.cells[3].textContent,
  }));
}

function laneHeights(decisions) {
  const names = [...new Set(decisions.map((decision) => decision.operator))];
  const lane = Math.max(8, Math.min(18, 240 / Math.max(1, names.length)));
  return { names, lane, height: names.length ? names.length * lane + 12 : 0 };
}

function drawMarks(chart, { names, lane }) {
  const { left, right, bottom } = chart.area;
  const group = make("g", { class: "marks", role: "list", "aria-label": "decisions" });
  names.forEach((name, n) => {
    const y = bottom + 6 + lane * (n + 0.5);
    group.append(make("line", { class: "lane", x1: left, x2: right, y1: y, y2: y }));
    if (lane < 12) return;
    const most = Math.floor((left - 8) / 6.2);
    const words = name.length > most ? `${[...name].slice(0, most - 1).join("")}…` : name;
    group.append(make("text", { class: "lane", x: left - 8, y: y + 3.5, "text-anchor": "end" }, words));
  });
  const size = lane / 3.2;
  const marks = chart.decisions.map((decision, n) => {
    const x = Math.min(right - 2, Math.max(left + 2, chart.x(decision.t)));
    const y = bottom + 6 + lane * (names.indexOf(decision.operator) + 0.5);
    const way = decision.after > decision.before ? -1 : 1;
    const said = `${clock(decision.t, chart.spec.until, true)}, ${decision.operator}: ${decision.before} to ${decision.after}, ${decision.reason}`;
    const mark = make("g", { class: `mark ink-${decision.ink}`, role: "listitem", tabindex: n ? -1 : 0, "aria-label": said });
    mark.append(make("rect", { x: x - 9, y: y - lane / 2, width: 18, height: lane }));
    mark.append(make("path", { d: `M${x - size} ${y - way * size * 0.8}h${2 * size}l${-size} ${way * size * 1.7}Z` }));
    group.append(mark);
    return { decision, mark, x };
  });
  group.addEventListener("keydown", (event) => moveFocus(event, marks));
  for (const each of marks) {
    const near = () => marks.filter(
      (other) => other.decision.operator === each.decision.operator && Math.abs(other.x - each.x) < NEAR,
    );
    const tell = (event) => {
      event.stopPropagation();
      crosshair.at(each.decision.t, () => fillReasons(chart, each, near()));
    };
    each.mark.addEventListener("pointerenter", tell);
    each.mark.addEventListener("pointermove", tell);
    each.mark.addEventListener("pointerdown", tell);
    each.mark.addEventListener("focus", tell);
    // Unless the pointer has gone on to another moment, which is why the focus was lost.
    each.mark.addEventListener("blur", () => crosshair.t === each.decision.t && crosshair.at(null));
  }
  chart.svg.append(group);
}

/** One mark is in the order of the Tab key, the others are reached with the arrows. */
function moveFocus(event, marks) {
  const at = marks.findIndex(({ mark }) => mark === document.activeElement);
  const goal = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: marks.length - 1 }[event.key];
  if (goal === undefined || !marks[goal]) return;
  event.preventDefault();
  event.stopPropagation();
  marks[at]?.mark.setAttribute("tabindex", -1);
  marks[goal].mark.setAttribute("tabindex", 0);
  marks[goal].mark.focus();
}

function fillReasons(chart, { decision, x }, near) {
  const told = [decision, ...near.map((other) => other.decision).filter((other) => other !== decision)];
  const blocks = told.slice(0, MOST_NEAR).map((each) => {
    const block = html("div", "reason");
    const title = html("b", "", `${each.operator} ${each.before} → ${each.after}`);
    block.append(title, html("span", "when", clock(each.t, chart.spec.until, true)), html("p", "", each.reason));
    return block;
  });
  if (told.length > MOST_NEAR) blocks.push(html("div", "rest", `and ${told.length - MOST_NEAR} more close by`));
  chart.tip.replaceChildren(...blocks);
  chart.placeTip(x);
}
