// Makes elements. The law: whatever is shown is text. Nothing here, or anywhere in the page, parses a string as HTML
// (the content security policy refuses it), sets a handler or a style by an attribute, or makes a link of what it was given.

const REFUSED = /^(on|style$|srcdoc$)/i;

/** An element. `attributes`: `class` and others by name; null and false leave one out, true sets it empty. `children`: nodes and texts. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (REFUSED.test(name)) throw new TypeError(`${name} is set in code, never as an attribute`);
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  fill(element, children);
  return element;
}

/** Replaces what is in an element. `children`: nodes, texts, numbers, lists of them; null and false are left out. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return element;
}

/** Sets an element's text, and touches the document only where it changes. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets or removes an attribute, only where that changes something. */
export function mark(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, String(value));
  }
}

/** The element of the page with this id; it must be there. */
export function part(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element "${id}"`);
  return found;
}

/** A button that does something when it is pressed. */
export function button(label, attributes, act) {
  const element = h("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", act);
  return element;
}

const built = new WeakMap();

/**
 * Fills an element anew only if `signature` is another one than when it was filled last. What had the focus in it, by its
 * `data-key`, has it again, so that news takes no button from under a hand.
 */
export function rebuild(element, signature, build) {
  if (built.get(element) === signature) return;
  built.set(element, signature);
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  fill(element, build());
  if (focused !== undefined) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

const ticks = new WeakMap();

/** A text that changes with the time: `text()` is asked now, and with every `tick` of what it stands in. */
export function ticking(text, attributes) {
  const element = h("span", { "data-tick": true, ...attributes }, text());
  ticks.set(element, text);
  return element;
}

/** Lets every ticking text below `root` say what is so now. */
export function tick(root) {
  for (const element of root.querySelectorAll("[data-tick]")) say(element, ticks.get(element)());
}
