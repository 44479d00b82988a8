"use strict";
/* The ladder as the command wrote it (tools/draw/page.c), filters, and words. No DOM: node can run it. */
const model = (() => {
  /* Places in a packet's row. */
  const SENT = 0, SENT_FILE = 1, SENT_NUMBER = 2, RECEIVED = 3, RECEIVED_FILE = 4, RECEIVED_NUMBER = 5, FLOW = 6, OPCODE = 7, PSN = 8,
    BYTES = 9, MARKS = 10, CAUSE = 11, RELATED = 12, WAITED = 13, MESSAGE = 14, NOTE = 15, VERDICT = 16, MANAGER = 17, HAPPENING = 18,
    BEFORE = 19, VALUES = 20;
  /* Places in a message's row. */
  const M = {FLOW: 0, NUMBER: 1, OPCODE: 2, FIRST_PSN: 3, LAST_PSN: 4, FIRST: 5, LAST: 6, PACKETS: 7, REPEATS: 8, BYTES: 9, STATE: 10,
    SYNDROME: 11, ANSWERED: 12, WHOLE: 13, POSTED: 14, COMPLETED: 15, RECEIVED: 16};

  const hex = number => number < 0 ? "?" : "0x" + number.toString(16);

  function time(nanoseconds) {
    const size = Math.abs(nanoseconds);
    if (size >= 1e9) return (nanoseconds / 1e9).toFixed(6) + " s";
    if (size >= 1e6) return (nanoseconds / 1e6).toFixed(3) + " ms";
    return (nanoseconds / 1e3).toFixed(size % 1000 ? 3 : 0) + " µs";
  }

  function bytes(count) {
    for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]])
      if (count >= size && count % size === 0) return count / size + " " + unit;
    return count + " B";
  }

  /* Typed arrays, by which painting 100,000 packets takes no time, beside the rows themselves. */
  function load(data) {
    const rows = data.packets, count = rows.length;
    const loaded = {data, rows, count, start: new Float64Array(count), end: new Float64Array(count), side: new Uint8Array(count),
      kind: new Uint8Array(count), marks: new Uint32Array(count), pairs: [], bit: {}, kinds: [], texts: new Array(count), last: 0};
    data.marks.forEach(([word], index) => loaded.bit[word] = 1 << index);
    loaded.pairs = data.pairs.map(([left, right, leftQp, rightQp, leftProcess, rightProcess], index) => ({index,
      ends: [{address: data.strings[left], qp: leftQp, process: data.strings[leftProcess]},
             {address: data.strings[right], qp: rightQp, process: data.strings[rightProcess]}],
      rows: [], packets: 0, repeats: 0, lost: 0, naks: 0, errors: 0}));
    loaded.happenings = data.packets.some(row => row && row[HAPPENING]);
    for (let row = 0; row < count; row++)
      if (rows[row]) add(loaded, row);
    loaded.pairs.forEach(pair => pair.rows = Int32Array.from(pair.rows));
    return loaded;
  }

  function add(loaded, index) {
    const row = loaded.rows[index], [pair, side] = loaded.data.flows[row[FLOW]], bit = loaded.bit;
    const start = row[SENT] >= 0 ? row[SENT] : row[RECEIVED];
    loaded.start[index] = start;
    loaded.end[index] = row[RECEIVED] >= 0 ? row[RECEIVED] : start;
    loaded.side[index] = side;
    loaded.marks[index] = row[MARKS];
    loaded.last = Math.max(loaded.last, loaded.end[index]);
    const kind = kindOf(loaded, index);
    let place = loaded.kinds.indexOf(kind);
    if (place < 0) place = loaded.kinds.push(kind) - 1;
    loaded.kind[index] = place;
    const of = loaded.pairs[pair];
    of.rows.push(index);
    of.packets += row[HAPPENING] ? 0 : 1;
    of.errors += row[MARKS] & bit.error ? 1 : 0;
    of.repeats += row[MARKS] & bit.repeat ? 1 : 0;
    of.lost += row[MARKS] & (bit.lost | bit.missing) ? 1 : 0;
    of.naks += row[MARKS] & (bit.nak | bit.rnr) ? 1 : 0;
  }

  const operation = (loaded, index) => loaded.data.operations[loaded.rows[index][OPCODE]];
  const isPacket = (loaded, index) => loaded.rows[index][HAPPENING] === 0;
  const happening = (loaded, index) => loaded.data.happenings[loaded.rows[index][HAPPENING]];
  const operationName = (loaded, index) => isPacket(loaded, index) ? (operation(loaded, index) || ["unreadable"])[0] : happening(loaded, index)[0];
  const kindOf = (loaded, index) => isPacket(loaded, index) ? (operation(loaded, index) || ["", "other"])[1] : happening(loaded, index)[0];
  const causeOf = (loaded, index) => loaded.data.causes[loaded.rows[index][CAUSE]];
  const text = (loaded, index, place) => loaded.data.strings[loaded.rows[index][place]];
  const pairOf = (loaded, index) => loaded.data.flows[loaded.rows[index][FLOW]][0];

  /* Fields by header: [["BTH", [["Partition Key", "0xffff"], ...]], ...] */
  function fields(loaded, index) {
    const found = [], op = operation(loaded, index);
    (op ? op[5] : []).forEach((number, place) => {
      const [header, name] = loaded.data.fields[number];
      if (loaded.rows[index][VALUES][place] === null) return;
      if (!found.length || found[found.length - 1][0] !== header) found.push([header, []]);
      found[found.length - 1][1].push([name, loaded.rows[index][VALUES][place]]);
    });
    return found;
  }

  const field = (loaded, index, wanted) => {
    for (const [, list] of fields(loaded, index))
      for (const [name, value] of list)
        if (name === wanted) return value;
    return undefined;
  };

  /* IBA 9.7.5.2: three bits of kind, five of value. */
  function syndrome(loaded, value) {
    const naks = ["PSN Sequence Error", "Invalid Request", "Remote Access Error", "Remote Operational Error", "Invalid RD Request"];
    const kind = value >> 5, low = value & 31;
    if (kind === 0) return low === 31 ? "ACK" : "ACK, credits " + low;
    if (kind === 1) return "RNR NAK, timer " + time(loaded.data.rnr[low]);
    return kind === 3 && naks[low] ? "NAK: " + naks[low] : "syndrome " + hex(value);
  }

  /* The words at an arrow, the most important first. */
  function label(loaded, index) {
    if (!isPacket(loaded, index)) return [text(loaded, index, NOTE)];
    const row = loaded.rows[index], parts = [operationName(loaded, index).replace(/^RC /, "").replace("ACKNOWLEDGE", "ACK")];
    const value = field(loaded, index, "Syndrome"), waited = row[WAITED];
    if (value !== undefined && value >> 5) parts[0] = syndrome(loaded, value);
    if (row[MANAGER]) parts[0] = text(loaded, index, MANAGER).split(" ").slice(0, 2).join(" ");
    if (row[OPCODE] >= 0) parts.push("PSN " + row[PSN]);
    if (row[VERDICT]) parts.push(text(loaded, index, VERDICT));
    if (row[CAUSE]) parts.push(waited ? `again, ${causeOf(loaded, index)[0]} ${time(waited)}` : "again");
    else if (row[MARKS] & loaded.bit.repeat) parts.push("again");
    if (row[MARKS] & loaded.bit.lost) parts.push("lost");
    else if (row[MARKS] & loaded.bit.missing) parts.push("missing");
    else if (row[MARKS] & loaded.bit.duplicate) parts.push("duplicate");
    if (row[BYTES]) parts.push(bytes(row[BYTES]));
    return parts;
  }

  function words(loaded, index) {
    if (loaded.texts[index] === undefined) {
      const pair = loaded.pairs[pairOf(loaded, index)], value = field(loaded, index, "Syndrome");
      loaded.texts[index] = [operationName(loaded, index), text(loaded, index, NOTE), text(loaded, index, VERDICT), text(loaded, index, MANAGER),
        pair.ends.map(end => `${hex(end.qp)} ${end.address} ${end.process}`).join(" "), value === undefined ? "" : syndrome(loaded, value),
        causeOf(loaded, index)[0]].join(" ").toLowerCase();
    }
    return loaded.texts[index];
  }

  /* --- filters: terms that all must hold; "-" in front says that one must not */

  const amounts = {
    psn: (loaded, index) => loaded.rows[index][PSN],
    len: (loaded, index) => loaded.rows[index][BYTES],
    time: (loaded, index) => loaded.start[index] / 1e6,
    wait: (loaded, index) => loaded.rows[index][WAITED] / 1e6,
    number: (loaded, index) => Math.max(loaded.rows[index][SENT_NUMBER], loaded.rows[index][RECEIVED_NUMBER]),
    message: (loaded, index) => loaded.rows[index][MESSAGE] < 0 ? NaN : loaded.data.messages[loaded.rows[index][MESSAGE]][M.NUMBER],
  };

  const isNumber = word => /^(0x[0-9a-f]+|\d+(\.\d+)?)$/.test(word);

  function compare(name, sign, value) {
    const range = value.split("-"), get = amounts[name];
    if (!range.every(isNumber) || range.length > 2 || (sign !== ":" && range.length > 1)) throw new Error(`${name}${sign} needs a number`);
    const low = Number(range[0]), high = Number(range[range.length - 1]);
    if (sign === ">") return (loaded, index) => get(loaded, index) > low;
    if (sign === "<") return (loaded, index) => get(loaded, index) < low;
    return (loaded, index) => get(loaded, index) >= low && get(loaded, index) <= high;
  }

  function term(loaded, written) {
    const [, name, sign, value] = written.match(/^([a-z]+)([:<>])(.+)$/) || [];
    if (name in amounts) return compare(name, sign, value);
    if (name === "is" && sign === ":") {
      const happens = loaded.data.happenings.findIndex(([word]) => word === value);
      if (value === "packet") return (_, index) => isPacket(loaded, index);
      if (happens > 0) return (_, index) => loaded.rows[index][HAPPENING] === happens;
      if (!(value in loaded.bit)) throw new Error(`is: needs one of ${Object.keys(loaded.bit).join(", ")}, packet`);
      return (_, index) => (loaded.marks[index] & loaded.bit[value]) !== 0;
    }
    if (name === "op" && sign === ":")
      return (_, index) => operationName(loaded, index).toLowerCase().includes(value) || kindOf(loaded, index).includes(value);
    if (name === "why" && sign === ":") return (_, index) => causeOf(loaded, index)[0] === value;
    if (name === "qp" && sign === ":") {
      if (!isNumber(value)) throw new Error("qp: needs a number");
      return (_, index) => loaded.pairs[pairOf(loaded, index)].ends.some(end => end.qp === Number(value));
    }
    return (_, index) => words(loaded, index).includes(written);
  }

  /* {test(index)}, or {error}; null for a filter without words. */
  function query(loaded, written) {
    const terms = [];
    for (let word of written.toLowerCase().split(/\s+/).filter(Boolean)) {
      const not = word.length > 1 && word[0] === "-";
      if (not) word = word.slice(1);
      try {
        const holds = term(loaded, word);
        terms.push(index => holds(loaded, index) !== not);
      } catch (problem) {
        return {error: problem.message};
      }
    }
    return terms.length ? {test: index => terms.every(holds => holds(index))} : null;
  }

  const select = (rows, asked) => asked && asked.test ? rows.filter(asked.test) : rows;

  return {load, fields, field, label, query, select, time, bytes, hex, syndrome, operation, operationName, kindOf, causeOf, text, pairOf, isPacket, happening,
    SENT, SENT_FILE, SENT_NUMBER, RECEIVED, RECEIVED_FILE, RECEIVED_NUMBER, FLOW, OPCODE, PSN, BYTES, MARKS, CAUSE, RELATED, WAITED,
    MESSAGE, NOTE, VERDICT, MANAGER, HAPPENING, BEFORE, VALUES, M};
})();
if (typeof module !== "undefined") module.exports = {model};
