"use strict";
// The model of the page: it unpacks the weights, reads a sentence and answers, with edges cut and heads switched off.
// A unit is a word as maps show it: the tokens of one word, or a special token. L layers, H heads, U units.

const PART = 1 << 20; // characters unpacked between two steps of the progress bar

class Model {
  constructor(data, weights) {
    this.tokenizer = new Tokenizer(data.tokenizer, data.chinese);
    this.encoder = new Encoder(data.shape, weights);
    this.data = data;
  }

  // The model from its description and its weights as base64; tell(share) is called as it goes on.
  static async unpack(data, text, tell) {
    const bytes = new Uint8Array(data.tensors.reduce((sum, one) => sum + one.size, 0) * (data.precision / 8));
    let filled = 0;
    for (let place = 0; place < text.length; place += PART) {
      const part = atob(text.slice(place, place + PART));
      for (let unit = 0; unit < part.length; unit++) bytes[filled++] = part.charCodeAt(unit);
      tell(filled / bytes.length);
      await new Promise((next) => setTimeout(next));
    }
    if (filled !== bytes.length) throw new Error("weights");
    const numbers = data.precision === 16 ? halves(new Uint16Array(bytes.buffer)) : new Float32Array(bytes.buffer), weights = {};
    let start = 0;
    for (const { name, size } of data.tensors) { weights[name] = numbers.subarray(start, start + size); start += size; }
    return new Model(data, weights);
  }

  // A text with its units: {text, characters, ids, spans, words, unread, units: [{label, tokens, start, end}]}.
  read(typed) {
    const read = this.tokenizer.read(typed), units = [];
    read.ids.forEach((id, token) => {
      const [start, end] = read.spans[token], word = read.words[token], last = units[units.length - 1];
      if (word >= 0 && last && last.word === word) { last.tokens.push(token); last.end = Math.max(last.end, end); }
      else units.push({ word, tokens: [token], start, end, label: this.tokenizer.tokens[id] });
    });
    for (const unit of units) if (unit.start < unit.end) unit.label = read.characters.slice(unit.start, unit.end).join("");
    return { ...read, units };
  }

  // pronoun: units; candidates: lists of units; edits: {cuts: [{layer, head, from, to}], off: [{layer, head}]} of units.
  // Returns {maps: L of H of (U, U), shares: of each candidate and of none of them, or null without candidates}.
  ask(read, pronoun, candidates, edits) {
    const tokensOf = (units) => units.flatMap((unit) => read.units[unit].tokens), slots = new Int32Array(read.ids.length);
    const lists = candidates.map(tokensOf), query = tokensOf(pronoun);
    if (this.data.shape.prediction.kind === "slot") lists.forEach((tokens, number) => { for (const token of tokens) slots[token] = number + 1; });
    const cuts = edits.cuts.flatMap(({ layer, head, from, to }) =>
      tokensOf([from]).flatMap((query) => tokensOf([to]).map((key) => ({ layer, head, query, key }))));
    const output = this.encoder.run(read.ids, slots, { cuts, off: edits.off });
    return {
      maps: output.maps.map((map) => Array.from({ length: this.data.shape.heads }, (_, head) => unitMap(map, head, read))),
      shares: query.length && lists.length ? shares(this.encoder, read, output, query, lists) : null,
    };
  }
}

// The weights to a unit are the sum over its tokens, those from it the mean: (T, T) of one head -> (U, U).
function unitMap(map, head, read) {
  const tokens = read.ids.length, count = read.units.length, merged = new Float32Array(count * count);
  read.units.forEach((from, row) => read.units.forEach((to, column) => {
    let sum = 0;
    for (const query of from.tokens) for (const key of to.tokens) sum += map[(head * tokens + query) * tokens + key];
    merged[row * count + column] = sum / from.tokens.length;
  }));
  return merged;
}
// Numbers of half precision (IEEE 754 binary16) as float32.
function halves(bits) {
  const table = new Float32Array(65536);
  for (let each = 0; each < 65536; each++) {
    const sign = each & 0x8000 ? -1 : 1, exponent = (each >> 10) & 31, fraction = each & 1023;
    table[each] = sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
  }
  return Float32Array.from(bits, (each) => table[each]);
}
