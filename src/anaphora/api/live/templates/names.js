"use strict";
// Whether a mark between two marked words belongs to one name: the full stop of a title or of an initial, as in
// "Dr. Smith", or the dot of a foreign name in Chinese, as in "玛丽·居里".
const isInName = (before, mark) => /^[·•・‧]$/u.test(mark) || (mark === "." && /^(?:mrs?|ms|dr|prof|st|rev|\p{Script=Latin})$/iu.test(before));
