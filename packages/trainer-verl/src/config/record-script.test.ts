import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { recordScript } from './record-script.ts'

let directory: string
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'aworld-train-record-')))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const record = async (text: string, options: { arguments?: string[]; environment?: Record<string, string>; timeoutMs?: number } = {}) => {
  const file = join(directory, 'train.sh')
  writeFileSync(file, text)
  return await recordScript(file, { shown: 'train.sh', arguments: [], environment: {}, directory, ...options })
}
const keys = async (text: string, options?: Parameters<typeof record>[1]) => {
  const script = await record(text, options)
  expect(script.problems).toEqual([])
  return script.arguments.map((each) => each.text)
}
const main = 'python3 -m verl.trainer.main_ppo'

describe('a launch script', () => {
  it('is what bash makes of it', async () => {
    writeFileSync(join(directory, 'env.sh'), 'export lr=5e-4\n')
    const text = `source env.sh\nhere=$(cd "$(dirname "\${BASH_SOURCE[0]}")" && pwd)\nfor n in 8; do\n  ${main} a.lr=$lr a.n=$n a.here=$here/x "$@" 2>&1 | tee log.txt\ndone\n`
    expect(await keys(text, { arguments: ['k.t=x y', "k.u=it's"] })).toEqual([
      'a.lr=5e-4',
      'a.n=8',
      `a.here=${directory}/x`,
      'k.t=x y',
      "k.u=it's",
    ])
  })

  it.each([
    ['by its path', '/usr/bin/env python3 -u -m verl.trainer.main_ppo k=1'],
    ['by an absolute path', `"$(PATH=\${PATH#*:} command -v python3)" -m verl.trainer.main_ppo k=1`],
    ['after another folder stands before it on PATH', `PATH=\${PATH#*:}\npython3 -m verl.trainer.main_ppo k=1`],
    ['as a file', 'python3 /x/main_ppo.py k=1'],
    ['by torchrun', 'torchrun --nnodes 1 -m verl.trainer.main_ppo k=1'],
    ['by Ray', 'ray start --head\nray job submit -- python3 -m verl.trainer.main_ppo k=1'],
  ])('may start the trainer %s', async (_, text) => {
    expect(await keys(text)).toEqual(['k=1'])
  })

  it('names the line of a key, and exports for verl', async () => {
    const script = await record(`export A=1 B=two\nC=3\nD=4 ${main} \\\n  a.b=1 \\\n  "\${X:-c.d=2}"\n`, { environment: { B: 'two' } })
    expect(script.arguments).toEqual([
      { text: 'a.b=1', where: 'train.sh line 4' },
      { text: 'c.d=2', where: 'train.sh line 5' },
    ])
    expect(script.exports).toEqual({ A: '1', D: '4' })
  })

  it('removes, fetches and installs nothing, and says so', async () => {
    const kept = join(directory, 'kept')
    writeFileSync(kept, '')
    const script = await record(`rm -f kept\npip install x\npython3 prepare.py\ntouch made\n${main} k=1`)
    expect([existsSync(kept), existsSync(join(directory, 'made'))]).toEqual([true, true])
    expect(script.notes).toEqual([
      expect.stringContaining('train.sh was run to see what it starts'),
      'train.sh: "rm -f kept" was refused.',
      'train.sh: "pip install x" was refused.',
      'train.sh: "python3 prepare.py" was not run.',
    ])
  })

  it('says which overrides ran together for want of a blank, and reads them apart', async () => {
    const script = await record(`${main} a.b="x"\\\nc.d="y"\\\ne.f=z`)
    expect(script.arguments.map(({ text }) => text)).toEqual(['a.b=x', 'c.d=y', 'e.f=z'])
    expect(script.notes.join()).toMatch(/a blank is missing .*c\.d and e\.f/)
  })

  it.each([
    ['echo nothing', /it starts no trainer/],
    [`set -e\ncurl http://127.0.0.1/x\n${main} k=1`, /starts no trainer.*it ended with 1.*"curl http:\/\/127.0.0.1\/x" was not run/],
    [`${main} k=1\n${main} k=2`, /it starts two trainers/],
    [`${main} k=\${N:?give N}`, /N: give N/],
    [`${main} k="a`, /unexpected EOF/],
  ])('%j is a problem', async (text, message) => expect((await record(text)).problems.join('\n')).toMatch(message))

  it('is ended after a time, with what it left in the background', async () => {
    const script = await record(`(sleep 2; touch late) &\nsleep 30`, { timeoutMs: 500 })
    expect(script.problems.join()).toMatch(/was ended after 0\.5 seconds/)
    expect((await record(`sleep 30 &\n${main} k=1\nsleep 30`, { timeoutMs: 1000 })).arguments).toHaveLength(1)
    await new Promise((done) => setTimeout(done, 2000))
    expect(existsSync(join(directory, 'late'))).toBe(false)
  })
})
