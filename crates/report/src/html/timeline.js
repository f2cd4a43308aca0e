// The timeline's picture: what is in view, and how it is drawn.

/** The narrowest view, ns. */
const NARROWEST = 1000;
const LABEL_WIDTH = 132;
const AXIS_HEIGHT = 30;
const BAR = 20;
const LANE = 26;
/** A lane with a scale of its own. */
const WAKE_LANE = 84;
const EVENTS = 12;
const SPACE = 12;
const TRACK = 16;

/** The theme's colours, read once and after each change of theme. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const known = new Map();
  return (name) => {
    if (!known.has(name)) known.set(name, style.getPropertyValue(name).trim() || "#888");
    return known.get(name);
  };
}

class Timeline {
  constructor(canvas, run) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.run = run;
    const wakes = run.wakes.map((one) => wakeRow(run, one));
    this.rows = [...run.threads.map((thread) => threadRow(run, thread)), ...wakes, ...cpuRows(run)];
    this.colour = palette();
    this.view = [run.from, run.to];
    this.row = 0;
    this.gap = -1;
    this.width = 0;
    this.waiting = false;
    this.scales = { thread: scaleOf(this.rows, "thread"), wakes: decadesOf(scaleOf(this.rows, "wakes")) };
    this.place();
    this.fit();
  }

  /** Gives each row its place. */
  place() {
    let y = AXIS_HEIGHT;
    for (const row of this.rows) {
      row.y = y;
      row.height = BAR + row.lane + (row.events ? EVENTS : 0);
      y += row.height + SPACE;
    }
    this.height = y + TRACK;
  }

  /** Takes the size that the page gives. */
  fit() {
    const ratio = window.devicePixelRatio || 1;
    this.width = Math.max(320, this.canvas.parentElement.clientWidth);
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.left = this.width < 520 ? 84 : LABEL_WIDTH;
    this.draw();
  }

  plotWidth() {
    return Math.max(1, this.width - this.left - 1);
  }

  x(ns) {
    return this.left + ((ns - this.view[0]) / (this.view[1] - this.view[0])) * this.plotWidth();
  }

  ns(x) {
    return this.view[0] + ((x - this.left) / this.plotWidth()) * (this.view[1] - this.view[0]);
  }

  /** Shows [from, to), as far as the run and the narrowest view allow. */
  show(from, to) {
    const whole = this.run.to - this.run.from;
    const width = Math.min(whole, Math.max(NARROWEST, to - from));
    const middle = (from + to) / 2;
    let start = middle - width / 2;
    start = Math.min(Math.max(start, this.run.from), this.run.to - width);
    this.view = [start, start + width];
    this.ask();
  }

  zoom(factor, around) {
    const [from, to] = this.view;
    const whole = this.run.to - this.run.from;
    const width = Math.min(whole, Math.max(NARROWEST, (to - from) * factor));
    const share = (around - from) / (to - from);
    this.show(around - share * width, around - share * width + width);
  }

  pan(share) {
    const width = this.view[1] - this.view[0];
    this.show(this.view[0] + share * width, this.view[1] + share * width);
  }

  /** Draws with the next frame, once however often it is asked. */
  ask() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = false;
    const pen = this.pen;
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.axis();
    this.rows.forEach((row, number) => {
      this.label(row, number);
      if (row.kind === "wakes") this.decades(row);
      pen.save();
      pen.beginPath();
      pen.rect(this.left, 0, this.plotWidth() + 1, this.height);
      pen.clip();
      this.bars(row);
      if (row.greatest) this.lane(row, number);
      if (row.jobs) drawJobs(this, row);
      if (row.events) this.eventsOf(row);
      pen.restore();
    });
    this.track();
    if (this.drawn) this.drawn();
  }

  /** Lines at round times. Close in, labels count from a moment that stands at the left. */
  axis() {
    const pen = this.pen;
    const [from, to] = this.view;
    const most = Math.max(2, Math.floor(this.plotWidth() / 110));
    const step = niceStep((to - from) / most);
    const [unit, length] = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["us", 1e3] : ["ns", 1];
    const coarse = length * 1000;
    const base = unit === "s" ? 0 : Math.floor(from / coarse) * coarse;
    pen.textAlign = "center";
    for (let n = Math.ceil((from - base) / step); base + n * step <= to; n++) {
      const x = this.x(base + n * step);
      pen.fillStyle = this.colour("--line");
      pen.fillRect(Math.round(x), AXIS_HEIGHT - 8, 1, this.height - AXIS_HEIGHT - TRACK);
      pen.fillStyle = this.colour("--faint");
      const text = `${Math.round((n * step * 1000) / length) / 1000} ${unit}`;
      if (x - this.left > 18 && x < this.width - 18) pen.fillText(text, x, 11);
    }
    pen.textAlign = "left";
    pen.fillStyle = this.colour("--faint");
    if (base !== 0) pen.fillText(`${trimmed(base)} +`, 0, 11);
  }

  label(row, number) {
    const pen = this.pen;
    const middle = row.y + BAR / 2;
    pen.textAlign = "left";
    pen.fillStyle = this.colour(number === this.row ? "--accent" : "--ink");
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(cut(pen, row.title, this.left - 10), 0, middle);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = this.colour("--faint");
    if (row.label) pen.fillText(cut(pen, row.label, this.left - 10), 0, middle + 17);
  }

  /** What ran: exact edges where there are few pieces, coverage by pixel where there are many. */
  bars(row) {
    if (row.parties) return this.slices(row);
    const pen = this.pen;
    const [from, to] = this.view;
    pen.fillStyle = this.colour("--base");
    pen.fillRect(this.left, row.y, this.plotWidth(), BAR);
    const [first, next] = row.pieces.touching(from, to);
    if (next - first <= this.plotWidth() / 2) {
      for (let i = first; i < next; i++) {
        const x0 = Math.max(this.left - 1, this.x(row.pieces.start[i]));
        const x1 = Math.min(this.width + 1, this.x(row.pieces.end[i]));
        pen.fillStyle = this.colour(row.colour(i));
        pen.fillRect(x0, row.y, Math.max(0.6, x1 - x0), BAR);
      }
      return;
    }
    this.coverage(row);
  }

  /** Who had a CPU: each for themselves with names where there is room, shares where there is none. */
  slices(row) {
    const pen = this.pen;
    const [from, to] = this.view;
    pen.fillStyle = this.colour("--base");
    pen.fillRect(this.left, row.y, this.plotWidth(), BAR);
    const [first, next] = row.pieces.touching(from, to);
    if (next - first > this.plotWidth() / 4) {
      this.shares(row, first, next);
    } else {
      for (let i = first; i < next; i++) {
        const x0 = Math.max(this.left - 1, this.x(row.pieces.start[i]));
        const x1 = Math.min(this.width + 1, this.x(row.pieces.end[i]));
        pen.fillStyle = this.colour(row.colour(i));
        pen.fillRect(x0, row.y, Math.max(0.6, x1 - x0), BAR);
      }
    }
    this.names(row, first, next);
  }

  /** The name of who had the CPU for long, interrupts or not. */
  names(row, first, next) {
    const pen = this.pen;
    pen.textAlign = "left";
    pen.fillStyle = this.colour("--on");
    let [who, x0, x1] = [-1, 0, 0];
    const say = () => {
      if (who >= 0 && x1 - x0 >= 44) pen.fillText(cut(pen, row.name(who), x1 - x0 - 8), x0 + 4, row.y + BAR / 2);
    };
    for (let i = first; i < next; i++) {
      const from = Math.max(this.left, this.x(row.pieces.start[i]));
      const to = Math.min(this.width, this.x(row.pieces.end[i]));
      // What is no pixel wide does not take the name from who was there before and after.
      if (to - from < 1) continue;
      if (who < 0 || row.who[i] !== row.who[who] || from - x1 > 3) {
        say();
        [who, x0] = [i, from];
      }
      x1 = to;
    }
    say();
  }

  /** Each pixel is cut into the shares of those who had the CPU: the measured threads lowest, interrupts on top. */
  shares(row, first, next) {
    const { start, end } = row.pieces;
    const width = Math.ceil(this.plotWidth());
    const duration = (this.view[1] - this.view[0]) / this.plotWidth();
    const times = new Float64Array(row.parties.length);
    let i = first;
    for (let x = 0; x < width; x++) {
      const from = this.view[0] + x * duration;
      const to = from + duration;
      times.fill(0);
      while (i < next && end[i] <= from) i++;
      for (let at = i; at < next && start[at] < to; at++) {
        times[row.party(at)] += Math.min(to, end[at]) - Math.max(from, start[at]);
      }
      this.stack(row, this.left + x, times, duration);
    }
  }

  stack(row, x, times, duration) {
    let bottom = row.y + BAR;
    for (let party = 0; party < times.length; party++) {
      if (times[party] <= 0) continue;
      const exact = (times[party] / duration) * BAR;
      // Whoever was there for long enough to be asked about is seen.
      const least = row.parties[party].colour === "--irq" ? 0 : Math.min(1, exact * 20);
      const height = Math.min(Math.max(exact, least), bottom - row.y);
      this.pen.fillStyle = this.colour(row.parties[party].colour);
      this.pen.fillRect(x, bottom - height, 1, height);
      bottom -= height;
    }
  }

  /** Neighbouring pixels that look the same are one rectangle. */
  coverage(row) {
    const pen = this.pen;
    const width = Math.ceil(this.plotWidth());
    const duration = (this.view[1] - this.view[0]) / this.plotWidth();
    let begun = 0;
    let look = "";
    const flush = (x) => {
      if (look) {
        const [colour, level] = look.split(" ");
        pen.globalAlpha = level / 16;
        pen.fillStyle = this.colour(colour);
        pen.fillRect(this.left + begun, row.y, x - begun, BAR);
      }
      begun = x;
    };
    for (let x = 0; x < width; x++) {
      const from = this.view[0] + x * duration;
      const [first, next] = row.pieces.touching(from, from + duration);
      const share = row.pieces.run(from, from + duration, first, next) / duration;
      // A little is seen as a little, not as nothing.
      const level = share > 0 ? Math.max(2, Math.round(share * 16)) : 0;
      const now = level ? `${row.colour((first + next - 1) >> 1)} ${Math.min(16, level)}` : "";
      if (now !== look) {
        flush(x);
        look = now;
      }
    }
    flush(width);
    pen.globalAlpha = 1;
  }

  /** How high a gap stands in its lane: by the logarithm of its length. */
  gapHeight(row, length) {
    const [shortest, longest] = this.scales[row.kind];
    const range = Math.log(longest / shortest);
    const share = range > 0 ? Math.log(length / shortest) / range : 1;
    return 3 + Math.min(1, Math.max(0, share)) * (row.lane - 7);
  }

  /** Marks in a lane stand on its ground if it has a scale, else they hang from the bar. */
  markTop(row, height) {
    return row.kind === "wakes" ? row.y + row.height - height : row.y + BAR + 2;
  }

  /** Lines at powers of ten, with their times. */
  decades(row) {
    const pen = this.pen;
    const [shortest, longest] = this.scales[row.kind];
    pen.textAlign = "right";
    for (let at = shortest; at <= longest * 1.001; at *= 10) {
      const y = row.y + row.height - this.gapHeight(row, at);
      pen.fillStyle = this.colour("--line");
      pen.fillRect(this.left, Math.round(y), this.plotWidth(), 1);
      pen.fillStyle = this.colour("--faint");
      pen.fillText(timeText(at).replace(/\.0+ /, " "), this.left - 5, y);
    }
  }

  /** Gaps that touch [from, to): the first, and the one after the last. */
  gapsWithin(row, from, to) {
    const { start, end, n } = row.pieces;
    // Gap i lies between end[i - 1] and start[i].
    return [Math.max(1, firstAbove(start, n, from)), Math.min(n, firstAbove(end, n, to) + 1)];
  }

  lane(row, number) {
    const [from, to] = this.view;
    const [first, next] = this.gapsWithin(row, from, to);
    if (next - first <= this.plotWidth() / 2) {
      for (let i = first; i < next; i++) if (row.lengths[i] > 0) this.mark(row, i);
    } else {
      const duration = (to - from) / this.plotWidth();
      let last = -1;
      for (let x = 0; x < this.plotWidth(); x++) {
        const at = from + x * duration;
        const found = row.greatest.within(...this.gapsWithin(row, at, at + duration));
        if (found < 0) continue;
        const height = this.gapHeight(row, row.lengths[found]);
        this.pen.fillStyle = this.colour(row.gapColour(found));
        this.pen.globalAlpha = found === last ? 0.72 : 1;
        this.pen.fillRect(this.left + x, this.markTop(row, height), 1, height);
        last = found;
      }
      this.pen.globalAlpha = 1;
    }
    // The latest are seen from afar.
    for (const i of row.told ? row.told.keys() : []) {
      const [x, height] = [this.x(row.pieces.start[i]), this.gapHeight(row, row.lengths[i])];
      if (x - this.x(row.pieces.end[i - 1]) > 3) continue;
      this.pen.fillStyle = this.colour(row.gapColour(i));
      this.pen.fillRect(x - 1.5, this.markTop(row, height), 3, height);
    }
    if (number === this.row && this.gap > 0) this.focusMark(row, this.gap);
  }

  mark(row, i) {
    const [x0, x1] = [this.x(row.pieces.end[i - 1]), this.x(row.pieces.start[i])];
    this.pen.fillStyle = this.colour(row.gapColour(i));
    const width = Math.max(1.6, x1 - x0);
    const height = this.gapHeight(row, row.lengths[i]);
    // What is wide is calm, what is narrow must be seen.
    this.pen.globalAlpha = width > 6 ? 0.72 : 1;
    this.pen.fillRect(x0, this.markTop(row, height), width, height);
    this.pen.globalAlpha = 1;
    if (x1 - x0 < 2) return;
    this.pen.globalAlpha = 0.22;
    this.pen.fillRect(x0, row.y, x1 - x0, BAR);
    this.pen.globalAlpha = 1;
    for (const [from, to, colour] of row.segments ? row.segments(i) : []) {
      this.pen.fillStyle = this.colour(colour);
      this.pen.fillRect(this.x(from), row.y, Math.max(0, this.x(to) - this.x(from)), BAR);
    }
  }

  /** A frame around the gap that has the keyboard's attention. */
  focusMark(row, i) {
    const [x0, x1] = [this.x(row.pieces.end[i - 1]), this.x(row.pieces.start[i])];
    this.pen.strokeStyle = this.colour("--accent");
    this.pen.lineWidth = 2;
    this.pen.strokeRect(x0 - 3, row.y - 3, Math.max(2, x1 - x0) + 6, BAR + row.lane + 3);
  }

  eventsOf(row) {
    const { start, end, code, text } = row.events;
    const n = start.length;
    const pen = this.pen;
    const [from, to] = this.view;
    const y = row.y + BAR + 2;
    const first = Math.max(0, firstAbove(start, n, from) - 8);
    const next = firstAbove(start, n, to);
    if (next - first > this.plotWidth() * 2) return this.eventDensity(row, y);
    let free = -Infinity;
    for (let i = first; i < next; i++) {
      const [x0, x1] = [this.x(start[i]), this.x(end[i])];
      pen.fillStyle = this.colour(EVENT_COLOURS[code[i]] || "--faint");
      pen.fillRect(x0, y, Math.max(1, x1 - x0), EVENTS - 4);
      const words = this.run.texts[text[i] - 1] || "";
      if (x1 - x0 > 60 && x0 > free && words) {
        pen.fillStyle = this.colour("--ink");
        pen.textAlign = "left";
        pen.fillText(cut(pen, words, x1 - x0 - 4), x0 + 3, y + 4);
        free = x1;
      }
    }
  }

  /** How many events each pixel has, as heights: most where there are most. */
  eventDensity(row, y) {
    const { start } = row.events;
    const [from, to] = this.view;
    const duration = (to - from) / this.plotWidth();
    const counts = [];
    let before = firstAbove(start, start.length, from);
    for (let x = 1; x <= this.plotWidth(); x++) {
      const at = firstAbove(start, start.length, from + x * duration);
      counts.push(at - before);
      before = at;
    }
    const most = counts.reduce((a, b) => Math.max(a, b), 1);
    this.pen.fillStyle = this.colour("--faint");
    counts.forEach((count, x) => {
      const height = (count / most) * (EVENTS - 3);
      this.pen.fillRect(this.left + x, y + EVENTS - 3 - height, 1, height);
    });
  }

  /** Where the view lies in the run. */
  track() {
    const pen = this.pen;
    const y = this.height - TRACK + 6;
    const whole = this.run.to - this.run.from;
    const x0 = ((this.view[0] - this.run.from) / whole) * this.plotWidth();
    const x1 = ((this.view[1] - this.run.from) / whole) * this.plotWidth();
    pen.fillStyle = this.colour("--base");
    pen.fillRect(this.left, y, this.plotWidth(), 4);
    pen.fillStyle = this.colour("--accent");
    pen.fillRect(this.left + Math.min(x0, this.plotWidth() - 4), y, Math.max(4, x1 - x0), 4);
  }
}

/** The least and the greatest length of the rows of a kind. */
function scaleOf(rows, kind) {
  let [shortest, longest] = [Infinity, 1];
  for (const row of rows) {
    if (row.kind !== kind) continue;
    for (const length of row.lengths) {
      if (length > longest) longest = length;
      if (length > 0 && length < shortest) shortest = length;
    }
  }
  return [Math.min(shortest, longest), longest];
}

/** The powers of ten around a scale. */
function decadesOf([shortest, longest]) {
  return [10 ** Math.floor(Math.log10(shortest)), 10 ** Math.ceil(Math.log10(longest) - 1e-9)];
}

/** Colours of kernel events by their codes, in the order of `KernelEventKind`. */
const EVENT_COLOURS = [
  "--k2", "--k2", "--k6", "--k4", "--k4", "--k5", "--k5", "--k3", "--k3", "--k3", "--k3", "--k3", "--k7", "--k11", "--bad", "--accent",
];

/** The least of 1, 2, 5, 10, ... that is not below `value`. */
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  for (const step of [1, 2, 5, 10]) if (step * power >= value * 0.999999) return step * power;
  return power * 10;
}

/** `text` cut to `width` pixels. */
function cut(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let keep = Math.min(text.length, 80);
  while (keep > 0 && pen.measureText(`${text.slice(0, keep)}…`).width > width) keep--;
  return `${text.slice(0, keep)}…`;
}

/** A moment in seconds without zeros at its end. */
function trimmed(ns) {
  return momentText(ns).replace(/\.?0+ s$/, " s");
}
