// Words in two languages. One file of keys a view; t("read.title") is `title` of words/read.js.
import { words as common } from "./words/common.js";
import { words as strip } from "./words/strip.js";
import { words as learn } from "./words/learn.js";
import { words as read } from "./words/read.js";
import { words as units } from "./words/units.js";
import { words as back } from "./words/back.js";
import { words as unfold } from "./words/unfold.js";
import { words as steps } from "./words/steps.js";
import { words as tour } from "./words/tour.js";
import { state } from "./state.js";

export const dictionaries = { common, strip, learn, read, units, back, unfold, steps, tour };

function sentence(key) {
  const [file, name] = key.split(".");
  const found = dictionaries[file]?.[state.lang]?.[name];
  if (found === undefined) throw new Error(`no words for ${key} in ${state.lang}`);
  return found;
}

// The words of a key with {name} filled in.
export const t = (key, values = {}) => sentence(key).replace(/\{(\w+)\}/g, (_, name) => values[name]);

// The same as a list of strings and elements: values may be elements.
export const rich = (key, values) => sentence(key).split(/(\{\w+\})/).map((each) => (/^\{\w+\}$/.test(each) ? values[each.slice(1, -1)] : each)).filter((each) => each !== "");
