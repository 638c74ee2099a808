"use strict";
(() => {
  const contents = document.querySelector("nav details");
  if (contents && matchMedia("(max-width: 68rem)").matches) contents.open = false;

  const root = document.getElementById("explorer");
  if (!root) return;
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const sentences = data.sentences, ramp = data.ramp, inks = data.inks;
  const byName = new Map(sentences.map((one) => [one.id, one]));
  const at = (name) => document.getElementById(name);
  const languages = data.languages;
  const say = (name, values = {}) => data.phrases[name].replace(/\{(\w+)\}/g, (_, key) => isolated(values[key]));
  // Up to 1 in every map, up to the map's own greatest weight, or a logarithmic scale, on which small weights can be told apart.
  const COLOURS = ["whole", "fitted", "log"];
  const LABELLED = 11; // pixels of a cell from which on the map's rows and columns are named

  // What is seen; all of it stands in the address, so that a view has a link.
  const view = { s: sentences[0].id, map: "raw", layer: data.head.layer ?? 0, head: data.head.head ?? 0, word: null, to: null,
                 special: true, between: "", colours: "whole", q: "", language: "", kind: "", result: "" };
  let shown = null;   // {sentence, names, shape, bytes} of the map that is drawn
  let hovered = null; // word under the pointer
  let cell = null;    // [row, column] of the map under the pointer
  let turn = 0;

  function readAddress() {
    if (!location.hash.startsWith("#view")) return false;
    const asked = new URLSearchParams(location.hash.slice(5).replace(/^&/, ""));
    const whole = (name) => { const n = Number(asked.get(name)); return asked.has(name) && Number.isInteger(n) && n >= 0 ? n : null; };
    if (byName.has(asked.get("s"))) view.s = asked.get("s");
    if (asked.has("map")) view.map = asked.get("map");
    view.layer = whole("layer") ?? view.layer;
    view.head = whole("head") ?? view.head;
    view.word = whole("word");
    view.to = view.word === null ? null : whole("to");
    if (COLOURS.includes(asked.get("colours"))) view.colours = asked.get("colours");
    view.special = asked.get("special") !== "drop";
    view.between = /^[01]{2}$/.test(asked.get("between")) ? asked.get("between") : "";
    for (const name of ["q", "language", "kind", "result"]) view[name] = asked.get(name) ?? "";
    return true;
  }
  function address() {
    const parts = new URLSearchParams({ s: view.s, map: view.map, layer: view.layer, head: view.head });
    if (view.word !== null) parts.set("word", view.word);
    if (view.word !== null && view.to !== null) parts.set("to", view.to);
    if (view.colours !== "whole") parts.set("colours", view.colours);
    if (!view.special) parts.set("special", "drop");
    if (view.between) parts.set("between", view.between);
    for (const name of ["q", "language", "kind", "result"]) if (view[name]) parts.set(name, view[name]);
    return "#view&" + parts.toString();
  }
  function remember() {
    at("view-link").setAttribute("href", address());
    try { history.replaceState(null, "", address()); } catch { /* a viewer that forbids it still has the link */ }
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  const sign = (right) => at(right ? "sign-yes" : "sign-no").content.cloneNode(true);
  const share = (weight) => weight.toFixed(2);
  const LEAST = 1 / 255; // the least weight that is stored: where a logarithmic scale begins
  const step = (weight, top) => Math.min(63, Math.max(0, Math.round(63 * (view.colours === "log"
    ? Math.log(Math.max(weight, LEAST) / LEAST) / Math.log(Math.max(top, 2 * LEAST) / LEAST) : weight / top))));
  function paint(one, weight, top) {
    const shade = step(weight, top);
    one.style.background = ramp[shade];
    one.style.color = inks[shade];
  }
  function fault(text) { at("explorer-fault").textContent = text; at("explorer-fault").hidden = !text; }

  // ---- finding a sentence
  const listed = [];
  for (const one of sentences) {
    const item = element("li"), button = element("button");
    button.type = "button";
    const text = element("span", "", one.text);
    text.lang = one.language;
    text.dir = "auto";
    const tags = element("span", "tags", [languages[one.language] ?? one.language, one.kind && say("cue_tag", { kind: data.values[one.kind] ?? one.kind }), data.values[one.type] ?? one.type].filter(Boolean).join(" · ") + " · ");
    for (const [name, right] of [[say("answer_tag"), one.right], [say("head_tag"), one.head_right]]) {
      if (right === null || right === undefined) continue;
      const said = element("span", "whole", name);
      said.append(sign(right), say(right ? "right" : "wrong"));
      tags.append(said, " ");
    }
    button.append(text, tags);
    button.addEventListener("click", () => { view.s = one.id; view.word = view.to = null; show(); });
    item.append(button);
    listed.push({ one, item, button, hay: (one.text + " " + one.words.join(" ") + " " + (one.type ?? "")).toLowerCase() });
  }
  at("find-list").append(...listed.map((entry) => entry.item));
  at("find-list").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = listed.filter((entry) => !entry.item.hidden).map((entry) => entry.button);
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (next) { next.focus(); event.preventDefault(); }
  });
  for (const name of new Set(sentences.map((one) => one.language))) {
    const option = element("option", "", languages[name] ?? name);
    option.value = name;
    at("find-language").append(option);
  }
  function filter() {
    const asked = view.q.trim().toLowerCase();
    let count = 0;
    for (const { one, item, hay } of listed) {
      const result = { right: one.right === true, wrong: one.right === false, "head-right": one.head_right === true, "head-wrong": one.head_right === false }[view.result] ?? true;
      item.hidden = !(hay.includes(asked) && result && (!view.language || one.language === view.language) && (!view.kind || one.kind === view.kind));
      count += !item.hidden;
    }
    at("find-count").textContent = say("count", { count, all: sentences.length });
  }
  const finders = { q: "find-text", language: "find-language", kind: "find-kind", result: "find-result" };
  for (const [name, id] of Object.entries(finders)) at(id).addEventListener("input", () => { view[name] = at(id).value; filter(); remember(); });

  // ---- maps
  const kept = new Map();
  async function bytesOf(stored) {
    if (kept.has(stored)) return kept.get(stored);
    const text = atob(stored.data), packed = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place++) packed[place] = text.charCodeAt(place);
    let bytes = packed;
    if (stored.encoding === "deflate") {
      if (typeof DecompressionStream === "undefined") throw new Error(say("old_browser"));
      bytes = new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
    }
    kept.set(stored, bytes);
    return bytes;
  }
  // The map of one head over the words that are kept: rows are scaled to their old sum where special tokens are dropped.
  const dropped = () => new Set(view.special ? [] : shown.sentence.special);
  function rowOf(layer, head, row, special = dropped()) {
    const { sentence, shape, bytes } = shown, count = sentence.words.length;
    if (special.has(row)) return null;
    const begin = (layer * shape[1] + head) * count * count, line = new Float32Array(count);
    let all = 0, left = 0;
    for (let column = 0; column < count; column++) {
      const weight = bytes[begin + row * count + column] / 255;
      all += weight;
      if (!special.has(column)) { line[column] = weight; left += weight; }
    }
    if (left > 0 && left < all) for (let column = 0; column < count; column++) line[column] *= all / left;
    // Of a pair of texts, the weights from one of them to the other, or to itself.
    if (sentence.segments && view.between) for (let column = 0; column < count; column++)
      if (`${sentence.segments[row]}${sentence.segments[column]}` !== view.between) line[column] = 0;
    return line;
  }
  // The word to which the pronoun attends most in the chosen head, by whose weight heads are shaded if no antecedent is known.
  function strongest() {
    const { sentence } = shown, kept = sentence.pronoun.map((word) => rowOf(view.layer, headShown(), word)).filter(Boolean);
    const line = kept.length ? mean(kept) : [], none = new Set([...sentence.pronoun, ...sentence.special]);
    const words = [...line.keys()].filter((word) => !none.has(word) && line[word] > 0);
    return words.sort((a, b) => line[b] - line[a]).slice(0, 1);
  }
  function table(layer, head) {
    const special = dropped();
    const words = [...shown.sentence.words.keys()].filter((word) => !special.has(word));
    return { words, rows: new Map(words.map((row) => [row, rowOf(layer, head, row, special)])) };
  }
  const roleOf = (sentence, word) => sentence.pronoun.includes(word) ? "pronoun"
    : sentence.antecedents.some((entry) => entry.includes(word)) ? "antecedent"
    : sentence.distractors.some((entry) => entry.includes(word)) ? "other" : "";
  // The first word of the second of two texts.
  const secondText = (sentence) => sentence.segments ? sentence.segments.indexOf(1) : -1;
  // Where nobody says who is meant, all of them are candidates and none is the other one.
  const otherName = (sentence) => say(sentence.antecedents.length ? "other" : "candidate");
  function written(sentence, places) { // words of a sentence as its text has them, with the spaces and marks between them
    let end = 0;
    const starts = sentence.words.map((word, place) => {
      const start = sentence.special.includes(place) ? -1 : sentence.text.indexOf(word, end);
      if (start >= 0) end = start + word.length;
      return start;
    });
    const first = places[0], last = places[places.length - 1];
    if (starts[first] >= 0 && starts[last] >= 0) return sentence.text.slice(starts[first], starts[last] + sentence.words[last].length);
    return places.map((place) => sentence.words[place]).join(sentence.language === "zh" ? "" : " ");
  }
  const quoted = (sentence, places) => `“${written(sentence, Array.isArray(places) ? places : [places])}”`;
  const mean = (lines) => lines[0].map((_, place) => lines.reduce((all, line) => all + line[place], 0) / lines.length);
  const isChinese = document.documentElement.lang === "zh", inBrackets = (text) => isChinese ? `（${text}）` : ` (${text})`;
  const sum = (line, places) => places.reduce((all, place) => all + line[place], 0);
  const roundUp = (weight) => [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1].find((top) => weight <= top + 1e-6) ?? weight;

  async function show() {
    const mine = ++turn, sentence = byName.get(view.s);
    const names = Object.keys(sentence.maps);
    if (!names.includes(view.map)) view.map = names[0];
    const stored = sentence.maps[view.map];
    let bytes;
    try { bytes = await bytesOf(stored); fault(""); }
    catch (problem) { fault(problem.message); return; }
    if (mine !== turn) return;
    shown = { sentence, names, shape: stored.shape, bytes, blank: new Set(stored.blank_layers) };
    view.layer = Math.min(view.layer, stored.shape[0] - 1);
    while (shown.blank.has(view.layer)) view.layer = (view.layer + 1) % stored.shape[0];
    if (stored.shape[1] > 1) view.head = Math.min(view.head, stored.shape[1] - 1);
    if (view.word !== null && view.word >= sentence.words.length) view.word = null;
    if (view.to !== null && (view.word === null || view.to >= sentence.words.length)) view.to = null;
    hovered = cell = null;
    shown.strongest = strongest();
    for (const { one, button } of listed) {
      button.setAttribute("aria-current", String(one === sentence));
      const list = at("find-list"), place = button.offsetTop;
      if (one === sentence && (place < list.scrollTop || place + button.offsetHeight > list.scrollTop + list.clientHeight)) list.scrollTop = place;
    }
    for (const [name, id] of Object.entries(finders)) if (at(id).value !== view[name]) at(id).value = view[name];
    at("keep-special").checked = view.special;
    at("keep-special").disabled = !sentence.special.length;
    at("colours").value = view.colours;
    at("between").value = view.between;
    at("between").parentElement.hidden = !sentence.segments;
    for (const name of ["row-words", "column-words"]) at(name).dir = sentence.direction ?? "ltr";
    at("other-name").textContent = otherName(sentence);
    at("antecedent-name").hidden = !sentence.antecedents.length;
    at("other-name").hidden = !sentence.distractors.length;
    at("pronoun-name").hidden = !sentence.pronoun.length;
    at("special-note").textContent = view.special ? "" : say("special_dropped");
    tell(sentence);
    fillMaps(names);
    fillHeads();
    fillWords();
    draw();
    remember();
  }
  function tell(sentence) {
    const line = at("answer");
    line.replaceChildren();
    if (sentence.answer === null || sentence.answer === undefined) return;
    const answer = element("b", "", sentence.answer || say("none_of_them"));
    if (sentence.answer) answer.lang = sentence.language;
    line.append(say("answers"), answer, " ", sign(sentence.right), say(sentence.right ? "right" : "wrong"));
    if (sentence.head_right !== null && sentence.head_right !== undefined)
      line.append(say("points"), sign(sentence.head_right), say(sentence.head_right ? "points_right" : "points_wrong"));
  }
  function fillMaps(names) {
    at("choose-map").parentElement.hidden = names.length < 2;
    at("choose-map").replaceChildren(...names.map((name) => {
      const option = element("option", "", data.maps[name] ?? name);
      option.value = name;
      option.selected = name === view.map;
      return option;
    }));
  }
  const headShown = () => Math.min(view.head, shown.shape[1] - 1);
  const nameOf = (layer, head) => say(shown.shape[1] === 1 ? "layer" : "layer_head", { layer, head });
  function fillHeads() {
    const [layers, heads] = shown.shape, { sentence } = shown, box = at("choose-head");
    const edge = view.word !== null && view.to !== null;
    const known = !edge && sentence.antecedents.length > 0;
    const from = edge ? [view.word] : sentence.pronoun, gold = edge ? [view.to] : known ? sentence.antecedents.flat() : shown.strongest;
    const told = from.length > 0 && gold.length > 0;
    const one = heads === 1;
    at("picker-label").textContent = say(one ? "layer_label" : "head_label");
    at("picker-note").replaceChildren(...spoken(!told ? say("choose_edge")
      : known ? say("shaded_by_antecedent")
      : say("shaded_by_edge", { from: quoted(sentence, from), to: quoted(sentence, gold) })));
    const masses = [];
    box.classList.toggle("many", heads > 8);
    box.style.gridTemplateColumns = `auto repeat(${heads}, auto)`;
    const parts = [element("span")];
    for (let head = 0; head < heads; head++) parts.push(element("span", "", one ? "" : (heads > 8 && head % 2 ? "" : String(head))));
    for (let layer = 0; layer < layers; layer++) {
      parts.push(element("span", "place", one ? "" : heads > 8 ? String(layer) : say("layer", { layer })));
      for (let head = 0; head < heads; head++) {
        const button = element("button", "", one ? String(layer) : "");
        const chosen = layer === view.layer && head === headShown();
        button.type = "button";
        button.setAttribute("role", "radio");
        button.setAttribute("aria-checked", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
        const name = shown.blank.has(layer) ? say("no_attention", { layer }) : nameOf(layer, head);
        let mass = 0;
        button.disabled = shown.blank.has(layer);
        if (told && !button.disabled) {
          const lines = from.map((word) => rowOf(layer, head, word)).filter(Boolean);
          mass = lines.length ? sum(mean(lines), gold) : 0;
          masses.push([layer, head, mass]);
          if (!one) button.textContent = mass.toFixed(1).replace("0.", ".").replace("1.0", "1");
        }
        if (!button.disabled) paint(button, mass, 1);
        button.setAttribute("aria-label", told && !button.disabled ? say(known ? "on_antecedent" : "weight", { place: name, share: share(mass) }) : name);
        button.title = button.getAttribute("aria-label");
        button.dataset.layer = layer;
        button.dataset.head = head;
        parts.push(button);
      }
    }
    box.replaceChildren(...parts);
    const best = masses.sort((a, b) => b[2] - a[2]).slice(0, 5);
    at("best-heads").hidden = !told || masses.length < 2;
    at("best-heads").replaceChildren(...(told && masses.length > 1 ? [say("most"), ...best.flatMap(([layer, head, mass], n) => {
      const button = element("button", "link", nameOf(layer, head));
      button.type = "button";
      button.addEventListener("click", () => choose(layer, head, false));
      return [n ? say("list") : "", button, inBrackets(share(mass))];
    })] : []));
    thumbnails();
  }
  // Every head as a picture of its map; of a long text each dot is the largest weight of the part that it stands for.
  const THUMBNAIL = 48;
  function thumbnails() {
    const box = at("all-heads");
    if (!box.open) return;
    const [layers, heads] = shown.shape, grid = at("head-pictures"), colours = colourNumbers();
    grid.style.gridTemplateColumns = `repeat(${heads}, auto)`;
    const pictures = [];
    for (const layer of shown.blank) {
      const note = element("span", "blank", say("no_attention", { layer }));
      note.style.gridRow = layer + 1;
      pictures.push(note);
    }
    for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads && !shown.blank.has(layer); head++) {
      const { words, rows } = table(layer, head), count = words.length, dots = Math.min(count, THUMBNAIL);
      const most = new Float32Array(dots * dots), button = element("button"), small = element("canvas");
      words.forEach((row, y) => {
        const line = rows.get(row), above = Math.floor(y * dots / count) * dots;
        words.forEach((column, x) => {
          const dot = above + Math.floor(x * dots / count);
          if (line[column] > most[dot]) most[dot] = line[column];
        });
      });
      small.width = small.height = dots;
      const picture = new ImageData(dots, dots);
      most.forEach((weight, dot) => picture.data.set([...colours[step(weight, 1)], 255], 4 * dot));
      small.getContext("2d").putImageData(picture, 0, 0);
      button.type = "button";
      button.title = nameOf(layer, head);
      button.setAttribute("aria-label", button.title);
      button.setAttribute("aria-pressed", String(layer === view.layer && head === headShown()));
      button.addEventListener("click", () => choose(layer, head, false));
      button.append(small);
      pictures.push(button);
    }
    grid.replaceChildren(...pictures);
  }
  const colourNumbers = () => ramp.map((text) => [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16)));
  at("all-heads").addEventListener("toggle", () => shown && thumbnails());
  function choose(layer, head, focus) {
    const [layers, heads] = shown.shape;
    if (layer < 0 || head < 0 || layer >= layers || head >= heads) return;
    view.layer = layer;
    if (heads > 1) view.head = head;
    show().then(() => { if (focus) at("choose-head").querySelector('[aria-checked="true"]').focus(); });
  }
  at("choose-head").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) choose(Number(button.dataset.layer), Number(button.dataset.head), true);
  });
  at("choose-head").addEventListener("keydown", (event) => {
    const way = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!way) return;
    event.preventDefault();
    let layer = view.layer + way[0];
    while (shown.blank.has(layer)) layer += way[0];
    choose(layer, headShown() + way[1], true);
  });
  at("choose-map").addEventListener("change", () => { view.map = at("choose-map").value; show(); });
  at("keep-special").addEventListener("change", () => { view.special = at("keep-special").checked; show(); });
  at("between").addEventListener("change", () => { view.between = at("between").value; show(); });
  at("colours").addEventListener("change", () => { view.colours = at("colours").value; show(); });

  // ---- words
  let rowWords = new Map(), columnWords = new Map(), drawn = null, top = 1;
  function word(tag, place) {
    const { sentence } = shown, made = element(tag, "word " + roleOf(sentence, place) + (place === secondText(sentence) ? " second" : ""));
    made.lang = sentence.language;
    made.append(sentence.words[place], element("small"));
    made.dataset.word = place;
    return made;
  }
  function fillWords() {
    drawn = table(view.layer, headShown());
    let most = 0;
    for (const line of drawn.rows.values()) for (const weight of line) if (weight > most) most = weight;
    top = view.colours === "whole" ? 1 : roundUp(most) || 1;
    rowWords = new Map(drawn.words.map((place) => [place, word("button", place)]));
    for (const button of rowWords.values()) button.type = "button";
    columnWords = new Map(drawn.words.map((place) => [place, word("span", place)]));
    const texts = drawn.words.map((place) => shown.sentence.words[place]);
    at("row-words").replaceChildren(...unbroken([...rowWords.values()], texts));
    at("column-words").replaceChildren(...unbroken([...columnWords.values()], texts));
    const bar = element("i");
    bar.style.background = `linear-gradient(90deg, ${ramp.filter((_, n) => n % 9 === 0).join(",")})`;
    const log = view.colours === "log";
    at("scale").replaceChildren(log ? say("log_low") : "0", bar, log ? say("log_high", { top }) : String(top));
  }
  // The words whose mean row is shown: those of the pronoun, until another is chosen; none where a text has no pronoun.
  const selected = () => {
    const one = [hovered, view.word].find((place) => drawn.rows.has(place));
    return one === undefined ? shown.sentence.pronoun.filter((place) => drawn.rows.has(place)) : [one];
  };
  function fill(words, weightOf, chosen) {
    for (const [place, one] of words) {
      const weight = weightOf(place);
      paint(one, weight, top);
      one.lastChild.textContent = weight >= 0.015 ? share(weight) : "";
      one.classList.toggle("chosen", chosen.includes(place));
    }
  }
  function titled(line, title, places) {
    const [before, after] = data.phrases[title].split("{word}");
    const name = element("b", "", quoted(shown.sentence, places));
    name.lang = shown.sentence.language;
    line.replaceChildren(before, name, after);
  }
  function draw() {
    const { sentence } = shown, chosen = selected();
    for (const name of ["column-title", "column-words", "arcs"]) at(name).hidden = !chosen.length;
    if (!chosen.length) {
      at("row-title").textContent = say("choose_word");
      fill(rowWords, () => 0, []);
      at("row-sums").replaceChildren();
      canvas();
      return;
    }
    const line = mean(chosen.map((place) => drawn.rows.get(place)));
    titled(at("row-title"), "row", chosen);
    titled(at("column-title"), "column", chosen);
    fill(rowWords, (place) => line[place], chosen);
    fill(columnWords, (place) => sum(drawn.rows.get(place), chosen), chosen);
    const named = [...sentence.antecedents.map((entry) => [say("antecedent"), entry]), ...sentence.distractors.map((entry) => [otherName(sentence), entry])];
    const sums = at("row-sums");
    sums.replaceChildren();
    for (const [role, entry] of named) {
      const name = element("span", "", written(sentence, entry));
      name.lang = sentence.language;
      name.dir = "auto";
      sums.append(sums.childNodes.length ? " · " : "", name, inBrackets(role), isChinese ? "" : " ", share(sum(line, entry)));
    }
    arcs(line, chosen);
    canvas();
  }
  // The row once more as arcs from the word that attends; a wider and darker arc is more weight.
  function arcs(line, chosen) {
    const box = at("row-words"), target = at("arcs"), height = (place) => rowWords.get(place).offsetTop;
    const oneLine = drawn.words.every((place) => Math.abs(height(place) - height(chosen[0])) < 8);
    box.parentElement.classList.toggle("broken", !oneLine); // arcs would run across the words of other lines
    if (!oneLine) { target.replaceChildren(); return; }
    const origin = box.getBoundingClientRect();
    const centre = (place) => {
      const edge = rowWords.get(place).getBoundingClientRect();
      return [edge.left - origin.left + edge.width / 2, edge.top - origin.top];
    };
    const HIGH = 64, drawnArcs = [];
    target.setAttribute("width", origin.width);
    target.setAttribute("height", HIGH + origin.height);
    const [[first, y], [last]] = [centre(chosen[0]), centre(chosen[chosen.length - 1])], x = (first + last) / 2;
    for (const place of drawn.words) {
      const weight = line[place];
      if (weight < 0.03 || chosen.includes(place)) continue;
      const [toX, toY] = centre(place), arc = document.createElementNS(target.namespaceURI, "path");
      const high = Math.min(HIGH - 6, 12 + Math.abs(toX - x) / 6);
      arc.setAttribute("d", `M${x} ${y + HIGH}C${x} ${y + HIGH - high * 1.3} ${toX} ${toY + HIGH - high * 1.3} ${toX} ${toY + HIGH}`);
      arc.setAttribute("stroke", ramp[Math.max(12, step(weight, top))]);
      arc.setAttribute("stroke-width", (1 + 5 * weight).toFixed(1));
      drawnArcs.push([weight, arc]);
    }
    target.replaceChildren(...drawnArcs.sort((a, b) => a[0] - b[0]).map((entry) => entry[1]));
  }
  for (const id of ["row-words", "column-words"]) {
    const box = at(id), wordOf = (event) => { const one = event.target.closest?.("[data-word]"); return one ? Number(one.dataset.word) : null; };
    box.addEventListener("pointerover", (event) => { const place = wordOf(event); if (place !== null && place !== hovered) { hovered = place; draw(); } });
    box.addEventListener("pointerleave", () => { hovered = null; draw(); });
    box.addEventListener("focusin", (event) => { hovered = wordOf(event); draw(); });
    box.addEventListener("focusout", () => { hovered = null; draw(); });
    box.addEventListener("click", (event) => { const place = wordOf(event); if (place !== null) { view.word = place; view.to = null; fillHeads(); draw(); remember(); } });
  }

  // ---- the whole map
  let plan = null;
  function canvas() {
    const target = at("map"), { sentence } = shown, words = drawn.words, count = words.length;
    const available = target.parentElement.clientWidth || 600, dots = devicePixelRatio || 1, pen = target.getContext("2d");
    const font = (bold) => `${bold ? "700 " : ""}13px "Anaphora Sans", system-ui, sans-serif`;
    const chinese = (text) => /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]/.test(text);
    const amongChinese = words.some((place) => chinese(sentence.words[place])); // single digits then stand upright too
    const upright = (text) => chinese(text) || amongChinese && [...text].length === 1;
    pen.font = font(true);
    const longest = Math.max(...words.map((place) => pen.measureText(sentence.words[place]).width));
    let margin = Math.min(120, Math.ceil(longest) + 10);
    let size = Math.min(30, (available - margin - 2) / count);
    const labelled = size >= LABELLED || available < 480;
    if (!labelled) { margin = 2; size = Math.min(30, (available - 4) / count); }
    else size = Math.max(size, 17);
    const tall = !labelled ? 2 : Math.min(130, Math.max(...words.map((place) => {
      const text = sentence.words[place];
      return chinese(text) ? text.length * 14 : pen.measureText(text).width;
    })) + 10);
    const wide = margin + size * count + 2, high = tall + size * count + 2;
    plan = { margin, tall, size };
    target.width = Math.round(wide * dots); target.height = Math.round(high * dots);
    target.style.width = wide + "px"; target.style.height = high + "px";
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    const picture = new ImageData(count, count);
    const colours = colourNumbers();
    words.forEach((row, y) => {
      const line = drawn.rows.get(row);
      words.forEach((column, x) => {
        const [red, green, blue] = colours[step(line[column], top)];
        picture.data.set([red, green, blue, 255], 4 * (y * count + x));
      });
    });
    const small = element("canvas");
    small.width = small.height = count;
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, margin, tall, size * count, size * count);
    if (size >= 9) {
      pen.strokeStyle = "#fff";
      pen.lineWidth = 1;
      pen.beginPath();
      for (let n = 0; n <= count; n++) {
        pen.moveTo(margin, tall + n * size); pen.lineTo(margin + count * size, tall + n * size);
        pen.moveTo(margin + n * size, tall); pen.lineTo(margin + n * size, tall + count * size);
      }
      pen.stroke();
    }
    pen.strokeStyle = "#dfe3e8";
    pen.strokeRect(margin, tall, count * size, count * size);
    const colour = { pronoun: "#7d3c98", antecedent: "#00786c", other: "#b54f08", "": "#1d2330" };
    if (labelled) {
      pen.textBaseline = "middle";
      words.forEach((place, n) => {
        const role = roleOf(sentence, place), text = sentence.words[place], middle = (n + .5) * size;
        pen.font = font(role); pen.fillStyle = colour[role];
        pen.textAlign = "right";
        pen.fillText(text, margin - 6, tall + middle, margin - 8);
        if (upright(text)) {
          pen.textAlign = "center";
          const letters = [...text];
          letters.forEach((letter, m) => pen.fillText(letter, margin + middle, tall - 5 - 14 * (letters.length - m - .5)));
        } else {
          pen.save();
          pen.translate(margin + middle, tall - 6); pen.rotate(-Math.PI / 2);
          pen.textAlign = "left";
          pen.fillText(text, 0, 0, tall - 8);
          pen.restore();
        }
      });
    }
    const order = new Map(words.map((place, n) => [place, n])), chosen = selected().map((place) => order.get(place));
    const border = words.findIndex((place) => sentence.segments?.[place] === 1);
    if (border > 0) {
      pen.lineWidth = 2;
      pen.strokeStyle = "#1d2330";
      pen.beginPath();
      pen.moveTo(0, tall + border * size); pen.lineTo(wide, tall + border * size);
      pen.moveTo(margin + border * size, 0); pen.lineTo(margin + border * size, high);
      pen.stroke();
    }
    pen.lineWidth = 1.5;
    pen.strokeStyle = "#1d2330";
    if (chosen.length) {
      pen.strokeRect(margin, tall + chosen[0] * size, count * size, chosen.length * size);
      pen.strokeRect(margin + chosen[0] * size, tall, chosen.length * size, count * size);
    }
    for (const row of sentence.pronoun.filter((place) => order.has(place)).map((place) => order.get(place))) {
      pen.lineWidth = 2;
      for (const [role, entries] of [["other", sentence.distractors], ["antecedent", sentence.antecedents]]) {
        pen.strokeStyle = colour[role];
        pen.setLineDash(role === "other" ? [3, 2] : []);
        for (const place of entries.flat()) if (order.has(place)) pen.strokeRect(margin + order.get(place) * size, tall + row * size, size, size);
      }
      pen.setLineDash([]);
    }
    if (cell) {
      pen.lineWidth = 2; pen.strokeStyle = "#1d2330";
      pen.strokeRect(margin + order.get(cell[1]) * size, tall + order.get(cell[0]) * size, size, size);
    }
    const said = at("map-said");
    said.replaceChildren(...spoken(cell ? say("attends", { from: sentence.words[cell[0]], to: sentence.words[cell[1]], share: share(drawn.rows.get(cell[0])[cell[1]]) }) : ""));
  }
  function point(row, column) {
    const words = drawn.words;
    if (row < 0 || column < 0 || row >= words.length || column >= words.length) return false;
    const next = [words[row], words[column]];
    if (cell && cell[0] === next[0] && cell[1] === next[1]) return true;
    cell = next;
    hovered = next[0];
    draw();
    return true;
  }
  const map = at("map");
  const away = () => { cell = null; hovered = null; draw(); };
  map.addEventListener("pointermove", (event) => {
    const { margin, tall, size } = plan;
    if (!point(Math.floor((event.offsetY - tall) / size), Math.floor((event.offsetX - margin) / size)) && cell) away();
  });
  map.addEventListener("pointerleave", away);
  map.addEventListener("blur", away);
  const takeEdge = () => {
    if (!cell) return;
    [view.word, view.to] = cell;
    fillHeads();
    draw();
    remember();
    root.dispatchEvent(new CustomEvent("edge", { detail: { from: view.word, to: view.to, layer: view.layer, head: headShown() } }));
  };
  map.addEventListener("click", takeEdge);
  map.addEventListener("keydown", (event) => { if (event.key === "Enter") takeEdge(); });
  map.addEventListener("keydown", (event) => {
    const way = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!way) return;
    event.preventDefault();
    const first = selected()[0] ?? drawn.words[0], start = cell ?? [first, first];
    point(drawn.words.indexOf(start[0]) + way[0], drawn.words.indexOf(start[1]) + way[1]);
  });
  // A page that asks for more sentences hands each one over as an event.
  root.addEventListener("sentence", (event) => {
    const one = event.detail;
    sentences.push(one);
    byName.set(one.id, one);
    if (one.words.join("\n") !== byName.get(view.s).words.join("\n")) view.word = view.to = null;
    if (one.head) [view.layer, view.head] = one.head;
    view.s = one.id;
    show();
  });
  let waiting = 0;
  addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(() => shown && draw()); });
  addEventListener("hashchange", () => { if (readAddress()) { filter(); show(); goThere(); } });
  const goThere = () => root.scrollIntoView({ block: "start" });

  const linked = readAddress();
  filter();
  // An address that names a section stays as it is until the reader touches the explorer.
  const before = location.hash;
  show().then(() => {
    if (linked) goThere();
    else try { history.replaceState(null, "", before || location.pathname + location.search); } catch { /* as above */ }
    document.fonts?.ready.then(() => shown && canvas());
  });
})();
