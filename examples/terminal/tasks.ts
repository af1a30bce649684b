import { createRandom } from './random.ts'

export const items = ['apples', 'beans', 'carrots', 'dates', 'eggs', 'figs', 'grapes', 'hazelnuts']
export const numbers = Array.from({ length: 40 }, (_, index) => String(100 + index))

/** A question about a file that every rollout has for itself, under one name: what another's says is another number. */
export type StockTask = {
  readonly id: string
  readonly prompt: string
  readonly answer: string
  readonly data_source: string
  readonly setup: { readonly files: { readonly 'stock.txt': string } }
}

export const questionOf = (item: string) => `How many ${item} are in stock?`
export const commandFor = (item: string) => `grep ${item} stock.txt`
export const lineOf = (item: string, number: string) => `${item} ${number}`

/** Tasks over random numbers, the same for the same seed. */
export function makeTasks(count: number, seed: number): StockTask[] {
  const random = createRandom(seed)
  return Array.from({ length: count }, (_, index) => {
    const stock = items.map((item) => [item, numbers[Math.floor(random() * numbers.length)]!] as const)
    const [item, answer] = stock[Math.floor(random() * stock.length)]!
    const file = stock.map(([each, number]) => `${lineOf(each, number)}\n`).join('')
    return { id: `stock-${seed}-${index}`, prompt: questionOf(item), answer, data_source: 'stock', setup: { files: { 'stock.txt': file } } }
  })
}
