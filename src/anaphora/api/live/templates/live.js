"use strict";
(() => {
  const live = JSON.parse(document.getElementById("live-data").textContent), say = live.phrases;
  const at = (name) => document.getElementById(name), root = at("explorer");
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => isolated(values[name]));

  function refill(box, nodes) { // the focus stays at the button with the same number
    const buttons = () => [...box.querySelectorAll("button")], place = buttons().indexOf(document.activeElement);
    box.replaceChildren(...nodes);
    if (place >= 0) buttons()[Math.min(place, buttons().length - 1)]?.focus();
  }

  // The question: the text, the roles of its words by their characters, the characters of the pronoun that the server
  // found in it, and the edits.
  const question = { model: live.models[0].name, text: at("ask-text").value, roles: new Map(), found: null, cuts: [], off: [] };
  let words = [], spans = [], plain = null, edge = null, turn = 0, number = 0, other = false, shown = question.text; // the text whose words are shown
  const key = (place) => spans[place].join(":"), roleAt = (place) => question.roles.get(key(place));
  const modelOf = (name) => live.models.find((one) => one.name === name);

  function runs(role) { // stretches of neighbouring words of one role, as characters
    const stretches = [];
    let last = -3;
    for (let place = 0; place < words.length; place++) {
      if (roleAt(place) !== role) continue;
      if (place === last + 1 || (place === last + 2 && isInName(words[last], words[last + 1]))) stretches[stretches.length - 1][1] = spans[place][1];
      else stretches.push([...spans[place]]);
      last = place;
    }
    return stretches;
  }
  function pronounOf() { // the characters of the pronoun: of "she'd", those of "she", as the server found it
    const marked = runs("pronoun")[0] ?? null, found = question.found;
    return found && marked && marked[0] <= found[0] && found[1] <= marked[1] ? found : marked;
  }
  function markFound() { // the pronoun that the server found is asked about as long as no other is marked
    const [start, end] = question.found ?? [0, 0];
    if (!pronounOf()) for (const span of spans) if (start < span[1] && span[0] < end) question.roles.set(span.join(":"), "pronoun");
  }
  function message(edited) {
    const written = ([start, end]) => `${start}:${end}`, place = pronounOf(), pronoun = place && written(place);
    return { model: question.model, text: question.text, pronoun, candidates: place ? runs("candidate").map(written) : [],
             cuts: edited ? question.cuts : [], off: edited ? question.off : [] };
  }
  async function ask(edited) {
    const mine = ++turn;
    at("ask-status").textContent = say.working;
    at("ask-error").hidden = true;
    let reply, problem = null;
    try {
      const response = await fetch("/attention?language=" + document.documentElement.lang, { method: "POST", body: JSON.stringify(message(edited)),
        headers: { "Content-Type": "application/json", "X-Token": live.token } });
      reply = await response.json();
      if (!response.ok) problem = reply.error;
    } catch { problem = say.lost; }
    if (mine !== turn) return false;
    at("ask-status").textContent = problem ? "" : fill(say.took, { seconds: reply.seconds.toFixed(2) }) + (reply.is_decoder ? " · " + say.decoder : "");
    at("ask-error").hidden = !problem;
    at("ask-error").replaceChildren(...spoken(problem ?? ""));
    for (const part of [at("live-results"), root]) part.hidden = Boolean(problem);
    if (problem) { // what was shown belongs to another question
      at("ask-words").hidden = question.text !== shown;
      return false;
    }
    shown = question.text;
    at("ask-words").hidden = false;
    take(reply, edited);
    return true;
  }
  function take(reply, edited) {
    words = reply.words ?? reply.sentence.words;
    spans = reply.spans;
    at("ask-text").lang = languageOfWord(question.text);
    if (!edited) plain = reply;
    if (!pronounOf()) question.found = reply.pronoun;
    markFound();
    const head = other ? reply.chosen : null; // another model opens at the head that was chosen on its development split
    other = false;
    if (reply.sentence) root.dispatchEvent(new CustomEvent("sentence", { detail: { ...reply.sentence, id: String(++number), head } }));
    tellAnswers(edited ? reply : null);
    tellWords();
    tellEdits();
  }

  function tellWords() {
    at("ask-words").dir = plain?.sentence?.direction ?? "ltr";
    refill(at("ask-words"), unbroken(words.map((text, place) => {
      const role = roleAt(place), button = element("button", role ?? "", text);
      button.type = "button";
      button.lang = languageOfWord(text);
      button.setAttribute("aria-pressed", String(Boolean(role)));
      button.title = role ? say[role] : "";
      button.disabled = spans[place][0] === spans[place][1];
      button.hidden = button.disabled;
      button.addEventListener("click", () => {
        const next = { candidate: "pronoun", pronoun: undefined }[roleAt(place)] ?? (question.roles.has(key(place)) ? null : "candidate");
        if (next === "pronoun") for (const [other, role] of question.roles) if (role === "pronoun") question.roles.delete(other);
        if (next) question.roles.set(key(place), next); else question.roles.delete(key(place));
        markFound();
        tellWords();
        again();
      });
      return button;
    }), words));
  }
  function again() { return ask(false).then((done) => done && (question.cuts.length || question.off.length) ? ask(true) : done); }

  function tellAnswers(edited) {
    const box = at("live-answers"), notes = (edited ?? plain).notes.map((text) => sentence("p", "note", text));
    if (!plain.answers) {
      box.replaceChildren(...notes);
      return;
    }
    const table = element("table"), head = element("tr");
    head.append(...[say.candidate, say.before, ...(edited ? [say.after] : [])].map((text) => heading("col", text)));
    const top = element("thead"), body = element("tbody");
    top.append(head);
    plain.answers.forEach((one, place) => {
      const line = element("tr");
      line.append(heading("row", one.candidate ?? say.none, one.candidate && languageOfWord(one.candidate)));
      for (const answers of edited?.answers ? [plain.answers, edited.answers] : [plain.answers]) {
        const share = answers[place].share, cell = element("td"), bar = element("span", "bar");
        bar.style.width = `calc(${share.toFixed(4)} * var(--bar))`;
        cell.append(bar, say.percent.replace("{value}", (100 * share).toFixed(1)));
        line.append(cell);
      }
      body.append(line);
    });
    table.append(top, body);
    box.replaceChildren(table, ...notes);
  }

  // ---- edits
  function choice(text, act) {
    const button = sentence("button", "link", text);
    button.type = "button";
    button.addEventListener("click", act);
    return button;
  }
  function cutIn(heads) {
    for (const [layer, head] of heads) {
      const cut = [layer, head, edge.from, edge.to];
      if (!question.cuts.some((one) => one.join() === cut.join())) question.cuts.push(cut);
    }
    tellEdits();
    ask(true);
  }
  function tellEdits() {
    const { layers, heads } = modelOf(question.model), choices = []; // the layers with attention
    if (edge && edge.from < words.length && edge.to < words.length) {
      const names = { from: `“${words[edge.from]}”`, to: `“${words[edge.to]}”`, layer: edge.layer, head: edge.head };
      const all = (layers) => layers.flatMap((layer) => Array.from({ length: heads }, (_, head) => [layer, head]));
      const line = element("span");
      line.append(choice(fill(say.cut, names), () => cutIn([[edge.layer, edge.head]])), " · ",
                  choice(say.cut_layer, () => cutIn(all([edge.layer]))));
      if (layers.length * heads <= 200) line.append(" · ", choice(say.cut_all, () => cutIn(all(layers))));
      choices.push(line, choice(fill(say.off, names), () => {
        if (!question.off.some((one) => one.join() === [edge.layer, edge.head].join())) question.off.push([edge.layer, edge.head]);
        tellEdits();
        ask(true);
      }));
    }
    at("edit-hint").hidden = choices.length > 0;
    refill(at("edit-choices"), choices);
    const listed = [
      ...question.cuts.map((cut) => [fill(say.cut, { from: `“${words[cut[2]]}”`, to: `“${words[cut[3]]}”`, layer: cut[0], head: cut[1] }), question.cuts, cut]),
      ...question.off.map((head) => [fill(say.off, { layer: head[0], head: head[1] }), question.off, head]),
    ];
    const SHOWN = 6, items = listed.slice(0, SHOWN).map(([text, list, one]) => {
      const item = sentence("li", "", text + " ");
      item.append(choice(say.remove, () => { list.splice(list.indexOf(one), 1); tellEdits(); question.cuts.length || question.off.length ? ask(true) : ask(false); }));
      return item;
    });
    if (listed.length > SHOWN) items.push(element("li", "", fill(say.more_edits, { count: listed.length - SHOWN })));
    if (listed.length > 1) {
      const item = element("li");
      item.append(choice(say.undo, () => { question.cuts = []; question.off = []; tellEdits(); ask(false); }));
      items.push(item);
    }
    refill(at("edits"), items);
  }
  root.addEventListener("edge", (event) => { edge = event.detail; tellEdits(); });

  function fresh() {
    question.cuts = [];
    question.off = [];
    edge = null;
  }
  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("ask-text").value;
    if (text !== question.text) {
      question.roles.clear();
      question.found = null;
    }
    question.text = text;
    fresh();
    ask(false);
  });
  at("ask-text").addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); at("ask").requestSubmit(); } });
  // The box is as high as its text, so that a narrow screen cuts nothing off.
  const fit = () => { const box = at("ask-text"); box.style.height = "auto"; box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`; };
  at("ask-text").addEventListener("input", fit);
  addEventListener("resize", fit);
  fit();
  at("ask-model").addEventListener("change", () => { question.model = at("ask-model").value; other = true; fresh(); ask(false); });
  if (window.top !== window) at("both").hidden = true;

  // The page comes with the first sentence; its pronoun and candidates are those that the server marked.
  take(live.first, false);
  const first = JSON.parse(at("explorer-data").textContent).sentences[0];
  for (const place of first.distractors.flat()) question.roles.set(key(place), "candidate");
  tellWords();
  tellAnswers(null);
})();
