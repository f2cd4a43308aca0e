// The page checks itself when it is opened with `#selftest`: every way of using the timeline is
// gone through with the events that a browser would send, and what came of it is written into the
// page, where a test reads it.

function selfTest() {
  const results = [];
  const check = (name, passed, found) => results.push({ name, passed: Boolean(passed), found: `${found}` });
  try {
    checkPage(check);
    if (canvas && controls.timeline.rows.length > 0) {
      checkZoom(check);
      checkPointer(check);
      checkJobs(check);
      checkKeyboard(check);
      checkTheme(check);
      checkSpeed(check);
    }
  } catch (error) {
    check("no exception", false, `${error} ${error.stack}`);
  }
  check("no error", failures.length === 0, failures.join("; "));
  const out = document.createElement("pre");
  out.id = "selftest";
  out.dataset.failed = results.filter((result) => !result.passed).length;
  out.dataset.checks = results.length;
  out.textContent = results.map((r) => `${r.passed ? "pass" : "FAIL"} ${r.name}: ${r.found}`).join("\n");
  document.body.append(out);
}

function checkPage(check) {
  const fetched = performance.getEntriesByType("resource").filter((entry) => !entry.name.startsWith("data:"));
  check("nothing fetched", fetched.length === 0, fetched.map((entry) => entry.name).join(" "));
  const scripts = document.querySelectorAll("script").length;
  check("no script but ours", scripts === 2 && window.hostile === undefined, scripts);
  const strange = document.querySelectorAll("img, iframe, object, embed, link[rel=stylesheet]").length;
  check("no foreign element", strange === 0, strange);
  const unnamed = [...document.querySelectorAll("button, canvas, svg")].filter(
    (part) => !(part.getAttribute("aria-label") || part.textContent.trim()),
  );
  check("everything has a name", unnamed.length === 0, unnamed.length);
  for (const thread of run.threads) {
    let sorted = true;
    for (let i = 1; i < thread.n; i++) if (thread.start[i] < thread.end[i - 1]) sorted = false;
    if (!sorted) check("records in order", false, thread.id);
  }
}

function width() {
  return controls.timeline.view[1] - controls.timeline.view[0];
}

/** An event in the middle of a row, `share` of the plot from its left edge. */
function at(row, share) {
  const line = controls.timeline;
  const box = canvas.getBoundingClientRect();
  const x = box.left + line.left + share * line.plotWidth();
  return { clientX: x, clientY: box.top + line.rows[row].y + 6, bubbles: true, cancelable: true };
}

function press(key) {
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
}

function checkZoom(check) {
  const line = controls.timeline;
  const whole = width();
  const under = line.ns(line.left + 0.25 * line.plotWidth());
  canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0, 0.25), deltaY: -300 }));
  check("wheel zooms in", width() < whole || whole <= NARROWEST, width());
  const now = line.ns(line.left + 0.25 * line.plotWidth());
  check("what is under the pointer stays", Math.abs(now - under) <= whole / line.plotWidth(), now - under);
  for (let i = 0; i < 80; i++) canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0, 0.5), deltaY: -500 }));
  // At the end of what 64 bits of nanoseconds hold, numbers are a microsecond apart.
  const grain = Math.max(1, line.run.to * 1e-15);
  check("down to a microsecond", Math.abs(width() - Math.min(whole, NARROWEST)) < grain, width());
  line.draw();
  for (let i = 0; i < 120; i++) canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0, 0.5), deltaY: 500 }));
  check("and back to the whole run", Math.abs(width() - whole) < grain, width());
  const last = new WheelEvent("wheel", { ...at(0, 0.5), deltaY: 500 });
  check("then the page scrolls", canvas.dispatchEvent(last), last.defaultPrevented);
}

function checkPointer(check) {
  const line = controls.timeline;
  const whole = width();
  line.zoom(0.25, (line.view[0] + line.view[1]) / 2);
  const from = line.view[0];
  const point = (kind, share, id) => canvas.dispatchEvent(new PointerEvent(kind, { ...at(0, share), pointerId: id }));
  point("pointerdown", 0.5, 1);
  point("pointermove", 0.6, 1);
  point("pointerup", 0.6, 1);
  check("drag moves", line.view[0] < from || whole <= NARROWEST, line.view[0] - from);
  const before = width();
  point("pointerdown", 0.4, 1);
  point("pointerdown", 0.6, 2);
  point("pointermove", 0.9, 2);
  point("pointerup", 0.4, 1);
  point("pointerup", 0.9, 2);
  check("pinch zooms", width() < before || whole <= NARROWEST, width() / before);
  line.show(line.run.from, line.run.to);
  const row = line.rows.findIndex((candidate) => candidate.greatest && candidate.greatest.within(0, candidate.pieces.n) > 0);
  if (row >= 0) {
    const gap = line.rows[row].greatest.within(0, line.rows[row].pieces.n);
    const middle = (line.rows[row].pieces.end[gap - 1] + line.rows[row].pieces.start[gap]) / 2;
    const share = (line.x(middle) - line.left) / line.plotWidth();
    const over = { ...at(row, Math.min(Math.max(share, 0.001), 0.999)), pointerId: 9 };
    canvas.dispatchEvent(new PointerEvent("pointermove", over));
    const text = controls.tip.textContent;
    const thread = line.rows[row].thread;
    const wanted = thread ? /recorder/ : /late/;
    check("hover tells kind and recorder, or lateness", !controls.tip.hidden && wanted.test(text), text);
    if (thread && thread.kind[gap] <= 14) check("hover tells the confidence", /confidence \d+ %/.test(text), text);
    canvas.dispatchEvent(new MouseEvent("dblclick", at(row, share)));
    check("double click shows the gap", showsGap(line.rows[row], gap, whole), width());
  }
  const cpu = line.rows.findIndex((candidate) => candidate.parties && candidate.pieces.n > 1);
  if (cpu >= 0) {
    const { start, end } = line.rows[cpu].pieces;
    const share = (line.x((start[0] + end[0]) / 2) - line.left) / line.plotWidth();
    const where = { ...at(cpu, Math.min(Math.max(share, 0.001), 0.999)), pointerId: 9 };
    canvas.dispatchEvent(new PointerEvent("pointermove", where));
    const text = controls.tip.textContent;
    const names = run.ran.who.map((one) => one.name);
    check("a CPU tells who had it", names.some((name) => text.includes(name)), text);
  }
  canvas.dispatchEvent(new PointerEvent("pointerleave"));
  line.show(line.run.from, line.run.to);
}

/** A job that missed its deadline is shown, and the marks tell about it. */
function checkJobs(check) {
  const line = controls.timeline;
  const number = line.rows.findIndex((row) => row.jobs && row.jobs.flags.some((flag) => flag & JOB_MISSED));
  if (number < 0) return;
  delete controls.miss;
  press("m");
  check("m goes to a missed deadline", /deadline/.test(controls.said.textContent), controls.said.textContent);
  const row = line.rows[number];
  const first = row.jobs.flags.findIndex((flag) => flag & JOB_MISSED);
  const around = row.jobs.due[first] - row.jobs.release[first];
  line.show(row.jobs.release[first] - around, row.jobs.due[first] + around);
  line.draw();
  const box = canvas.getBoundingClientRect();
  const [clientX, clientY] = [box.left + line.x(row.jobs.due[first]), box.top + row.y + BAR + 4];
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true, pointerId: 9 }));
  const text = controls.tip.textContent;
  check("a deadline's mark tells about its job", /release .*deadline .*late/.test(text), text);
  canvas.dispatchEvent(new PointerEvent("pointerleave"));
  controls.hide();
  line.show(line.run.from, line.run.to);
}

/** Whether the view is around the gap before piece `i`, which may be as long as the run. */
function showsGap(row, i, whole) {
  const length = row.pieces.start[i] - row.pieces.end[i - 1];
  return width() < whole || whole <= 3 * Math.max(NARROWEST, length);
}

function checkKeyboard(check) {
  const line = controls.timeline;
  const whole = width();
  canvas.focus();
  check("the timeline takes the focus", document.activeElement === canvas, document.activeElement.tagName);
  press("+");
  check("+ zooms in", width() < whole || whole <= NARROWEST, width());
  const from = line.view[0];
  press("ArrowRight");
  check("the arrow moves", line.view[0] > from || whole <= NARROWEST, line.view[0] - from);
  press("-");
  press("Home");
  check("Home shows the whole run", Math.abs(width() - whole) < 1, width());
  const rows = line.rows.map((row, number) => [row, number]);
  const [found] = rows.filter(([row]) => row.greatest && row.greatest.within(0, row.pieces.n) > 0);
  if (!found) return;
  controls.chooseRow(found[1]);
  line.gap = -1;
  press("n");
  check("n goes to a gap", line.gap > 0 && !controls.tip.hidden, line.gap);
  check("and says it", /length|late/.test(controls.said.textContent), controls.said.textContent);
  press("l");
  press("Enter");
  check("Enter shows it", showsGap(line.rows[line.row], line.gap, whole), width());
  press("Home");
  const button = document.querySelector("button.show");
  if (button) {
    button.click();
    check("the list shows a gap", line.gap > 0 && !controls.tip.hidden, width());
  }
  press("Escape");
  press("Home");
  press("ArrowDown");
  press("ArrowUp");
}

function checkTheme(check) {
  const paper = () => getComputedStyle(document.body).backgroundColor;
  setTheme("light");
  const light = paper();
  setTheme("dark");
  check("light and dark differ", paper() !== light, `${light} ${paper()}`);
  setTheme("system");
}

/** Frames at every depth of zoom. The bound is that of the test, which knows the machine. */
function checkSpeed(check) {
  const line = controls.timeline;
  const times = [];
  const middle = (line.run.from + line.run.to) / 2;
  for (let span = line.run.to - line.run.from; span >= NARROWEST; span /= 2) {
    line.show(middle - span / 2, middle + span / 2);
    const begin = performance.now();
    line.draw();
    times.push(performance.now() - begin);
  }
  line.show(line.run.from, line.run.to);
  times.sort((a, b) => a - b);
  const median = times[times.length >> 1] || 0;
  const worst = times[times.length - 1] || 0;
  document.documentElement.dataset.frame = worst.toFixed(1);
  check("frames", times.length > 0, `median ${median.toFixed(1)} ms, worst ${worst.toFixed(1)} ms`);
}
