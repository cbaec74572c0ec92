// Numbers and times as a person writes them.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Three digits that matter, and no zeros after them. */
function trimmed(value) {
  return String(Number(value.toPrecision(3)));
}

/** For an axis: 950, 1.2k, 3M. */
function compact(value) {
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= unit) return trimmed(value / unit) + letter;
  }
  return trimmed(value);
}

/** A length of time in the unit that fits. */
function lasting(seconds) {
  if (seconds < 0.9995) return `${trimmed(seconds * 1000)} ms`;
  return seconds < 9.995 ? `${seconds.toFixed(2)} s` : `${trimmed(seconds)} s`;
}

/** A time in a run that lasts so long: seconds, or 12:05 if it is longer than two minutes. `fine` adds a decimal to seconds. */
function clock(seconds, until, fine) {
  if (until < 120) return `${fine ? seconds.toFixed(1) : trimmed(seconds)} s`;
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** A value of a chart, in full. */
function shown(value, unit) {
  if (unit === "seconds") return lasting(value);
  if (unit === "inverse" || unit === "score") return trimmed(value);
  const number = value < 10 ? trimmed(value) : grouped.format(value);
  return unit === "per_s" ? `${number}/s` : number;
}

/** A value at an axis that reaches `top`. */
function label(value, unit, top) {
  if (unit !== "seconds") return compact(value);
  if (value === 0) return "0";
  return top < 1 || value < 1 ? `${trimmed(value * 1000)} ms` : `${compact(value)} s`;
}
