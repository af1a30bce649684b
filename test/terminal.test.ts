import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createScreen } from '../packages/cli/src/terminal/screen.test-support.ts'
import { runAtTerminal } from './support/run-at-terminal.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject } from './support/tiny-project.ts'

const cli = [process.execPath, 'packages/cli/src/main.ts']

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-terminal-'))
  model = await makeTinyModel(join(folder, 'model'))
}, 60_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

describe.skipIf(process.platform === 'win32')('train at a terminal, which Windows has no pty module for', () => {
  it.each([40, 80])('of %i columns draws its line in place and leaves every line it prints', async (columns) => {
    const project = await makeProject(folder, model, { config: { training: { steps: 6 } } })
    const { code, shown } = await runAtTerminal([...cli, 'train', project.folder], { columns })
    expect(code, shown).toBe(0)
    expect(shown).toMatch(/\r[^\n]*train .*\d\/6 steps/)
    const screen = createScreen(columns)
    screen.write(shown)
    const lines = screen.lines()
    expect(lines.filter((line) => line.includes('/6 steps'))).toEqual([])
    const printed = shown.split('\n').map((line) => line.slice(line.lastIndexOf('\r', line.length - 2) + 1))
    const broken = printed.reduce((sum, line) => sum + Math.floor(line.length / columns), 0)
    expect(lines.length).toBeLessThanOrEqual(printed.length + broken)
  })
})
