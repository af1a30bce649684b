import { createRandom } from '../terminal/random.ts'

export const cities = ['Accra', 'Berne', 'Cairo', 'Hanoi', 'Kyoto', 'Lima', 'Oslo', 'Quito']
export const words = ['calm', 'cloud', 'dew', 'fog', 'frost', 'hail', 'haze', 'mist', 'rain', 'snow', 'sun', 'wind']
export const numbers = Array.from({ length: 20 }, (_, index) => index + 1)
export const sums = Array.from({ length: 4 * numbers.length }, (_, index) => String(index + 1))

export type Random = () => number
export const pick = <Item>(random: Random, items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item

/** Two to four different cities, half of the time four. */
export function pickCities(random: Random): string[] {
  const count = pick(random, [2, 3, 4, 4])
  const picked = new Set<string>()
  while (picked.size < count) picked.add(pick(random, cities))
  return [...picked]
}

export const questionOf = (names: readonly string[]) => `Add the numbers of ${names.join(', ')}`

/** A page of words that ends with the number. */
export function pageOf(random: Random, number: number): string {
  const page = Array.from({ length: 26 }, () => pick(random, words))
  page.push(String(number))
  return page.join(' ')
}

export type SourceTask = {
  readonly id: string
  readonly prompt: string
  readonly answer: string
  readonly data_source: string
  readonly extra_info: { readonly kind: string }
  /** What the reader's tool finds: numbers of this task alone, so that none can be learned by heart. */
  readonly data: { readonly pages: Readonly<Record<string, string>> }
}

/** Tasks over random numbers, the same for the same seed. */
export function makeTasks(count: number, seed: number): SourceTask[] {
  const random = createRandom(seed)
  return Array.from({ length: count }, (_, index) => {
    const entries = pickCities(random).map((city) => [city, pick(random, numbers)] as const)
    return {
      id: `sources-${seed}-${index}`,
      prompt: questionOf(entries.map(([city]) => city)),
      answer: String(entries.reduce((sum, [, number]) => sum + number, 0)),
      data_source: 'source-readers',
      extra_info: { kind: `${entries.length} pages` },
      data: { pages: Object.fromEntries(entries.map(([city, number]) => [city, pageOf(random, number)])) },
    }
  })
}
