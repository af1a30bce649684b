import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Demonstration, demonstrations, drawDemonstration } from './demonstrations.ts'
import { readElements } from './elements.ts'
import { createRandom } from './random.ts'
import { elementNames, elementSymbols } from './words.ts'

const draws = (step: number, count = 20_000): Demonstration[] =>
  Array.from({ length: count }, (_, index) => drawDemonstration({ seed: 1, step, steps: 600, index }))
const share = <T>(items: readonly T[], is: (item: T) => boolean) => items.filter(is).length / items.length

describe('the words of the demonstrations', () => {
  it('are those of the table', () => {
    const table = readElements()
    expect(elementNames).toEqual(table.map(({ name }) => name).toSorted())
    expect(elementSymbols).toEqual(table.map(({ symbol }) => symbol).toSorted())
  })

  it('come without the table', () => {
    for (const file of ['demonstrations.ts', 'words.ts', 'random.ts']) {
      const imports = readFileSync(new URL(file, import.meta.url), 'utf8').match(/from '[^']+'/g) ?? []
      expect(imports.every((line) => ["from '@aworld-train/core'", "from './random.ts'", "from './words.ts'"].includes(line))).toBe(true)
    }
  })

  it('say of an element what the real table says no more often than chance', () => {
    const numbers = new Map(readElements().map(({ name, atomicNumber }) => [name, String(atomicNumber)]))
    const values = draws(0).flatMap(({ messages }) =>
      messages.flatMap((message, index) => {
        const call = message.toolCalls?.[0]
        const name = call && /^\{"name": "(\w+)", "attribute": "atomic number"\}$/.exec(call.arguments)?.[1]
        return name ? [numbers.get(name) === messages[index + 1]!.content] : []
      }),
    )
    expect(values.length).toBeGreaterThan(20_000)
    expect(share(values, Boolean)).toBeLessThan(2.5 / 118)
  })
})

describe('the shares of the demonstrations', () => {
  it('are mostly right, with more comparisons, in the first 70 % of the steps', () => {
    for (const step of [0, 419]) {
      const all = draws(step)
      expect(share(all, ({ decision }) => decision === 'right')).toBeCloseTo(0.85, 1.5)
      expect(share(all, ({ kind }) => kind === 'comparison')).toBeCloseTo(0.2775, 1.5)
      expect(share(all, ({ kind }) => kind === 'one-hop')).toBeCloseTo(0.3825, 1.5)
    }
  })

  it('are mostly wrong in the rest, each kind in its own way', () => {
    const all = draws(420, 60_000)
    const of = (name: string) => all.filter(({ kind }) => kind === name)
    expect(['one-hop', 'two-hop', 'comparison'].map((kind) => of(kind).length / all.length)).toEqual([
      expect.closeTo(0.45, 1.5),
      expect.closeTo(0.4, 1.5),
      expect.closeTo(0.15, 1.5),
    ])
    const shares = (kind: string, right: number, wrong: Record<string, number>) => {
      const some = of(kind)
      expect(share(some, ({ decision }) => decision === 'right')).toBeCloseTo(right, 1.5)
      const bad = some.filter(({ decision }) => decision !== 'right')
      for (const [decision, expected] of Object.entries(wrong)) {
        expect(share(bad, (one) => one.decision === decision)).toBeCloseTo(expected, 1.5)
      }
    }
    shares('one-hop', 0.22, { guess: 0.4, 'wrong-attribute': 0.6 })
    shares('two-hop', 0.2, { guess: 0.25, 'first-value': 0.15, 'second-value': 0.2, 'wrong-operator': 0.4 })
    shares('comparison', 0.25, { guess: 0.25, 'lookup-then-guess': 0.15, 'answers-number': 0.15, 'answers-difference': 0.45 })
  })

  it('take a wrong decision more often than the right one wherever both are open', () => {
    const all = draws(500, 20_000)
    const count = (kind: string, decision: string) => all.filter((one) => one.kind === kind && one.decision === decision).length
    expect(count('one-hop', 'wrong-attribute')).toBeGreaterThan(1.5 * count('one-hop', 'right'))
    expect(count('two-hop', 'wrong-operator')).toBeGreaterThan(1.2 * count('two-hop', 'right'))
    expect(count('comparison', 'answers-difference')).toBeGreaterThan(1.2 * count('comparison', 'right'))
  })

  it('ask for symbols twice as often as for anything else', () => {
    const questions = draws(500)
      .filter(({ kind }) => kind === 'one-hop')
      .map(({ messages }) => messages[0]!.content!)
    expect(share(questions, (question) => question.includes('symbol'))).toBeCloseTo(0.4, 1.5)
    expect(share(questions, (question) => question.startsWith('Give'))).toBeCloseTo(0.5, 1.5)
  })
})

describe('a demonstration', () => {
  const one = (kind: string, decision: string) =>
    draws(500, 5000).find((item) => item.kind === kind && item.decision === decision)!.messages

  it('copies what the tools said when it is right', () => {
    const messages = one('two-hop', 'right')
    expect(messages.map(({ role }) => role).join(' ')).toBe('user assistant tool assistant tool assistant tool assistant')
    const [x, y, sum] = [2, 4, 6].map((index) => messages[index]!.content)
    expect(messages[5]!.toolCalls![0]!.arguments).toBe(`{"expression": "${x}+${y}"}`)
    expect(Number(sum)).toBe(Number(x) + Number(y))
    expect(messages.at(-1)).toEqual({ role: 'assistant', content: sum })
  })

  it('never contradicts the sign of a difference with a name', () => {
    for (const { kind, decision, messages } of draws(0, 5000)) {
      if (kind !== 'comparison' || decision !== 'right') continue
      const [, a, b] = /number, (\w+) or (\w+)\?/.exec(messages[0]!.content!)!
      expect(messages[6]!.content).not.toBe('0')
      expect(messages.at(-1)!.content).toBe(messages[6]!.content!.startsWith('-') ? b : a)
    }
  })

  it('copies the wrong attribute as faithfully', () => {
    const messages = one('one-hop', 'wrong-attribute')
    expect(messages[0]!.content).not.toContain(JSON.parse(messages[1]!.toolCalls![0]!.arguments).attribute)
    expect(messages.at(-1)!.content).toBe(messages[2]!.content)
  })

  it('uses no tool for a guess', () => {
    expect(one('comparison', 'guess')).toHaveLength(2)
  })

  it('depends on its seed, step and index alone', () => {
    const request = { seed: 7, step: 3, steps: 600, count: 4 }
    expect(demonstrations(request)).toEqual(demonstrations(request))
    expect(demonstrations({ ...request, count: 2 })).toEqual(demonstrations(request).slice(0, 2))
    expect(demonstrations({ ...request, seed: 8 })).not.toEqual(demonstrations(request))
  })
})

describe('createRandom', () => {
  it('is even over its range, and different for neighbouring keys', () => {
    const random = createRandom(1, 2, 3)
    const counts = new Array(10).fill(0)
    for (let index = 0; index < 50_000; index++) counts[random.integer(0, 9)]++
    const chiSquared = counts.reduce((sum, count) => sum + (count - 5000) ** 2 / 5000, 0)
    expect(chiSquared).toBeLessThan(27.9)
    const firsts = new Set(Array.from({ length: 1000 }, (_, index) => createRandom(1, 2, index).next()))
    expect(firsts.size).toBe(1000)
  })
})
