"use strict";
// Rules of base/language.py: direction, language and line breaks of words.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/; // scripts from right to left, such as Arabic and Hebrew
// Whether the first letter outside of tokens like [CLS] is of such a script, as Python decides it.
const isRightToLeft = (text) => RIGHT_TO_LEFT.test(text.replace(/\[[^\]]*\]|<[^>]*>/g, "").match(/\p{L}/u)?.[0] ?? "");
// Words from right to left would draw the marks, arrows and numbers beside them into their own order.
const isolated = (value) => RIGHT_TO_LEFT.test(value) ? `\u2068${value}\u2069` : value;
const WIDE = /([\p{Script=Han}\u3000-\u303f\uff00-\uff60]+)/u; // Chinese characters, and full-width punctuation
const isWide = (text) => WIDE.test(text);
const languageOfWord = (text) => isWide(text) ? "zh" : "en";

function inLanguage(text, lang) {
  const node = document.createElement("span");
  node.textContent = text;
  node.lang = lang;
  return node;
}
// A sentence of the page as nodes, in which words of a text have their own language: Chinese characters on an English
// page, and on a Chinese one what stands in quotes without any.
function spoken(text) {
  const isChinese = document.documentElement.lang === "zh", other = isChinese ? "en" : "zh";
  const parts = text.split(isChinese ? /“([^“”]*)”/ : WIDE); // odd parts are matches
  return parts.flatMap((part, place) => {
    if (place % 2 === 0) return part ? [part] : [];
    if (!isChinese) return [inLanguage(part, other)];
    return isWide(part) || !/\p{L}/u.test(part) ? [`“${part}”`] : ["“", inLanguage(part, other), "”"];
  });
}
// For each word whether no line may begin with it: closing marks, and what follows an opening mark.
const staysWithPrevious = (words) => words.map((word, place) =>
  place > 0 && (/^[\p{Ps}\p{Pi}]+$/u.test(words[place - 1]) || /^[\p{Pe}\p{Pf}\p{Po}]+$/u.test(word)));
// The elements of words, in boxes whose words stay on one line.
function unbroken(nodes, words) {
  const boxes = [], stays = staysWithPrevious(words);
  nodes.forEach((node, place) => { if (stays[place]) boxes[boxes.length - 1].push(node); else boxes.push([node]); });
  return boxes.map((inside) => {
    if (inside.length === 1) return inside[0];
    const box = document.createElement("span");
    box.className = "glued";
    box.append(...inside);
    return box;
  });
}
