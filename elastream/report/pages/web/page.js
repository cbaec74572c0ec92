// The page comes to life: charts from the data in it, drawn again when their width changes.

const PAPER = { whole: 660, half: 310 };

const specs = JSON.parse(document.getElementById("charts").textContent);
const decisions = readDecisions();
const charts = [];
const places = new Map([...document.querySelectorAll("figure[data-chart]")].map((figure) => [figure.dataset.chart, figure]));
for (const spec of specs) {
  const chart = new Chart(places.get(spec.key), spec, decisions);
  charts.push(chart);
  crosshair.follow(chart);
}
document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll("details.list").forEach(makeSearchable);

// A switch that stands above many charts moves all of its kind.
for (const button of document.querySelectorAll(".switch[data-charts] button")) {
  const choice = button.closest(".switch");
  button.addEventListener("click", () => {
    for (const each of choice.children) each.setAttribute("aria-pressed", String(each === button));
    for (const chart of charts) if (chart.spec.key.startsWith(choice.dataset.charts)) chart.scaleBy(button.dataset.scale);
  });
}

const widths = new Map();
const watcher = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const width = Math.round(contentRect.width);
    if (widths.get(target) === width) continue;
    widths.set(target, width);
    charts.find((chart) => chart.plot === target).draw();
  }
});
for (const chart of charts) {
  chart.draw();
  widths.set(chart.plot, chart.plot.clientWidth);
  watcher.observe(chart.plot);
}
addEventListener("beforeprint", () => {
  for (const chart of charts) chart.draw(chart.figure.closest(".runs") ? PAPER.half : PAPER.whole);
});
addEventListener("afterprint", () => charts.forEach((chart) => chart.draw()));
