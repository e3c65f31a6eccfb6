"use strict";
(() => {
  const status = document.getElementById("status"), bar = document.getElementById("bar");
  const ended = ["complete", "failed", "cancelled", "stopped"];
  async function look() {
    try {
      const answer = await fetch(status.dataset.run, { headers: { Accept: "application/json" } });
      if (!answer.ok) { location.reload(); return; }
      const run = await answer.json();
      if (ended.includes(run.state)) { location.reload(); return; }
      if (status.textContent !== run.status) status.textContent = run.status;
      if (run.progress.done === null) bar.removeAttribute("value"); else bar.value = run.progress.done;
    } catch {
      status.textContent = "the server doesn't answer just now";
    }
    setTimeout(look, 700);
  }
  setTimeout(look, 300);
})();
