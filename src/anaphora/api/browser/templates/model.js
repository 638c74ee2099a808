"use strict";
// The model of the page: it unpacks the weights, reads a sentence and answers, with edges cut and heads switched off.
// A unit is a word as maps show it: the tokens of one word, or a special token. L layers, H heads, U units.

const PART = 1 << 20; // characters unpacked between two steps of the progress bar

class Model {
  constructor(data, weights) {
    this.tokenizer = new Tokenizer(data.tokenizer, data.chinese);
    this.encoder = new Encoder(data.shape, weights);
    this.data = data;
    this.kept = []; // the encoder's last outputs: of the model as it is, and with the edits
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

  // pronoun: a span of characters; candidates: a span each, in the order of the text, apart from each other; edits:
  // {cuts: [{layer, head, from, to}], off: [{layer, head}]}, from and to are units. Returns {maps: L of H of (U, U),
  // rows: L of H of (U), the pronoun's, shares: of each candidate and of none of them, or null without candidates}.
  ask(read, pronoun, candidates, edits) {
    const covering = ([start, end]) => [...read.ids.keys()].filter((token) => read.spans[token][0] < end && start < read.spans[token][1]);
    const query = covering(pronoun), lists = candidates.map(covering), slots = new Int32Array(read.ids.length);
    if (this.data.shape.prediction.kind === "slot") lists.forEach((tokens, number) => { for (const token of tokens) slots[token] = number + 1; });
    const cuts = edits.cuts.flatMap(({ layer, head, from, to }) =>
      read.units[from].tokens.flatMap((query) => read.units[to].tokens.map((key) => ({ layer, head, query, key }))));
    const tokensOf = read.units.map((unit) => unit.tokens), key = JSON.stringify([read.text, [...slots], cuts, edits.off]);
    const merged = (maps, froms) => maps.map((map) => Array.from({ length: this.data.shape.heads }, (_, head) => merge(map, head, read.ids.length, froms, tokensOf)));
    const compute = () => {
      const output = this.encoder.run(read.ids, slots, { cuts, off: edits.off });
      return { key, output, maps: merged(output.maps, tokensOf) };
    };
    const now = this.kept.find((one) => one.key === key) ?? compute(), { output, maps } = now; // a click may change nothing
    this.kept = [now, ...this.kept.filter((one) => one !== now)].slice(0, 2);
    return { maps, rows: merged(output.maps, [query]), shares: lists.length ? shares(this.encoder, read, output, query, lists, this.data.temperatures[this.languageOf(read.text)] ?? 1) : null };
  }
  languageOf(text) { // as Python decides it
    const { sample, share } = this.data.language, chinese = new RegExp(`[${this.data.chinese}]`, "u");
    const characters = [...text].slice(0, sample);
    return characters.filter((each) => chinese.test(each)).length >= Math.max(1, share * characters.length) ? "zh" : "en";
  }
  seemsEnglishOrChinese(text) { // as Python decides it
    if (this.tokenizer.chinese.test(text)) return !/[\u3040-\u30ff\uac00-\ud7af]/u.test(text);
    return (text.match(/\p{L}+/gu) ?? []).some((word) => this.data.english.includes(word.toLowerCase()));
  }
}

// Whether at most half of the letters are Latin or Chinese.
function isOtherScript(text) {
  const letters = [...text.replace(/\[MASK\]/g, "")].filter((each) => /\p{L}/u.test(each));
  return letters.filter((each) => /[\p{Script=Latin}\p{Script=Han}]/u.test(each)).length <= letters.length / 2;
}
// The weights between lists of tokens, (T, T) of one head -> (from, to): the sum over what is attended to, the mean over
// what attends.
function merge(map, head, tokens, froms, tos) {
  const merged = new Float32Array(froms.length * tos.length);
  froms.forEach((from, row) => tos.forEach((to, column) => {
    let sum = 0;
    for (const query of from) for (const key of to) sum += map[(head * tokens + query) * tokens + key];
    merged[row * tos.length + column] = sum / from.length;
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
