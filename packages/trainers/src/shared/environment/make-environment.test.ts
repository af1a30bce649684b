import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type MakeEnvironmentOptions, makeEnvironment } from './make-environment.ts'

let folder: string
let bin: string
let directory: string
const env = () => ({ PATH: `${bin}:/usr/bin:/bin` })

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-uv-'))
  bin = join(folder, 'bin')
  directory = join(folder, 'environments', 'verl')
  await mkdir(bin)
  await program(join(bin, 'uv'), uv())
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function program(path: string, body: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
}

/** A uv that makes folders and logs its arguments. `install` runs in `uv pip install`. */
const uv = (install = ':') => `
echo "$*" >> ${folder}/asked
case "$1 $2" in
  "--version "*) echo "uv 0.13.9" ;;
  "venv "*) for last; do :; done; mkdir -p "$last/bin"; printf '#!/bin/sh\\n' > "$last/bin/python"; chmod +x "$last/bin/python" ;;
  "pip install") echo "Resolved 2 packages in 3ms" >&2; echo " + torch==2.13.0" >&2; ${install} ;;
esac`

const make = (more: Partial<MakeEnvironmentOptions> = {}) =>
  makeEnvironment({ directory, python: '3.11', installs: [['--requirement', 'pins.txt']], stamp: 'one', env: env(), ...more })
const beside = () => readdir(join(folder, 'environments'))
const commands = async () => (await readFile(join(folder, 'asked'), 'utf8')).trim().split('\n')

it('makes an environment, tells what is done, and does nothing the second time', async () => {
  const lines: string[] = []
  const first = await make({ onProgress: (line) => lines.push(line) })
  expect(first).toEqual({ python: join(directory, 'bin', 'python'), isNew: true })
  expect(existsSync(first.python)).toBe(true)
  expect(lines).toEqual(['Resolved 2 packages in 3ms'])
  const [, venv, install] = await commands()
  expect(venv).toMatch(/^venv --relocatable --python 3\.11 .*verl\.\d+-[0-9a-f]{8}\.draft$/)
  expect(install).toMatch(/^pip install --python .*\.draft\/bin\/python --requirement pins\.txt$/)
  expect(await make()).toEqual({ ...first, isNew: false })
  expect(await commands()).toHaveLength(3)
  expect(await beside()).toEqual(['verl'])
})

it('makes it anew when its stamp is another', async () => {
  await make()
  await writeFile(join(directory, 'old'), '')
  expect(await make({ stamp: 'two' })).toMatchObject({ isNew: true })
  expect(existsSync(join(directory, 'old'))).toBe(false)
  expect(await beside()).toEqual(['verl'])
})

it('that fails leaves nothing, says what uv said, and keeps the one that stood', async () => {
  await program(join(bin, 'uv'), uv('echo "error: No solution found" >&2; exit 1'))
  await expect(make()).rejects.toMatchObject({
    code: 'TRAINER_ENVIRONMENT',
    message: expect.stringMatching(/^uv pip install ended with 1: .*error: No solution found$/s),
  })
  expect(await beside()).toEqual([])
  await program(join(bin, 'uv'), uv())
  await make()
  await program(join(bin, 'uv'), uv('echo "failed to write: No space left on device (os error 28)" >&2; exit 2'))
  await expect(make({ stamp: 'two' })).rejects.toThrow(/The disk is full: free space, then run setup again\.$/)
  expect(await make()).toMatchObject({ isNew: false })
})

it('that is stopped leaves nothing and runs no longer', async () => {
  await program(join(bin, 'uv'), uv(`echo $$ > ${folder}/pid; sleep 60`))
  const controller = new AbortController()
  const making = make({ signal: controller.signal, onProgress: () => controller.abort(new Error('stopped by SIGINT')) })
  await expect(making).rejects.toThrow('stopped by SIGINT')
  expect(await beside()).toEqual([])
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8').catch(() => '0'))
  if (pid > 0) expect(() => process.kill(pid, 0)).toThrow()
})

it('that does not pass the last look is not put in place', async () => {
  const verify = async (python: string) => {
    expect(python).toMatch(/\.draft\/bin\/python$/)
    throw new Error('torch cannot be imported')
  }
  await expect(make({ verify })).rejects.toThrow('torch cannot be imported')
  expect(await beside()).toEqual([])
})

it('removes what a killed one left, and nothing of one that still runs', async () => {
  const dead = join(folder, 'environments', 'verl.999999999-0123abcd.draft')
  const alive = join(folder, 'environments', `verl.${process.pid}-0123abcd.draft`)
  const other = join(folder, 'environments', 'verl.notes')
  for (const each of [dead, alive, other]) await mkdir(each, { recursive: true })
  await make()
  expect((await beside()).sort()).toEqual(['verl', `verl.${process.pid}-0123abcd.draft`, 'verl.notes'].sort())
})

it('refuses a folder of somebody else, and takes an empty one', async () => {
  await mkdir(directory, { recursive: true })
  await make()
  const mine = join(folder, 'mine')
  await mkdir(mine)
  await writeFile(join(mine, 'thesis.txt'), '')
  await expect(make({ directory: mine })).rejects.toThrow(/mine stands already and was not made by setup; delete it, or name another/)
  await expect(make({ directory: join(mine, 'thesis.txt') })).rejects.toThrow(/stands already/)
  expect(await readdir(mine)).toEqual(['thesis.txt'])
})

it('two at the same time end with one environment', async () => {
  await program(join(bin, 'uv'), uv('sleep 0.1'))
  const made = await Promise.all([make(), make()])
  expect(new Set(made.map(({ python }) => python)).size).toBe(1)
  expect(await beside()).toEqual(['verl'])
  expect(await make()).toMatchObject({ isNew: false })
})

it('without uv on PATH lets pip put one beside the environments, and says so when it cannot', async () => {
  await rm(join(bin, 'uv'))
  const path = { PATH: bin }
  await program(join(bin, 'python3'), 'echo "No module named pip" >&2; exit 1')
  await expect(make({ env: path })).rejects.toThrow(
    /There is no uv, and "python3 -m pip install uv" did not work: No module named pip\. Install uv/,
  )
  await program(join(folder, 'uv'), `PATH=/usr/bin:/bin\n${uv()}`)
  await program(join(bin, 'python3'), `PATH=/usr/bin:/bin\nsleep 0.1; mkdir -p "$6/bin"; cp ${folder}/uv "$6/bin/uv"`)
  const [one, other] = await Promise.all([make({ env: path }), make({ env: path })])
  expect(one.python).toBe(other.python)
  expect((await beside()).sort()).toEqual(['uv', 'verl'])
})
