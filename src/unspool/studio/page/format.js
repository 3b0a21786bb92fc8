// Numbers and tokens as words. Decimals are fixed, so that figures stay where they are.

const THIN = "\u202f";
const SIGNS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const DASH = "–";
const exists = (x) => x !== null && x !== undefined && !Number.isNaN(x);

export const fixed = (x, digits = 2) => (exists(x) ? (x < 0 ? "−" : "") + Math.abs(x).toFixed(digits) : DASH);
export const signed = (x, digits = 2) => (exists(x) ? (x < 0 ? "−" : x > 0 ? "+" : "\u2007") + Math.abs(x).toFixed(digits) : DASH);
export const grouped = (n) => (exists(n) ? Math.round(n).toLocaleString("en-US") : DASH);

export function percent(p) {
  if (!exists(p)) return DASH;
  return (p >= 0.0995 ? (100 * p).toFixed(0) : p >= 0.001 ? (100 * p).toFixed(1) : p > 0 ? "<0.1" : "0") + THIN + "%";
}

export const ten = (power) => "10" + String(power).replace("-", "⁻").replace(/\d/g, (digit) => SIGNS[digit]);

// So many figures that count: 0.021, 3.1, 140, 2.6·10⁻⁷.
export function figures(x, count = 2) {
  if (!exists(x)) return DASH;
  if (x === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(x)) + 1e-9);
  const sign = x < 0 ? "−" : "";
  if (power >= -3 && power <= 4) return sign + Math.abs(x).toFixed(Math.max(0, count - 1 - power));
  return `${sign}${(Math.abs(x) / 10 ** power).toFixed(count - 1)}·${ten(power)}`;
}

export function duration(seconds) {
  if (!exists(seconds)) return DASH;
  const whole = Math.max(0, Math.round(seconds));
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

const SEEN = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\ufffd": "▯", "": "∅" };
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

// A token as a sign that can be seen; control and direction characters as their code.
export function glyph(token) {
  if (token in SEEN) return SEEN[token];
  return token.replace(/\n/g, "↵").replace(HIDDEN, (each) => `‹${each.codePointAt(0).toString(16)}›`);
}

const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };

// An array of an answer as a typed array with .shape: it is one already, or base64 in JSON (the stream, a saved page).
export function decode(array) {
  if (!array || ArrayBuffer.isView(array)) return array ?? null;
  const raw = atob(array.data);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const made = new KINDS[array.dtype](bytes.buffer);
  made.shape = array.shape;
  return made;
}

// The opposite, for JSON.stringify(…, encode): typed arrays as base64.
export function encode(key, value) {
  if (!ArrayBuffer.isView(value)) return value;
  const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  let raw = "";
  for (let i = 0; i < bytes.length; i += 8192) raw += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { dtype: Object.keys(KINDS).find((name) => value instanceof KINDS[name]), shape: value.shape, data: btoa(raw) };
}

// An answer in binary: the length of its JSON, the JSON, and the arrays at their offsets.
export function openBinary(buffer) {
  const begin = 4 + new DataView(buffer).getUint32(0, true);
  const open = (found) => {
    if (found === null || typeof found !== "object" || typeof found[0] === "string") return found;
    if (found.dtype !== undefined && found.at !== undefined) {
      const made = new KINDS[found.dtype](buffer, begin + found.at, found.shape.reduce((product, n) => product * n, 1));
      made.shape = found.shape;
      return made;
    }
    for (const [key, value] of Object.entries(found)) found[key] = open(value);
    return found;
  };
  return open(JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, begin - 4))));
}
