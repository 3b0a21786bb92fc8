// A placeholder: the view is built by its own module.
import { el } from "../dom.js";
import { t } from "../words.js";

export const view = {
  name: "unfold",
  mount(root) {
    root.append(el("p", { class: "note", text: t("unfold.title") }));
    return { update() {} };
  },
};
