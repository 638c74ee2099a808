"use strict";
// Pictures of maps on canvases: small ones, and the whole map of one head with its words.

const ROLE_COLOURS = { pronoun: "#7d3c98", candidate: "#b54f08", "": "#1d2330" };

class Painter {
  // ramp: the colours of weights from 0 to 1; inks: the colours of text on them.
  constructor({ ramp, inks }) {
    this.ramp = ramp;
    this.inks = inks;
    this.colours = ramp.map((text) => [1, 3, 5].map((from) => parseInt(text.slice(from, from + 2), 16)));
  }
  step(weight) { return Math.min(63, Math.max(0, Math.round(63 * weight))); }

  shade(node, weight) {
    node.style.background = this.ramp[this.step(weight)];
    node.style.color = this.inks[this.step(weight)];
  }

  // A map of (count, count) weights, a dot each.
  small(canvas, map, count) {
    const picture = new ImageData(count, count);
    canvas.width = canvas.height = count;
    map.forEach((weight, dot) => picture.data.set([...this.colours[this.step(weight)], 255], 4 * dot));
    canvas.getContext("2d").putImageData(picture, 0, 0);
  }

  // The whole map with the words of its rows and columns, [label, role] each, and framed cells, [row, column, role] each.
  // Returns where its cells are: {margin, tall, size} in pixels.
  whole(canvas, map, words, frames) {
    const count = words.length, dots = devicePixelRatio || 1, pen = canvas.getContext("2d"), picture = document.createElement("canvas");
    const font = (isBold) => `${isBold ? "700 " : ""}13px "Anaphora Sans", system-ui, sans-serif`;
    pen.font = font(true);
    const widths = words.map(([label]) => pen.measureText(label).width);
    const heights = words.map(([label], number) => isWide(label) ? [...label].length * 14 : widths[number]);
    const amongWide = words.some(([label]) => isWide(label)); // single digits among Chinese stand upright too
    const margin = Math.min(120, Math.ceil(Math.max(...widths)) + 10), tall = Math.min(130, Math.max(...heights) + 10);
    const size = Math.max(17, Math.min(30, ((canvas.parentElement.clientWidth || 600) - margin - 2) / count)), side = size * count;
    canvas.width = Math.round((margin + side + 2) * dots); canvas.height = Math.round((tall + side + 2) * dots);
    canvas.style.width = `${margin + side + 2}px`; canvas.style.height = `${tall + side + 2}px`;
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    this.small(picture, map, count);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture, margin, tall, side, side);
    pen.strokeStyle = "#fff";
    pen.beginPath();
    for (let place = 0; place <= side; place += size) {
      pen.moveTo(margin, tall + place); pen.lineTo(margin + side, tall + place);
      pen.moveTo(margin + place, tall); pen.lineTo(margin + place, tall + side);
    }
    pen.stroke();
    pen.strokeStyle = "#dfe3e8";
    pen.strokeRect(margin, tall, side, side);
    pen.textBaseline = "middle";
    words.forEach(([label, role], number) => {
      const middle = (number + .5) * size;
      pen.font = font(role);
      pen.fillStyle = ROLE_COLOURS[role];
      pen.textAlign = "right";
      pen.fillText(label, margin - 6, tall + middle, margin - 8);
      pen.save();
      pen.translate(margin + middle, tall - 5);
      this.above(pen, label, tall - 7, isWide(label) || amongWide && [...label].length === 1);
      pen.restore();
    });
    pen.lineWidth = 2;
    for (const [row, column, role] of frames) {
      pen.strokeStyle = ROLE_COLOURS[role];
      pen.setLineDash(role === "candidate" ? [3, 2] : []);
      pen.strokeRect(margin + column * size, tall + row * size, size, size);
    }
    pen.setLineDash([]);
    return { margin, tall, size };
  }
  above(pen, label, room, isUpright) { // Chinese from top to bottom, other words turned
    if (isUpright) {
      const letters = [...label];
      pen.textAlign = "center";
      letters.forEach((letter, place) => pen.fillText(letter, 0, -14 * (letters.length - place - .5)));
    } else {
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "left";
      pen.fillText(label, 0, 0, room);
    }
  }
}
