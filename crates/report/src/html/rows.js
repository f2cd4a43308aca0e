// Rows of the timeline. Each answers two questions by binary search: how much of a stretch of time
// was run, and which gap in it is the longest. So drawing costs pixels, not records.

/** The first place in `values` (ascending, `n` of them) whose value is above `limit`. */
function firstAbove(values, n, limit) {
  let low = 0;
  let high = n;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Which of some numbers is the greatest within a range, in logarithmic time; 0 never is. */
class Greatest {
  constructor(values) {
    let size = 1;
    while (size < values.length) size *= 2;
    this.values = values;
    this.size = size;
    this.tree = new Int32Array(2 * size).fill(-1);
    for (let i = 0; i < values.length; i++) this.tree[size + i] = values[i] > 0 ? i : -1;
    for (let i = size - 1; i > 0; i--) this.tree[i] = this.greater(this.tree[2 * i], this.tree[2 * i + 1]);
  }

  greater(a, b) {
    if (a < 0) return b;
    if (b < 0) return a;
    return this.values[b] > this.values[a] ? b : a;
  }

  /** The place of the greatest in [from, to), or -1. */
  within(from, to) {
    let found = -1;
    for (let a = from + this.size, b = to + this.size; a < b; a >>= 1, b >>= 1) {
      if (a & 1) found = this.greater(found, this.tree[a++]);
      if (b & 1) found = this.greater(found, this.tree[--b]);
    }
    return found;
  }
}

/** Pieces of running time in a row: their edges and the sum of their lengths. */
class Pieces {
  constructor(start, end, n) {
    this.start = start;
    this.end = end;
    this.n = n;
    this.sum = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) this.sum[i + 1] = this.sum[i] + (end[i] - start[i]);
  }

  /** The pieces that touch [from, to): the first, and the one after the last. */
  touching(from, to) {
    const first = firstAbove(this.end, this.n, from);
    let next = firstAbove(this.start, this.n, to);
    if (next > 0 && this.start[next - 1] === to) next--;
    return [first, Math.max(first, next)];
  }

  /** Time run in [from, to), given what touches it. */
  run(from, to, first, next) {
    if (first >= next) return 0;
    const before = Math.max(0, from - this.start[first]);
    const after = Math.max(0, this.end[next - 1] - to);
    return Math.max(0, this.sum[next] - this.sum[first] - before - after);
  }
}

/** The row of a thread: its pieces, and the gaps before them. */
function threadRow(run, thread) {
  const lengths = new Float64Array(thread.n);
  for (let i = 1; i < thread.n; i++) {
    if (thread.kind[i] > 0) lengths[i] = Math.max(thread.start[i] - thread.end[i - 1], 0.5);
  }
  return {
    kind: "thread",
    number: thread.id,
    title: `thread ${thread.id}`,
    label: thread.label,
    thread,
    jobs: run.jobs.find((jobs) => jobs.thread === thread.id),
    pieces: new Pieces(thread.start, thread.end, thread.n),
    lengths,
    greatest: new Greatest(lengths),
    lane: LANE,
    colour: () => `--run`,
    gapColour: (i) => `--k${thread.kind[i] - 1}`,
    gapFacts: (run, i) => gapFacts(run, thread, i),
    pieceFacts: (i) => ranFacts(thread, thread.start[i], thread.end[i]),
  };
}

/** What is known about a thread that ran from `from` to `to`. */
function ranFacts(thread, from, to) {
  return [
    ["", `thread ${thread.id} ran`],
    ["length", timeText(to - from)],
    ["from", momentText(from)],
    ["to", momentText(to)],
    ["workload", thread.label],
    ["policy", thread.policy],
  ];
}

/**
 * The row of a thread that tests latency. Its pieces are the times for which it slept as it wanted; a
 * gap is what it slept longer: gap i ends with wake-up i - 1.
 */
function wakeRow(run, wakes) {
  const n = wakes.n;
  const start = new Float64Array(n + 1);
  const end = new Float64Array(n + 1);
  const lengths = new Float64Array(n + 1);
  let before = n > 0 ? Math.min(run.from, wakes.woke[0] - wakes.late[0]) : run.from;
  for (let i = 0; i < n; i++) {
    start[i] = before;
    end[i] = Math.max(before, wakes.woke[i] - wakes.late[i]);
    lengths[i + 1] = Math.max(wakes.late[i], 0.5);
    before = Math.max(wakes.woke[i], end[i]);
  }
  start[n] = before;
  end[n] = before;
  const told = new Map();
  for (const one of run.latest) {
    const i = firstAbove(start, n + 1, one.woke - 0.5);
    if (one.thread === wakes.id && i > 0 && i <= n) told.set(i, one);
  }
  return {
    kind: "wakes",
    number: wakes.id,
    title: `thread ${wakes.id}`,
    label: wakes.label,
    pieces: new Pieces(start, end, n + 1),
    lengths,
    greatest: new Greatest(lengths),
    lane: WAKE_LANE,
    told,
    colour: () => "--base",
    gapColour: (i) => (told.has(i) ? "--k1" : "--k13"),
    gapFacts: (_, i) => wakeFacts(run, wakes, told.get(i), i - 1),
    pieceFacts: () => null,
    segments: (i) => segments(run, told.get(i)),
  };
}

/** What is known about a wake-up. */
function wakeFacts(run, wakes, told, i) {
  const facts = [["", `wake-up of thread ${wakes.id}`], ["late", timeText(wakes.late[i])]];
  for (const [from, to, , name] of segments(run, told)) facts.push([name, timeText(to - from)]);
  if (told && told.ran) facts.push(["", told.ran]);
  facts.push(["at", momentText(wakes.woke[i])], ["workload", wakes.label], ["policy", wakes.policy]);
  return facts;
}

/** The stages of a wake-up of which they are known: from, to, colour, name. */
function segments(run, told) {
  if (!told || !told.stages) return [];
  return run.stages.map(([name, colour], i) => [told.stages[i], told.stages[i + 1], colour, name]);
}

/** Rows of CPUs: whatever thread ran there. */
function cpuRows(run) {
  const counts = new Map();
  for (const thread of run.threads) {
    for (let i = 0; i < thread.n; i++) counts.set(thread.cpu[i], (counts.get(thread.cpu[i]) || 0) + 1);
  }
  for (const cpu of run.events.keys()) if (!counts.has(cpu)) counts.set(cpu, 0);
  for (const cpu of run.ran.byCpu.keys()) if (!counts.has(cpu)) counts.set(cpu, 0);
  const rows = [];
  for (const cpu of [...counts.keys()].sort((a, b) => a - b)) {
    const slices = run.ran.byCpu.get(cpu);
    if (slices) {
      rows.push(ranRow(run, cpu, slices));
      continue;
    }
    const n = counts.get(cpu);
    const [start, end, owner, place] = gathered(run.threads, cpu, n);
    rows.push({
      kind: "cpu",
      number: cpu,
      title: `CPU ${cpu}`,
      label: "",
      lane: 0,
      pieceFacts: (i) => ranFacts(run.threads[owner[i]], start[i], end[i]),
      pieces: new Pieces(start, end, n),
      colour: (piece) => `--t${run.threads[owner[piece]].id % 8}`,
      events: run.events.get(cpu),
    });
  }
  return rows;
}

/** The row of a CPU of which the kernel told who had it. */
function ranRow(run, cpu, slices) {
  const { who, parties } = run.ran;
  const party = (i) => who[slices.who[i]].party;
  const row = {
    kind: "cpu",
    number: cpu,
    title: `CPU ${cpu}`,
    label: "who had it",
    lane: 0,
    party,
    parties,
    who: slices.who,
    pieces: new Pieces(slices.start, slices.end, slices.n),
    colour: (i) => parties[party(i)].colour,
    name: (i) => who[slices.who[i]].name,
    pieceFacts: (i) => [
      ["", `${who[slices.who[i]].name}`],
      ["length", timeText(slices.end[i] - slices.start[i])],
      ["from", momentText(slices.start[i])],
      ["to", momentText(slices.end[i])],
      ["CPU", `${cpu}`],
    ],
    events: run.events.get(cpu),
  };
  row.sharesFacts = (from, to) => sharesFacts(row, slices, who, from, to);
  return row;
}

/** Most names of those who shared a stretch of time. */
const MOST_NAMES = 6;

/** Who had a CPU between two moments, and how much of it. */
function sharesFacts(row, slices, who, from, to) {
  const times = new Map();
  const [first, next] = row.pieces.touching(from, to);
  for (let i = first; i < next; i++) {
    const time = Math.min(to, slices.end[i]) - Math.max(from, slices.start[i]);
    times.set(slices.who[i], (times.get(slices.who[i]) || 0) + time);
  }
  const facts = [["", `CPU ${row.number}, ${timeText(to - from)} from ${momentText(from)}`]];
  const sorted = [...times].sort((a, b) => b[1] - a[1]);
  for (const [place, time] of sorted.slice(0, MOST_NAMES)) {
    const share = ((100 * time) / (to - from)).toFixed(1);
    facts.push([`${share} %`, `${who[place].name}, ${timeText(time)}`]);
  }
  if (sorted.length > MOST_NAMES) facts.push(["", `and ${sorted.length - MOST_NAMES} more`]);
  return facts;
}

/** The pieces of all threads on a CPU, in order of start. */
function gathered(threads, cpu, n) {
  const order = new Uint32Array(n);
  const from = new Float64Array(n);
  const owner = new Uint16Array(n);
  const place = new Uint32Array(n);
  let at = 0;
  threads.forEach((thread, number) => {
    for (let i = 0; i < thread.n; i++) {
      if (thread.cpu[i] !== cpu) continue;
      from[at] = thread.start[i];
      owner[at] = number;
      place[at] = i;
      order[at] = at;
      at++;
    }
  });
  order.sort((a, b) => from[a] - from[b]);
  const start = new Float64Array(n);
  const end = new Float64Array(n);
  const owners = new Uint16Array(n);
  const places = new Uint32Array(n);
  let latest = -Infinity;
  order.forEach((old, i) => {
    const thread = threads[owner[old]];
    owners[i] = owner[old];
    places[i] = place[old];
    // Pieces of one CPU do not overlap in an honest trace; in any other the search must still hold.
    start[i] = Math.max(thread.start[place[old]], latest);
    end[i] = Math.max(thread.end[place[old]], start[i]);
    latest = end[i];
  });
  return [start, end, owners, places];
}

/** What is known about the gap before piece `i` of a thread, as pairs of name and text. */
function gapFacts(run, thread, i) {
  const facts = [];
  const from = thread.end[i - 1];
  const kind = thread.kind[i] - 1;
  facts.push(["", run.kinds[kind] || "gap"]);
  facts.push(["length", timeText(thread.start[i] - from)]);
  if (kind < 14) facts.push(["confidence", `${Math.round(thread.confidence[i] / 2)} %`]);
  if (thread.text[i] > 0) facts.push(["evidence", run.texts[thread.text[i] - 1]]);
  facts.push(["from", momentText(from)]);
  const [before, after] = [thread.cpu[i - 1], thread.cpu[i]];
  facts.push(["CPU", before === after ? `${after}` : `${before} to ${after}`]);
  facts.push(["recorder", recorderText(thread, i)]);
  return facts;
}

/** What the recorder saw itself, in words. */
function recorderText(thread, i) {
  const parts = [ONSETS[thread.seen[i] & 7] || "unknown"];
  const cleared = (thread.seen[i] >> 3) & 3;
  if (cleared === 1) parts.push("critical section kept");
  if (cleared === 2) parts.push("critical section cleared");
  if (thread.seen[i] & 32) {
    const at = thread.countedAt[i];
    const names = ["involuntary switches", "voluntary switches", "page faults"];
    names.forEach((name, n) => {
      const count = thread.counted[at + n];
      if (count > 0) parts.push(`${name}: ${count === 255 ? "255 or more" : count}`);
    });
    if (!thread.counted[at] && !thread.counted[at + 1] && !thread.counted[at + 2]) parts.push("nothing counted");
  }
  return parts.join(", ");
}
