/** Strings by number, so that each is sent once; for those of which there are few. */
export interface Strings {
  number(text: string): number
  /** Those that were not taken before, in the order of their numbers. */
  take(): string[]
}

export function createStrings(): Strings {
  const numbers = new Map<string, number>()
  let added: string[] = []
  return {
    number(text) {
      let number = numbers.get(text)
      if (number === undefined) {
        number = numbers.size
        numbers.set(text, number)
        added.push(text)
      }
      return number
    },
    take() {
      const taken = added
      added = []
      return taken
    },
  }
}
