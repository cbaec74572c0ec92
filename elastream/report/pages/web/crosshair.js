// One time for all charts: where the pointer is in one of them, the others show the same moment.

const crosshair = {
  charts: [],
  t: null,
  asked: false,

  /** `then` runs when all charts are there; a decision puts its reason in place of the values. */
  at(t, then) {
    this.t = t;
    this.then = then;
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      for (const chart of this.charts) chart.point(this.t);
      if (this.then) this.then();
    });
  },

  follow(chart) {
    this.charts.push(chart);
    const { plot, spec } = chart;
    const move = (event) => {
      const box = plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) * chart.svg.viewBox.baseVal.width) / box.width;
      const { left, right } = chart.area;
      const share = Math.min(1, Math.max(0, (x - left) / (right - left)));
      this.at(spec.from + share * (spec.until - spec.from));
    };
    plot.addEventListener("pointermove", move);
    plot.addEventListener("pointerdown", move);
    // A finger that is lifted leaves the moment on the screen; a mouse takes it along.
    plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.at(null));
    plot.tabIndex = 0;
    plot.setAttribute("aria-label", `${chart.summary()} The arrow keys move through time.`);
    plot.setAttribute("role", "group");
    plot.addEventListener("keydown", (event) => this.step(event, spec));
  },

  step(event, { from, until }) {
    const step = { ArrowRight: 0.01, ArrowLeft: -0.01, PageDown: 0.1, PageUp: -0.1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const t = (this.t ?? from) + step * (until - from);
    this.at(Math.min(until, Math.max(from, t)));
  },
};

document.addEventListener("keydown", (event) => event.key === "Escape" && crosshair.at(null));
document.addEventListener("pointerdown", (event) => event.target.closest(".plot") || crosshair.at(null));
