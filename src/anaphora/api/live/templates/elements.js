"use strict";
// Elements of the pages with a typed sentence.
function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
function sentence(tag, className, text) { // of the page, in which words of a text have their own language
  const node = element(tag, className);
  node.append(...spoken(text));
  return node;
}
function heading(scope, text, lang) { // of a column or of a row
  const node = element("th", "", text);
  node.scope = scope;
  if (lang) node.lang = lang;
  return node;
}
