// The run's columns as typed arrays. The writer is data.rs; both must agree.

/** Bytes of base64. */
function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Reads numbers of seven bits a byte. They are sums of doubles: exact to 2^53. */
class Column {
  constructor(text) {
    this.bytes = bytesOf(text);
    this.at = 0;
  }

  unsigned() {
    let value = 0;
    for (let place = 1; ; place *= 128) {
      const byte = this.bytes[this.at++];
      if (!(byte >= 128)) return value + (byte || 0) * place;
      value += (byte - 128) * place;
    }
  }

  signed() {
    const value = this.unsigned();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }
}

const ONSETS = ["start", "gap", "wait", "yield", "migration"];
const WAIT = 2;
const START = 0;

/** A thread's records: where each begins and ends, and what is known about the time before it. */
function readThread(raw) {
  const n = raw.records;
  const before = new Column(raw.before);
  const length = new Column(raw.length);
  const cpus = new Column(raw.cpus);
  const text = new Column(raw.text);
  const counted = bytesOf(raw.counted);
  const thread = {
    id: raw.id,
    label: raw.label,
    policy: raw.policy,
    n,
    start: new Float64Array(n),
    end: new Float64Array(n),
    cpu: new Uint32Array(n),
    seen: bytesOf(raw.seen),
    kind: bytesOf(raw.kind),
    confidence: bytesOf(raw.confidence),
    text: new Uint32Array(n),
    counted,
    countedAt: new Uint32Array(n),
  };
  let now = 0;
  let left = 0;
  let cpu = 0;
  let at = 0;
  for (let i = 0; i < n; i++) {
    now += before.signed();
    thread.start[i] = now;
    now += length.unsigned();
    thread.end[i] = now;
    if (left === 0) {
      cpu = cpus.unsigned();
      left = cpus.unsigned();
    }
    left--;
    thread.cpu[i] = cpu;
    thread.text[i] = text.unsigned();
    thread.countedAt[i] = at;
    if (thread.seen[i] & 32) at += 3;
  }
  return thread;
}

/** The kernel's events, in order of time, by CPU: begin and end are joined to spans. */
function readEvents(raw) {
  const before = new Column(raw.before);
  const cpu = new Column(raw.cpu);
  const what = bytesOf(raw.what);
  const text = new Column(raw.text);
  const byCpu = new Map();
  let now = 0;
  for (let i = 0; i < raw.records; i++) {
    now += before.signed();
    const number = cpu.unsigned();
    const words = text.unsigned();
    if (!byCpu.has(number)) byCpu.set(number, { start: [], end: [], text: [], code: [], open: [] });
    const events = byCpu.get(number);
    if ((what[i] & 3) === 2) {
      // The end of what began last; an end whose beginning was lost stands alone.
      const begun = events.open.pop();
      if (begun !== undefined) {
        events.end[begun] = now;
        continue;
      }
    } else if ((what[i] & 3) === 1) {
      events.open.push(events.start.length);
    }
    events.start.push(now);
    events.end.push(now);
    events.text.push(words);
    events.code.push(what[i] >> 2);
  }
  return byCpu;
}

/** Who had each CPU: slices by CPU, names, and the parties that have colours. */
function readRan(raw) {
  const byCpu = new Map();
  for (const chain of raw.cpus) {
    const n = chain.records;
    const before = new Column(chain.before);
    const length = new Column(chain.length);
    const place = new Column(chain.who);
    const slices = { n, start: new Float64Array(n), end: new Float64Array(n), who: new Uint32Array(n) };
    let now = 0;
    for (let i = 0; i < n; i++) {
      now += before.signed();
      slices.start[i] = now;
      now += length.unsigned();
      slices.end[i] = now;
      slices.who[i] = place.unsigned();
    }
    byCpu.set(chain.cpu, slices);
  }
  return { byCpu, who: raw.who, parties: raw.parties, least: raw.least };
}

/** The wake-ups of a thread that tests latency: when it woke, and how late. */
function readWakes(raw) {
  const n = raw.records;
  const before = new Column(raw.before);
  const lateness = new Column(raw.late);
  const wakes = { ...raw, n, woke: new Float64Array(n), late: new Float64Array(n) };
  let now = 0;
  for (let i = 0; i < n; i++) {
    now += before.signed();
    wakes.woke[i] = now;
    wakes.late[i] = lateness.unsigned();
  }
  return wakes;
}

/** Everything on the page. */
function readRun(raw) {
  const to = Math.max(raw.to, raw.from + 1000);
  return {
    from: raw.from,
    to,
    shortest: raw.shortest,
    kinds: raw.kinds,
    texts: raw.texts,
    threads: raw.threads.map(readThread),
    events: readEvents(raw.events),
    eventsLeftOut: raw.events.all - raw.events.records,
    ran: readRan(raw.ran),
    wakes: raw.wakes.threads.map(readWakes),
    latest: raw.wakes.latest,
    stages: raw.wakes.stages,
    jobs: raw.jobs.map((jobs) => readJobs(jobs, to)),
  };
}

/** A time with its unit, to about four digits, as the tables have it. */
function timeText(ns) {
  const size = Math.abs(ns);
  const [unit, length] =
    size >= 999.95e6 ? ["s", 1e9] : size >= 999.95e3 ? ["ms", 1e6] : size >= 999.95 ? ["us", 1e3] : ["ns", 1];
  if (length === 1) return `${Math.round(ns)} ns`;
  const value = ns / length;
  const digits = Math.abs(value) >= 99.95 ? 1 : Math.abs(value) >= 9.995 ? 2 : 3;
  return `${value.toFixed(digits)} ${unit}`;
}

/** A moment of the run, in seconds to the nanosecond. */
function momentText(ns) {
  const sign = ns < 0 ? "-" : "";
  const whole = Math.floor(Math.abs(ns) / 1e9);
  const rest = Math.round(Math.abs(ns) - whole * 1e9);
  return `${sign}${whole}.${String(rest).padStart(9, "0")} s`;
}
