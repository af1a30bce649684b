import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { repository, runCli } from './support/run-cli.ts'
import { runNode, runNpm } from './support/run-npm.ts'

let folder: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'aworld train init ')))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

it('makes a project, from a checkout, that uses the checkout: it type-checks, passes its tests and trains', async () => {
  const project = join(folder, 'My Agent')
  expect(await runCli(['init', 'My Agent'], { cwd: folder })).toMatchObject({ code: 0, stdout: expect.stringContaining('npm run train') })
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  const facade = join(repository, 'packages', 'aworld-train').replaceAll('\\', '/')
  expect(manifest).toMatchObject({ name: 'my-agent', dependencies: { 'aworld-train': `file:${facade}` } })
  expect(readdirSync(project)).toEqual(expect.arrayContaining(['.gitignore', '.npmrc']))
  expect(await runNpm(['install', '--offline', '--no-audit', '--no-fund'], project)).toMatchObject({ code: 0 })

  const page = readFileSync(join(repository, 'docs/1.start/first-agent.md'), 'utf8')
  const [, program = ''] = /```ts\n((?:(?!```)[\s\S])*new AgentTrainer\(training\)[\s\S]*?)```/.exec(page) ?? []
  writeFileSync(join(project, 'train.ts'), program)
  const [, shortProgram = ''] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(repository, 'README.md'), 'utf8')) ?? []
  expect(shortProgram).toContain('steps: 25')
  writeFileSync(join(project, 'short.ts'), shortProgram.replace('steps: 25', 'steps: 1'))
  expect(await runNpm(['exec', '--', 'tsc', '--noEmit', '--checkers', '1'], project)).toEqual({ code: 0, output: '' })
  expect(await runNpm(['test'], project)).toMatchObject({ code: 0, output: expect.stringMatching(/Tests .*3 passed/) })

  // Whether it learns is tried with the packed packages; here a few demonstrations will do.
  const warmUp = join(project, 'warm-up.ts')
  writeFileSync(warmUp, readFileSync(warmUp, 'utf8').replace(/const steps = \d+/, 'const steps = 2'))
  const trained = await runNpm(['run', 'train', '--', '--steps', '1'], project)
  expect(trained).toMatchObject({ code: 0, output: expect.stringContaining('held-out reward') })

  const configuration = join(project, 'aworld-train.config.ts')
  writeFileSync(configuration, readFileSync(configuration, 'utf8').replace('steps: 25', 'steps: 1'))
  for (const file of ['train.ts', 'short.ts']) {
    const byProgram = await runNode([file], project)
    expect(byProgram).toMatchObject({ code: 0, output: expect.stringMatching(/^held-out reward [\d.]+ before, [\d.]+ after$/m) })
  }
})

it('names every package that the files of a project import, or the page that goes on from them', async () => {
  const project = join(folder, 'my-agent')
  await runCli(['init', 'my-agent'], { cwd: folder })
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  const page = readFileSync(join(repository, 'docs/1.start/first-agent.md'), 'utf8')
  const files = readdirSync(project, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const texts = [page, ...files.map((name) => readFileSync(join(project, name), 'utf8'))]
  const imported = texts.flatMap((text) => Array.from(text.matchAll(/ from '([^'./][^']*)'/g), ([, name]) => name as string))
  const named = { ...dependencies, ...devDependencies }
  const missing = imported.filter((name) => !name.startsWith('node:') && !(name in named) && !(name.split('/')[0]! in named))
  expect(imported).toContain('zod')
  expect(missing).toEqual([])
})

it('leaves a folder that is not empty as it is', async () => {
  writeFileSync(join(folder, 'notes.txt'), 'mine')
  expect(await runCli(['init'], { cwd: folder })).toMatchObject({ code: 2, stderr: expect.stringContaining('is not empty') })
  expect(readdirSync(folder)).toEqual(['notes.txt'])
})
