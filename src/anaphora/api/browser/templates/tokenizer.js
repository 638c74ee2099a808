"use strict";
// From a text to token ids, their characters and their words, as data/tokens reads it. Characters are code points.

// What \w of the stored pattern means to the library that reads it there: letters, marks, decimal digits, connectors.
const WORD_CHARACTERS = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
const UNKNOWN = 1, OPENING = 2, MASK = 3;
const MOST_WORD_CHARACTERS = 100; // a longer word is unknown to WordPiece
const SCRIPTS = ["Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Tibetan", "Georgian", "Hangul", "Ethiopic", "Mongolian"];
const SCRIPTS_WITHOUT_BLANKS = ["Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar"];
const JOINERS = /[\u00ad\u200c\u200d\u2060]/u;

class Tokenizer {
  // stored: kind (Unigram, WordPiece or BPE), tokens in the order of their ids, scores or merges, single: whether each
  // Chinese character stands alone. chinese: the ranges of Chinese characters, for a class of a regular expression.
  constructor(stored, chinese) {
    this.kind = stored.kind;
    this.tokens = stored.tokens;
    this.numbers = new Map(stored.tokens.map((token, number) => [token, number]));
    this.longest = stored.tokens.reduce((most, token) => Math.max(most, token.length), 0);
    this.scores = stored.scores;
    this.unknownScore = stored.scores ? stored.scores.reduce((least, score) => Math.min(least, score), Infinity) - 10 : 0;
    this.ranks = new Map((stored.merges ?? []).map(([left, right], rank) => [left + "\n" + right, rank]));
    const letter = (characters) => `(?:(?![\\p{Nd}_${chinese}])[${characters}])`;
    const pattern = (characters, letters) => `[${chinese}]+|${letters}+(?:[’'-]${letters}+)*|\\p{Nd}+|[^${characters}\\p{White_Space}]|_`;
    this.piece = new RegExp(pattern(WORD_CHARACTERS, letter(WORD_CHARACTERS)), "gu");
    // What Python's own expressions call a word character has no marks; they stand for the letter before them.
    this.word = new RegExp(pattern("\\p{L}\\p{N}_", letter("\\p{L}\\p{N}")), "gu");
    this.chinese = new RegExp(`[${chinese}]`, "u");
    this.single = stored.single;
  }

  // {text, characters, ids, spans, words, unread}: spans in code points, (0, 0) for [CLS]; word numbers, -1 for [CLS];
  // unread are the spans of what the vocabulary does not have. The text is in its composed form.
  read(typed) {
    const text = typed.normalize("NFC"), characters = [...text];
    const ids = [OPENING], spans = [[0, 0]];
    let start = 0;
    text.split("[MASK]").forEach((part, number) => {
      if (number) { ids.push(MASK); spans.push([start, start + 6]); start += 6; }
      start += this.readPart([...part], start, ids, spans);
    });
    return { text, characters, ids, spans, words: this.wordNumbers(characters, spans), unread: unreadSpans(characters, ids, spans) };
  }

  readPart(characters, offset, ids, spans) {
    const lower = [], origin = [];
    characters.forEach((character, place) => { for (const each of character.toLowerCase()) { lower.push(each); origin.push(place); } });
    for (const [from, to] of matches(lower.join(""), this.piece))
      for (const [first, last] of this.single ? apart(lower, from, to, this.chinese) : [[from, to]]) {
        let start = first;
        for (const [id, size] of this.cut(lower.slice(first, last))) {
          ids.push(id);
          spans.push([offset + origin[start], offset + origin[start + size - 1] + 1]);
          start += size;
        }
      }
    return characters.length;
  }

  // The tokens of one piece: [id, number of characters] each.
  cut(piece) {
    return { Unigram: () => this.cutByScore(piece), WordPiece: () => this.cutFromTheLeft(piece), BPE: () => this.cutByMerges(piece) }[this.kind]();
  }

  // The best path through the piece (Kudo 2018); unknown characters in a row are one token.
  cutByScore(piece) {
    const best = [{ score: 0 }];
    for (let start = 0; start < piece.length; start++) {
      const here = best[start].score;
      let token = "", alone = false;
      const reach = (end, score, id) => { if (!best[end] || score > best[end].score) best[end] = { score, start, id }; };
      for (let end = start + 1; end <= piece.length && token.length < this.longest; end++) {
        token += piece[end - 1];
        const id = this.numbers.get(token);
        if (id === undefined) continue;
        reach(end, this.scores[id] + here, id);
        if (end === start + 1) alone = true;
      }
      if (!alone) reach(start + 1, this.unknownScore + here, UNKNOWN);
    }
    const tokens = [];
    for (let end = piece.length; end > 0; end = best[end].start) {
      const { start, id } = best[end], next = tokens[tokens.length - 1];
      if (id === UNKNOWN && next && next[0] === UNKNOWN) next[1] += end - start;
      else tokens.push([id, end - start]);
    }
    return tokens.reverse();
  }

  cutFromTheLeft(piece) {
    if (piece.length > MOST_WORD_CHARACTERS) return [[UNKNOWN, piece.length]];
    const tokens = [];
    for (let start = 0; start < piece.length;) {
      let end = piece.length, id;
      for (; end > start; end--) {
        id = this.numbers.get((start ? "##" : "") + piece.slice(start, end).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) return [[UNKNOWN, piece.length]];
      tokens.push([id, end - start]);
      start = end;
    }
    return tokens;
  }

  cutByMerges(piece) {
    const parts = piece.map((character) => ({ token: this.numbers.has(character) ? character : null, size: 1 }));
    for (;;) {
      let best = -1, least = Infinity;
      for (let place = 0; place + 1 < parts.length; place++) {
        const rank = this.ranks.get(parts[place].token + "\n" + parts[place + 1].token) ?? Infinity;
        if (rank < least) { least = rank; best = place; }
      }
      if (best < 0) break;
      const [left, right] = parts.splice(best, 2);
      parts.splice(best, 0, { token: left.token + right.token, size: left.size + right.size });
    }
    return parts.map(({ token, size }) => [token === null ? UNKNOWN : this.numbers.get(token), size]);
  }

  // The word of every token, by the rule of data/tokens/words.py.
  wordNumbers(characters, spans) {
    const wordOf = new Int32Array(characters.length);
    let count = 0;
    for (const [start, end] of this.wordsOf(characters)) wordOf.fill(++count, start, end);
    let current = -1, word = -1, end = 0;
    return spans.map(([start, stop]) => {
      if (start === stop) return -1;
      const isApart = wordOf[start] !== word || wordOf[start] === 0 || this.standsAlone(characters[start]);
      if (isApart && start >= end) current++;
      word = wordOf[start];
      end = stop;
      return current;
    });
  }
  wordsOf(characters) {
    const letters = [...characters];
    for (let place = 1; place < letters.length; place++)
      if (isMark(letters[place]) && /[\p{L}\p{N}]/u.test(letters[place - 1]) && !this.chinese.test(letters[place - 1])) letters[place] = letters[place - 1];
    const words = [];
    for (let [start, end] of matches(letters.join(""), this.word)) {
      for (let place = start + 1; place < end; place++) {
        const before = scriptOf(letters[place - 1]), after = scriptOf(letters[place]);
        if (before && after && before !== after) { words.push([start, place]); start = place; }
      }
      words.push([start, end]);
    }
    return words;
  }
  standsAlone(character) { return this.chinese.test(character) || SCRIPTS_WITHOUT_BLANKS.includes(scriptOf(character)); }
}

// Where an expression matches, in code points.
function matches(text, expression) {
  const found = [];
  let place = 0, unit = 0;
  for (const match of text.matchAll(expression)) {
    place += [...text.slice(unit, match.index)].length;
    const end = place + [...match[0]].length;
    found.push([place, end]);
    place = end;
    unit = match.index + match[0].length;
  }
  return found;
}
// A piece cut so that each Chinese character is a piece of its own.
function apart(characters, from, to, chinese) {
  const pieces = [];
  for (let place = from; place < to; place++) {
    const alone = chinese.test(characters[place]);
    if (alone || place === from || chinese.test(characters[place - 1])) pieces.push([place, place + 1]);
    else pieces[pieces.length - 1][1] = place + 1;
  }
  return pieces;
}
function unreadSpans(characters, ids, spans) {
  const covered = new Uint8Array(characters.length), unread = spans.filter(([start, end], place) => ids[place] === UNKNOWN && start < end);
  for (const [start, end] of spans) covered.fill(1, start, end);
  characters.forEach((character, place) => { if (!covered[place] && /[\p{L}\p{N}]/u.test(character)) unread.push([place, place + 1]); });
  return unread.sort((a, b) => a[0] - b[0]);
}
const isMark = (character) => character > "\x7f" && (JOINERS.test(character) || /\p{M}/u.test(character));
const SCRIPT_EXPRESSIONS = [...SCRIPTS, ...SCRIPTS_WITHOUT_BLANKS].map((name) => [name, new RegExp(`(?=\\p{L})\\p{Script=${name}}`, "u")]);
function scriptOf(character) {
  const found = SCRIPT_EXPRESSIONS.find(([, expression]) => expression.test(character));
  return found ? found[0] : "";
}
