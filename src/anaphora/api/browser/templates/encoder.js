"use strict";
// The encoder and its prediction heads, as model/ computes them, for one sentence. T tokens, W width, H heads, D features
// a head. A matrix is a Float32Array, row after row; weights have the names that they have in the run.

// x @ weight.T + bias: (T, K), (M, K) -> (T, M). Four rows of x share each reading of a weight.
function linear(x, weight, bias, inside, outside) {
  const rows = x.length / inside, result = new Float32Array(rows * outside);
  for (let row = 0; row < rows; row += 4) {
    const count = Math.min(4, rows - row), a = row * inside;
    const b = a + (count > 1 ? inside : 0), c = a + (count > 2 ? 2 * inside : 0), d = a + (count > 3 ? 3 * inside : 0);
    for (let column = 0; column < outside; column++) {
      const from = column * inside;
      let first = 0, second = 0, third = 0, fourth = 0;
      for (let k = 0; k < inside; k++) {
        const each = weight[from + k];
        first += each * x[a + k]; second += each * x[b + k]; third += each * x[c + k]; fourth += each * x[d + k];
      }
      const added = bias ? bias[column] : 0, to = row * outside + column;
      result[to] = first + added;
      if (count > 1) result[to + outside] = second + added;
      if (count > 2) result[to + 2 * outside] = third + added;
      if (count > 3) result[to + 3 * outside] = fourth + added;
    }
  }
  return result;
}
function plus(a, b) {
  const sum = new Float32Array(a.length);
  for (let place = 0; place < a.length; place++) sum[place] = a[place] + b[place];
  return sum;
}
// The error function by Abramowitz and Stegun 1964, 7.1.26: off by 1.5e-7 at most.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const y = 1 - ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * Math.exp(-x * x);
  return x < 0 ? -y : y;
}
const ACTIVATIONS = { relu: (x) => Math.max(0, x), gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)) };
function softmax(scores) { // of numbers, -Infinity for what is forbidden; zeros where everything is
  const most = Math.max(...scores);
  if (most === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - most)), sum = powers.reduce((all, each) => all + each, 0);
  return powers.map((each) => each / sum);
}
function mean(rows, places, width) {
  const result = new Float32Array(width);
  for (const place of places) for (let k = 0; k < width; k++) result[k] += rows[place * width + k] / places.length;
  return result;
}

class Encoder {
  constructor(shape, weights) {
    this.shape = shape;
    this.weights = weights;
  }

  // ids: T numbers; slots: T numbers of candidates' slots, 0 for none; edits: {cuts: [{layer, head, query, key}] of
  // tokens, off: [{layer, head}]}. Returns {maps: L of (H, T, T), hidden: (T, W)}.
  run(ids, slots, edits) {
    const { layers, norm } = this.shape, embeddings = this.embed(ids, slots), maps = [];
    let hidden = embeddings;
    for (let layer = 0; layer < layers; layer++) hidden = this.block(layer, hidden, embeddings, edits, maps);
    if (norm.placement === "pre") hidden = this.norm("encoder.norm", hidden);
    return { maps, hidden };
  }

  embed(ids, slots) {
    const { width, position, norm } = this.shape, table = this.weights["encoder.tokens.weight"], marks = this.weights["prediction_head.table.weight"];
    const learned = position.kind === "learned" ? this.weights["encoder.position.table.weight"] : null;
    const scale = position.kind === "sinusoidal" ? Math.sqrt(width) : 1, half = width / 2;
    const sum = new Float32Array(ids.length * width);
    ids.forEach((id, token) => {
      for (let k = 0; k < width; k++) {
        let value = table[id * width + k] * scale;
        if (slots[token]) value += marks[slots[token] * width + k];
        if (learned) value += learned[token * width + k];
        if (position.kind === "sinusoidal") {
          const angle = token * position.base ** (-2 * (k % half) / width);
          value += k < half ? Math.sin(angle) : Math.cos(angle);
        }
        sum[token * width + k] = value;
      }
    });
    return norm.embedding ? this.norm("encoder.embedding_norm", sum) : sum;
  }

  norm(name, x) {
    const { width, norm } = this.shape, weight = this.weights[`${name}.weight`], bias = this.weights[`${name}.bias`], result = new Float32Array(x.length);
    for (let from = 0; from < x.length; from += width) {
      let middle = 0, square = 0;
      if (norm.kind === "layer_norm") { for (let k = 0; k < width; k++) middle += x[from + k]; middle /= width; }
      for (let k = 0; k < width; k++) square += (x[from + k] - middle) ** 2;
      const scale = 1 / Math.sqrt(square / width + norm.epsilon);
      for (let k = 0; k < width; k++) result[from + k] = (x[from + k] - middle) * scale * weight[k] + (bias ? bias[k] : 0);
    }
    return result;
  }

  block(layer, hidden, embeddings, edits, maps) {
    const { norm, values } = this.shape, name = `encoder.blocks.${layer}`, isPre = norm.placement === "pre";
    const read = isPre ? this.norm(`${name}.attention_norm`, hidden) : hidden;
    const content = values === "token" ? this.norm(`${name}.value_norm`, embeddings) : read;
    const attended = plus(hidden, this.attention(layer, `${name}.attention`, read, content, edits, maps));
    const between = isPre ? attended : this.norm(`${name}.attention_norm`, attended);
    const inside = isPre ? this.norm(`${name}.feed_forward_norm`, between) : between;
    const output = plus(between, this.feedForward(`${name}.feed_forward`, inside));
    return isPre ? output : this.norm(`${name}.feed_forward_norm`, output);
  }

  linear(name, x) {
    const weight = this.weights[`${name}.weight`], bias = this.weights[`${name}.bias`];
    const inside = this.shape.sizes[`${name}.weight`][1];
    return linear(x, weight, bias, inside, weight.length / inside);
  }

  feedForward(name, x) {
    const wide = this.linear(`${name}.widen`, x), activation = ACTIVATIONS[this.shape.feed_forward];
    if (activation) return this.linear(`${name}.narrow`, wide.map(activation));
    const hidden = this.shape.sizes[`${name}.narrow.weight`][1], rows = wide.length / (2 * hidden), gated = new Float32Array(rows * hidden); // SwiGLU
    for (let row = 0; row < rows; row++)
      for (let k = 0; k < hidden; k++) {
        const gate = wide[2 * row * hidden + k];
        gated[row * hidden + k] = gate / (1 + Math.exp(-gate)) * wide[(2 * row + 1) * hidden + k];
      }
    return this.linear(`${name}.narrow`, gated);
  }

  attention(layer, name, read, content, edits, maps) {
    const { width, heads, attention, scale } = this.shape, tokens = read.length / width, features = width / heads;
    const isFree = attention === "parameter_free", isUniform = attention === "uniform";
    const value = isFree ? content : this.linear(`${name}.value`, content);
    const query = isUniform ? null : this.rotated(isFree ? read : this.linear(`${name}.query`, read));
    const key = isUniform || isFree || attention === "shared_query_key" ? query : this.rotated(this.linear(`${name}.key`, read));
    const map = new Float32Array(heads * tokens * tokens), mixed = new Float32Array(tokens * width);
    const cut = new Set(edits.cuts.filter((one) => one.layer === layer).map((one) => (one.head * tokens + one.query) * tokens + one.key));
    const off = new Set(edits.off.filter((one) => one.layer === layer).map((one) => one.head));
    for (let head = 0; head < heads; head++)
      for (let row = 0; row < tokens; row++) {
        const begin = (head * tokens + row) * tokens, scores = [];
        for (let column = 0; column < tokens; column++) {
          let score = 0;
          if (!isUniform) {
            const a = row * width + head * features, b = column * width + head * features;
            for (let k = 0; k < features; k++) score += query[a + k] * key[b + k];
            score = score * scale + this.bias(head, row, column);
          }
          scores.push(cut.has(begin + column) ? -Infinity : score);
        }
        softmax(scores).forEach((weight, column) => {
          map[begin + column] = weight;
          if (off.has(head)) return;
          const a = row * width + head * features, b = column * width + head * features;
          for (let k = 0; k < features; k++) mixed[a + k] += weight * value[b + k];
        });
      }
    maps.push(map);
    return isFree ? mixed : this.linear(`${name}.output`, mixed);
  }

  rotated(x) {
    const { width, heads, position } = this.shape;
    if (position.kind !== "rotary") return x;
    const features = width / heads, half = features / 2, result = new Float32Array(x.length);
    for (let token = 0; token < x.length / width; token++)
      for (let k = 0; k < half; k++) {
        const angle = token * position.base ** (-2 * k / features), cosine = Math.cos(angle), sine = Math.sin(angle);
        for (let head = 0; head < heads; head++) {
          const a = token * width + head * features + k, b = a + half;
          result[a] = x[a] * cosine - x[b] * sine;
          result[b] = x[b] * cosine + x[a] * sine;
        }
      }
    return result;
  }

  bias(head, row, column) {
    const { position, heads } = this.shape, distance = Math.abs(column - row);
    if (position.kind === "alibi") return -(2 ** (-8 * (head + 1) / heads)) * distance;
    if (position.kind !== "t5_relative") return 0;
    const { buckets } = position, bucket = buckets[Math.min(distance, buckets.length - 1)] + (column > row ? position.side : 0);
    return this.weights["encoder.position.table.weight"][bucket * heads + head];
  }
}

// The share of each candidate, and of "none of them" last where that is an answer: query and candidates are lists of
// tokens. The scores are those of model/prediction.py; the temperature of the run's calibration divides them.
function shares(encoder, read, { maps, hidden }, query, candidates, temperature) {
  const { prediction, width, heads } = encoder.shape, weights = encoder.weights, ids = read.ids, tokens = ids.length;
  const vector = mean(hidden, query, width), dot = (a, b) => a.reduce((sum, each, k) => sum + each * b[k], 0);
  const mass = (layer, head, token) => query.reduce((sum, row) => sum + maps[layer][(head * tokens + row) * tokens + token] / query.length, 0);
  const massOf = (layer, head, places) => places.reduce((sum, token) => sum + mass(layer, head, token), 0);
  const vectors = () => candidates.map((places) => mean(hidden, places, width));
  const kinds = {
    word: () => {
      let states = vector;
      if (encoder.shape.output_transform) states = encoder.norm("output.transform.norm", encoder.linear("output.transform.dense", states).map(ACTIVATIONS[encoder.shape.output_transform]));
      const table = weights["output.linear.weight"] ?? weights["encoder.tokens.weight"];
      const logits = linear(states, table, weights["output.linear.bias"], width, table.length / width);
      const most = logits.reduce((a, b) => Math.max(a, b)), whole = most + Math.log(logits.reduce((sum, each) => sum + Math.exp(each - most), 0));
      return [...candidates.map((places) => places.reduce((sum, token) => sum + logits[ids[token]] - whole, 0) / places.length), logits[4] - whole];
    },
    slot: () => {
      const logits = encoder.linear("prediction_head.output", vector);
      return [...candidates.map((_, number) => logits[number + 1]), logits[0]];
    },
    bilinear: () => {
      const turned = encoder.linear("prediction_head.pairs", vector).map((each) => each / Math.sqrt(width));
      return [...vectors(), weights["prediction_head.none"]].map((each) => dot(turned, each));
    },
    pair: () => [...vectors(), weights["prediction_head.none"]].map((each, number) => {
      const read = [...vector, ...each, ...vector.map((one, k) => one * each[k])];
      if (prediction.attention)
        for (let layer = 0; layer < maps.length; layer++) for (let head = 0; head < heads; head++)
          read.push(number < candidates.length ? Math.log10(Math.max(1e-6, massOf(layer, head, candidates[number]))) + 2 : 0);
      return encoder.linear("prediction_head.network.4", encoder.linear("prediction_head.network.1", Float32Array.from(read)).map(ACTIVATIONS.gelu))[0];
    }),
    pointer: () => [...candidates, [0]].map((places) => Math.log(Math.max(1.1754944e-38, massOf(prediction.layer, prediction.head, places)))),
  };
  const scores = kinds[prediction.kind]();
  if (!prediction.none_of_them) scores[scores.length - 1] = -Infinity;
  return softmax(scores.map((score) => score / temperature));
}
