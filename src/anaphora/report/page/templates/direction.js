"use strict";
// Scripts from right to left, such as Arabic and Hebrew.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
// Whether the first letter outside of tokens like [CLS] is of such a script, as Python decides it.
const isRightToLeft = (text) => RIGHT_TO_LEFT.test(text.replace(/\[[^\]]*\]|<[^>]*>/g, "").match(/\p{L}/u)?.[0] ?? "");
// Words from right to left would draw the marks, arrows and numbers beside them into their own order.
const isolated = (value) => RIGHT_TO_LEFT.test(value) ? `\u2068${value}\u2069` : value;
