import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { createPause } from './pause.ts'

const programs: ReturnType<typeof spawn>[] = []
afterEach(() => {
  for (const program of programs.splice(0)) program.kill('SIGKILL')
})

async function start() {
  const program = spawn('cat', { stdio: ['pipe', 'pipe', 'ignore'] })
  programs.push(program)
  await once(program, 'spawn')
  const state = () => readFileSync(`/proc/${program.pid}/stat`, 'utf8').split(' ')[2]
  const answers = async () => {
    program.stdin.write('more\n')
    return String((await once(program.stdout, 'data'))[0])
  }
  return { pid: program.pid!, state, answers }
}

test.runIf(process.platform === 'linux')(
  'what runs is stopped while work is done, and goes on afterwards, even if the work fails',
  async () => {
    const { pid, state, answers } = await start()
    const pause = createPause(async () => [pid])
    expect(await pause.during(async () => state())).toBe('T')
    expect(await answers()).toBe('more\n')
    await expect(pause.during(() => Promise.reject(new Error(`It was ${state()}.`)))).rejects.toThrow('It was T.')
    expect(await answers()).toBe('more\n')
  },
)

test('works take turns, and nobody goes on before the last of them is over', async () => {
  const pause = createPause(async () => [])
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = pause.during(async () => {
    await gate.promise
    order.push('first')
  })
  const over = pause.over().then(() => order.push('over'))
  const second = pause.during(async () => order.push('second'))
  gate.resolve()
  await Promise.all([first, second, over])
  expect(order).toEqual(['first', 'second', 'over'])
})
