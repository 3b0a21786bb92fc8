// A placeholder: the view is built by its own module.
import { el } from "../dom.js";
import { t } from "../words.js";

export const view = {
  name: "units",
  mount(root) {
    root.append(el("p", { class: "note", text: t("units.title") }));
    return { update() {} };
  },
};
