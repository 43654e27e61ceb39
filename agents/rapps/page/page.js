// The script of every shipped page: asking its service, saying how it went, looking again.

async function ask(method, path = "", body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(API + path, options);
  } catch {
    throw new Error("rappd isn't answering. Trying again.");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error || `That did not work (${answer.status}).`);
  return found;
}

function say(text, { bad = false, undo } = {}) {
  said.textContent = text;
  said.classList.toggle("bad", bad);
  if (undo) said.append(make("button", { type: "button", textContent: "Undo", onclick: undo }));
}

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** Runs `work` and shows what went wrong, where the person is looking. */
async function attempt(work) {
  try {
    await work();
  } catch (error) {
    say(error.message, { bad: true });
  }
}

/** Looks again every few seconds while the page is visible. */
function watch(look) {
  let troubled = false;
  const again = async () => {
    if (!document.hidden) {
      try {
        await look();
        if (troubled) say("");
        troubled = false;
      } catch (error) {
        say(error.message, { bad: true });
        troubled = true;
      }
    }
    setTimeout(again, 4000);
  };
  again();
  document.addEventListener("visibilitychange", () => document.hidden || attempt(look));
}
