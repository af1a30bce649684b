import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { groupAdvantages } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { repository } from './support/run-cli.ts'

const whole = 8
const first = 4

/** Expectations over all groups of a task that is solved with probability p; `ends` says how many samples of a group are taken. */
function expectations(p: number, ends: (rewards: readonly number[]) => number): { push: number; rollouts: number } {
  const expected = { push: 0, rollouts: 0 }
  for (let bits = 0; bits < 2 ** whole; bits++) {
    const rewards = Array.from({ length: whole }, (_, i) => (bits >> i) & 1)
    const taken = rewards.slice(0, ends(rewards))
    const chance = rewards.reduce((product, reward) => product * (reward === 1 ? p : 1 - p), 1)
    const { advantages } = groupAdvantages(taken, 'group-relative')
    // Given its reward, the score of a sample is in the mean (reward - p) times the gradient of the logit of p.
    expected.push += chance * taken.reduce((sum, reward, i) => sum + advantages[i]! * (reward - p), 0)
    expected.rollouts += chance * taken.length
  }
  return expected
}

it('the guide says what ending solved groups does to the gradient of a task', async () => {
  const page = await readFile(join(repository, 'docs/3.guides/rollouts-that-teach.md'), 'utf8')
  const rows = [...page.matchAll(/^\| (0\.\d+) \| (\d\.\d\d) \| (\d\.\d\d) \|$/gm)].map((row) => row.slice(1) as [string, string, string])
  expect(rows.length).toBeGreaterThanOrEqual(4)
  const computed = rows.map(([p]) => {
    const all = expectations(Number(p), () => whole)
    const early = expectations(Number(p), (rewards) => (rewards.slice(0, first).every((reward) => reward === 1) ? first : whole))
    return [p, (early.push / all.push).toFixed(2), (early.rollouts / all.rollouts).toFixed(2)]
  })
  expect(rows).toEqual(computed)
})
