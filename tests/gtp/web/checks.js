// What a page lacks for everybody to use it: contrast, names, ids, sizes of targets. Returns a list of texts.
const faults = [], shown = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const numbers = (color) => {
  const found = color.match(/[\d.]+/g).map(Number);
  return color.startsWith("color(") ? [...found.slice(0, 3).map((v) => 255 * v), found[3] ?? 1] : [...found.slice(0, 3), found[3] ?? 1];
};
const over = (upper, lower) => [0, 1, 2].map((k) => upper[k] * upper[3] + lower[k] * (1 - upper[3])).concat(1);
const light = (color) => {
  const [r, g, b] = color.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => {
  const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
function background(one) {
  const above = [];
  for (let at = one; at; at = at.parentElement) {
    const color = numbers(getComputedStyle(at).backgroundColor);
    if (color[3]) above.push(color);
    if (color[3] === 1) break;
  }
  return above.reverse().reduce((lower, upper) => over(upper, lower), [255, 255, 255, 1]);
}
const name = (one) => `${one.tagName.toLowerCase()}${one.id ? `#${one.id}` : ""}.${one.getAttribute("class") ?? ""} "${(one.textContent ?? "").trim().slice(0, 30)}"`;

// Texts: 4.5 to 1.
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const one = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || one.closest("svg, script, :disabled") || !shown(one)) continue;
  if (one.closest(".unseen, .skip") || one.tagName === "OPTION") continue;
  const below = background(one), got = ratio(over(numbers(getComputedStyle(one).color), below), below);
  if (got < 4.5) faults.push(`text of ${name(one)} has a contrast of ${got.toFixed(2)}`);
}
for (const one of document.querySelectorAll("input[placeholder]")) {
  const below = background(one), got = ratio(over(numbers(getComputedStyle(one, "::placeholder").color), below), below);
  if (shown(one) && got < 4.5) faults.push(`placeholder of ${name(one)} has a contrast of ${got.toFixed(2)}`);
}

// Marks and texts in drawings, by the page's colours: 3 to 1 and 4.5 to 1.
const probe = document.createElement("i");
document.body.append(probe);
const variable = (word) => { probe.style.color = `var(--${word})`; return numbers(getComputedStyle(probe).color); };
const kinds = [0, 1, 2, 3, 4, 5].map((k) => `k${k}`);
const pairs = [["line", "board", 4.5], ["stone-b", "stone-w", 4.5], ["accent", "card", 3], ["ink", "card", 4.5], ["line", "stone-w", 3],
  ...kinds.map((kind) => ["paper", kind, 4.5]), ...kinds.map((kind) => [kind, "card", 3]), ["paper", "accent", 4.5]];
for (const [a, b, least] of pairs) {
  const got = ratio(variable(a), variable(b));
  if (got < least) faults.push(`--${a} on --${b} has a contrast of ${got.toFixed(2)}`);
}
probe.remove();

// Names of what can be used, and of what is referred to.
for (const one of document.querySelectorAll("button, a[href], input, select, textarea, [tabindex], dialog, svg[role]")) {
  const by = (one.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "");
  const labels = Array.from(one.labels ?? [], (label) => label.textContent);
  const own = ["BUTTON", "A"].includes(one.tagName) ? one.textContent : "";
  const said = [one.getAttribute("aria-label") ?? "", ...by, ...labels, own, one.querySelector?.(":scope > title")?.textContent ?? ""].join("").trim();
  if (!said && shown(one)) faults.push(`${name(one)} has no name`);
}
const ids = Array.from(document.querySelectorAll("[id]"), (one) => one.id);
for (const id of new Set(ids.filter((one, n) => ids.indexOf(one) !== n))) faults.push(`two elements have the id ${id}`);
for (const [attribute, list] of [["for", false], ["aria-labelledby", true], ["aria-describedby", true], ["aria-controls", true]]) {
  for (const one of document.querySelectorAll(`[${attribute}]`)) {
    const words = one.getAttribute(attribute), wanted = list ? words.split(" ") : [words];
    for (const id of wanted) if (!document.getElementById(id)) faults.push(`${attribute} of ${name(one)} names no element`);
  }
}
if (!document.documentElement.lang || !document.title) faults.push("the page has no language or title");
if (document.querySelectorAll("h1").length !== 1) faults.push("the page has not one h1");

// Targets: 24 pixels at least, and nothing wider than the page.
for (const one of document.querySelectorAll("button, a[href], input, select, textarea, summary")) {
  const target = one.closest(".choices label") ?? one, box = target.getBoundingClientRect();
  if (shown(one) && !one.closest(".skip") && one.className !== "skip" && (box.width < 24 || box.height < 24)) {
    faults.push(`${name(one)} is ${box.width.toFixed(0)} by ${box.height.toFixed(0)} pixels`);
  }
}
if (document.documentElement.scrollWidth > innerWidth) faults.push(`the page is ${document.documentElement.scrollWidth} wide`);
return faults;
