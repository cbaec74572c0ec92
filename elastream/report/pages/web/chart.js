// One chart: lines over time, drawn as SVG as wide as there is room, so that its text keeps its size.

const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];
const MOST_ROWS = 8;
const HEADROOM = 1.06;

/** An element with attributes; text is only ever set as text. */
function make(name, attributes = {}, words) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (words !== undefined) element.textContent = words;
  return element;
}

function html(name, className, words) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (words !== undefined) element.textContent = words;
  return element;
}

/** Points that no line connects. */
function isPoints(line) {
  return line.shape === "dots" || line.shape === "rings";
}

/** A short piece of a line, as it looks in the chart. */
function swatch(line) {
  const svg = make("svg", { class: `key ink-${line.ink}`, width: 22, height: 10, "aria-hidden": "true" });
  if (line.shape === "area") svg.append(make("rect", { class: "area", width: 22, height: 10, rx: 2 }));
  if (isPoints(line)) svg.append(make("circle", { class: `point ${line.shape}`, cx: 11, cy: 5, r: 4 }));
  else svg.append(make("line", { class: "line", x1: 0, x2: 22, y1: 5, y2: 5, "stroke-dasharray": DASHES[line.dash % 4] }));
  return svg;
}

class Chart {
  constructor(figure, spec, decisions) {
    this.figure = figure;
    // A run that was over at once still has an axis.
    this.spec = { ...spec, until: spec.until > spec.from ? spec.until : spec.from + 1 };
    this.decisions = spec.marks ? decisions : [];
    this.plot = figure.querySelector(".plot");
    this.tip = html("div", "tip");
    this.tip.hidden = true;
    this.hidden = new Set();
    this.log = false;
    this.makeLegend(figure.querySelector(".legend"));
    this.makeSwitch(figure.querySelector(".switch"));
  }

  get lines() {
    return this.spec.lines.filter((line) => !this.hidden.has(line) && line.x.length);
  }

  makeLegend(legend) {
    if (!legend || !this.spec.lines.length) return;
    for (const line of this.spec.lines) {
      const button = html("button");
      button.type = "button";
      button.title = "Click to hide or show, double click to show only this one";
      button.append(swatch(line), html("span", "", line.name));
      button.addEventListener("click", () => this.show(line, this.hidden.has(line)));
      button.addEventListener("dblclick", () => this.showOnly(line));
      button.setAttribute("aria-pressed", "true");
      legend.append(button);
    }
    this.buttons = [...legend.children];
  }

  makeSwitch(choice) {
    for (const button of choice ? choice.querySelectorAll("button") : []) {
      button.addEventListener("click", () => this.scaleBy(button.dataset.scale));
    }
  }

  scaleBy(scale) {
    this.log = scale === "log";
    for (const button of this.figure.querySelectorAll(".switch button")) {
      button.setAttribute("aria-pressed", String(button.dataset.scale === scale));
    }
    this.draw();
  }

  show(line, visible) {
    if (visible) this.hidden.delete(line);
    else this.hidden.add(line);
    this.spec.lines.forEach((each, n) => this.buttons[n].setAttribute("aria-pressed", String(!this.hidden.has(each))));
    this.draw();
  }

  /** Or all again, if it was the only one. */
  showOnly(line) {
    const alone = this.lines.length === 1 && this.lines[0] === line;
    this.hidden = new Set(alone ? [] : this.spec.lines.filter((each) => each !== line));
    this.show(line, true);
  }

  draw(width = this.plot.clientWidth) {
    if (!width) return;
    const { spec } = this;
    const narrow = width < 520;
    const lanes = laneHeights(this.decisions);
    const upper = spec.bracket ? 34 : 10;
    const room = spec.small ? 150 : (narrow ? 170 : 210);
    const two = spec.lines.some((line) => line.right);
    this.area = {
      left: narrow || spec.small ? 44 : 56,
      right: width - (two ? 44 : narrow || spec.small ? 8 : 14),
      upper,
      bottom: upper + room,
      floor: upper + room + lanes.height,
    };
    const height = this.area.floor + 24;
    this.x = linear(spec.from, spec.until, this.area.left, this.area.right);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "presentation" });
    this.svg = svg;
    this.drawAxes(svg, two);
    this.drawLines(svg);
    if (spec.bracket) this.drawBracket(svg);
    this.cursor = make("g", { class: "cursor" });
    svg.append(this.cursor);
    if (this.decisions.length) drawMarks(this, lanes);
    if (!this.lines.length) {
      const middle = { class: "nothing", x: (this.area.left + this.area.right) / 2, y: upper + room / 2 };
      svg.append(make("text", middle, "nothing to show"));
    }
    this.plot.replaceChildren(svg, this.tip);
    this.tip.hidden = true;
  }

  summary() {
    const caption = this.figure.querySelector("figcaption p");
    return `${this.figure.querySelector("h2, h3, h4").textContent}. ${caption ? caption.textContent : ""}`;
  }

  drawAxes(svg, two) {
    const { left, right, bottom, floor } = this.area;
    const grid = make("g", { class: "rules" });
    const words = make("g", { class: "axis" });
    this.yLeft = this.makeScale(this.spec.lines.filter((line) => !line.right), this.spec.unit, this.spec.top);
    for (const value of this.yLeft.values) {
      const y = this.yLeft.place(value);
      grid.append(make("line", { class: value ? "" : "base", x1: left, x2: right, y1: y, y2: y }));
      const name = label(value, this.spec.unit, this.yLeft.top);
      words.append(make("text", { class: "y", x: left - 8, y: y + 4, "text-anchor": "end" }, name));
    }
    if (two) {
      this.yRight = this.makeScale(this.spec.lines.filter((line) => line.right), "per_s", null);
      for (const value of this.yRight.values) {
        words.append(make("text", { class: "y2", x: right + 8, y: this.yRight.place(value) + 4 }, compact(value)));
      }
    }
    for (const t of timeTicks(this.spec.from, this.spec.until, Math.max(2, (right - left) / 75))) {
      const x = this.x(t);
      grid.append(make("line", { class: "tick", x1: x, x2: x, y1: floor, y2: floor + 4 }));
      const edge = x > right - 14 ? "end" : "middle";
      words.append(make("text", { class: "x", x: Math.min(x, right), y: floor + 18, "text-anchor": edge }, clock(t, this.spec.until)));
    }
    if (floor > bottom) grid.append(make("line", { class: "base", x1: left, x2: right, y1: floor, y2: floor }));
    svg.append(grid, words);
  }

  makeScale(lines, unit, top) {
    const { bottom, upper } = this.area;
    const seen = lines.filter((line) => !this.hidden.has(line));
    const most = top ?? seen.reduce((high, line) => line.y.reduce((a, b) => Math.max(a, b), high), 0);
    const high = (most > 0 ? most : 1) * HEADROOM;
    if (this.log) return { top: high, values: logTicks(high, unit), place: logarithmic(high, bottom, upper, unit) };
    const values = ticks(high, this.spec.small ? 4 : 5, unit === "tuples" || unit === "replicas");
    return { top: high, values, place: linear(0, high, bottom, upper) };
  }

  /** The scale of a line, moved by a pixel or two where steps would hide one another. */
  y(line) {
    const { place } = line.right ? this.yRight : this.yLeft;
    if (line.shape !== "step") return place;
    const steps = this.lines.filter((each) => each.shape === "step");
    const unit = place(0) - place(1);
    const apart = Math.min(2.5, (unit * 0.6) / steps.length);
    const move = (steps.indexOf(line) - (steps.length - 1) / 2) * apart;
    return (value) => place(value) - move;
  }

  drawLines(svg) {
    const group = make("g", { class: "lines" });
    for (const line of this.lines) {
      const y = this.y(line);
      const points = line.x.map((t, n) => [this.x(t).toFixed(1), y(line.y[n]).toFixed(1)]);
      const base = y(0).toFixed(1);
      let path = `M${points[0]}`;
      if (line.shape === "step") {
        // The first sample tells of the time before it.
        path = `M${this.x(this.spec.from)} ${points[0][1]}${points.map(([x, at]) => `H${x}V${at}`).join("")}`;
      } else if (points.length > 1) path += `L${points.slice(1).join("L")}`;
      else path += "h0.1";
      const element = make("g", { class: `ink-${line.ink}`, "data-line": line.name });
      if (line.shape === "area") {
        element.append(make("path", { class: "area", d: `${path}L${points.at(-1)[0]} ${base}L${points[0][0]} ${base}Z` }));
      }
      if (isPoints(line)) {
        for (const [cx, cy] of points) element.append(make("circle", { class: `point ${line.shape}`, cx, cy, r: 4 }));
      } else element.append(make("path", { class: `line ${line.shape}`, d: path, "stroke-dasharray": DASHES[line.dash % 4] }));
      group.append(element);
    }
    svg.append(group);
  }

  drawBracket(svg) {
    const { from_s: from, to_s: to, words } = this.spec.bracket;
    const [x1, x2, y] = [this.x(Math.max(from, this.spec.from)), this.x(to), this.area.upper - 10];
    const group = make("g", { class: "bracket" });
    group.append(make("path", { d: `M${x1} ${y + 5}V${y}H${x2}V${y + 5}` }));
    const middle = Math.max(this.area.left + 24, Math.min((x1 + x2) / 2, this.area.right - 24));
    group.append(make("text", { x: middle, y: y - 6, "text-anchor": "middle" }, words));
    svg.append(group);
  }

  /** The values at time `t` of every line that is seen. */
  valuesAt(t) {
    return this.lines.map((line) => {
      const at = indexAt(line.x, t, line.shape === "step");
      return { line, t: line.x[at], value: line.y[at], words: (line.words || [])[at] };
    });
  }

  point(t) {
    if (!this.svg) return;
    const inside = t !== null && t >= this.spec.from && t <= this.spec.until;
    this.tip.hidden = !inside;
    this.cursor.replaceChildren();
    if (!inside) return;
    const { upper, floor } = this.area;
    const x = this.x(t);
    this.cursor.append(make("line", { x1: x, x2: x, y1: upper, y2: floor }));
    const values = this.valuesAt(t);
    for (const { line, t: at, value } of values) {
      const cx = line.shape === "step" ? x : this.x(at);
      this.cursor.append(make("circle", { class: `ink-${line.ink}`, cx, cy: this.y(line)(value), r: 3.5 }));
    }
    this.fillTip(clock(t, this.spec.until, true), values);
    this.placeTip(x);
  }

  fillTip(title, values) {
    const most = values.length > MOST_ROWS ? [...values].sort((a, b) => b.value - a.value).slice(0, MOST_ROWS) : values;
    const rows = most.map(({ line, value, words }) => {
      const row = html("div", "row");
      const said = shown(value, line.right ? "per_s" : this.spec.unit);
      row.append(swatch(line), html("span", "", line.name), html("b", "", words ? `${said} ${words}` : said));
      return row;
    });
    if (most.length < values.length) rows.push(html("div", "rest", `and ${values.length - most.length} smaller`));
    this.tip.replaceChildren(html("div", "when", title), ...rows);
  }

  /** Beside the line, on the side where there is more room. */
  placeTip(x) {
    const scale = this.plot.clientWidth / this.svg.viewBox.baseVal.width || 1;
    const toLeft = x > (this.area.left + this.area.right) / 2;
    this.tip.style.left = toLeft ? "auto" : `${x * scale + 12}px`;
    this.tip.style.right = toLeft ? `${this.plot.clientWidth - x * scale + 12}px` : "auto";
  }
}
