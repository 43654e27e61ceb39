/** The list of conversations as a page of its own, for small screens. */

import { chatTarget } from "../chat/chat-target.js";
import { conversationList } from "./conversation-list.js";
import { conversationWith } from "../chat/conversation.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h, icon } from "../../lib/dom.js";
import { go } from "../../lib/router.js";
import { operatorNotice } from "../layout/operator-notice.js";

/** Fills `main` with the list; beside the chat with `key`. `close()` when done. */
export function conversationsView(main, key) {
  const conversation = conversationWith(key);
  const place = h("div", { class: "conversations-page" });
  const heading = h("h1", { class: "visually-hidden", tabindex: -1 }, "Chat");
  const back = h(
    "a",
    { class: "button quiet small", href: `#/${["chat", ...chatTarget.rest].map(encodeURIComponent).join("/")}` },
    icon("chevron", "icon back"),
    "Chat",
  );
  const renew = () => {
    conversation.renew(); // of an empty one, too: what is being opened comes no more
    go("chat", ...chatTarget.rest);
  };
  let list = null;
  const draw = () => {
    list?.close();
    list = daemon.operator ? conversationList({ conversation, renew }) : null;
    fill(place, heading, back, list?.element ?? operatorNotice("see what was said"));
  };
  daemon.addEventListener("operator", draw);
  fill(main, place);
  draw();
  return {
    write: () => list?.write(),
    close() {
      daemon.removeEventListener("operator", draw);
      list?.close();
    },
  };
}
