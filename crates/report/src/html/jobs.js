// Jobs on the rows of their threads: releases, deadlines, what ran too late, what never ran. The writer of the
// columns is jobs.rs; both must agree.

const JOB_STARTED = 1;
const JOB_FINISHED = 2;
const JOB_LOST = 4;
const JOB_MISSED = 8;

/** Releases closer than this, in pixels on average, are not drawn. */
const JOB_DISTANCE = 6;

/** A thread's jobs in order of release; `reach` is the latest moment of a job and of those before it. */
function readJobs(raw, runEnd) {
  const n = raw.records;
  const [release, due, start, end] = ["release", "due", "start", "end"].map((name) => new Column(raw[name]));
  const jobs = {
    n,
    thread: raw.thread,
    leftOut: raw.all - n,
    flags: bytesOf(raw.flags),
    release: new Float64Array(n),
    due: new Float64Array(n),
    start: new Float64Array(n),
    end: new Float64Array(n),
    reach: new Float64Array(n),
  };
  let now = 0;
  let reach = -Infinity;
  for (let i = 0; i < n; i++) {
    now += release.signed();
    jobs.release[i] = now;
    jobs.due[i] = now + due.signed();
    jobs.start[i] = jobs.flags[i] & JOB_STARTED ? now + start.signed() : NaN;
    jobs.end[i] = jobs.flags[i] & JOB_FINISHED ? now + end.signed() : jobs.flags[i] & JOB_STARTED ? runEnd : NaN;
    reach = Math.max(reach, jobs.due[i], jobs.end[i] || 0);
    jobs.reach[i] = reach;
  }
  return jobs;
}

/** Jobs that may be in [from, to]: the first, and the one after the last. */
function jobsWithin(jobs, from, to) {
  return [firstAbove(jobs.reach, jobs.n, from - 0.5), firstAbove(jobs.release, jobs.n, to)];
}

/** When a job ran although its deadline had passed; nothing if it did not. */
function lateSpan(jobs, i) {
  const from = Math.max(jobs.due[i], jobs.start[i]);
  return jobs.end[i] > from ? [from, jobs.end[i]] : null;
}

/** The job that ran at `ns`, or -1. */
function jobAt(jobs, ns) {
  const [first, next] = jobsWithin(jobs, ns, ns);
  for (let i = next - 1; i >= first; i--) if (jobs.start[i] <= ns && jobs.end[i] >= ns) return i;
  return -1;
}

/** The job whose release or deadline is nearest to `ns`, within `reach`; one that failed before one that did not. */
function jobNear(jobs, ns, reach) {
  const [first, next] = jobsWithin(jobs, ns - reach, ns + reach);
  let [best, least] = [-1, Infinity];
  for (let i = first; i < next; i++) {
    const bad = jobs.flags[i] & (JOB_LOST | JOB_MISSED);
    const away = Math.min(Math.abs(jobs.release[i] - ns), Math.abs(jobs.due[i] - ns));
    if (away > reach || (bad ? away / 4 : away) >= least) continue;
    [best, least] = [i, bad ? away / 4 : away];
  }
  return best;
}

/** What is known about a job. */
function jobFacts(row, i) {
  const { jobs } = row;
  const facts = [["", jobs.flags[i] & JOB_LOST ? "lost period: its job never ran" : `job of ${row.title}, ${row.label}`]];
  facts.push(["release", momentText(jobs.release[i])]);
  if (jobs.flags[i] & JOB_STARTED) facts.push(["start", momentText(jobs.start[i])]);
  if (jobs.flags[i] & JOB_FINISHED) facts.push(["end", momentText(jobs.end[i])]);
  facts.push(["deadline", momentText(jobs.due[i])]);
  if (jobs.flags[i] & JOB_FINISHED) {
    facts.push(["response", timeText(jobs.end[i] - jobs.release[i])]);
    const late = jobs.end[i] - jobs.due[i];
    facts.push(late > 0 ? ["late by", timeText(late)] : ["in time by", timeText(-late)]);
  } else if (jobs.flags[i] & JOB_MISSED) {
    facts.push(["late", "not done when the run ended"]);
  }
  return facts;
}

/** Stripes, which those see who do not see the colour. */
function stripes(line) {
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [6, 6];
  const pen = tile.getContext("2d");
  pen.strokeStyle = line.colour("--paper");
  pen.lineWidth = 1.2;
  for (const shift of [-6, 0, 6]) {
    pen.beginPath();
    pen.moveTo(shift, 6);
    pen.lineTo(shift + 6, 0);
    pen.stroke();
  }
  return line.pen.createPattern(tile, "repeat");
}

/** What jobs received after their deadlines, over what the row has. */
function drawLate(line, row) {
  const { pen } = line;
  const [first, next] = jobsWithin(row.jobs, ...line.view);
  const paint = stripes(line);
  let drawn = -Infinity;
  for (let i = first; i < next; i++) {
    const span = row.jobs.flags[i] & JOB_STARTED ? lateSpan(row.jobs, i) : null;
    if (!span || line.x(span[1]) < drawn) continue;
    const [piece, after] = row.pieces.touching(Math.max(span[0], line.view[0]), Math.min(span[1], line.view[1]));
    for (let at = piece; at < after; at++) {
      const x0 = Math.max(line.left - 1, line.x(Math.max(span[0], row.pieces.start[at])), drawn);
      const x1 = Math.min(line.width + 1, line.x(Math.min(span[1], row.pieces.end[at])));
      if (x1 <= drawn) continue;
      // Pieces below a pixel are not drawn one by one.
      drawn = Math.max(x1, x0 + 1);
      pen.fillStyle = line.colour("--late");
      pen.fillRect(x0, row.y, drawn - x0, BAR);
      if (drawn - x0 < 3) continue;
      pen.fillStyle = paint;
      pen.fillRect(x0, row.y, drawn - x0, BAR);
    }
  }
}

/** Arrows up at releases, down at deadlines; crosses where periods were lost. */
function drawJobs(line, row) {
  const { jobs } = row;
  const { pen } = line;
  const [first, next] = jobsWithin(jobs, ...line.view);
  const few = (next - first) * JOB_DISTANCE <= line.plotWidth();
  drawLate(line, row);
  const drawn = { late: -Infinity, lost: -Infinity };
  const arrow = (x, from, to, head) => {
    pen.moveTo(x, from);
    pen.lineTo(x, to);
    pen.moveTo(x - 3, to + head);
    pen.lineTo(x, to);
    pen.lineTo(x + 3, to + head);
  };
  const bottom = row.y + BAR;
  for (const bad of [false, true]) {
    pen.beginPath();
    pen.strokeStyle = line.colour(bad ? "--late" : "--ink");
    pen.lineWidth = bad ? 2 : 1;
    for (let i = first; i < next; i++) {
      const [up, down] = [line.x(jobs.release[i]), line.x(jobs.due[i])];
      const missed = (jobs.flags[i] & JOB_MISSED) !== 0;
      if (jobs.flags[i] & JOB_LOST) {
        if (!bad || up < drawn.lost + 1) continue;
        drawn.lost = up;
        pen.moveTo(up - 3, row.y - 7);
        pen.lineTo(up + 3, row.y - 1);
        pen.moveTo(up + 3, row.y - 7);
        pen.lineTo(up - 3, row.y - 1);
      } else {
        if (!bad && few) arrow(up, bottom, row.y - 7, 4);
        if (missed !== bad || (bad ? down < drawn.late + 1 : !few)) continue;
        if (bad) drawn.late = down;
        arrow(down, bottom, bottom + 8, -4);
      }
    }
    pen.stroke();
  }
}
