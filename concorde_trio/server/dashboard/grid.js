// A list of any length of which only the visible rows are in the document. The law: elements are made for the rows in sight,
// reused as they scroll, and touched once per frame; the keyboard reaches every row though it has no element yet. The
// container keeps the focus and says which row (or cell of it) is active, so a row that scrolls away takes no focus with it.

import { h, mark } from "./dom.js";

const BEYOND = 4; // rows kept above and below what is in sight

export class Grid {
  /**
   * `root`: the scrolling element, with role grid. `view`: `height` (pixels of a row), `make()` → a row's element,
   * `paint(element, item, number)`, `key(item)`, and `open(item, cell)` for Enter; where rows have cells to move between,
   * `cells(item)` → their keys. `onActive(item, cell)` hears what the keyboard is on.
   */
  constructor(root, view) {
    this.root = root;
    this.view = view;
    this.items = [];
    this.active = null; // the key of the active row
    this.cell = null; // the key of the active cell in it, null for the row itself
    this.#sizer = h("div", { class: "grid-sizer", role: "presentation" });
    root.append(this.#sizer);
    root.tabIndex = 0;
    root.addEventListener("scroll", () => this.paintSoon(), { passive: true });
    root.addEventListener("keydown", (event) => this.#press(event));
    root.addEventListener("focus", () => {
      // Who presses a row with a pointer has chosen one; who comes by the keyboard begins with the first in sight.
      if (this.active === null && this.items.length > 0 && root.matches(":focus-visible")) this.#moveTo(this.#first());
      else this.#announce();
    });
    new ResizeObserver(() => this.paintSoon()).observe(root);
  }

  #sizer;
  #rows = new Map(); // key → {element, number}
  #spare = [];
  #asked = 0;
  #numbers = new Map(); // key → place; made anew only when it is asked for
  #stale = true;

  /** Shows other items, or the same in another order. */
  show(items) {
    this.items = items;
    this.#stale = true;
    mark(this.root, "aria-rowcount", items.length + (this.view.heads ?? 0));
    this.paintSoon();
  }

  /** Takes everything out of the document, so that nothing of it can be read any more. */
  clear() {
    this.items = [];
    this.active = this.cell = null;
    this.#stale = true;
    this.#rows.clear();
    this.#spare = [];
    this.#sizer.replaceChildren();
    this.root.removeAttribute("aria-activedescendant");
  }

  /** Paints what is in sight with the next frame. */
  paintSoon() {
    // Asked of attributes: to ask whether it is to be seen would lay out the page, for each piece of news.
    if (this.#asked === 0 && !this.root.hidden && !this.root.parentElement.hidden) {
      this.#asked = requestAnimationFrame(() => {
        this.#asked = 0;
        this.paint();
      });
    }
  }

  /** Paints what is in sight now. */
  paint() {
    const { height, make, paint, key } = this.view;
    const all = this.items.length;
    const tall = `${all * height}px`;
    if (this.#sizer.style.height !== tall) this.#sizer.style.height = tall;
    const top = this.#first();
    const from = Math.max(0, top - BEYOND);
    const to = Math.min(all, top + Math.ceil(this.root.clientHeight / height) + 1 + BEYOND);
    const wanted = new Set();
    for (let number = from; number < to; number += 1) wanted.add(key(this.items[number]));
    for (const [each, row] of this.#rows) {
      if (!wanted.has(each)) {
        this.#rows.delete(each);
        this.#spare.push(row);
      }
    }
    for (let number = from; number < to; number += 1) {
      const item = this.items[number];
      const name = key(item);
      let row = this.#rows.get(name);
      if (row === undefined) {
        row = this.#spare.pop() ?? { element: this.#made(make()), number: -1 };
        row.number = -1;
        this.#rows.set(name, row);
        row.element.hidden = false;
      }
      if (row.number !== number) {
        row.number = number;
        row.element.style.transform = `translateY(${number * height}px)`;
        mark(row.element, "aria-rowindex", number + 1 + (this.view.heads ?? 0));
      }
      mark(row.element, "aria-selected", name === this.active ? "true" : "false");
      paint(row.element, item, number);
    }
    for (const row of this.#spare) {
      if (!row.element.hidden) {
        row.element.hidden = true;
        row.element.removeAttribute("id");
      }
    }
    this.#announce();
  }

  #made(element) {
    element.style.height = `${this.view.height}px`;
    this.#sizer.append(element);
    return element;
  }

  #first() {
    return Math.floor(this.root.scrollTop / this.view.height);
  }

  #place(name) {
    if (this.#stale) {
      this.#numbers = new Map(this.items.map((item, number) => [this.view.key(item), number]));
      this.#stale = false;
    }
    return this.#numbers.get(name) ?? -1;
  }

  /** The items that are in sight. */
  inSight() {
    const from = this.#first();
    return this.items.slice(from, from + Math.ceil(this.root.clientHeight / this.view.height) + 1);
  }

  /** Makes a row active, and brings it into sight unless it is there already. */
  select(name, cell = null, reveal = true) {
    this.active = name;
    this.cell = cell;
    const number = this.#place(name);
    if (reveal && number >= 0) this.#reveal(number);
    this.paintSoon();
  }

  #reveal(number) {
    const { height } = this.view;
    const above = number * height;
    const room = this.root.clientHeight;
    if (above < this.root.scrollTop) this.root.scrollTop = above;
    else if (above + height > this.root.scrollTop + room) this.root.scrollTop = above + height - room;
  }

  #moveTo(number, cell = null) {
    const item = this.items[number];
    if (item === undefined) return;
    this.active = this.view.key(item);
    this.cell = cell;
    this.#reveal(number);
    this.paint();
    this.view.onActive?.(item, cell);
  }

  #press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== this.root || this.items.length === 0) return;
    const here = this.#place(this.active);
    const page = Math.max(1, Math.floor(this.root.clientHeight / this.view.height) - 1);
    const last = this.items.length - 1;
    const cells = here >= 0 ? (this.view.cells?.(this.items[here]) ?? []) : [];
    const cell = cells.indexOf(this.cell);
    switch (event.key) {
      case "ArrowDown":
        this.#moveTo(Math.min(last, here + 1));
        break;
      case "ArrowUp":
        this.#moveTo(Math.max(0, here - 1));
        break;
      case "PageDown":
        this.#moveTo(Math.min(last, here + page));
        break;
      case "PageUp":
        this.#moveTo(Math.max(0, here - page));
        break;
      case "Home":
        this.#moveTo(0);
        break;
      case "End":
        this.#moveTo(last);
        break;
      case "ArrowRight":
        if (cells.length === 0) return;
        this.#moveTo(here, cells[Math.min(cells.length - 1, cell + 1)]);
        break;
      case "ArrowLeft":
        if (cells.length === 0) return;
        this.#moveTo(here, cell > 0 ? cells[cell - 1] : null);
        break;
      case "Enter":
      case " ":
        if (here >= 0) this.view.open?.(this.items[here], this.cell);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  /** Says which element is active: the cell if it is in the document, else its row. */
  #announce() {
    const row = this.#rows.get(this.active);
    let named = null;
    if (row !== undefined) {
      const found = this.cell === null ? null : row.element.querySelector(`[data-cell="${CSS.escape(this.cell)}"]`);
      named = (found ?? row.element).id || null;
    }
    mark(this.root, "aria-activedescendant", named);
  }
}
