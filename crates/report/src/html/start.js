// Brings the page to life.

/** Asked for from start to end, so that a check can tell what went wrong. */
const failures = [];
window.addEventListener("error", (event) => failures.push(`${event.message}`));
window.addEventListener("unhandledrejection", (event) => failures.push(`${event.reason}`));
document.addEventListener("securitypolicyviolation", (event) => failures.push(`${event.violatedDirective}`));

const byId = (id) => document.getElementById(id);
const run = readRun(JSON.parse(byId("data").textContent));
const canvas = byId("timeline");
let controls = null;

/** Themes in the order in which the switch goes through them. */
const THEMES = ["system", "light", "dark"];

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  repaint();
}

function repaint() {
  if (!controls) return;
  controls.timeline.colour = palette();
  controls.timeline.draw();
}

function currentTheme() {
  return document.documentElement.dataset.theme || "system";
}

function drawLegend() {
  const used = new Set();
  for (const thread of run.threads) for (const kind of thread.kind) if (kind > 0) used.add(kind - 1);
  const legend = byId("legend");
  const entry = (className, text) => {
    const [span, dot] = [document.createElement("span"), document.createElement("span")];
    dot.className = `dot ${className}`;
    if (className) span.append(dot);
    span.append(document.createTextNode(text));
    legend.append(span);
  };
  for (const kind of [...used].sort((a, b) => a - b)) entry(`k${kind}`, run.kinds[kind]);
  if (run.wakes.length) entry("k13", "wake-up: how late");
  if (run.latest.length) entry("k1", "one of the latest");
  if (run.jobs.length) {
    const flags = (bit) => run.jobs.some((jobs) => jobs.flags.some((flag) => flag & bit));
    entry("", "↑ release, ↓ deadline, where there is room");
    if (flags(JOB_MISSED)) entry("late", "ran after its deadline, or missed it");
    if (flags(JOB_LOST)) entry("", "× lost period: its job never ran");
  }
  const notes = [];
  const jobsLeftOut = run.jobs.reduce((sum, jobs) => sum + jobs.leftOut, 0);
  if (jobsLeftOut > 0) notes.push(`${jobsLeftOut} jobs are left out, first those that were in time`);
  const leftOut = run.wakes.reduce((sum, one) => sum + Math.max(0, one.all - one.n), 0);
  if (leftOut > 0) notes.push(`the ${leftOut} wake-ups that were least late, or whose time was not kept, are left out`);
  if (run.ran.least > 0) {
    notes.push(`what had a CPU for less than ${timeText(run.ran.least)} is counted to who had it before`);
  }
  if (run.shortest > 0) notes.push(`gaps below ${timeText(run.shortest)} are left out of the timeline`);
  if (run.eventsLeftOut > 0) notes.push(`the last ${run.eventsLeftOut} kernel events are left out`);
  if (notes.length) legend.append(document.createTextNode(notes.join("; ")));
}

byId("theme").addEventListener("click", () => {
  setTheme(THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length]);
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

if (canvas) {
  const timeline = new Timeline(canvas, run);
  controls = new Controls(timeline, { tip: byId("tip"), said: byId("said"), range: byId("range") });
  drawLegend();
  document.querySelectorAll("[data-do]").forEach((button) => {
    button.addEventListener("click", () => controls.act(button.dataset.do));
  });
  document.querySelectorAll("button.show").forEach((button) => {
    button.addEventListener("click", () => {
      controls.showGap(Number(button.dataset.thread), Number(button.dataset.end));
      canvas.scrollIntoView({ block: "center" });
      canvas.focus({ preventScroll: true });
    });
  });
  new ResizeObserver(() => {
    if (timeline.width !== Math.max(320, canvas.parentElement.clientWidth)) timeline.fit();
  }).observe(canvas.parentElement);
  // Paper is white, whatever the screen is.
  let screenTheme = "system";
  window.addEventListener("beforeprint", () => {
    screenTheme = currentTheme();
    setTheme("light");
  });
  window.addEventListener("afterprint", () => setTheme(screenTheme));
}

if (location.hash === "#selftest") selfTest();
