// What a person does with the timeline: wheel, pointer, keyboard, buttons; and what it says back.

/** Rows below a tip that are kept free of it, in pixels. */
const MOST_BELOW = 180;

class Controls {
  constructor(timeline, parts) {
    this.timeline = timeline;
    Object.assign(this, parts);
    this.pointers = new Map();
    this.pinned = false;
    const canvas = timeline.canvas;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => this.pinned || this.hide());
    canvas.addEventListener("dblclick", (event) => this.doubleClick(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.hide());
    timeline.drawn = () => this.sayRange();
    timeline.draw();
  }

  place(event) {
    const box = this.timeline.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** Zooms about the pointer; sideways it moves. At the whole run, outwards is the page's again. */
  wheel(event) {
    const line = this.timeline;
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      line.pan(((event.deltaX || event.deltaY) * unit) / line.plotWidth());
      return;
    }
    const whole = line.view[1] - line.view[0] >= line.run.to - line.run.from;
    if (whole && event.deltaY > 0) return;
    event.preventDefault();
    const [x] = this.place(event);
    const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * 0.002)));
    line.zoom(factor, line.ns(Math.max(line.left, x)));
  }

  down(event) {
    const [x, y] = this.place(event);
    if (event.isTrusted) this.timeline.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, x);
    const row = this.rowAt(y);
    if (row >= 0) this.timeline.row = row;
  }

  move(event) {
    const [x, y] = this.place(event);
    if (!this.pointers.has(event.pointerId)) {
      this.hover(x, y);
      return;
    }
    const line = this.timeline;
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    const before = this.pointers.get(event.pointerId);
    this.pointers.set(event.pointerId, x);
    this.hide();
    if (others.length === 0) {
      line.pan((before - x) / line.plotWidth());
      return;
    }
    // Two fingers: what lay under each stays there.
    const fixed = others[0][1];
    const [was, is] = [Math.abs(before - fixed), Math.abs(x - fixed)];
    if (was > 4 && is > 4) line.zoom(was / is, line.ns(fixed));
  }

  up(event) {
    this.pointers.delete(event.pointerId);
  }

  doubleClick(event) {
    const [x, y] = this.place(event);
    const found = this.gapNear(x, this.rowAt(y));
    if (found > 0) this.zoomTo(this.rowAt(y), found);
    else this.timeline.zoom(0.25, this.timeline.ns(x));
  }

  rowAt(y) {
    return this.timeline.rows.findIndex((row) => y >= row.y - 4 && y < row.y + row.height + 6);
  }

  /** The longest gap within three pixels of `x`. */
  gapNear(x, number) {
    const line = this.timeline;
    const row = line.rows[number];
    if (!row || !row.greatest) return -1;
    return row.greatest.within(...line.gapsWithin(row, line.ns(x - 3), line.ns(x + 3)));
  }

  hover(x, y) {
    const line = this.timeline;
    const number = this.rowAt(y);
    const row = line.rows[number];
    this.pinned = false;
    if (!row || x < line.left) return this.hide();
    const job = row.jobs ? this.jobUnder(row, x, y) : -1;
    if (job >= 0) return this.tell(jobFacts(row, job), x, row.y + row.height);
    const gap = this.gapNear(x, number);
    if (gap > 0) return this.tell(row.gapFacts(line.run, gap), x, row.y + row.height);
    const event = this.eventNear(row, x, y);
    if (event) return this.tell(event, x, row.y + row.height);
    const [first, next] = row.pieces.touching(line.ns(x), line.ns(x + 1));
    const several = row.sharesFacts && next - first > 1;
    const facts =
      first >= next ? null : several ? row.sharesFacts(line.ns(x), line.ns(x + 1)) : row.pieceFacts(first);
    if (facts) this.tell(facts, x, row.y + row.height);
    else this.hide();
  }

  /** The job that a mark beside the bar belongs to, or that ran there. */
  jobUnder(row, x, y) {
    const line = this.timeline;
    const onBar = y >= row.y && y <= row.y + BAR;
    if (onBar) return this.gapNear(x, line.rows.indexOf(row)) > 0 ? -1 : jobAt(row.jobs, line.ns(x));
    if (y > row.y + BAR + 8) return -1;
    return jobNear(row.jobs, line.ns(x), line.ns(x + 4) - line.ns(x));
  }

  eventNear(row, x, y) {
    if (!row.events || y < row.y + BAR) return null;
    const { start, end } = row.events;
    const [from, to] = [this.timeline.ns(x - 3), this.timeline.ns(x + 3)];
    for (let i = firstAbove(start, start.length, to) - 1; i >= 0; i--) {
      if (end[i] >= from) return this.eventFacts(row, i);
      // What lasts longer than 10 ms is found by its beginning only.
      if (start[i] < from - 1e7) break;
    }
    return null;
  }

  eventFacts(row, i) {
    const { start, end, text } = row.events;
    const facts = [["", this.timeline.run.texts[text[i] - 1] || "kernel event"]];
    if (end[i] > start[i]) facts.push(["length", timeText(end[i] - start[i])]);
    facts.push(["at", momentText(start[i])], ["CPU", `${row.number}`]);
    return facts;
  }

  /** Shows facts near (x, y). Texts only: nothing of a run becomes markup. */
  tell(facts, x, y) {
    const tip = this.tip;
    tip.replaceChildren();
    for (const [name, text] of facts) {
      const line = document.createElement("div");
      if (name) {
        const head = document.createElement("span");
        head.className = "faint";
        head.textContent = `${name} `;
        line.append(head);
      } else {
        line.className = "strong";
      }
      line.append(document.createTextNode(text));
      tip.append(line);
    }
    tip.hidden = false;
    const room = this.timeline.width - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(0, Math.min(x + 12, room))}px`;
    // Who had the CPU meanwhile stays in sight.
    const below = this.timeline.height - y;
    tip.style.top = `${(below < MOST_BELOW ? this.timeline.height : y) + 8}px`;
  }

  hide() {
    this.tip.hidden = true;
    this.pinned = false;
  }

  say(text) {
    this.said.textContent = text;
  }

  sayRange() {
    const [from, to] = this.timeline.view;
    this.range.textContent = `${timeText(to - from)} from ${momentText(from)}`;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const names = {
      "+": "in", "=": "in", "-": "out", "_": "out", ArrowLeft: "left", ArrowRight: "right",
      ArrowUp: "up", ArrowDown: "down", Home: "whole", n: "next", p: "previous", l: "longest", m: "miss",
      Enter: "enter", Escape: "escape",
    };
    const name = names[event.key];
    if (!name) return;
    event.preventDefault();
    this.act(name);
  }

  /** Does what a key or a button asks. */
  act(name) {
    const line = this.timeline;
    const middle = this.focusMoment();
    const acts = {
      in: () => line.zoom(0.5, middle),
      out: () => line.zoom(2, middle),
      left: () => line.pan(-0.2),
      right: () => line.pan(0.2),
      up: () => this.chooseRow(line.row - 1),
      down: () => this.chooseRow(line.row + 1),
      whole: () => line.show(line.run.from, line.run.to),
      next: () => this.step(1),
      previous: () => this.step(-1),
      longest: () => this.longest(),
      miss: () => this.nextMiss(),
      enter: () => line.gap > 0 && this.zoomTo(line.row, line.gap),
      escape: () => this.hide(),
    };
    if (acts[name]) acts[name]();
  }

  /** The moment about which keys zoom: the gap in focus, if it is in view. */
  focusMoment() {
    const line = this.timeline;
    const [from, to] = line.view;
    const row = line.rows[line.row];
    if (line.gap > 0 && row && row.greatest) {
      const at = (row.pieces.end[line.gap - 1] + row.pieces.start[line.gap]) / 2;
      if (at >= from && at <= to) return at;
    }
    return (from + to) / 2;
  }

  chooseRow(number) {
    const line = this.timeline;
    line.row = Math.min(Math.max(number, 0), line.rows.length - 1);
    line.gap = -1;
    this.hide();
    const row = line.rows[line.row];
    this.say(row ? `${row.title} ${row.label}` : "no rows");
    line.ask();
  }

  /** The row of the keyboard, if it has gaps; else the first that has. */
  gapRow() {
    const line = this.timeline;
    if (!line.rows[line.row] || !line.rows[line.row].greatest) line.row = 0;
    return line.rows[line.row] && line.rows[line.row].greatest ? line.rows[line.row] : null;
  }

  step(by) {
    const line = this.timeline;
    const row = this.gapRow();
    if (!row) return this.say("no gaps");
    let i = line.gap;
    if (i < 0) i = line.gapsWithin(row, ...line.view)[by > 0 ? 0 : 1] - by;
    for (i += by; i > 0 && i < row.pieces.n; i += by) {
      if (row.lengths[i] > 0) return this.focusGap(line.row, i);
    }
    this.say(by > 0 ? "no later gap" : "no earlier gap");
  }

  longest() {
    const line = this.timeline;
    const row = this.gapRow();
    const found = row ? row.greatest.within(...line.gapsWithin(row, ...line.view)) : -1;
    if (found > 0) this.focusGap(line.row, found);
    else this.say("no gap in view");
  }

  /** Goes to the next job of any thread that missed its deadline or was lost; after the last to the first. */
  nextMiss() {
    const line = this.timeline;
    const bad = [];
    line.rows.forEach((row, number) => {
      for (let i = 0; row.jobs && i < row.jobs.n; i++) {
        if (row.jobs.flags[i] & (JOB_LOST | JOB_MISSED)) bad.push([row.jobs.due[i], number, i]);
      }
    });
    if (bad.length === 0) return this.say("no missed deadline and no lost period");
    bad.sort((a, b) => a[0] - b[0]);
    this.miss = ((this.miss === undefined ? -1 : this.miss) + 1) % bad.length;
    const [due, number, i] = bad[this.miss];
    const row = line.rows[number];
    const { jobs } = row;
    const end = Math.max(due, jobs.end[i] || due);
    const half = Math.max(end - jobs.release[i], NARROWEST);
    [line.row, line.gap] = [number, -1];
    line.show(jobs.release[i] - half, end + half);
    line.draw();
    const facts = jobFacts(row, i);
    this.tell(facts, line.x(due), row.y + row.height);
    this.pinned = true;
    this.say(`${row.title}: ${facts.map(([name, text]) => `${name} ${text}`.trim()).join("; ")}`);
  }

  /** Gives a gap the keyboard's attention, moves it into view and tells what is known about it. */
  focusGap(number, i) {
    const line = this.timeline;
    const row = line.rows[number];
    [line.row, line.gap] = [number, i];
    const [from, to] = [row.pieces.end[i - 1], row.pieces.start[i]];
    if (from < line.view[0] || to > line.view[1]) {
      const half = Math.max(line.view[1] - line.view[0], (to - from) * 1.5) / 2;
      line.show((from + to) / 2 - half, (from + to) / 2 + half);
    }
    line.draw();
    const facts = row.gapFacts(line.run, i);
    this.tell(facts, line.x((from + to) / 2), row.y + row.height);
    this.pinned = true;
    this.say(`${row.title}: ${facts.map(([name, text]) => `${name} ${text}`.trim()).join("; ")}`);
  }

  zoomTo(number, i) {
    const row = this.timeline.rows[number];
    const [from, to] = [row.pieces.end[i - 1], row.pieces.start[i]];
    const room = Math.max(to - from, 400);
    this.timeline.show(from - room, to + room);
    this.focusGap(number, i);
  }

  /** The gap of a thread that ends at `end`, for the list of the longest. */
  showGap(thread, end) {
    const line = this.timeline;
    const number = line.rows.findIndex((row) => row.greatest && row.number === thread);
    if (number < 0) return;
    const i = firstAbove(line.rows[number].pieces.start, line.rows[number].pieces.n, end - 0.5);
    if (i > 0 && i < line.rows[number].pieces.n) this.zoomTo(number, i);
  }
}
