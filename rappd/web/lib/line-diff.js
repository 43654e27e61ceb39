/** The difference of two texts, as the lines of a unified diff. */

const MOST = 4_000_000; // pairs of lines that are compared one by one
const AROUND = 3; // unchanged lines that are shown before and after a change

/** Lines of a unified diff from `before` to `after`, with two heading lines; no more where both are the same. */
export function lineDiff(before, after) {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < Math.min(old.length, fresh.length) && old[start] === fresh[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, fresh.length) - start;
  while (end < most && old[old.length - 1 - end] === fresh[fresh.length - 1 - end]) end += 1;
  const middle = between(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end));
  const same = (lines) => lines.map((line) => ` ${line}`);
  const whole = [...same(old.slice(0, start)), ...middle, ...same(end ? old.slice(-end) : [])];
  return ["--- before", "+++ after", ...hunks(whole)];
}

/** Leaves out unchanged lines that are far from every change. */
function hunks(lines) {
  const changes = lines.flatMap((line, at) => (line.startsWith(" ") ? [] : [at]));
  const found = [];
  let [left, right, next, last] = [1, 1, 0, -1];
  lines.forEach((line, at) => {
    while (next < changes.length && changes[next] + AROUND < at) next += 1;
    if (next < changes.length && changes[next] - AROUND <= at) {
      if (last !== at - 1 || at === 0) found.push(`@@ -${left} +${right} @@`);
      found.push(line);
      last = at;
    }
    left += line.startsWith("+") ? 0 : 1;
    right += line.startsWith("-") ? 0 : 1;
  });
  return found;
}

function between(old, fresh) {
  if (old.length * fresh.length > MOST)
    return [...old.map((line) => `-${line}`), ...fresh.map((line) => `+${line}`)];
  const common = table(old, fresh);
  const found = [];
  let [here, there] = [0, 0];
  while (here < old.length || there < fresh.length) {
    if (here < old.length && there < fresh.length && old[here] === fresh[there]) {
      found.push(` ${old[here]}`);
      here += 1;
      there += 1;
    } else if (
      there >= fresh.length ||
      (here < old.length && common[here + 1][there] >= common[here][there + 1])
    ) {
      found.push(`-${old[here++]}`);
    } else found.push(`+${fresh[there++]}`);
  }
  return found;
}

/** `table[i][j]`: how many lines the rest of `old` from `i` and of `fresh` from `j` have in common, in order. */
function table(old, fresh) {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint32Array(fresh.length + 1));
  for (let here = old.length - 1; here >= 0; here -= 1) {
    for (let there = fresh.length - 1; there >= 0; there -= 1) {
      rows[here][there] =
        old[here] === fresh[there]
          ? rows[here + 1][there + 1] + 1
          : Math.max(rows[here + 1][there], rows[here][there + 1]);
    }
  }
  return rows;
}
