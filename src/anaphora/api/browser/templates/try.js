"use strict";
(async () => {
  const data = JSON.parse(document.getElementById("model-data").textContent), painter = new Painter(data.colours);
  const { layers, heads } = data.shape;
  const at = (name) => document.getElementById(name);
  let language = data.opens ?? (navigator.languages.map((name) => name.slice(0, 2).toLowerCase()).find((name) => name in data.phrases) ?? "en");
  const say = (name, values = {}) => data.phrases[language][name].replace(/\{(\w+)\}/g, (_, key) => isolated(values[key]));
  const quoted = (text) => `“${text}”`;
  const share = (weight) => weight.toFixed(2);
  function button(text, act, className = "link") {
    const node = element("button", className, text);
    node.type = "button";
    node.addEventListener("click", act);
    return node;
  }

  function refill(box, nodes) { // the focus stays at the button with the same number
    const buttons = () => [...box.querySelectorAll("button")], place = buttons().indexOf(document.activeElement);
    box.replaceChildren(...nodes);
    if (place >= 0) buttons()[Math.min(place, buttons().length - 1)]?.focus();
  }

  // What is read and marked: units are words as maps show them, by number.
  let model = null, read = null, pronoun = [], asked = null, marked = new Set(), found = [], edits = [], plain = null, edited = null;
  let chosen = data.heads[language]; // the head that was chosen for the language of the sentence
  let selected = chosen ?? { layer: layers - 1, head: 0 }, edge = null, cell = null, problem = null;

  // ---- language
  function speak() {
    document.documentElement.lang = language;
    document.title = say("title");
    for (const node of document.querySelectorAll("[data-say]")) node.textContent = say(node.dataset.say);
    for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", say(node.dataset.label));
    const other = language === "zh" ? "en" : "zh";
    at("other-language").textContent = other === "zh" ? "中文" : "English";
    at("other-language").lang = other;
    const examples = [...data.examples].sort((a, b) => (b.language === language) - (a.language === language));
    at("examples").replaceChildren(...examples.map((one) => {
      const node = button(one.text, () => { at("text").value = one.text; fit(); start(one.text, one); });
      node.lang = one.language;
      return node;
    }));
    at("examples").parentElement.hidden = !data.examples.length;
    at("about").textContent = say("about", { name: data.name }) + (data.rounded ? ` ${say("rounded")}` : "");
    tellHeads();
    tell();
  }
  at("other-language").addEventListener("click", () => { language = language === "zh" ? "en" : "zh"; speak(); });

  // ---- the sentence and its marks
  const isUnread = (unit) => read.unread.some(([start, end]) => start < read.units[unit].end && read.units[unit].start < end);
  const isWord = (unit) => /[\p{L}\p{N}]/u.test(read.units[unit].label) && read.units[unit].start < read.units[unit].end;
  const isMarkable = (unit) => isWord(unit) || /^[‐‑-]$/u.test(read.units[unit].label); // other marks in a name follow its words
  const textOf = (units) => read.characters.slice(...spanOf(units)).join("");
  function namesOf(lists) { // candidates with the same words have their numbers, as "dog:2" for the second "dog"
    const names = lists.map(textOf), wordAt = (unit) => read.units[unit]?.label.toLowerCase();
    const isAt = (start, units) => units.every((unit, place) => wordAt(start + place) === wordAt(unit));
    const numberOf = (units) => [...read.units.keys()].filter((start) => start <= units[0] && isAt(start, units)).length;
    return names.map((name, place) => names.indexOf(name) === names.lastIndexOf(name) ? name : `${name}:${numberOf(lists[place])}`);
  }
  function candidates() { // neighbouring marked words are one name
    const lists = [], label = (unit) => read.units[unit].label;
    for (const unit of [...marked].sort((a, b) => a - b)) {
      const list = lists[lists.length - 1], last = list?.[list.length - 1];
      if (last === unit - 1) list.push(unit);
      else if (last === unit - 2 && isInName(label(last), label(unit - 1))) list.push(unit - 1, unit);
      else lists.push([unit]);
    }
    return lists;
  }
  const spanOf = (units) => [read.units[units[0]].start, read.units[units[units.length - 1]].end];
  const unitsIn = ([start, end]) => [...read.units.keys()].filter((unit) => read.units[unit].start < end && start < read.units[unit].end);
  function pronounsOf() { // the third-person pronouns of the sentence: the span and the units of each
    const words = read.characters.join(""), lists = [];
    for (const match of words.matchAll(new RegExp(data.pronouns, "gu"))) {
      const begin = [...words.slice(0, match.index)].length;
      const span = [begin, begin + [...match[0]].length];
      lists.push({ span, units: unitsIn(span) });
    }
    return lists;
  }
  function start(text, marks = null) {
    read = plain = edited = edge = cell = problem = null;
    edits = [];
    marked = new Set();
    pronoun = [];
    const former = chosen;
    chosen = data.heads[model.languageOf(text)];
    if (chosen && (chosen.layer !== former?.layer || chosen.head !== former?.head)) selected = chosen;
    if (text.length > data.characters) problem = ["too_many_characters", { characters: text.length, most: data.characters }];
    else if (text.trim()) {
      read = model.read(text);
      const most = data.longest ?? Infinity;
      if (read.ids.length > most) problem = ["too_long", { tokens: read.ids.length, most }];
      else if (isOtherScript(text) && !isReadable()) problem = ["language", {}];
    } else problem = ["empty", {}];
    if (problem) read = null;
    if (read) {
      found = pronounsOf();
      const last = marks ? { span: marks.pronoun, units: unitsIn(marks.pronoun) } : found[found.length - 1];
      if (last) askAbout(last.units, last.span);
      for (const span of marks ? marks.candidates : []) for (const unit of unitsIn(span).filter(isMarkable)) marked.add(unit);
    }
    at("text").lang = model.languageOf(text);
    at("marking-names").checked = true;
    fillWords();
    compute();
  }
  function askAbout(units, span) {
    [pronoun, asked] = [units, span];
    for (const unit of units) marked.delete(unit);
  }
  function mark(unit) {
    const one = found.find((each) => each.units.includes(unit));
    if (at("marking-pronoun").checked || (one && !marked.has(unit))) {
      if (one) askAbout(one.units, one.span); else askAbout([unit], spanOf([unit]));
      at("marking-names").checked = true;
      edge = null;
    } else if (marked.has(unit)) marked.delete(unit);
    else if (!pronoun.includes(unit)) marked.add(unit);
    compute();
  }

  // ---- asking the model
  const expanded = (edit) => { // every head that an edit is about
    const list = [];
    for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++)
      if ((edit.layer ?? layer) === layer && (edit.head ?? head) === head) list.push({ layer, head });
    return list;
  };
  function compute() {
    plain = edited = null;
    if (read && pronoun.length) {
      const spans = tooMany() ? [] : candidates().map(spanOf), began = performance.now();
      plain = model.ask(read, asked, spans, { cuts: [], off: [] });
      plain.seconds = (performance.now() - began) / 1000;
      if (edits.length) {
        const cuts = edits.filter((edit) => "to" in edit).flatMap((edit) => expanded(edit).map((each) => ({ ...edit, ...each })));
        edited = model.ask(read, asked, spans, { cuts, off: edits.filter((edit) => !("to" in edit)) });
      }
    }
    tell();
  }
  const tooMany = () => candidates().length > (data.most ?? Infinity);
  const shown = () => edited ?? plain;

  // ---- telling all of it
  function tell() {
    if (!model) return;
    at("error").hidden = !problem;
    at("error").textContent = problem ? say(...problem) : "";
    at("marking").hidden = !read;
    at("words").hidden = !read;
    at("result").hidden = !plain;
    at("seconds").textContent = plain ? say("seconds", { seconds: plain.seconds.toFixed(2) }) : "";
    tellNotes();
    tellMarks();
    if (!plain) return;
    tellAnswer();
    tellEdits();
    tellPictures();
    tellRow();
    drawMap();
  }
  const unreadUnits = () => [...read.units.keys()].filter((unit) => isWord(unit) && isUnread(unit));
  function isReadable() { // whether enough is known to show how sure the answer is
    const named = [...pronoun, ...marked], words = [...read.units.keys()].filter(isWord);
    return !named.some(isUnread) && words.filter(isUnread).length <= words.length / 3;
  }
  function foreignUnits() { // words that are not one known token, of a text that seems to be neither English nor Chinese
    const words = [...read.units.keys()].filter(isWord), parts = words.filter((unit) => read.units[unit].tokens.length > 1 || isUnread(unit));
    const isPronoun = pronoun.length && new RegExp(data.pronouns, "u").test(read.characters.slice(...asked).join("")), most = pronoun.some((unit) => parts.includes(unit)) ? 3 : 2;
    return !pronoun.length || isPronoun || model.seemsEnglishOrChinese(read.text) || most * parts.length <= words.length ? [] : parts;
  }
  function tellNotes() {
    const notes = [];
    if (read) {
      const listed = (units) => [...new Set(units.map((unit) => quoted(read.units[unit].label)))].join(say("comma"));
      const unread = listed(unreadUnits()), foreign = isReadable() ? listed(foreignUnits()) : "";
      if (foreign) notes.push(say("foreign", { words: foreign }));
      else if (unread) notes.push(say(isReadable() ? "unknown" : "unreadable", { words: unread }));
      if (!pronoun.length) notes.push(say("no_pronoun"));
      else if (candidates().length < 2) {
        if (isReadable()) notes.push(say("too_few", { pronoun: quoted(textOf(pronoun)) }));
      } else if (tooMany()) notes.push(say("too_many", { most: data.most }));
    }
    at("notes").replaceChildren(...notes.map((text) => sentence("li", "", text)));
  }
  let wordButtons = [], rowButtons = [];
  function fillWords() {
    const units = read ? [...read.units.keys()] : [], languageOf = (unit) => languageOfWord(read.units[unit].label);
    wordButtons = units.map((unit) => {
      const node = button(read.units[unit].label, () => mark(unit), "");
      node.lang = languageOf(unit);
      node.disabled = !isMarkable(unit);
      node.hidden = read.units[unit].start === read.units[unit].end;
      return node;
    });
    const texts = units.map((unit) => read.units[unit].label);
    at("words").replaceChildren(...unbroken(wordButtons, texts));
    rowButtons = units.map((unit) => {
      const node = button(read.units[unit].label, () => choose(unit), "word");
      node.lang = languageOf(unit);
      node.append(element("small"));
      return node;
    });
    at("row").replaceChildren(...unbroken(rowButtons, texts));
    at("words").dir = at("row").dir = read && isRightToLeft(read.text) ? "rtl" : "ltr";
  }
  const roleOf = (unit) => pronoun.includes(unit) ? "pronoun" : candidates().some((list) => list.includes(unit)) ? "candidate" : "";
  function tellMarks() {
    wordButtons.forEach((node, unit) => {
      const role = roleOf(unit), isFound = found.some((each) => each.units.includes(unit));
      node.className = role || (isFound ? "found" : "");
      node.setAttribute("aria-pressed", String(Boolean(role)));
      node.title = role ? say(role) : isFound ? say("another_pronoun") : "";
    });
  }
  function tellAnswer() {
    const lists = candidates(), box = at("answers"), isShown = plain.shares && lists.length > 1 && isReadable();
    at("differ").replaceChildren(...spoken(isShown ? compared(lists) : ""));
    at("answer").hidden = !isShown;
    if (!isShown) return box.replaceChildren();
    const names = namesOf(lists), columns = edited ? [plain, edited] : [plain];
    if (data.shape.prediction.none_of_them) names.push(say("none"));
    const table = element("table"), head = element("tr"), top = element("thead"), body = element("tbody");
    head.append(...["candidate", "before", ...(edited ? ["after"] : [])].map((name) => heading("col", say(name))));
    top.append(head);
    names.forEach((name, place) => {
      const line = element("tr");
      line.append(heading("row", name, place < lists.length ? languageOfWord(name) : null));
      for (const { shares } of columns) {
        const cell = element("td", bestAnswers(shares).includes(place) ? "best" : ""), bar = element("span", "bar");
        bar.style.width = `calc(${shares[place].toFixed(4)} * var(--bar))`;
        cell.append(bar, data.phrases[language].percent.replace("{value}", (100 * shares[place]).toFixed(1)));
        line.append(cell);
      }
      body.append(line);
    });
    table.append(top, body);
    box.replaceChildren(table);
  }
  const weightOn = (units, { layer, head }) => units.reduce((sum, unit) => sum + shown().rows[layer][head][unit], 0);
  const between = (parts, mark) => parts.flatMap((part, place) => place ? [mark, part] : [part]);
  function named(units) { // a name in its own language
    const node = inLanguage(textOf(units), languageOfWord(textOf(units)));
    node.dir = "auto";
    return node;
  }
  const best = (numbers) => numbers.indexOf(Math.max(...numbers));
  const bestAnswers = (shares) => [...shares.keys()].filter((place) => shares[place] >= Math.max(...shares) * (1 - data.tie));
  const tiedWithBest = (lists, weights) => lists.filter((_, place) => share(weights[place]) === share(Math.max(...weights)));
  function compared(lists) { // whether the head points where the answer is; without edits, of the model as it is
    const head = chosen ?? selected, { shares } = shown(), weights = lists.map((units) => weightOn(units, head));
    const answers = bestAnswers(shares.slice(0, lists.length + Boolean(data.shape.prediction.none_of_them)));
    const training = data.training[head.layer][head.head], pointed = best(weights), tied = tiedWithBest(lists, weights);
    const names = namesOf(lists), name = tied.length > 1 ? "tied" : weights[pointed] < data.least ? "nowhere" : answers.length > 1 ? "undecided" : answers[0] === pointed ? "agree" : "differ";
    const values = { layer: head.layer, head: head.head, pointed: tied.map((units) => quoted(names[lists.indexOf(units)])).join(say("comma")),
      weight: share(weights[pointed]), answer: answers.map((place) => place < lists.length ? quoted(names[place]) : say("none")).join(say("comma")) };
    return say(name, values) + (training ? say(training) : "") + (chosen ? "" : say("no_head"));
  }

  // ---- edits
  function choose(unit) {
    edge = { from: pronoun, to: unit };
    tellEdits();
    tellRow();
  }
  function edit(one) {
    const list = Array.isArray(one) ? one : [one];
    for (const each of list) if (!edits.some((other) => JSON.stringify(other) === JSON.stringify(each))) edits.push(each);
    compute();
  }
  const place = (one) => one.layer === null ? say("in_every_head") : one.head === null ? say("in_layer", one) : say("in_head", one);
  function tellEdits() {
    const isChosen = edge !== null, to = isChosen ? edge.to : null, choices = [];
    if (isChosen) {
      const cutAt = (layer, head) => () => edit(edge.from.map((from) => ({ from, to, layer, head })));
      choices.push(sentence("span", "", say("cut", { from: quoted(textOf(edge.from)), to: quoted(read.units[to].label) })),
                   button(say("in_head", selected), cutAt(selected.layer, selected.head)),
                   button(say("in_layer", selected), cutAt(selected.layer, null)), button(say("in_every_head"), cutAt(null, null)));
    } else choices.push(element("span", "quiet", say("choose_edge")));
    refill(at("cut-choices"), choices);
    at("switch-off").textContent = say("switch_off", selected);
    const names = (one) => "to" in one ? say("cut_done", { from: quoted(read.units[one.from].label), to: quoted(read.units[one.to].label) }) + place(one) : say("off_done", one);
    const items = edits.map((one) => {
      const item = sentence("li", "", names(one) + " ");
      item.append(button(say("undo"), () => { edits.splice(edits.indexOf(one), 1); compute(); }));
      return item;
    });
    if (items.length > 1) {
      const item = element("li");
      item.append(button(say("undo_all"), () => { edits = []; compute(); }));
      items.push(item);
    }
    refill(at("edits"), items);
  }
  at("switch-off").addEventListener("click", () => edit({ layer: selected.layer, head: selected.head }));

  // ---- heads
  let pictures = [];
  function tellHeads() {
    const grid = at("heads"), parts = [];
    pictures = [];
    grid.style.gridTemplateColumns = `auto repeat(${heads}, minmax(0, 4.2rem))`;
    for (let layer = 0; layer < layers; layer++) {
      parts.push(element("span", "place", say("layer", { layer })));
      for (let head = 0; head < heads; head++) {
        const node = button("", () => select(layer, head, false), "");
        node.append(element("canvas"), element("small"));
        node.setAttribute("role", "radio");
        pictures.push({ layer, head, node });
        parts.push(node);
      }
    }
    grid.replaceChildren(...parts);
  }
  function select(layer, head, isFocused) {
    if (layer < 0 || head < 0 || layer >= layers || head >= heads) return;
    selected = { layer, head };
    tell();
    if (isFocused) pictures[layer * heads + head].node.focus();
  }
  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  at("heads").addEventListener("keydown", (event) => {
    const way = STEPS[event.key];
    if (!way) return;
    event.preventDefault();
    select(selected.layer + way[0], selected.head + way[1], true);
  });
  function tellPictures() {
    const lists = candidates();
    for (const { layer, head, node } of pictures) {
      const isSelected = layer === selected.layer && head === selected.head, isOff = edits.some((one) => !("to" in one) && one.layer === layer && one.head === head);
      const weights = lists.map((units) => weightOn(units, { layer, head })), most = best(weights);
      const name = say("layer_head", { layer, head }), tied = tiedWithBest(lists, weights), weight = share(weights[most] ?? 0);
      const pointed = weights[most] >= data.least ? `${weight} ${tied.map(textOf).join(say("comma"))}` : "";
      painter.small(node.firstChild, shown().maps[layer][head], read.units.length);
      node.lastChild.replaceChildren(...(isOff ? [say("off")] : pointed ? [`${weight} `, element("br"), ...between(tied.map(named), say("comma"))] : []));
      node.setAttribute("aria-checked", String(isSelected));
      node.setAttribute("aria-label", [name, isOff ? say("off") : pointed].filter(Boolean).join(" · "));
      node.title = node.getAttribute("aria-label");
      node.tabIndex = isSelected ? 0 : -1;
      node.classList.toggle("off", isOff);
      node.classList.toggle("chosen", Boolean(chosen) && layer === chosen.layer && head === chosen.head);
    }
    at("heads-note").textContent = chosen ? say("chosen_head", chosen) : "";
  }

  // ---- the pronoun's row
  function tellRow() {
    at("row-title").replaceChildren(...spoken(say("row", { word: quoted(textOf(pronoun)), ...selected })));
    rowButtons.forEach((node, unit) => {
      const weight = weightOn([unit], selected);
      node.className = ["word", { pronoun: "pronoun", candidate: "other" }[roleOf(unit)] ?? "", edge && edge.to === unit ? "chosen" : ""].join(" ");
      painter.shade(node, weight);
      node.lastChild.textContent = weight >= 0.005 ? share(weight) : "";
    });
    const lists = candidates();
    at("sums").replaceChildren(lists.length ? say("sums") : "", ...between(lists.map((units) => [named(units), ` ${share(weightOn(units, selected))}`]), " · ").flat());
  }

  // ---- the whole map
  let plan = null;
  function drawMap() {
    const units = read.units, map = shown().maps[selected.layer][selected.head];
    const frames = pronoun.flatMap((row) => [...marked].map((column) => [row, column, "candidate"]));
    if (edge) frames.push(...edge.from.map((row) => [row, edge.to, ""]));
    if (cell) frames.push([...cell, ""]);
    plan = painter.whole(at("map"), map, units.map((unit, number) => [unit.label, roleOf(number)]), frames);
    at("map-said").replaceChildren(...spoken(cell ? say("attends", { from: units[cell[0]].label, to: units[cell[1]].label, share: share(map[cell[0] * units.length + cell[1]]) }) : ""));
  }
  function point(row, column) {
    const count = read.units.length, isInside = row >= 0 && column >= 0 && row < count && column < count;
    if (String(isInside ? [row, column] : null) === String(cell)) return;
    cell = isInside ? [row, column] : null;
    drawMap();
  }
  const map = at("map");
  map.addEventListener("pointermove", (event) => point(Math.floor((event.offsetY - plan.tall) / plan.size), Math.floor((event.offsetX - plan.margin) / plan.size)));
  for (const name of ["pointerleave", "blur"]) map.addEventListener(name, () => plain && point(-1, -1));
  const takeEdge = () => {
    if (!cell) return;
    edge = { from: [cell[0]], to: cell[1] };
    tellEdits();
    tellRow();
    drawMap();
  };
  map.addEventListener("click", takeEdge);
  map.addEventListener("keydown", (event) => {
    const way = STEPS[event.key], last = read.units.length - 1, [row, column] = cell ?? [pronoun[0], pronoun[0]];
    if (event.key === "Enter") takeEdge();
    if (!way) return;
    event.preventDefault();
    point(Math.min(last, Math.max(0, row + way[0])), Math.min(last, Math.max(0, column + way[1])));
  });

  // ---- the form
  at("ask").addEventListener("submit", (event) => { event.preventDefault(); start(at("text").value); });
  at("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); at("ask").requestSubmit(); } });
  const fit = () => { const box = at("text"); box.style.height = "auto"; box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`; };
  at("text").addEventListener("input", fit);
  addEventListener("resize", () => { fit(); if (plain) drawMap(); });

  speak();
  try { model = await Model.unpack(data, at("weights").textContent, (share) => { at("progress").value = share; }); }
  catch { at("loading-text").textContent = say("damaged"); return; }
  window.anaphora = model; // what the page computes, for the browser's console
  at("loading").hidden = true;
  at("scale").style.background = `linear-gradient(90deg, ${data.colours.ramp.join(",")})`;
  at("page").hidden = false;
  const first = data.examples.find((one) => one.language === language) ?? data.examples[0];
  if (first) at("text").value = first.text;
  fit();
  if (first) start(first.text, first); else tell();
})();
