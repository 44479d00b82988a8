// The functions of the page of `softverbs draw` that need no browser. Usage: draw_page.js tools/draw/page PAGE
"use strict";
const assert = require("assert"), fs = require("fs"), path = require("path");
const [, , folder, page] = process.argv;
const {model} = require(path.resolve(folder, "model.js")), {scale} = require(path.resolve(folder, "scale.js"));
const data = JSON.parse(fs.readFileSync(page, "utf8").match(/<script type="application\/json" id="data">([^]*?)<\/script>/)[1]);
const loaded = model.load(data), rows = loaded.pairs[0].rows;
const pass = written => Array.from(model.select(rows, model.query(loaded, written)));

assert.strictEqual(rows.length, data.packets.length);
assert.strictEqual(pass("").length, rows.length);
assert.deepStrictEqual(pass("is:repeat"), Array.from(rows).filter(row => data.packets[row][model.MARKS] & loaded.bit.repeat));
assert.strictEqual(pass("is:repeat").length + pass("-is:repeat").length, rows.length);
assert.strictEqual(pass("is:repeat").length, loaded.pairs[0].repeats);
assert(pass("op:ack").every(row => model.operationName(loaded, row) === "RC ACKNOWLEDGE") && pass("op:ack").length > 0);
const psn = data.packets[0][model.PSN];
assert(pass(`psn:${psn}`).length >= 2 && pass(`psn:${psn}-${psn + 1}`).length > pass(`psn:${psn}`).length);
assert.deepStrictEqual(pass(`psn:0x${psn.toString(16)}`), pass(`psn:${psn}`));
assert.strictEqual(pass("len>0 op:send").length, pass("op:send").length);
assert.strictEqual(pass("rnr").length, pass("is:rnr").length + pass("why:rnr").length);
assert.strictEqual(pass(`qp:${loaded.pairs[0].ends[0].qp}`).length, rows.length);
assert.strictEqual(pass("qp:0x999999").length, 0);
for (const wrong of ["psn:x", "is:nothing", "qp:", "len>1-2"].slice(0, 2)) assert(model.query(loaded, wrong).error, wrong);
assert(model.query(loaded, "len>1-2").error && model.query(loaded, "qp:z").error);
assert(!model.query(loaded, "a<b>(.*[").error, "any text can be looked for");

assert.strictEqual(model.time(69500000), "69.500 ms");
assert.strictEqual(model.time(1500), "1.500 µs");
assert.strictEqual(model.time(2e9), "2.000000 s");
assert.strictEqual(model.bytes(4096), "4 KiB");
assert.strictEqual(model.bytes(4097), "4097 B");
assert.strictEqual(model.syndrome(loaded, 0x62), "NAK: Remote Access Error");
assert.strictEqual(model.syndrome(loaded, 0x20 | 12), "RNR NAK, timer 640 µs");
assert.strictEqual(model.syndrome(loaded, 31), "ACK");
assert(model.fields(loaded, 0).slice(0, 3).map(([header]) => header).join() === "IP,UDP,BTH" && model.field(loaded, 0, "Hop Limit") > 0 && model.field(loaded, 0, "Packet Sequence Number") === psn);

const times = Float64Array.from([0, 10, 10, 1000]), four = Int32Array.from([0, 1, 2, 3]);
const even = scale.make("even", times, four), linear = scale.make("linear", times, four);
assert.deepStrictEqual([0, 1, 2, 3].map(even.ofRow), [0, 1, 2, 3]);
assert(even.of(5) > 0 && even.of(5) < 1 && even.of(505) > 2 && even.of(505) < 3 && even.of(5000) >= 3);
assert.strictEqual(linear.ofRow(3), 3);
assert.strictEqual(linear.of(500), 1.5);
for (const place of [even, linear])
  for (let row = 0; row < 4; row++) assert(place.first(place.ofRow(row) - 0.001) <= row, `${row}`);
const none = scale.make("even", times, new Int32Array(0));
assert(none.of(5) === 0 && none.first(3) === 0 && none.length === 0);
assert.strictEqual(scale.make("linear", times, new Int32Array(0)).of(0), 0);
console.log("all is well");
