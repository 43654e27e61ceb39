// The board: a view of what the agent keeps. Every drag has a button that does the same.

const API = "/api/kanban";
const said = document.getElementById("said");
const boardNode = document.getElementById("board");
const addForm = document.getElementById("add");
const editor = document.getElementById("editor");

let shown = "";
let columns = [];
let tasks = [];
let dragged = null;
let edited = null;

watch(refresh);

addForm.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const title = addForm.elements.title.value.trim();
    await ask("POST", "/tasks", { title, column: addForm.elements.column.value });
    addForm.elements.title.value = "";
    say(`${title} is on the board.`);
    await refresh();
  });
});

editor.addEventListener("close", () => {
  const task = edited;
  edited = null;
  const { title, description } = editor.querySelector("form").elements;
  attempt(async () => {
    if (editor.returnValue === "save") {
      await ask("PUT", `/tasks/${task.id}`, { title: title.value, description: description.value });
      say("Saved.");
    } else if (editor.returnValue === "delete") {
      await ask("DELETE", `/tasks/${task.id}`);
      say(`${task.title} is deleted.`, { undo: () => attempt(() => bringBack(task)) });
    }
    await refresh();
  });
});

async function bringBack(task) {
  await ask("POST", "/tasks", { title: task.title, description: task.description, column: task.column });
  say(`${task.title} is back.`);
  await refresh();
}

async function refresh() {
  const found = await ask("GET");
  const text = JSON.stringify(found);
  if (text === shown || dragged) return;
  shown = text;
  ({ columns, tasks } = found);
  draw();
}

async function move(task, column) {
  await ask("PUT", `/tasks/${task.id}`, { column });
  say(`${task.title} is in ${column} now.`);
  await refresh();
}

function draw() {
  const focused = document.activeElement?.dataset?.key;
  boardNode.replaceChildren(...columns.map(drawColumn));
  const select = addForm.elements.column;
  const chosen = select.value;
  select.replaceChildren(...columns.map((column) => make("option", { textContent: column })));
  if (columns.includes(chosen)) select.value = chosen;
  if (focused) boardNode.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function drawColumn(column, number) {
  const inside = tasks.filter((task) => task.column === column);
  const section = make(
    "section",
    { className: "column" },
    make("h2", { id: `column-${number}`, textContent: `${column}, ${inside.length}` }),
    make("ul", {}, ...inside.map((task) => drawTask(task, number))),
  );
  section.setAttribute("aria-labelledby", `column-${number}`);
  section.addEventListener("dragover", (event) => {
    if (!dragged) return;
    event.preventDefault();
    section.classList.add("over");
  });
  section.addEventListener("dragleave", (event) => {
    if (!section.contains(event.relatedTarget)) section.classList.remove("over");
  });
  section.addEventListener("drop", (event) => {
    event.preventDefault();
    section.classList.remove("over");
    const task = dragged;
    dragged = null;
    if (task && task.column !== column) attempt(() => move(task, column));
  });
  return section;
}

function drawTask(task, number) {
  const buttons = [-1, 1]
    .filter((step) => columns[number + step])
    .map((step) => {
      const column = columns[number + step];
      const button = make("button", {
        type: "button",
        textContent: step < 0 ? `← ${column}` : `${column} →`,
        onclick: () => attempt(() => move(task, column)),
      });
      button.setAttribute("aria-label", `Move ${task.title} to ${column}`);
      button.dataset.key = `${task.id}:${step}`;
      return button;
    });
  const change = make("button", { type: "button", textContent: "Change", onclick: () => edit(task) });
  change.setAttribute("aria-label", `Change ${task.title}`);
  change.dataset.key = `${task.id}:change`;
  const item = make(
    "li",
    { className: "card task", draggable: true },
    make("h3", { textContent: task.title }),
    ...(task.description ? [make("p", { className: "soft", textContent: task.description })] : []),
    make("div", { className: "row" }, ...buttons, change),
  );
  item.addEventListener("dragstart", (event) => {
    dragged = task;
    item.classList.add("dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", task.title);
  });
  item.addEventListener("dragend", () => {
    dragged = null;
    item.classList.remove("dragged");
  });
  return item;
}

function edit(task) {
  edited = task;
  const { title, description } = editor.querySelector("form").elements;
  title.value = task.title;
  description.value = task.description || "";
  editor.returnValue = "cancel";
  editor.showModal();
}
