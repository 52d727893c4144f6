"use strict";
// Polls page/state, and fetches an answer's tokens when it is opened. Whatever the model wrote goes in as text only.

const BUSY_MS = 700;
const IDLE_MS = 2500;
const KEY = "agentspec-key";
const $ = (id) => document.getElementById(id);

let styles = new Map();
let timer = 0;
let opened = null; // what `follow` opened last

function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) element[name] = value;
  element.append(...children);
  return element;
}

function number(value, digits = 0) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const per = (tokens, forwards) => (forwards ? tokens / forwards : 0);
const words = (name) => name.replaceAll("_", " ");
const styled = (source) => styles.get(source) ?? "source-other";
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

async function ask(path) {
  const key = sessionStorage.getItem(KEY);
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  return fetch(path, { headers, cache: "no-store" });
}

async function poll() {
  clearTimeout(timer);
  let wait = IDLE_MS;
  try {
    const response = await ask("page/state");
    if (response.status === 401) return wantKey();
    if (!response.ok) throw new Error(String(response.status));
    const state = await response.json();
    show(state);
    if (state.running.length || state.status === "loading") wait = BUSY_MS;
  } catch (error) {
    tell("bad", error instanceof TypeError ? "server can't be reached" : `server answers ${error.message}`);
  }
  if (!document.hidden) timer = setTimeout(poll, wait);
}

function tell(state, text) {
  $("status").dataset.state = state;
  $("status").textContent = text;
}

function wantKey() {
  $("refused").hidden = sessionStorage.getItem(KEY) === null;
  sessionStorage.removeItem(KEY);
  $("door").hidden = false;
  $("board").hidden = true;
  tell("wait", "locked");
  $("key").focus();
}

function show(state) {
  $("door").hidden = true;
  $("board").hidden = false;
  $("model").textContent = state.models.join(", ");
  document.title = `${state.models[0]} · agentspec`;
  const told = { ok: ["ok", "ready"], loading: ["wait", "the model is being loaded"], failed: ["bad", "the model can't be loaded"] };
  tell(...told[state.status]);
  styles = new Map(state.sources.map((source) => [source.name, source.style]));
  showFigures(state);
  showRunning(state);
  showSources(state.sources);
  showSegments(state.segments);
  showAnswers(state.answers);
  showTry(state);
}

function showFigures({ totals }) {
  const { speedup, plain_token_ms: plain, tokens, forwards, requests } = totals;
  const saved = tokens - forwards;
  const figures = [
    [forwards ? number(per(tokens, forwards), 2) : "–", "tokens a forward", "plain decoding: 1"],
    speedup === null
      ? ["–", "speed against plain", "not known yet: it takes a few rounds without a draft"]
      : [`≈ ${number(speedup, 1)}×`, "speed against plain", `estimated over the last answers: a round without a draft takes ${number(plain, 1)} ms here, and plain decoding needs one a token`],
    [number(tokens), "tokens written", `in ${plural(forwards, "forward")}, ${number(saved)} saved`],
    [number(requests.answered), "requests answered", requests.unfinished ? `${number(requests.unfinished)} not finished` : "since the server started"],
  ];
  $("figures").replaceChildren(
    ...figures.map(([value, name, note]) =>
      make("div", {}, make("dt", { textContent: name }), make("dd", { className: "value", textContent: value }), make("dd", { className: "note", textContent: note })),
    ),
  );
}

function showRunning({ running, load }) {
  $("load").textContent = running.length ? `${plural(load.running, "answer")}, ${number(load.waiting)} waiting` : "nothing";
  $("running").replaceChildren(
    ...running.map((live) => {
      const facts = [live.api, `${number(live.seconds, 1)} s`, live.prompt_tokens ? `${plural(live.prompt_tokens, "prompt token")}` : "reading", `${plural(live.tokens, "token")} written`];
      const texts = live.texts.map((text) => make("div", { className: "text" }, make("div", { textContent: text })));
      return make("div", { className: "live" }, line(facts), ...texts);
    }),
  );
}

function line([first, ...rest]) {
  return make("div", { className: "line" }, make("b", { textContent: first }), ...rest.map((text) => make("span", { textContent: text })));
}

function showSources(sources) {
  $("sums").hidden = sources.length < 2;
  $("legend").replaceChildren(
    ...sources.map(({ name, style, meaning }) => make("li", {}, make("b", { className: style, textContent: name }), " ", make("span", { textContent: meaning }))),
  );
  const rows = sources.filter((source) => source.drafted).map(({ name, style, drafted, accepted }) =>
    make("tr", {}, make("td", {}, make("b", { className: style, textContent: name })), rateCell(accepted, drafted)),
  );
  $("sources").tBodies[0].replaceChildren(...rows);
}

function showSegments(segments) {
  const rows = Object.entries(segments).sort(([, a], [, b]) => b.tokens - a.tokens).map(([name, counts]) =>
    make(
      "tr",
      {},
      make("td", { textContent: words(name) }),
      make("td", { textContent: number(counts.tokens) }),
      make("td", { textContent: counts.forwards ? number(per(counts.tokens, counts.forwards), 1) : "–" }),
      rateCell(counts.accepted, counts.drafted),
    ),
  );
  $("segments").tBodies[0].replaceChildren(...rows);
  $("meaning").textContent = "Drafted tokens that the model accepted, of all answers that ended. A forward counts in the segment of its first token.";
}

function rateCell(accepted, drafted) {
  const share = make("i");
  share.style.width = `${100 * per(accepted, drafted)}%`;
  const title = drafted ? `${number((100 * accepted) / drafted)} % accepted` : "nothing drafted";
  return make("td", { className: "rate", title }, `${number(accepted)} of ${number(drafted)}`, make("span", { className: "bar" }, share));
}

function showAnswers(answers) {
  $("reading").hidden = $("answers").hidden = !answers.length;
  $("empty").hidden = Boolean(answers.length);
  const there = new Map([...$("answers").children].map((element) => [element.dataset.id, element]));
  const added = answers.filter((answer) => !there.has(answer.id));
  const kept = new Set(answers.map((answer) => answer.id));
  for (const [id, element] of there) if (!kept.has(id)) element.remove();
  for (const answer of added.reverse()) $("answers").prepend(answerBox(answer));
  if (added.length && $("follow").checked) {
    if (opened?.isConnected) opened.open = false;
    opened = $("answers").firstElementChild;
    opened.open = true;
  }
}

function answerBox(answer) {
  const speed = answer.speedup === null ? [] : [`≈ ${number(answer.speedup, 1)}× plain`];
  const facts = [
    `${number(per(answer.tokens, answer.forwards), 2)} tokens a forward`,
    `${plural(answer.tokens, "token")} in ${plural(answer.forwards, "forward")}`,
    ...speed,
    `${number(answer.seconds, 1)} s`,
    `prompt ${number(answer.prompt_tokens)}, ${number(answer.cached_tokens)} cached`,
    words(answer.finish_reason),
    answer.api,
    new Date(1000 * answer.ended).toLocaleTimeString(),
  ];
  const preview = make("div", { className: "preview", textContent: answer.preview || "(no text)" });
  const box = make("details", { className: "answer" }, make("summary", {}, line(facts), preview), make("div", { className: "more" }));
  box.dataset.id = answer.id;
  box.addEventListener("toggle", () => box.open && !box.lastElementChild.hasChildNodes() && fill(box));
  box.firstElementChild.addEventListener("click", () => ($("follow").checked = false));
  return box;
}

async function fill(box) {
  const more = box.lastElementChild;
  const response = await ask(`page/answers/${encodeURIComponent(box.dataset.id)}`).catch(() => null);
  if (!response?.ok) {
    more.replaceChildren(make("p", { className: "faint", textContent: "Its tokens are not there any more." }));
    return;
  }
  const answer = await response.json();
  more.replaceChildren(tokens(answer));
  if (answer.left_out) more.append(make("p", { className: "faint", textContent: `${plural(answer.left_out, "more token")} not kept.` }));
}

function tokens({ pieces, rejected }) {
  const text = make("pre");
  const wrong = [...rejected];
  let before = 0;
  pieces.forEach((piece, place) => {
    const starts = piece.round !== before ? " starts" : "";
    const here = [];
    while (wrong.length && wrong[0].place <= place) here.push(wrong.shift());
    here.forEach((branch, nth) => {
      const guess = make("del", { className: styled(branch.source) + (nth ? "" : starts), textContent: branch.text });
      guess.tip = () => [branchTip(branch)];
      text.append(guess);
    });
    const span = make("span", { className: styled(piece.source) + starts, textContent: piece.text });
    span.tip = () => [pieceTip(piece), ...here.map(branchTip)];
    text.append(span);
    before = piece.round;
  });
  return text;
}

function pieceTip({ round, source, score, segment }) {
  const guessed = score === null ? `${source}: nobody guessed it` : `${source}, score ${number(score, 2)}`;
  return make("div", { textContent: `round ${round} · ${guessed} · ${words(segment)}` });
}

function branchTip({ round, source, score, nodes, text }) {
  return make("div", {}, `rejected in round ${round}: `, make("code", { textContent: text }), ` · ${source}, score ${number(score, 2)} · ${plural(nodes, "token")}`);
}

function showTip(event) {
  const target = event.target.closest?.("#answers pre > *");
  if (!target?.tip) return hideTip();
  const tip = $("tip");
  tip.replaceChildren(...target.tip());
  tip.hidden = false;
  const box = target.getClientRects()[0] ?? target.getBoundingClientRect();
  const left = Math.min(event.clientX, innerWidth - tip.offsetWidth - 12);
  const above = box.top - tip.offsetHeight - 8;
  tip.style.left = `${Math.max(left, 12)}px`;
  tip.style.top = `${above > 0 ? above : box.bottom + 8}px`;
}

function hideTip() {
  $("tip").hidden = true;
}

function showTry({ models }) {
  const base = new URL("v1", location.href).href;
  $("openai").textContent = base;
  $("anthropic").textContent = base.replace(/\/v1$/, "");
  const body = JSON.stringify({ model: models[0], messages: [{ role: "user", content: "Say hello." }] });
  const key = sessionStorage.getItem(KEY) ? ' -H "Authorization: Bearer $AGENTSPEC_API_KEY"' : "";
  $("try").textContent = `curl ${base}/chat/completions${key} \\\n  -H "Content-Type: application/json" \\\n  -d '${body}'`;
}

$("door").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  $("key").value = "";
  poll();
});
document.addEventListener("visibilitychange", () => !document.hidden && poll());
$("answers").addEventListener("pointerover", showTip);
$("answers").addEventListener("click", showTip);
$("answers").addEventListener("pointerleave", hideTip);
addEventListener("scroll", hideTip, { passive: true, capture: true });
poll();
