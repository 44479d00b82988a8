"use strict";
/* The page around the paper: lists, fields, keys, pointers. */
(() => {
  const $ = id => document.getElementById(id), M = model.M;
  const loaded = model.load(JSON.parse($("data").textContent)), data = loaded.data;
  const view = {context: $("canvas").getContext("2d"), loaded, rows: new Int32Array(0), place: scale.make("even", loaded.start, []), zoom: 22,
    top: 0, chosen: -1, band: -1, found: null, colours: {}, serial: 0, ratio: 1, width: 0, height: 0, narrow: false};
  const state = {pair: 0, kind: "even", filter: null, found: [], at: -1, frames: [], painted: 0};
  const LEAST = 1e-4, MOST = 400, COMFORT = 22;

  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children.filter(child => child !== null));
    return made;
  };

  /* --- painting */

  let asked = false;
  function show() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      const before = performance.now();
      paint.all(view);
      state.painted = performance.now() - before;
    });
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ground", "ink", "faint", "line", "accent", "send", "write", "read", "atomic", "ack", "other", "lost", "repeat", "nak",
      "wrong", "band", "chosen", "shade"])
      view.colours[name] = style.getPropertyValue("--" + name).trim();
    view.serial++;
    show();
  }

  function theme(dark) {
    document.documentElement.classList.toggle("dark", dark);
    colours();
  }

  function resize() {
    const box = $("paper").getBoundingClientRect();
    view.ratio = window.devicePixelRatio || 1;
    view.width = box.width;
    view.height = box.height;
    view.narrow = box.width < 620;
    $("canvas").width = Math.max(1, Math.round(box.width * view.ratio));
    $("canvas").height = Math.max(1, Math.round(box.height * view.ratio));
    scrollTo(view.top);
  }

  function scrollTo(top) {
    view.top = Math.max(0, Math.min(top, paint.height(view) - view.height));
    show();
  }

  /* What is shown at the height `at` stays there. */
  function zoom(factor, at = view.height / 2) {
    const unit = (view.top + at - paint.PAD) / view.zoom;
    const least = Math.min(COMFORT, (view.height - 2 * paint.PAD) / Math.max(view.place.length, 1));
    view.zoom = Math.max(Math.max(least, LEAST), Math.min(MOST * Math.max(1, state.kind === "linear" ? view.place.length : 1), view.zoom * factor));
    scrollTo(unit * view.zoom + paint.PAD - at);
  }

  function whole() {
    view.zoom = Math.max(LEAST, (view.height - 2 * paint.PAD) / Math.max(view.place.length, 1));
    scrollTo(0);
  }

  /* --- which packets are shown */

  function refresh() {
    const pair = loaded.pairs[state.pair];
    view.rows = model.select(pair.rows, state.filter);
    view.place = scale.make(state.kind, loaded.start, view.rows);
    view.serial++;
    $("nothing").hidden = view.rows.length > 0;
    $("nothing").textContent = pair.rows.length ? "No packet of these queue pairs passes the filter." : "No packets.";
    search();
    scrollTo(view.top);
  }

  function choosePair(index, top = 0) {
    state.pair = index;
    const ends = loaded.pairs[index].ends;
    ["left", "right"].forEach((side, at) => $(side).replaceChildren(
      element("b", {textContent: "QP " + model.hex(ends[at].qp)}), element("span", {textContent: [ends[at].process, ends[at].address].filter(Boolean).join(" · "),
        title: [ends[at].process, ends[at].address].join(" ")})));
    $("choose").value = String(index);
    for (const button of $("pairs").querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.pair) === index));
    view.top = top;
    refresh();
  }

  const ends = pair => pair.ends.map(end => model.hex(end.qp)).join(" ↔ ");

  function listPairs() {
    const LISTED = 500, shown = loaded.pairs.filter(pair => pair.rows.length).sort((a, b) => a.rows[0] - b.rows[0]);
    for (const pair of shown.slice(0, LISTED)) {
      const counts = element("small", {}, `${pair.packets.toLocaleString("en")} packets`);
      if (pair.repeats) counts.append(", ", element("span", {className: "again", textContent: `${pair.repeats} again`}));
      if (pair.lost) counts.append(", ", element("span", {className: "bad", textContent: `${pair.lost} lost`}));
      if (pair.naks) counts.append(", ", element("span", {className: "bad", textContent: `${pair.naks} NAK`}));
      if (pair.errors) counts.append(", ", element("span", {className: "bad", textContent: `${pair.errors} errors`}));
      const button = element("button", {onclick: () => choosePair(pair.index)}, element("span", {className: "ends", textContent: ends(pair)}), counts);
      button.dataset.pair = pair.index;
      $("pairs").append(element("li", {}, button));
      $("choose").append(element("option", {value: String(pair.index), textContent: `QP ${ends(pair)}: ${counts.textContent}`}));
    }
    if (shown.length > LISTED) $("pairs").append(element("li", {textContent: `and ${shown.length - LISTED} more; softverbs draw --qp shows one`}));
    return shown.length ? shown[0].index : 0;
  }

  /* --- filter and search */

  function filter() {
    const asked = model.query(loaded, $("filter").value);
    $("filter").classList.toggle("bad", Boolean(asked && asked.error));
    $("filter").title = asked && asked.error ? asked.error : "";
    if (asked && asked.error) return;
    const kept = view.chosen;
    state.filter = asked;
    refresh();
    if (kept >= 0) reveal(kept);
  }

  function search() {
    const asked = model.query(loaded, $("search").value), wrong = asked && asked.error;
    $("search").classList.toggle("bad", Boolean(wrong));
    $("search").title = wrong || "";
    view.found = wrong ? null : asked;
    state.found = view.found ? Array.from(view.rows.filter(view.found.test)) : [];
    state.at = -1;
    $("matches").textContent = wrong ? "" : view.found ? `${state.found.length.toLocaleString("en")} found` : "";
    show();
  }

  function step(by) {
    if (!state.found.length) return;
    if (state.at < 0) {
      const from = state.found.findIndex(row => row > view.chosen);
      state.at = by > 0 ? (from < 0 ? 0 : from) : (from < 0 ? state.found.length : from) - 1;
    } else {
      state.at += by;
    }
    state.at = (state.at + state.found.length) % state.found.length;
    $("matches").textContent = `${state.at + 1} of ${state.found.length.toLocaleString("en")}`;
    choose(state.found[state.at], true);
  }

  /* --- one packet */

  function reveal(index) {
    const place = view.rows.indexOf(index);
    if (place < 0) return;
    const at = view.place.ofRow(place) * view.zoom + paint.PAD;
    if (at < view.top + 40 || at > view.top + view.height - 40) scrollTo(at - view.height / 2);
  }

  function choose(index, scrolls) {
    view.chosen = index;
    view.band = index < 0 ? -1 : loaded.rows[index][model.MESSAGE];
    $("details").hidden = index < 0;
    if (index >= 0) {
      if (model.pairOf(loaded, index) !== state.pair) choosePair(model.pairOf(loaded, index));
      if (!view.rows.includes(index) && state.filter) {
        $("filter").value = "";
        filter();
      }
      describe(index);
    }
    resize();
    if (index >= 0 && scrolls) reveal(index);
    show();
  }

  const table = rows => element("table", {}, ...rows.filter(Boolean).map(([name, value]) => element("tr", {}, element("th", {textContent: name}),
    element("td", {}, value instanceof Node ? value : String(value)))));

  const link = (textContent, index) => element("button", {textContent, onclick: () => choose(index, true)});

  function describeWay(index) {
    const row = loaded.rows[index], from = loaded.pairs[state.pair].ends[loaded.side[index]], to = loaded.pairs[state.pair].ends[1 - loaded.side[index]];
    const what = loaded.happenings ? "Record" : "Frame"; /* of a recording, of a capture */
    const number = (file, at) => (row[file] > 0 ? `file ${row[file] + 1}, ` : "") + row[at];
    if (!model.isPacket(loaded, index))
      return table([["At", `QP ${model.hex(from.qp)}`], ["Time", model.time(row[model.SENT])], ["Record", number(model.SENT_FILE, model.SENT_NUMBER)]]);
    return table([
      ["From", `QP ${model.hex(from.qp)}`], ["To", `QP ${model.hex(to.qp)}`],
      row[model.SENT] >= 0 && ["Sent at", model.time(row[model.SENT])],
      row[model.RECEIVED] >= 0 && ["Arrived at", model.time(row[model.RECEIVED])],
      row[model.SENT] >= 0 && row[model.RECEIVED] >= 0 && ["On the way", model.time(row[model.RECEIVED] - row[model.SENT])],
      row[model.SENT_NUMBER] >= 0 && [`${what} where sent`, number(model.SENT_FILE, model.SENT_NUMBER)],
      row[model.RECEIVED_NUMBER] >= 0 && [`${what} where received`, number(model.RECEIVED_FILE, model.RECEIVED_NUMBER)],
      ["Payload", model.bytes(row[model.BYTES])],
      row[model.NOTE] && ["Comment", model.text(loaded, index, model.NOTE)],
      row[model.VERDICT] && ["Wrong", model.text(loaded, index, model.VERDICT)]]);
  }

  function describeMarks(index) {
    const row = loaded.rows[index], parts = [];
    data.marks.forEach(([word, sentence], bit) => {
      if (row[model.MARKS] >> bit & 1) parts.push(element("p", {}, element("span", {className: "tag " + word, textContent: word}), sentence));
    });
    if (row[model.CAUSE]) parts.push(element("p", {textContent: model.causeOf(loaded, index)[1] + (row[model.WAITED] ? ` It waited ${model.time(row[model.WAITED])}.` : "")}));
    if (row[model.RELATED] >= 0 && loaded.rows[row[model.RELATED]])
      parts.push(element("p", {}, link(model.causeOf(loaded, index)[0] === "timeout" ? "Sent before" : "Because of", row[model.RELATED])));
    return parts;
  }

  function describeMessage(index) {
    const message = data.messages[loaded.rows[index][model.MESSAGE]];
    if (!message) return [];
    const [word, sentence] = data.states[message[M.STATE]], answered = message[M.ANSWERED], start = loaded.start[message[M.FIRST]];
    const op = data.operations[message[M.OPCODE]];
    const known = row => row >= 0 && loaded.rows[row];
    const ends = [["Work request", "Post", message[M.POSTED]], ["Completion", "Completion", message[M.COMPLETED]],
      ["Receive", "Arrival", message[M.RECEIVED]]].filter(([, , row]) => known(row));
    return [element("h4", {textContent: `Message ${message[M.NUMBER]} of QP ${model.hex(loaded.pairs[state.pair].ends[data.flows[message[M.FLOW]][1]].qp)}: ${op[1]}`}),
      element("p", {}, element("span", {className: "tag " + word, textContent: word}), word === "refused" ? model.syndrome(loaded, message[M.SYNDROME]) : sentence),
      table([["PSNs", message[M.FIRST_PSN] === message[M.LAST_PSN] ? message[M.FIRST_PSN] : `${message[M.FIRST_PSN]} to ${message[M.LAST_PSN]}`],
        ["Length", model.bytes(message[M.BYTES]) + (message[M.WHOLE] ? "" : " seen")], ["Packets", message[M.PACKETS]],
        message[M.REPEATS] && ["Sent again", message[M.REPEATS]],
        ["First packet", model.time(start)],
        known(answered) && ["Answered after", model.time(loaded.end[answered] - start)],
        ...ends.map(([name, , row]) => [name, `${model.text(loaded, row, model.NOTE)}, at ${model.time(loaded.start[row])}`])]),
      element("div", {className: "step"}, link("First", message[M.FIRST]), link("Last", message[M.LAST]), known(answered) ? link("Answer", answered) : null,
        ...ends.map(([, button, row]) => link(button, row)))];
  }

  function describe(index) {
    const fields = [];
    for (const [header, list] of model.fields(loaded, index))
      fields.push(element("h4", {textContent: header}), table(list.map(([name, value]) => [name, name === "Syndrome" ? `${value} (${model.syndrome(loaded, value)})` : value])));
    const manager = loaded.rows[index][model.MANAGER];
    $("details").replaceChildren(...[
      element("button", {className: "close", textContent: "×", title: "Close (Esc)", ariaLabel: "Close", onclick: () => choose(-1)}),
      element("h3", {textContent: model.isPacket(loaded, index) ? model.operationName(loaded, index) : model.text(loaded, index, model.NOTE)}),
      model.isPacket(loaded, index) ? null : element("p", {}, element("span", {className: "tag", textContent: model.happening(loaded, index)[0]}), model.happening(loaded, index)[1]), ...describeMarks(index), describeWay(index), ...describeMessage(index), ...fields,
      ...(manager ? [element("h4", {textContent: "Connection manager"}), element("p", {textContent: model.text(loaded, index, model.MANAGER)})] : [])].filter(Boolean));
    $("details").scrollTop = 0;
  }

  function neighbour(by) {
    const place = view.rows.indexOf(view.chosen);
    const next = place < 0 ? view.place.first((view.top + view.height / 3) / view.zoom) : place + by;
    if (next >= 0 && next < view.rows.length) choose(view.rows[next], true);
  }

  /* --- pointers and keys */

  function pointers() {
    const canvas = $("canvas"), down = new Map();
    let moved = 0, spread = 0, strip = false;
    const distance = () => {
      const [a, b] = [...down.values()];
      return Math.abs(a.y - b.y) + Math.abs(a.x - b.x);
    };
    const place = event => ({x: event.offsetX, y: event.offsetY});
    const jump = at => scrollTo(at / view.height * paint.height(view) - view.height / 2);
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, place(event));
      moved = 0;
      strip = event.offsetX > view.width - paint.STRIP;
      if (strip) jump(event.offsetY);
      if (down.size === 2) spread = distance();
    });
    canvas.addEventListener("pointermove", event => {
      const before = down.get(event.pointerId);
      if (!before) return;
      const now = place(event);
      down.set(event.pointerId, now);
      if (down.size === 2) {
        zoom(distance() / Math.max(spread, 1), now.y);
        spread = distance();
        moved = 99;
      } else if (strip) {
        jump(now.y);
      } else {
        moved += Math.abs(now.y - before.y) + Math.abs(now.x - before.x);
        if (moved > 4) scrollTo(view.top - (now.y - before.y));
      }
    });
    const up = event => {
      if (down.delete(event.pointerId) && moved <= 4 && !strip && event.type === "pointerup") choose(paint.hit(view, event.offsetX, event.offsetY), false);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      if (event.ctrlKey) zoom(Math.exp(-event.deltaY * lines / 200), event.offsetY);
      else scrollTo(view.top + event.deltaY * lines);
    }, {passive: false});
  }

  const keys = {
    ArrowDown: () => scrollTo(view.top + 66), ArrowUp: () => scrollTo(view.top - 66), PageDown: () => scrollTo(view.top + view.height * 0.9),
    PageUp: () => scrollTo(view.top - view.height * 0.9), Home: () => scrollTo(0), End: () => scrollTo(Infinity), j: () => neighbour(1), k: () => neighbour(-1),
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": whole, n: () => step(1), N: () => step(-1), "/": () => $("search").focus(),
    f: () => $("filter").focus(), "?": () => about(), Escape: () => $("about").hidden ? choose(-1) : about(),
  };

  function key(event) {
    const field = event.target.tagName === "INPUT";
    if (field && event.key === "Enter" && event.target.id === "search") step(event.shiftKey ? -1 : 1);
    if (field && event.key === "Escape") $("canvas").focus();
    if (field || event.target.tagName === "SELECT" || event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  /* --- the legend */

  function about() {
    $("about").hidden = !$("about").hidden;
    $("help").setAttribute("aria-expanded", String(!$("about").hidden));
  }

  const list = rows => element("dl", {}, ...rows.flatMap(([name, meaning]) => [element("dt", {}, name), element("dd", {textContent: meaning})]));

  function swatch(name, dashed) {
    const line = element("span", {className: dashed ? "swatch dashed" : "swatch"});
    line.style.borderColor = `var(--${name})`;
    return line;
  }

  function fillAbout() {
    $("about").append(element("h2", {textContent: "Lines"}), list([
      [swatch("send"), "SEND"], [swatch("write"), "RDMA WRITE, atomic write, flush"], [swatch("read"), "RDMA READ, and its responses"], [swatch("atomic"), "atomics"],
      [swatch("ack"), "ACK"], [swatch("nak"), "NAK, RNR NAK"], [swatch("repeat"), "sent again, late or twice; dots beside a lifeline: how long it waited"],
      [swatch("lost", true), "lost: the cross"], [swatch("wrong", true), "damaged"],
      ["◆", "of a recording: what happened at an end: work that was posted (black) or ended (blue), a timer (orange), an error (red)"],
      ["●", "at the requester: the answer to a message has come; at the receiver: its last packet has"]]),
    element("h2", {textContent: "Filter and search"}), element("p", {textContent: "All words must hold; - in front of one says that it must not. A word is looked for in operation, queue pairs, addresses, processes and comments."}),
    list([["psn:100-120", "a range, a number, or with < or >; len, number (of the frame) and message, too"], ["time>5", "milliseconds since the first packet"], ["wait>50", "milliseconds that a repeat waited"],
      ["qp:0x12", "of this queue pair"], ["op:read", "the operation, or its kind"], ["why:timeout", "why it was sent again: " + data.causes.slice(1).map(cause => cause[0]).join(", ")],
      ...data.marks.map(([word, sentence]) => ["is:" + word, sentence]),
      ...(loaded.happenings ? [["is:packet", "a packet, not what happened at an end"], ...data.happenings.slice(1).map(([word, sentence]) => ["is:" + word, sentence])] : [])]),
    element("h2", {textContent: "Keys"}), list([["↑ ↓ PgUp PgDn Home End", "move; so do the wheel and dragging"], ["+ − 0", "zoom, the whole; Ctrl and the wheel zoom, too"],
      ["j k", "next and previous packet"], ["/ n N", "search, next and previous match"], ["f", "filter"], ["Esc", "close"]]));
  }

  /* --- the beginning */

  function mode(kind) {
    const middle = view.rows.length ? view.rows[Math.min(view.rows.length - 1, view.place.first((view.top + view.height / 2) / view.zoom))] : -1;
    state.kind = kind;
    $("even").setAttribute("aria-pressed", String(kind === "even"));
    $("linear").setAttribute("aria-pressed", String(kind === "linear"));
    refresh();
    if (view.chosen >= 0 || middle >= 0) reveal(view.chosen >= 0 ? view.chosen : middle);
  }

  /* What follows the # of the address: packet, qp, filter, search. */
  function fromAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    $("filter").value = asked.get("filter") || "";
    $("search").value = asked.get("search") || "";
    if (asked.get("qp")) {
      const pair = loaded.pairs.find(one => one.rows.length && one.ends.some(end => end.qp === Number(asked.get("qp"))));
      if (pair) choosePair(pair.index);
    }
    filter();
    if (loaded.rows[Number(asked.get("packet") || NaN)]) choose(Number(asked.get("packet")), true);
  }

  function begin() {
    const shown = loaded.pairs.reduce((sum, pair) => sum + pair.packets, 0), more = loaded.pairs.reduce((sum, pair) => sum + pair.rows.length, 0) - shown, dark = matchMedia("(prefers-color-scheme: dark)");
    $("title").textContent = data.title;
    $("summary").textContent = `${shown.toLocaleString("en")} packets${more ? ` and ${more.toLocaleString("en")} events at the ends` : ""} in ${model.time(loaded.last)}` + (data.left_out ? `, ${data.left_out.toLocaleString("en")} left out` : "") +
      (data.cut ? `, ${data.cut} cut by the capture` : "");
    fillAbout();
    const first = listPairs();
    theme(dark.matches);
    dark.addEventListener("change", () => theme(dark.matches));
    $("theme").onclick = () => theme(!document.documentElement.classList.contains("dark"));
    $("filter").oninput = filter;
    $("search").oninput = search;
    $("next").onclick = () => step(1);
    $("previous").onclick = () => step(-1);
    $("even").onclick = () => mode("even");
    $("linear").onclick = () => mode("linear");
    $("in").onclick = () => zoom(1.5);
    $("out").onclick = () => zoom(1 / 1.5);
    $("all").onclick = whole;
    $("help").onclick = about;
    $("choose").onchange = () => choosePair(Number($("choose").value));
    document.addEventListener("keydown", key);
    window.addEventListener("hashchange", fromAddress);
    new ResizeObserver(resize).observe($("paper"));
    pointers();
    resize();
    choosePair(first);
    fromAddress();
  }

  begin();
  window.draw = {view, state, model, paint, choose, scrollTo, zoom, whole, mode, show}; /* for tests */
})();
