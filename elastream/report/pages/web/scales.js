// Where a value lies on the screen, and which values stand at the axis.

/** From 0 up to `top` in steps of 1, 2 or 5 times a power of ten: at most `most` steps. */
function ticks(top, most, whole) {
  const raw = top / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * (1 - 1e-9));
  if (whole) step = Math.max(1, step);
  const count = Math.floor(top / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, n) => Number((n * step).toPrecision(12)));
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Round times between two, at most about `most` of them. */
function timeTicks(from, until, most) {
  const raw = (until - from) / most;
  let step = TIME_STEPS.find((size) => size >= raw);
  if (raw < 0.5) step = ticks(until - from, most, false)[1];
  if (!step) step = Math.ceil(raw / 86400) * 86400;
  const first = Math.ceil(from / step - 1e-9);
  const count = Math.floor(until / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, n) => Number(((first + n) * step).toPrecision(12)));
}

/** What counts as next to nothing on a logarithmic axis, which begins at zero all the same. */
const LEAST = { seconds: 0.01 };

function logTicks(top, unit) {
  const least = LEAST[unit] || 1;
  const factors = top / least <= 100 ? [1, 2, 5] : [1];
  const found = [0];
  for (let power = least; power <= top; power *= 10) {
    for (const factor of factors) {
      if (power * factor <= top) found.push(Number((power * factor).toPrecision(6)));
    }
  }
  return found;
}

/** A function from a value to a pixel: `low` lies at `bottom`, `high` at `upper`. */
function linear(low, high, bottom, upper) {
  const pixels = high > low ? (upper - bottom) / (high - low) : 0;
  return (value) => bottom + (value - low) * pixels;
}

function logarithmic(high, bottom, upper, unit) {
  const least = LEAST[unit] || 1;
  const place = linear(0, Math.log1p(high / least), bottom, upper);
  return (value) => place(Math.log1p(Math.max(0, value) / least));
}

/** The position of the point that stands for time `t`: of steps the last one before it, of lines the nearest. */
function indexAt(times, t, isStep) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  const before = Math.max(0, low - 1);
  if (isStep || low >= times.length) return before;
  return t - times[before] <= times[low] - t ? before : low;
}
