import type { Value } from './values.ts'

/** Marks a variable that its scope has not set, so that the outer scopes are searched. */
const unset = Symbol('unset')
type Slot = Value | typeof unset

/** The state of one run of a template. */
export interface Run {
  /** Set by `break` and `continue` until the loop around them has seen it. */
  signal: 'none' | 'break' | 'continue'
}

/** The variables of one block while it runs. */
export class Frame {
  readonly slots: Slot[]
  readonly parent: Frame | null
  readonly run: Run

  constructor(size: number, parent: Frame | null, run: Run) {
    this.slots = new Array<Slot>(size).fill(parent === null ? undefined : unset)
    this.parent = parent
    this.run = run
  }
}

export type Evaluate = (frame: Frame) => Value

/** Names of one block at compile time. Blocks nest as in jinja2. */
export class Scope {
  readonly names = new Map<string, number>()
  readonly parent: Scope | null
  readonly #markup = new Set<string>()

  constructor(parent: Scope | null) {
    this.parent = parent
  }

  /** Marks a variable that may hold text marked by the filter `safe`. */
  addMarkup(name: string): void {
    this.#markup.add(name)
  }

  isMarkup(name: string): boolean {
    return this.#markup.has(name) || (this.parent?.isMarkup(name) ?? false)
  }

  slot(name: string): number {
    const slot = this.names.get(name)
    if (slot !== undefined) return slot
    this.names.set(name, this.names.size)
    return this.names.size - 1
  }

  /** Places where a name may be found, nearest first. The outermost scope has every name. */
  #places(name: string): { readonly up: number; readonly slot: number }[] {
    const places: { up: number; slot: number }[] = []
    let up = 0
    for (let scope: Scope = this; ; scope = scope.parent, up += 1) {
      if (scope.parent === null) {
        places.push({ up, slot: scope.slot(name) })
        return places
      }
      const slot = scope.names.get(name)
      if (slot !== undefined) places.push({ up, slot })
    }
  }

  read(name: string): Evaluate {
    const places = this.#places(name)
    const [first] = places
    if (places.length === 1 && first) {
      const { up, slot } = first
      if (up === 0) return (frame) => frame.slots[slot] as Value
      if (up === 1) return (frame) => frame.parent!.slots[slot] as Value
      return (frame) => ancestor(frame, up).slots[slot] as Value
    }
    return (frame) => {
      for (const { up, slot } of places) {
        const value = ancestor(frame, up).slots[slot]
        if (value !== unset) return value as Value
      }
      return undefined
    }
  }

  write(name: string): (frame: Frame, value: Value) => void {
    const slot = this.slot(name)
    return (frame, value) => {
      frame.slots[slot] = value
    }
  }
}

function ancestor(frame: Frame, up: number): Frame {
  let current = frame
  for (let index = 0; index < up; index += 1) current = current.parent!
  return current
}
