"use strict";
/* Paints what is in view of a ladder. A view has: context, width, height, loaded, rows (of packets that are shown), place (scale.js), zoom,
 * top (pixels above the view), chosen (a packet, or -1), found (a test of search, or null), colours, narrow. */
const paint = (() => {
  const PAD = 16, STRIP = 18, LINE = 13, LOOK_BACK = 200, MOST_ARROWS = 2500, SHARE = 0.36;
  const MONO = "ui-monospace, 'DejaVu Sans Mono', monospace";

  /* Where things are across the paper. */
  function columns(view) {
    const left = view.narrow ? 74 : 128, right = view.narrow ? 26 : 128;
    return {left, right: Math.max(view.width - STRIP - right, left + 60), strip: view.width - STRIP};
  }

  const y = (view, unit) => unit * view.zoom - view.top + PAD;
  const height = view => view.place.length * view.zoom + 2 * PAD;

  function colour(view, index) {
    const {loaded, colours} = view, marks = loaded.marks[index], bit = loaded.bit;
    if (marks & bit.wrong) return colours.wrong;
    if (marks & (bit.lost | bit.missing)) return colours.lost;
    if (marks & (bit.nak | bit.rnr)) return colours.nak;
    if (marks & bit.error) return colours.lost;
    if (marks & (bit.repeat | bit.late | bit.duplicate)) return colours.repeat;
    return kindColour(view, index);
  }

  const groups = {"send": "send", "write": "write", "read": "read", "read response": "read", "atomic": "atomic", "atomic response": "atomic",
    "atomic write": "write", "flush": "write", "ack": "ack", "timer": "repeat", "state": "faint", "other": "faint", "reset": "faint", "post": "ink", "local": "ink",
    "completion": "accent", "arrival": "accent"};

  const kindColour = (view, index) => view.colours[groups[view.loaded.kinds[view.loaded.kind[index]]] || "other"];

  function inView(view) {
    const from = (view.top - PAD - 30) / view.zoom, to = (view.top + view.height + 30) / view.zoom;
    return [Math.max(0, view.place.first(from) - LOOK_BACK), Math.min(view.rows.length, view.place.first(to) + 1)];
  }

  /* A column of times, none of which covers another. */
  function timeColumn(view, x, align) {
    let before = -Infinity;
    return (at, text) => {
      if (at - before < LINE || at < 2 || at > view.height + LINE) return;
      before = at;
      view.context.textAlign = align;
      view.context.fillStyle = view.colours.faint;
      view.context.fillText(text, x, at);
    };
  }

  function arrowHead(context, x, at, direction, slope) {
    const angle = Math.atan2(slope, direction);
    context.beginPath();
    context.moveTo(x, at);
    context.lineTo(x - 8 * Math.cos(angle - 0.4), at - 8 * Math.sin(angle - 0.4));
    context.lineTo(x - 8 * Math.cos(angle + 0.4), at - 8 * Math.sin(angle + 0.4));
    context.fill();
  }

  function arrow(view, across, index, from, to) {
    const {context, loaded} = view, marks = loaded.marks[index], gone = marks & (loaded.bit.lost | loaded.bit.missing);
    const begin = loaded.side[index] ? across.right : across.left, end = loaded.side[index] ? across.left : across.right;
    const direction = Math.sign(end - begin), stop = gone ? begin + (end - begin) * 0.82 : end;
    context.strokeStyle = context.fillStyle = colour(view, index);
    context.lineWidth = index === view.chosen ? 2.5 : 1.4;
    context.setLineDash(gone || marks & loaded.bit.wrong ? [5, 4] : []);
    context.beginPath();
    context.moveTo(begin, from);
    context.lineTo(stop, to);
    context.stroke();
    context.setLineDash([]);
    if (!gone) return arrowHead(context, end, to, direction, (to - from) / Math.abs(end - begin));
    context.lineWidth = 2;
    context.beginPath();
    for (const [x, dy] of [[-5, -5], [-5, 5]]) {
      context.moveTo(stop + x, to + dy);
      context.lineTo(stop - x, to - dy);
    }
    context.stroke();
  }

  /* What happened at an end: a diamond on its lifeline. */
  function happened(view, across, index, at) {
    const {context} = view, side = view.loaded.side[index], x = side ? across.right : across.left, size = index === view.chosen ? 6 : 4.5;
    context.fillStyle = colour(view, index);
    context.beginPath();
    for (const [dx, dy] of [[0, -size], [size, 0], [0, size], [-size, 0]]) context.lineTo(x + dx, at + dy);
    context.fill();
  }

  function happenedLabel(view, across, index, at) {
    const {context} = view, side = view.loaded.side[index], text = fit(view, index, across.right - across.left - 30), width = text.length * view.letter;
    const x = side ? across.right - 10 : across.left + 10;
    context.globalAlpha = 0.9;
    context.fillStyle = isBanded(view, index) ? view.colours.chosen : view.colours.paper;
    context.fillRect(side ? x - width - 2 : x - 2, at - 6, width + 4, LINE);
    context.globalAlpha = 1;
    context.fillStyle = colour(view, index);
    context.textAlign = side ? "right" : "left";
    context.fillText(text, x, at + 4);
  }

  const isBanded = (view, index) => view.band >= 0 && view.loaded.rows[index][model.MESSAGE] === view.band;

  /* Whether there is room for two labels side by side. */
  const isWide = across => across.right - across.left > 560;

  /* As many parts of the label as there is room for; the length gives way first, then the PSN. */
  function fit(view, index, room) {
    const parts = model.label(view.loaded, index), width = view.letter;
    const fits = () => parts.join("  ").length * width <= room;
    if (!fits() && view.loaded.rows[index][model.BYTES]) parts.pop();
    if (!fits() && parts.length > 2) parts.splice(1, 1);
    while (parts.length > 1 && !fits()) parts.pop();
    const text = parts.join("  "), most = Math.max(1, Math.floor(room / width));
    return text.length > most ? text.slice(0, most - 1) + "…" : text;
  }

  /* The label is nearer to where the packet comes from, so that labels of both directions do not meet; without room, in the middle. */
  function labelPlace(view, across, index, half) {
    const width = across.right - across.left, share = view.loaded.side[index] ? 1 - SHARE : SHARE;
    const edge = half + 14;
    return Math.max(across.left + edge, Math.min(across.right - edge, across.left + width * share));
  }

  /* The label of a steep arrow is where the arrow begins, in its own line. */
  const isSteep = (from, to) => to - from > 3 * LINE;
  const labelHeight = (from, to) => isSteep(from, to) ? from : from + (to - from) * SHARE;

  function label(view, across, index, from, to) {
    const {context} = view, room = (across.right - across.left) * (isWide(across) ? 0.62 : 1) - 36, text = fit(view, index, room);
    const half = text.length * view.letter / 2, at = labelHeight(from, to) + 4;
    const middle = isSteep(from, to) ? view.loaded.side[index] ? across.right - half - 16 : across.left + half + 16 : labelPlace(view, across, index, half);
    context.globalAlpha = 0.9;
    context.fillStyle = isBanded(view, index) ? view.colours.chosen : view.colours.paper;
    context.fillRect(middle - half - 4, at - 10, 2 * half + 8, LINE);
    context.globalAlpha = 1;
    context.fillStyle = colour(view, index);
    context.textAlign = "center";
    context.fillText(text, middle, at);
  }

  /* Bands below packets that the search found, the chosen packet and its message. */
  function band(view, across, index, from) {
    const {context, loaded} = view, message = loaded.rows[index][model.MESSAGE];
    const found = view.found && view.found.test(index), chosen = index === view.chosen || (message >= 0 && message === view.band);
    if (!found && !chosen) return;
    context.fillStyle = chosen ? view.colours.chosen : view.colours.band;
    const size = Math.min(20, Math.max(2, view.zoom));
    context.fillRect(across.left + 1, from - size / 2, across.right - across.left - 2, size);
  }

  function lifelines(view, across) {
    view.context.fillStyle = view.colours.line;
    for (const x of [across.left, across.right]) view.context.fillRect(x - 1, 0, 2, view.height);
  }

  /* A timer or wait: from what went before it to the packet that is sent again, beside the lifeline. */
  function waits(view, across, index, at) {
    const {context, loaded} = view, row = loaded.rows[index];
    if (!row[model.CAUSE] || !row[model.WAITED]) return;
    const x = loaded.side[index] ? across.right + 8 : across.left - 8, begin = y(view, view.place.of(loaded.start[index] - row[model.WAITED]));
    context.strokeStyle = view.colours.repeat;
    context.lineWidth = 1.5;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(x, Math.max(begin, -10));
    context.lineTo(x, at);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.arc(x, at, 3, 0, 7);
    context.stroke();
  }

  /* Where a message is complete: a full circle at the requester when its answer has come, at the receiver when its last packet has. */
  function completions(view, across, index, to) {
    const {context, loaded} = view, row = loaded.rows[index], message = loaded.data.messages[row[model.MESSAGE]];
    if (!message) return;
    const answers = message[model.M.ANSWERED] === index, ends = message[model.M.LAST] === index && !gone(loaded, index);
    if (!answers && !ends) return;
    const x = loaded.side[index] ? across.left : across.right;
    context.fillStyle = loaded.data.states[message[model.M.STATE]][0] === "refused" && answers ? view.colours.lost : colour(view, index);
    context.beginPath();
    context.arc(x, to, answers ? 4 : 3, 0, 7);
    context.fill();
  }

  const gone = (loaded, index) => (loaded.marks[index] & (loaded.bit.lost | loaded.bit.missing)) !== 0;

  function shortTime(view, value) {
    if (view.narrow) return (value / 1e6).toFixed(3);
    return (value / 1e6).toFixed(value >= 1e9 ? 3 : 4) + " ms";
  }

  function arrivalOf(view, index, begin) {
    const {loaded, place} = view, begun = loaded.rows[index][model.BEFORE];
    if (!begun || loaded.end[index] === loaded.start[index] && begun === index + 1) return begin;
    return Math.max(y(view, place.ofArrival(begun, loaded.end[index])), begin);
  }

  function arrows(view, across, first, last) {
    const {context, loaded, rows, place} = view, times = [timeColumn(view, across.left - 14, "right"), timeColumn(view, across.right + 14, "left")];
    const begins = new Float64Array(last - first), ends = new Float64Array(last - first);
    for (let at = first; at < last; at++) {
      begins[at - first] = y(view, place.ofRow(at));
      ends[at - first] = arrivalOf(view, rows[at], begins[at - first]);
      band(view, across, rows[at], begins[at - first]);
    }
    lifelines(view, across);
    for (let at = first; at < last; at++) {
      if (!model.isPacket(loaded, rows[at])) {
        happened(view, across, rows[at], begins[at - first]);
        continue;
      }
      arrow(view, across, rows[at], begins[at - first], ends[at - first]);
      waits(view, across, rows[at], begins[at - first]);
      completions(view, across, rows[at], ends[at - first]);
    }
    labels(view, across, first, last, begins, ends);
    const left = [], right = [];
    for (let at = first; at < last; at++) {
      const row = rows[at], side = loaded.side[row];
      (side ? right : left).push([begins[at - first], loaded.start[row]]);
      if (loaded.end[row] > loaded.start[row]) (side ? left : right).push([ends[at - first], loaded.end[row]]);
    }
    [left, right].forEach((list, side) => {
      if (side && view.narrow) return;
      list.sort((a, b) => a[0] - b[0]).forEach(([at, value]) => times[side](at + 4, shortTime(view, value)));
    });
  }

  function labels(view, across, first, last, begins, ends) {
    const before = [-Infinity, -Infinity], wide = isWide(across);
    for (let at = first; at < last; at++) {
      const middle = labelHeight(begins[at - first], ends[at - first]), side = wide ? view.loaded.side[view.rows[at]] : 0;
      if (middle - before[side] < LINE || middle < -20 || middle > view.height + 20) continue;
      before[side] = middle;
      if (!model.isPacket(view.loaded, view.rows[at])) happenedLabel(view, across, view.rows[at], middle);
      else label(view, across, view.rows[at], begins[at - first], ends[at - first]);
    }
  }

  /* Too many for arrows: for each line of pixels how many there are of which kind, and what went wrong. */
  function density(view, across, first, last, left, right, step) {
    const {context, loaded, rows, place} = view, lines = Math.ceil(view.height / step), kinds = loaded.kinds.length;
    const counts = new Uint32Array(lines * kinds), flags = new Uint32Array(lines);
    let most = 1;
    for (let at = first; at < last; at++) {
      const line = Math.floor(y(view, place.ofRow(at)) / step), row = rows[at];
      if (line < 0 || line >= lines) continue;
      counts[line * kinds + loaded.kind[row]]++;
      flags[line] |= loaded.marks[row];
    }
    for (let line = 0; line < lines; line++) {
      let sum = 0;
      for (let kind = 0; kind < kinds; kind++) sum += counts[line * kinds + kind];
      most = Math.max(most, sum);
    }
    const bit = loaded.bit, colours = kinds ? loaded.kinds.map(kind => view.colours[groups[kind] || "other"]) : [];
    for (let line = 0; line < lines; line++) {
      let x = left;
      for (let kind = 0; kind < kinds; kind++) {
        const width = counts[line * kinds + kind] / most * (right - left - 8);
        if (!width) continue;
        context.fillStyle = colours[kind];
        context.fillRect(x, line * step, width, step);
        x += width;
      }
      if (!flags[line]) continue;
      context.fillStyle = flags[line] & (bit.lost | bit.missing | bit.nak | bit.rnr | bit.wrong | bit.error) ? view.colours.lost : view.colours.repeat;
      if (flags[line] & (bit.lost | bit.missing | bit.nak | bit.rnr | bit.wrong | bit.error | bit.repeat | bit.late | bit.duplicate))
        context.fillRect(right - 7, line * step, 7, Math.max(step, 2));
    }
  }

  function densityTimes(view, across) {
    const column = timeColumn(view, across.left - 14, "right");
    for (let at = LINE; at < view.height; at += 40) {
      const place = view.place.first((at + view.top - PAD) / view.zoom);
      if (place < view.rows.length) column(at, shortTime(view, view.loaded.start[view.rows[place]]));
    }
  }

  /* All packets that the filter passes, small, at the right edge; a frame around those in view. */
  function strip(view, across) {
    const {context} = view, all = height(view), key = `${view.height} ${view.serial}`;
    if (view.stripKey !== key) {
      const canvas = document.createElement("canvas"), ratio = view.ratio;
      canvas.width = STRIP * ratio;
      canvas.height = Math.max(1, view.height * ratio);
      const small = {...view, context: canvas.getContext("2d"), top: PAD, zoom: view.height / Math.max(view.place.length, 1)};
      small.context.scale(ratio, ratio);
      density(small, null, 0, view.rows.length, 1, STRIP, 2);
      view.stripKey = key;
      view.stripImage = canvas;
    }
    context.fillStyle = view.colours.ground;
    context.fillRect(across.strip, 0, STRIP, view.height);
    context.drawImage(view.stripImage, across.strip, 0, STRIP, view.height);
    if (all <= view.height) return;
    context.fillStyle = view.colours.shade;
    context.strokeStyle = view.colours.accent;
    context.lineWidth = 1.5;
    const from = view.top / all * view.height, size = Math.max(6, view.height / all * view.height);
    context.fillRect(across.strip, from, STRIP, size);
    context.strokeRect(across.strip + 1, from + 1, STRIP - 2, size - 2);
  }

  function all(view) {
    const {context} = view, across = columns(view), [first, last] = inView(view);
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    context.fillStyle = view.colours.paper;
    context.fillRect(0, 0, view.width, view.height);
    context.font = `12px ${MONO}`;
    context.textBaseline = "alphabetic";
    view.letter = view.letter || context.measureText("0000000000").width / 10;
    view.dense = last - first - LOOK_BACK > MOST_ARROWS;
    if (view.dense) {
      lifelines(view, across);
      density(view, across, first, last, across.left + 6, across.right - 4, 2);
      densityTimes(view, across);
    } else {
      arrows(view, across, first, last);
    }
    strip(view, across);
  }

  /* The packet at this point, or -1: the nearest arrow. */
  function hit(view, x, at) {
    const across = columns(view), [first, last] = inView(view);
    const share = Math.max(0, Math.min(1, (x - across.left) / (across.right - across.left)));
    let best = -1, least = 14;
    for (let place = first; place < last; place++) {
      const row = view.rows[place], along = view.loaded.side[row] ? 1 - share : share, from = y(view, view.place.ofRow(place));
      const to = arrivalOf(view, row, from);
      const distance = Math.abs(from + (to - from) * along - at);
      if (distance < least) [best, least] = [row, distance];
    }
    return best;
  }

  return {all, hit, height, columns, PAD, STRIP};
})();
