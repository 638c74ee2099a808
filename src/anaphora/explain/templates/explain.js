"use strict";
(() => {
  const data = JSON.parse(document.getElementById("walk").textContent);
  const { steps, queries, words, digits, share, either } = data;
  const at = (name) => document.getElementById(name);
  const view = { step: 0, row: data.row };
  const INK = "#1d2330", MUTED = "#5c6574", HAND = "#7d3c98", PAPER = "#fff";
  const FONT = '"Anaphora Sans", system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
  const measure = document.createElement("canvas").getContext("2d");

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  const width = (text, size, bold) => { measure.font = `${bold ? 700 : 400} ${size}px ${FONT}`; return measure.measureText(text).width; };
  // The name of a matrix as formulas write it: W_Q with its index below the line, K^T with its T above.
  function named(name, tag) {
    const [base, kind, rest] = name.split(/([_^])/), made = element(tag, upright(name) ? "upright" : "", base);
    if (upright(name)) made.lang = "zh";
    if (kind) made.append(element(kind === "_" ? "sub" : "sup", "", rest));
    return made;
  }

  // Text in which indices stand below the line: W_Q, d_k, K^T.
  function typeset(box, text) {
    box.replaceChildren(...text.split(/\b([A-Za-z]_[A-Za-z0-9]|[A-Z]\^T)(?![A-Za-z])/).flatMap((piece, place) => place % 2 ? [named(piece, "span")] : spoken(piece)));
  }

  // ---- numbers
  const minus = (text) => text.replace("-", "−");
  const tiny = (value, places) => value !== 0 && (Math.abs(value) < 0.5 * 10 ** -places || Math.abs(value) >= 1e9);
  function written(value, places) {
    if (value === 0) return "0";
    return minus(tiny(value, places) ? value.toExponential(0).replace("e+", "e") : value.toFixed(places));
  }
  // A matrix has as many places behind the point everywhere as its longest number needs.
  function placesOf(values, most) {
    let needed = 0;
    for (const line of values) for (const value of line) {
      if (tiny(value, most)) continue;
      while (needed < most && Math.abs(value - Number(value.toFixed(needed))) > 1e-9 * Math.max(1, Math.abs(value))) needed++;
    }
    return needed;
  }
  const short = (value, places) => {
    const size = Math.abs(value), text = size < 0.005 ? "0" : value.toFixed(Math.min(places, size >= 100 ? 0 : size >= 10 ? 1 : 2));
    return minus(text.replace(/^(-?)0\./, "$1."));
  };
  const valuesOf = (part) => part.sliced ? part.values[view.row] : part.values;
  const largest = (part) => valuesOf(part).reduce((most, line) => line.reduce((size, value) => Math.max(size, Math.abs(value)), most), 0);
  const isSigned = (part) => valuesOf(part).some((line) => line.some((value) => value < 0));
  // The range of values that a matrix's colours span.
  function rangeOf(part) {
    const size = largest(part), text = tiny(size, 3) || size >= 1e6 ? size.toExponential(1).replace("e+", "e") : String(Number(size.toPrecision(3)));
    return `${isSigned(part) ? `−${minus(text)}` : "0"} … ${minus(text)}`;
  }
  const isMatrix = (part) => typeof part !== "string";

  // ---- where everything stands in a step: the same axis is equally long in all of its matrices
  const SIZES = [34, 30, 26, 22, 18, 15, 12, 9], THIN = [12, 9, 7, 6, 5, 4, 3, 2, 1.5, 1];
  const BROKEN_SIZES = [18, 15, 12, 9, 7, 5], BROKEN_THIN = [3, 2, 1.5, 1, 0.75, 0.5];
  const CAPTION = 42; // pixels: the name, and below it the range of the colours
  function plan(step) {
    const matrices = step.parts.filter(isMatrix);
    const room = Math.max(300, at("stage").clientWidth || 900);
    for (const part of matrices) part.places = placesOf(valuesOf(part), digits);
    const inside = (part) => Math.max(...valuesOf(part).flat().map((value) => width(written(value, part.places), 13)));
    let few = matrices.every((part) => part.columns.length <= 12 && part.rows.length <= 16);
    const beside = (part) => isMatrix(part) ? 14 : wordy(part) ? width(part, 14) + 36 : width(part, 19) + 13;
    const signs = step.parts.reduce((sum, part) => sum + beside(part), 0);
    const margins = matrices.map((part) => hasRowLabels(part) ? Math.min(120, Math.max(...part.rows.map((name) => width(name, few ? 13 : 12, true)))) + 10 : 5).map((length, place) => matrices[place].columns.length === 1 ? Math.max(length, width(rangeOf(matrices[place]), 13)) : length);
    const margin = margins.reduce((sum, one) => sum + one, 0);
    let cell = few ? Math.max(46, Math.min(84, Math.max(...matrices.map(inside)) + 14)) : 0, numbers = few;
    if (few) {
      // Where whole numbers would break the line, shorter ones stand in narrower cells.
      const columns = matrices.reduce((sum, part) => sum + part.columns.length, 0), left = (room - signs - margin) / columns;
      if (left < cell) { few = left >= 34; cell = Math.floor(left); numbers = false; }
    }
    const lengths = (unit, thin) => {
      const along = (axis, labels) => axis === "one" ? (few ? cell : Math.max(14, thin)) : (few ? cell : axis === "tokens" ? unit : thin) * labels.length;
      return matrices.map((part) => [along(part.axes[1], part.columns), few ? 30 * part.rows.length : along(part.axes[0], part.rows), part]);
    };
    if (few) return { few, cell: () => cell, high: () => 30, numbers };
    const across = matrices.some((part) => part.axes[1] === "tokens");
    let found = null;
    search: for (const unit of SIZES.filter((size) => across || size <= 22)) for (const thin of THIN) {
      const sizes = lengths(unit, thin);
      const wide = sizes.reduce((sum, [across]) => sum + across, 0);
      if (wide + margin + signs <= room && sizes.every(([, tall]) => tall <= 470)) { found = [unit, thin]; break search; }
    }
    const isBroken = !found;
    if (isBroken) {
      // What fits in no single line is broken: each matrix, with the signs before it, has a line to itself.
      const ahead = matrices.map((part) => { const end = step.parts.indexOf(part); let sum = beside(part); for (let place = end - 1; place >= 0 && !isMatrix(step.parts[place]); place--) sum += beside(step.parts[place]); return sum; });
      found = [BROKEN_SIZES.at(-1), BROKEN_THIN.at(-1)];
      search: for (const unit of BROKEN_SIZES) for (const thin of BROKEN_THIN) {
        if (lengths(unit, thin).every(([across], place) => across + margins[place] + ahead[place] <= room)) { found = [unit, thin]; break search; }
      }
    }
    const [unit, thin] = found;
    const side = (axis) => axis === "tokens" ? unit : axis === "one" ? Math.max(14, unit > 26 ? unit : 14) : thin;
    return { few, cell: (part) => side(part.axes[1]), high: (part) => side(part.axes[0]), numbers: false, isBroken };
  }
  const wordy = (sign) => /^[a-z, -]{3,}$|[\u4e00-\u9fff]/.test(sign);
  const upright = (name) => /^[\u2e80-\u9fff\uff00-\uffef]+$/.test(name);
  const plain = (labels) => labels.every((label, place) => label === String(place + 1));
  const hasRowLabels = (part) => part.labelled && part.rows.some((label) => label) && (part.axes[0] === "tokens" || !plain(part.rows));
  const hasColumnLabels = (part) => part.columns.some((label) => label) && (part.axes[1] === "tokens" || !plain(part.columns));

  const ENDS = 29; // steps of the ramp from its middle to the largest number: its last ones are too dark to be told apart
  let drawn = [];
  function draw() {
    const step = steps[view.step], stage = at("stage");
    const matrices = step.parts.filter(isMatrix);
    matrices.forEach((part, place) => { part.labelled = !part.followed || place === 0 || place === matrices.length - 1 || matrices.length > 3 && part.axes[1] === "tokens" && step.parts.every(isMatrix); });
    let layout = plan(step);
    // A matrix on a line of its own has no neighbour to read its rows from.
    if (layout.isBroken) { for (const part of matrices) part.labelled = true; layout = plan(step); }
    const label = layout.few ? 13 : 12;
    const heads = matrices.filter(hasColumnLabels).map((part) => {
      const longest = Math.max(...part.columns.map((name) => width(name, label, true)));
      part.turned = longest > layout.cell(part) - 3;
      const tall = Math.max(...part.columns.map((name) => upright(name) ? 13 * name.length : width(name, label)));
      return part.turned ? Math.min(96, tall) + 8 : 20;
    });
    const top = Math.max(4, ...heads);
    const tokens = Math.max(30, ...matrices.filter((part) => part.followed).map((part) => layout.high(part) * part.rows.length));
    const held = drawn.find((one) => one.canvas === document.activeElement), kept = held && drawn.indexOf(held), cursor = held?.cursor;
    drawn = [];
    const shown = step.parts.map((part) => {
      if (!isMatrix(part)) {
        const sign = element("span", wordy(part) ? "sign word" : "sign", part);
        sign.style.marginTop = `${Math.round(CAPTION + top + Math.min(tokens, 300) / 2 - 12)}px`;
        return sign;
      }
      const figure = element("figure"), caption = element("figcaption");
      caption.append(named(part.matrix, "b"), element("small", "", `${part.rows.length} × ${part.columns.length}`), element("small", "range", part.weights ? "" : rangeOf(part)));
      const canvas = element("canvas");
      canvas.tabIndex = 0;
      canvas.setAttribute("role", "application");
      canvas.setAttribute("aria-label", `${part.matrix}, ${part.rows.length} × ${part.columns.length}`);
      canvas.setAttribute("aria-describedby", "said");
      figure.append(caption, canvas);
      const one = { part, canvas, layout, top, label, cursor: null };
      canvas.addEventListener("focus", () => mark(one, firstCell(one)));
      canvas.addEventListener("blur", () => { one.cursor = null; paint(one); say(null); });
      canvas.addEventListener("keydown", (event) => move(one, event));
      canvas.addEventListener("mousedown", (event) => { const { row, column, inside } = cellAt(one, event); if (inside) one.chosen = { row, column }; });
      canvas.addEventListener("click", (event) => choose(one, event));
      canvas.addEventListener("mousemove", (event) => point(one, event));
      canvas.addEventListener("mouseleave", () => say(null));
      drawn.push(one);
      return figure;
    });
    // A sign stays with what follows it.
    const groups = [];
    let waiting = [];
    shown.forEach((one, place) => {
      waiting.push(one);
      if (isMatrix(step.parts[place])) { const group = element("div", "group"); group.append(...waiting); groups.push(group); waiting = []; }
    });
    stage.replaceChildren(...groups);
    for (const one of drawn) paint(one);
    if (held && drawn[kept]?.part === held.part) { drawn[kept].chosen = cursor; drawn[kept].canvas.focus({ preventScroll: true }); }
  }
  function paint(one) {
    const { part, canvas, layout, top, label } = one;
    const values = valuesOf(part), rows = part.rows.length, columns = part.columns.length;
    const wide = layout.cell(part), high = layout.high(part);
    const left = hasRowLabels(part) ? Math.min(120, Math.max(...part.rows.map((name) => width(name, label, true)))) + 8 : 2;
    const across = Math.ceil(left + wide * columns + 3), down = Math.ceil(top + high * rows + 3);
    const scale = window.devicePixelRatio || 1;
    canvas.width = across * scale; canvas.height = down * scale;
    canvas.style.width = `${across}px`; canvas.style.height = `${down}px`;
    Object.assign(one, { left, wide, high });
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const most = largest(part), colours = part.weights ? share : either;
    const gap = wide >= 12 && high >= 12 ? 1 : 0;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const value = values[row][column];
        const level = part.weights ? 63 * Math.min(1, value) : 31.5 + ENDS * (most ? value / most : 0);
        const step = Math.max(0, Math.min(63, Math.round(level)));
        const x = left + column * wide, y = top + row * high;
        pen.fillStyle = colours.ramp[step];
        pen.fillRect(x, y, wide - gap, high - gap);
        if (gap) { pen.strokeStyle = "#e4e7ec"; pen.lineWidth = 1; pen.strokeRect(x + 0.5, y + 0.5, wide - 1, high - 1); }
        const text = layout.numbers ? written(value, part.places) : short(value, part.places);
        const size = layout.numbers ? 13 : Math.min(11.5, wide / 2.6);
        if (layout.numbers || (wide >= 26 && high >= 16)) {
          pen.fillStyle = colours.inks[step];
          pen.font = `400 ${size}px ${FONT}`;
          pen.textAlign = "center"; pen.textBaseline = "middle";
          pen.fillText(text, x + wide / 2, y + high / 2 + 0.5, wide - 3);
        }
      }
    }
    if (!gap) { pen.strokeStyle = "#c3c9d2"; pen.lineWidth = 1; pen.strokeRect(left - 0.5, top - 0.5, wide * columns + 1, high * rows + 1); }
    pen.textBaseline = "middle";
    if (hasRowLabels(part)) for (let row = 0; row < rows; row++) {
      const hand = part.axes[0] === "tokens" && part.followed && row === view.row;
      pen.textAlign = "right";
      pen.font = `${hand ? 700 : 400} ${Math.min(label, Math.max(10, high))}px ${FONT}`;
      pen.fillStyle = hand ? HAND : INK;
      pen.fillText(part.rows[row], left - 6, top + row * high + high / 2 + 0.5, 112);
    }
    if (hasColumnLabels(part)) for (let column = 0; column < columns; column++) {
      const x = left + column * wide + wide / 2;
      pen.font = `400 ${Math.min(label, Math.max(10, wide))}px ${FONT}`;
      pen.fillStyle = MUTED;
      pen.save();
      const name = part.columns[column];
      // Chinese stands upright in a column; other words are turned.
      if (part.turned && (upright(name) || name.length === 1 && part.columns.some(upright))) { pen.textAlign = "center"; [...name].forEach((sign, place) => pen.fillText(sign, x, top - 10 - 13 * (name.length - 1 - place))); }
      else if (part.turned) { pen.translate(x, top - 5); pen.rotate(-Math.PI / 2); pen.textAlign = "left"; pen.fillText(part.columns[column], 0, 0, 92); }
      else { pen.textAlign = "center"; pen.fillText(part.columns[column], x, top - 10); }
      pen.restore();
    }
    if (part.followed && rows > 1) {
      pen.strokeStyle = HAND; pen.lineWidth = 2;
      pen.strokeRect(left - 0.5, top + view.row * high - 0.5, wide * columns + 1, high + 0.5);
    }
    if (one.cursor) {
      // Wide enough to be seen around a cell of one pixel.
      for (const [colour, line] of [[PAPER, 4], [INK, 2]]) {
        pen.strokeStyle = colour; pen.lineWidth = line;
        pen.strokeRect(left + one.cursor.column * wide - 1, top + one.cursor.row * high - 1, wide + 2 - gap, high + 2 - gap);
      }
    }
  }

  // ---- what a cell says
  function cellAt(one, event) {
    const box = one.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - one.left) / one.wide), row = Math.floor((event.clientY - box.top - one.top) / one.high);
    const { rows, columns } = one.part;
    return { row, column, inside: column >= 0 && column < columns.length && row >= 0 && row < rows.length };
  }
  function choose(one, event) {
    const { row, inside } = cellAt(one, event);
    if (one.part.followed && row >= 0 && row < one.part.rows.length) { view.row = row; show(); }
    if (inside) point(one, event);
  }
  const firstCell = (one) => one.chosen ?? { row: one.part.followed ? view.row : 0, column: 0 };
  function mark(one, cell) {
    one.cursor = cell;
    paint(one);
    say({ part: one.part, ...cell });
  }
  function move(one, event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { row, column } = one.cursor ?? firstCell(one), { rows, columns, followed } = one.part;
    const to = { ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], Home: [row, 0], End: [row, columns.length - 1] }[event.key];
    const inside = (place, labels) => Math.max(0, Math.min(labels.length - 1, place));
    if (to) mark(one, { row: inside(to[0], rows), column: inside(to[1], columns) });
    else if (event.key === "Enter" && followed) { view.row = row; show(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  function point(one, event) {
    const { row, column, inside } = cellAt(one, event);
    say(inside ? { part: one.part, row, column } : null);
  }
  const look = (part, row, column) => {
    const values = valuesOf(part);
    return values[values.length === 1 ? 0 : row][values[0].length === 1 ? 0 : column];
  };
  const termOf = (part, row, column) => {
    const value = look(part, row, column), text = written(value, part.places);
    return value < 0 ? `(${text})` : text;
  };
  // The arithmetic of one cell in words of the step; null where the step is no plain arithmetic.
  function arithmetic(step, part, row, column) {
    const place = step.parts.indexOf(part);
    if (step.parts[place - 1] !== "=") return null;
    let begin = place - 1;
    while (begin > 0 && step.parts[begin - 1] !== "=") begin--;
    let used = step.parts.slice(begin, place - 1);
    if (begin > 0 && used.length > 1 && isMatrix(used[0]) && isMatrix(used[1])) used = used.slice(1);
    if (used.some((one) => !isMatrix(one) && !/^([×+−·]|exp|÷.*)$/.test(one))) return null;
    let text = "";
    for (let index = 0; index < used.length; index++) {
      const one = used[index], after = used[index + 1];
      if (isMatrix(one) && after === "×") {
        const other = used[index + 2], left = valuesOf(one)[row], right = valuesOf(other);
        const terms = left.map((value, inner) => `${value < 0 ? `(${written(value, one.places)})` : written(value, one.places)} × ${right[inner][column] < 0 ? `(${written(right[inner][column], other.places)})` : written(right[inner][column], other.places)}`);
        text += terms.length <= 6 ? terms.join(" + ") : [...terms.slice(0, 3), "…", terms.at(-1)].join(" + ");
        index += 2;
      } else if (isMatrix(one)) text += text.endsWith("exp") ? `(${termOf(one, row, column)})`.replace(/^\(\((.*)\)\)$/, "($1)") : termOf(one, row, column);
      else text += one === "exp" ? one : ` ${one} `;
    }
    return text.trim();
  }
  function nameOf(part, row, column) {
    const made = element("span");
    made.append(named(part.matrix, "i"));
    const places = [part.rows[row], part.columns[column]].filter((label) => label);
    if (places.length) made.append(`[${places.join(", ")}]`);
    return made;
  }
  function say(asked) {
    const line = at("said"), step = steps[view.step];
    const part = asked ? asked.part : step.parts.at(-1);
    let { row, column } = asked ?? { row: part.followed ? view.row : 0, column: 0 };
    if (!asked) {
      const sums = step.parts.includes("=");
      if (!sums) { line.replaceChildren(); return; }
      const values = valuesOf(part);
      if (!part.followed && part.axes[0] === "tokens") row = values.map((one) => Math.max(...one.map(Math.abs))).reduce((best, value, place, all) => value > all[best] ? place : best, 0);
      const size = part.axes[1] === "tokens" ? (value) => value : Math.abs;
      column = values[row].reduce((best, value, place) => size(value) > size(values[row][best]) ? place : best, 0);
    }
    const told = arithmetic(step, part, row, column);
    line.replaceChildren(nameOf(part, row, column), ` = ${told ? `${told} = ` : ""}`, element("b", "", written(look(part, row, column), part.places)));
  }
  function most(step) {
    const line = at("most"), part = step.parts.at(-1);
    line.replaceChildren();
    if (step.parts.length > 1 && step.parts.every(isMatrix) && part.weights) {
      line.append(words.highest, words.colon);
      step.parts.forEach((one, number) => {
        const values = valuesOf(one)[view.row], top = written(Math.max(...values), one.places);
        const tied = one.columns.filter((_, place) => written(values[place], one.places) === top), names = tied.length > 2 ? [...tied.slice(0, 2), "…"] : tied;
        line.append(number ? words.comma : "", named(one.matrix, "i"), " ", element("b", "", names.join(" / ")), ` ${top}`);
      });
      return;
    }
    if (!part.followed || hasNoNames(part)) return;
    const values = valuesOf(part)[view.row];
    const order = [...values.keys()].sort((one, other) => values[other] - values[one]).slice(0, 5);
    line.append(words.highest, words.colon);
    order.forEach((place, number) => {
      if (number) line.append(words.comma);
      line.append(element("b", "", part.columns[place]), ` ${written(values[place], part.places)}`);
    });
  }
  const hasNoNames = (part) => part.columns.length < 2 || plain(part.columns);

  // ---- the step
  function key(step) {
    const parts = step.parts.filter(isMatrix), box = at("key");
    box.replaceChildren();
    const bar = (ramp, low, high) => {
      const scale = element("span", "scale"), line = element("i");
      line.style.background = `linear-gradient(90deg, ${ramp.join(",")})`;
      scale.append(low, line, high);
      box.append(scale);
    };
    if (parts.some((part) => part.weights)) bar(share.ramp, `${words.share} 0`, "1");
    const others = parts.filter((part) => !part.weights);
    if (!others.length) return;
    const middle = Math.round(31.5), signed = others.some(isSigned);
    bar(either.ramp.slice(signed ? middle - ENDS : middle, middle + ENDS), signed ? words.negative : "0", words.positive);
    box.append(element("span", "scaled", others.length > 1 ? words.scaled_each : words.scaled));
  }
  function slips(step) {
    at("slips").replaceChildren(...step.slips.map((slip) => {
      const box = element("div", "slip"), list = element("dl");
      for (const name of ["published", "right"]) {
        const told = element("dd");
        typeset(told, slip[name]);
        list.append(element("dt", "", words[name]), told);
      }
      box.append(element("h3", "", words.slip), list);
      return box;
    }));
  }
  function show() {
    const step = steps[view.step];
    [...at("steps").querySelectorAll("button")].forEach((button, place) => button.toggleAttribute("aria-current", false) || (place === view.step && button.setAttribute("aria-current", "step")));
    rowButtons.forEach((button, place) => { button.setAttribute("aria-checked", String(place === view.row)); button.tabIndex = place === view.row ? 0 : -1; });
    at("back").disabled = view.step === 0;
    at("next").disabled = view.step === steps.length - 1;
    at("count").textContent = `${view.step + 1} / ${steps.length}`;
    typeset(at("title"), step.title);
    typeset(at("text"), step.text);
    draw(); say(null); most(step); key(step); slips(step);
    try { history.replaceState(null, "", `#step=${view.step + 1}&row=${view.row}`); } catch { /* a viewer that forbids it */ }
  }
  const go = (step) => { view.step = Math.max(0, Math.min(steps.length - 1, step)); show(); };
  const follow = (row) => {
    view.row = Math.max(0, Math.min(queries.length - 1, row));
    show();
    if (at("rows").contains(document.activeElement)) rowButtons[view.row].focus();
  };

  // On a narrow screen the list stands before the step and is opened by a touch.
  const list = document.querySelector("nav details");
  const narrow = matchMedia("(max-width: 68rem)");
  const fold = () => { list.open = !narrow.matches; };
  fold();
  narrow.addEventListener("change", fold);
  steps.forEach((step, place) => {
    const item = element("li"), button = element("button");
    button.type = "button";
    button.append(element("span", step.slips.length ? "place slipped" : "place", String(place + 1)), element("span"));
    typeset(button.lastChild, step.title);
    if (step.slips.length) button.title = words.slip;
    button.addEventListener("click", () => { fold(); go(place); });
    item.append(button);
    at("steps").append(item);
  });
  const rowButtons = queries.map((query, place) => {
    const button = element("button", "", query);
    button.type = "button";
    button.lang = languageOfWord(query);
    button.setAttribute("role", "radio");
    button.addEventListener("click", () => follow(place));
    return button;
  });
  at("rows").append(...unbroken(rowButtons, queries));
  at("rows").dir = data.direction;
  at("back").addEventListener("click", () => go(view.step - 1));
  at("next").addEventListener("click", () => go(view.step + 1));
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const way = { ArrowRight: () => go(view.step + 1), ArrowLeft: () => go(view.step - 1), ArrowDown: () => follow(view.row + 1), ArrowUp: () => follow(view.row - 1), Home: () => go(0), End: () => go(steps.length - 1) }[event.key];
    if (way) { event.preventDefault(); way(); }
  });
  for (const told of document.querySelectorAll("header p")) typeset(told, told.textContent);
  const asked = new URLSearchParams(location.hash.slice(1));
  const whole = (name, least, count) => { const number = Number(asked.get(name)); return asked.has(name) && Number.isInteger(number) && number >= least && number < count + least ? number - least : null; };
  view.step = whole("step", 1, steps.length) ?? 0;
  view.row = whole("row", 0, queries.length) ?? view.row;
  show();
  addEventListener("resize", draw);
  Promise.all([400, 700].map((weight) => document.fonts.load(`${weight} 13px "Anaphora Sans"`, "A\u4e2d"))).then(draw, () => {});
})();
