"use strict";
(() => {
  const say = (text) => { document.getElementById("said").textContent = text; };
  const number = (text) => { const n = parseFloat(text.replace(/[,\s]/g, "")); return Number.isNaN(n) ? null : n; };
  const count = (n) => n.toLocaleString("en");

  // ---- tables: sorting and filtering

  const cellsOf = (table, at) => [...table.tBodies[0].rows].map((row) => row.cells[at].textContent);

  function sort(table, head, direction) {
    const at = head.cellIndex, numeric = "numeric" in head.dataset, body = table.tBodies[0];
    const keys = cellsOf(table, at).map((text) => numeric ? number(text) : text.trim().toLowerCase());
    const rows = [...body.rows].map((row, n) => [keys[n], n, row]);
    const sign = direction === "ascending" ? 1 : -1;
    rows.sort(([a, n], [b, m]) => {
      if (a === b) return n - m;
      if (a === null || a === "") return 1;
      if (b === null || b === "") return -1;
      return sign * (numeric ? a - b : a < b ? -1 : 1);
    });
    body.append(...rows.map(([, , row]) => row));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    say(`sorted by ${head.textContent.trim()}, ${direction}`);
  }

  function sortable(table) {
    for (const head of table.tHead.rows[0].cells) {
      if (head.classList.contains("wide")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () =>
        sort(table, head, head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending"));
    }
  }

  function filterable(box) {
    const table = box.querySelector("table.sortable"), form = box.querySelector(".filter");
    if (!table || !form || table.tBodies[0].rows.length < 2) return;
    form.hidden = false;
    const inputs = [...form.querySelectorAll("input")], shown = form.querySelector(".count");
    const place = (key) => [...table.tHead.rows[0].cells].findIndex((head) => head.dataset.key === key);
    function apply() {
      const tests = [];
      for (const input of inputs) {
        const value = input.value.trim();
        if (!value) continue;
        if (input.dataset.filter === "text") {
          const words = value.toLowerCase().split(/\s+/);
          tests.push((row) => { const text = row.textContent.toLowerCase(); return words.every((w) => text.includes(w)); });
        } else {
          const limit = Number(value), at = place(input.dataset.filter), most = input.dataset.filter === "evalue";
          input.setAttribute("aria-invalid", String(Number.isNaN(limit)));
          if (Number.isNaN(limit)) continue;
          tests.push((row) => { const n = number(row.cells[at].textContent);
                                return n !== null && (most ? n <= limit : n >= limit); });
        }
      }
      let left = 0;
      const rows = table.tBodies[0].rows;
      for (const row of rows) { row.hidden = !tests.every((test) => test(row)); left += !row.hidden; }
      shown.textContent = tests.length ? `${count(left)} of ${count(rows.length)}` : "";
      if (tests.length) say(`${count(left)} of ${count(rows.length)} rows`);
    }
    let waiting = 0;
    for (const input of inputs) {
      input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
    }
  }

  // ---- alignments that are packed

  const WIDTH = 60;
  const unpacked = new Map();
  const residues = (row) => row.length - row.split("-").length + 1;

  async function unpack(box) {
    if (!unpacked.has(box)) {
      const source = box.querySelector("script.packed");
      const bytes = source ? Uint8Array.from(atob(source.textContent), (letter) => letter.charCodeAt(0)) : null;
      unpacked.set(box, bytes ? (async () => {
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
        return new Map(JSON.parse(await new Response(stream).text()).map((hit) => [hit[0], hit]));
      })() : Promise.resolve(new Map()));
    }
    return unpacked.get(box);
  }

  const similar = new Map();
  function pairsOf(box) {
    if (!similar.has(box)) similar.set(box, new Set((box.dataset.similar || "").split(" ")));
    return similar.get(box);
  }

  function textOf([mode, upper, marks, short, posterior, queryAt, targetAt, step], pairs) {
    let middle = mode ? "" : marks, lower = mode ? "" : short, next = 0;
    for (let n = 0; mode && n < upper.length; n++) {
      const letter = upper[n].toUpperCase(), same = short[n] === ".";
      lower += same ? letter : short[n];
      if (mode === "b") middle += same ? "|" : " ";
      else if (same) middle += mode === "a" ? upper[n] : letter;
      else middle += mode !== "s" ? marks[next++] : pairs.has(letter + short[n]) ? "+" : " ";
    }
    const wide = Math.max(String(queryAt + residues(upper)).length, String(targetAt + step * residues(lower)).length);
    const blank = " ".repeat(wide + 10), parts = [];
    let query = queryAt, target = targetAt;
    for (let first = 0; first < upper.length; first += WIDTH) {
      const [u, m, l, p] = [upper, middle, lower, posterior].map((row) => row.slice(first, first + WIDTH));
      const lastQuery = query + residues(u), lastTarget = target + step * residues(l);
      const endQuery = Math.max(query, lastQuery - 1);
      const endTarget = step > 0 ? Math.max(target, lastTarget - 1) : Math.min(target, lastTarget + 1);
      parts.push(`Query   ${String(query).padEnd(wide)}  ${u}  ${endQuery}\n${blank}${m}\n` +
                 `Target  ${String(target).padEnd(wide)}  ${l}  ${endTarget}\n` +
                 (p ? `${"PP".padEnd(wide + 10)}${p}\n` : ""));
      query = lastQuery;
      target = lastTarget;
    }
    return parts.join("\n");
  }

  function made(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function list(label, name, alignments) {
    const heads = ["#", "Query", "Target", "Strand", "Length", "Identity", "Score", "E-value"];
    return made("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Alignments of ${label} with ${name}` },
      made("table", { class: "data list" },
        made("thead", {}, made("tr", {}, ...heads.map((head) => made("th", { scope: "col" }, head)))),
        made("tbody", {}, ...alignments.map(([cells], n) => made("tr", {}, made("th", { scope: "row" }, String(n + 1)),
          ...cells.map((cell) => made("td", {}, cell)))))));
  }

  function article([id, rank, heading, length, alignments, left], label, pairs) {
    const more = left ? ` · the first ${count(alignments.length)} of ${count(alignments.length + left)} alignments` : "";
    const parts = [made("h5", {}, `${rank}. ${heading}`), made("p", { class: "sub" }, `Length ${count(length)}${more}`)];
    const several = alignments.length > 1;
    if (several) parts.push(list(label, heading, alignments));
    alignments.forEach(([, facts, rows, cut], n) => {
      if (rows || !several) {
        const place = several ? [made("b", {}, `${n + 1}. `)] : [];
        parts.push(made("p", { class: "said" }, ...place, facts));
      }
      if (rows) parts.push(made("pre", { tabindex: "0", "aria-label": `Alignment ${n + 1} with ${heading}` }, textOf(rows, pairs)));
      if (cut) parts.push(made("p", { class: "note" }, `${count(cut)} further columns are left out.`));
    });
    return made("article", { id, tabindex: "-1" }, ...parts);
  }

  const order = (id) => Number(id.slice(id.lastIndexOf("h") + 1));

  async function open(id) {
    let found = document.getElementById(id);
    const hit = /^(r\d+q\d+)h\d+$/.exec(id);
    if (!found && hit) {
      const box = document.querySelector(`.alignments[data-query="${hit[1]}"]`);
      const packed = box && (await unpack(box)).get(id);
      if (packed) {
        found = document.getElementById(id) || article(packed, box.closest(".query").getAttribute("aria-label"), pairsOf(box.closest(".run")));
        const next = [...box.querySelectorAll("article")].find((other) => order(other.id) > order(id));
        if (!found.parentNode) box.insertBefore(found, next || box.querySelector(".packed-note"));
      } else {
        say("the alignment is not on this page");
      }
    }
    if (!found || !hit) return;
    for (const old of document.querySelectorAll(".chosen")) old.classList.remove("chosen");
    found.classList.add("chosen");
    const row = document.querySelector(`table.hits a[href="#${id}"]`);
    if (row) row.closest("tr").classList.add("chosen");
    found.scrollIntoView({ block: "start" });
    found.focus({ preventScroll: true });
  }

  const wanted = () => decodeURIComponent(location.hash.slice(1));
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a");
    if (!link) return;
    const href = link.getAttribute("href") || "";
    if (href === location.hash && href.length > 1) open(href.slice(1));
  });
  window.addEventListener("hashchange", () => open(wanted()));
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll(".table").forEach(filterable);
  document.documentElement.dataset.ready = "yes";
  if (location.hash.length > 1) open(wanted());
})();
