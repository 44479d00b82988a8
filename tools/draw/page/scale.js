"use strict";
/* Where times are on the paper. Places are in units, of which a packet has one on average; a zoom is the pixels of a unit. */
const scale = (() => {
  /* How many rows come first for which this holds; it holds for no row after them. */
  function howMany(rows, holds) {
    let low = 0, high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(rows[middle])) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /* The place of the first row whose time is greater, and of the first row that is not less than this one. */
  const after = (times, rows, time) => howMany(rows, row => times[row] <= time);
  const below = (rows, wanted) => howMany(rows, row => row < wanted);

  /* "even": each packet has a line of its own; a time between two departures lies between their lines. */
  function even(times, rows) {
    const count = rows.length;
    return {
      length: count,
      of: time => {
        const next = after(times, rows, time);
        if (next === 0) return 0;
        const from = times[rows[next - 1]], to = next < count ? times[rows[next]] : from + 1;
        return next - 1 + Math.min((time - from) / Math.max(to - from, 1), 0.95);
      },
      ofRow: place => place,
      /* The arrival of a packet before which `begun` packets had begun is between the lines of its neighbours. */
      ofArrival: (begun, time) => {
        const next = below(rows, begun);
        if (next === 0) return 0;
        const from = times[rows[next - 1]], to = next < count ? times[rows[next]] : time;
        return next - 1 + Math.max(0.2, Math.min((time - from) / Math.max(to - from, 1), 0.8));
      },
      first: unit => Math.max(0, Math.min(count, Math.floor(unit))),
    };
  }

  function linear(times, rows) {
    const count = rows.length, from = count ? times[rows[0]] : 0, span = count ? Math.max(times[rows[count - 1]] - from, 1) : 1;
    const of = time => (time - from) / span * Math.max(count - 1, 1);
    return {
      length: count,
      of,
      ofRow: place => of(times[rows[place]]),
      ofArrival: (_, time) => of(time),
      first: unit => after(times, rows, from + (unit / Math.max(count - 1, 1)) * span - 1e-9),
    };
  }

  const make = (kind, times, rows) => kind === "linear" ? linear(times, rows) : even(times, rows);
  return {make, after};
})();
if (typeof module !== "undefined") module.exports.scale = scale;
