import { expect, onTestFinished, test } from 'vitest'
import type { WorkerGreeting, WorkerLink } from './rollout-workers.ts'
import { createScheduler } from './scheduler/scheduler.ts'
import { createSchedulerState } from './scheduler/scheduler-state.ts'
import { termsOfThisProcess, thisProcess, WorkerLinks } from './worker-links.ts'

/** Links with a real scheduler. `words` has what each worker is told. */
function start() {
  const words: string[] = []
  const state = createSchedulerState({ retries: 0, maxLosses: 1, concurrency: 4 })
  const scheduler = createScheduler(state, (command) => links.carryOut(command))
  const links = new WorkerLinks({ state, tell: scheduler.tell, fail: () => {} })
  onTestFinished(() => scheduler.close())
  function greet(name: string, overrides: Partial<WorkerGreeting> = {}): void {
    const say = (what: string) => () => void words.push(`${name} ${what}`)
    const link: WorkerLink = {
      execute: () => Promise.reject(new Error('Nothing is assigned here.')),
      hold: say('hold'),
      resume: say('resume'),
      fence: say('fence'),
      kept: say('kept'),
      dismiss: say('dismiss'),
    }
    links.hello({ ...termsOfThisProcess(2), graceMs: 60_000, ...overrides, name, link })
  }
  const names = () => links.rows().map(({ name, status }) => `${name} ${status}`)
  return { links, words, greet, names }
}

test('a worker is listed from its greeting on, where it stands, and this process is not', () => {
  const { links, greet, names } = start()
  for (const name of [thisProcess, 'a', 'b']) greet(name)
  links.drain('a')
  links.disconnect('b')
  expect(names()).toEqual(['a draining', 'b away'])
  greet('a', { slots: 3 })
  expect([names(), links.rows().at(-1)!.slots]).toEqual([['b away', 'a connected'], 3])
})

test('a lost worker has no link and stays listed with what was lost, one that left is gone', () => {
  const { links, greet, names, words } = start()
  for (const name of ['a', 'b']) greet(name)
  links.lostAttempt('a')
  links.exit('a')
  links.leave('b')
  expect([names(), links.find('a'), links.find('b')]).toEqual([['a lost'], undefined, undefined])
  expect(words.slice(2)).toEqual(['a dismiss', 'b dismiss'])
  greet('a')
  expect(links.rows()).toMatchObject([{ name: 'a', status: 'connected', lostAttempts: 1 }])
})

test('a hundred lost workers are listed, those that greeted last', () => {
  const { links, greet, names } = start()
  for (let index = 0; index < 102; index++) {
    greet(`w${index}`)
    links.exit(`w${index}`)
  }
  greet('alive')
  expect([names().length, names()[0], names().at(-1)]).toEqual([101, 'w2 lost', 'alive connected'])
})

test('what a worker has that nobody assigned is fenced, and one that is unknown is told nothing', () => {
  const { links, greet, words } = start()
  greet('a', { holding: [{ key: 'x', attempt: 0 }] })
  links.beat('unknown', [{ key: 'x', attempt: 0 }])
  expect(words).toEqual(['a resume', 'a fence'])
})

test('the clocks of all workers stand still, also of those that greet meanwhile', () => {
  const { links, greet, words } = start()
  for (const name of ['a', 'gone']) greet(name)
  links.exit('gone')
  links.pause(true)
  greet('b')
  links.pause(false)
  expect(words).toEqual(['a resume', 'gone resume', 'gone dismiss', 'a hold', 'b hold', 'a resume', 'b resume'])
})
