import type { RunReport } from 'aworld-train'
import { expect, it } from 'vitest'
import { besideEachOther } from './curves.ts'

const report = (reward: number) => ({ reward }) as RunReport['before']
const curve = (...rewards: number[]) => rewards.map((reward, index) => ({ step: index + 1, reward, metrics: {} }))

it('two curves stand beside each other, and what is missing is shown as missing', () => {
  const table = besideEachOther({
    verl: { before: report(0.2), curve: curve(0.25, 0.5), after: report(0.8) },
    local: { before: report(0.19), curve: curve(0.2, 0.45, 1), after: null },
  })
  expect(table).toMatchInlineSnapshot(`
    "                  verl       local
    before            0.20        0.19
    step 1            0.25        0.20
    step 2            0.50        0.45
    step 3               —        1.00
    after             0.80           —

    verl      ▃▅
    local     ▂▄█"
  `)
})
