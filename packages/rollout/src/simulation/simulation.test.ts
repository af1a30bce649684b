import { expect, test } from 'vitest'
import { plantedBugs } from './planted-bugs.test-support.ts'
import { simulate } from './simulate.test-support.ts'

/** Each life takes about a tenth of a second of a processor. */
const seeds = Number(process.env['AWORLD_SIMULATION_SEEDS'] ?? 100)
/** Lives in which a planted bug must show. */
const seedsOfBugs = 200

const namedStates = [
  'all workers killed',
  'another start of a worker with work',
  'assignment lost on its way',
  'assignment lost with its connection',
  'attempt lost',
  'begun again',
  'call to a closed URL',
  'cancelled while it runs',
  'cancelled: beginning',
  'cancelled: doubted',
  'cancelled: ending',
  'cancelled: queued',
  'cancelled: running',
  'cancelled: waiting',
  'connection lost',
  'coordinator killed',
  'coordinator sees that it stood still',
  'coordinator stands still',
  'exit of a worker with work',
  'failed and tried again',
  'given up alone',
  'half-open connection',
  'hello while a rollout begins',
  'holds what nobody assigned',
  'killed at the commit of a begin',
  'killed at the commit of a cancellation',
  'killed at the commit of a release',
  'killed at the commit of a result',
  'killed at the commit of a submission',
  'killed at the commit of a turn',
  'killed before a commit',
  'killed between commit and answer',
  'late duplicate',
  'reconnect keeps an attempt',
  'result after fence',
  'result while it is dealt with',
  'store refused a turn',
  'suspect cleared',
  'suspect runs alone',
  'task kills its worker',
  'worker drains',
  'worker gives up what it has',
  'worker gone for good',
  'worker killed',
  'worker left',
  'worker stopped',
]

test(`nothing breaks in ${seeds} lives of a coordinator and its workers, and each named state was reached`, async () => {
  const reached: Record<string, number> = Object.fromEntries(namedStates.map((state) => [state, 0]))
  const broken: string[] = []
  for (let seed = 1; seed <= seeds; seed++) {
    const { states, broken: invariant, notes } = await simulate(seed)
    if (invariant !== null) broken.push([`seed ${seed}: ${invariant}`, ...notes].join('\n'))
    for (const [state, times] of Object.entries(states)) reached[state] = (reached[state] ?? 0) + times
  }
  console.info(
    Object.entries(reached)
      .map(([state, times]) => `${String(times).padStart(8)}  ${state}`)
      .join('\n'),
  )
  expect(broken).toEqual([])
  expect(Object.keys(reached).sort()).toEqual(namedStates)
  expect(namedStates.filter((state) => reached[state] === 0)).toEqual([])
}, 600_000)

test('the same seed is the same life', async () => {
  const [first, second] = [await simulate(3), await simulate(3)]
  expect(second).toEqual(first)
}, 60_000)

test.each(plantedBugs)(
  'finds that $breaks where $name',
  async (bug) => {
    // In some lives the bug breaks another invariant first.
    for (let seed = 1; seed <= seedsOfBugs; seed++) if ((await simulate(seed, bug)).broken === bug.breaks) return
    expect.unreachable(`${bug.name} was not found in ${seedsOfBugs} seeds.`)
  },
  300_000,
)
