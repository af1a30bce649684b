import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createScreen } from '../packages/cli/src/terminal/screen.test-support.ts'
import { runAtTerminal } from './support/run-at-terminal.ts'
import { repository, runCli } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject } from './support/tiny-project.ts'

const cli = [process.execPath, 'packages/cli/src/main.ts']

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-terminal-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

describe.skipIf(process.platform === 'win32')('train at a terminal, which Windows has no pty module for', () => {
  it('of 40 columns draws its line in place and leaves every line it prints', async () => {
    const columns = 40
    const project = await makeProject(folder, model, { config: { training: { steps: 4 } } })
    const { code, shown } = await runAtTerminal([...cli, 'train', project.folder], { columns })
    expect(code, shown).toBe(0)
    expect(shown).toMatch(/\r[^\n]*train .*\d\/4 steps/)
    const screen = createScreen(columns)
    screen.write(shown)
    const lines = screen.lines()
    expect(lines.filter((line) => line.includes('/4 steps'))).toEqual([])
    const printed = shown.split('\n').map((line) => line.slice(line.lastIndexOf('\r', line.length - 2) + 1))
    const broken = printed.reduce((sum, line) => sum + Math.floor(line.length / columns), 0)
    expect(lines.length).toBeLessThanOrEqual(printed.length + broken)
  })

  it('prints at Ctrl-C the command that resumes, as a shell takes it', async () => {
    const parent = join(folder, "somebody's runs")
    await mkdir(parent)
    const project = await makeProject(parent, model, { config: { training: { steps: 12 } } })
    const runPath = join(parent, 'my runs')
    const args = ['train', project.folder, '--new', '--seed', '4', '--run-path', runPath]
    let typed = false
    const stopped = await runAtTerminal([...cli, ...args], {
      columns: 80,
      onText(shown) {
        if (typed || !/[1-9]\/12 steps/.test(shown)) return undefined
        typed = true
        return '\u0003'
      },
    })
    expect(stopped.code, stopped.shown).toBe(130)
    const [, run = '', command = ''] = /stopped; to resume (.*):\s+(.*?)\s*$/.exec(stripVTControlCharacters(stopped.shown)) ?? []
    expect(command).toMatch(/^npx aworld-train train '.*' --seed 4 --run-path '.*' --resume project-?.*$|--resume /)
    const env = { ...process.env, AWORLD_TRAIN_SIMD: 'plain', NO_COLOR: '1' }
    const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: repository, env })
    expect(stdout).toMatch(new RegExp(`${basename(run)} +\\(resumed after step \\d+\\)`))
  })
})

describe('an output that nobody reads any more', () => {
  it.each([['--help'], ['train', '--help'], ['replay', 'nowhere']])('ends %s %s without a word', async (...args) => {
    const { code, stderr } = await runCli(args, {
      onStart: (child) => [child.stdout, args[0] === 'replay' ? child.stderr : null].map((each) => each?.destroy()),
    })
    expect({ code, stderr }).toEqual({ code: 141, stderr: '' })
  })

  it('stops a training, which then can be resumed', async () => {
    const project = await makeProject(folder, model)
    const { code, stderr } = await runCli(['train', project.folder], { onLine: (_line, child) => child.stdout?.destroy() })
    expect({ code, stderr }).toEqual({ code: 141, stderr: '' })
    const again = await runCli(['train', project.folder])
    expect(again.code, again.stderr).toBe(0)
    expect(again.stdout).toContain('resumed after step')
    const [run, ...others] = await project.runs()
    expect(others).toEqual([])
    const replayed = await runCli(['replay', run as string, '--all'], { onStart: (child) => child.stdout?.destroy() })
    expect(replayed).toMatchObject({ code: 141, stderr: '' })
  })
})
