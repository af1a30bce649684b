import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { resumeArguments, type TypedFrom, typedCommand, typedPath } from './typed-command.ts'

const checkout = join(import.meta.dirname, '../../..')
const launcher = join(checkout, 'scripts/launch.mjs')

const script = (npm_lifecycle_event: string, npm_lifecycle_script: string) => ({ npm_lifecycle_event, npm_lifecycle_script })
const from = (env: NodeJS.ProcessEnv, rest: Partial<TypedFrom> = {}): TypedFrom => ({
  env,
  cwd: checkout,
  platform: 'linux',
  launcher: null,
  ...rest,
})
const example = ['train', 'examples/periodic-table', '--seed', '4']

describe('typedCommand', () => {
  it.each([
    ['npm start -- --seed 4', example, script('start', 'node scripts/launch.mjs start'), launcher],
    ['npm start', example.slice(0, 2), script('start', 'node scripts/launch.mjs start'), launcher],
    [
      'npm run aworld-train -- train examples/periodic-table --seed 4',
      example,
      script('aworld-train', 'node scripts/launch.mjs cli'),
      launcher,
    ],
    ['npx aworld-train replay runs/a', ['replay', 'runs/a'], script('start', 'node scripts/launch.mjs start'), launcher],
    ['npx aworld-train train', ['train'], script('test', 'node scripts/launch.mjs test'), launcher],
    ['npm run train -- --seed 4', ['train', '--seed', '4'], script('train', 'node "/a b/scripts/launch.mjs" cli train'), launcher],
    ['npm run train', ['train'], script('train', 'aworld-train train'), null],
    ['npm run go -- --new', ['train', '--steps', '3', '--new'], script('go', 'A=1 aworld-train train --steps 3'), null],
    ['npx aworld-train eval .', ['eval', '.'], script('train', 'aworld-train train'), null],
    ['npx aworld-train train', ['train'], script('npx', "'aworld-train'"), null],
    ['npx aworld-train train', ['train'], {}, null],
  ])('%s', (expected, args, env, launchedBy) => {
    expect(typedCommand(args, from(env, { launcher: launchedBy }))).toBe(expected)
  })

  it('names the launcher where nothing leads to it', () => {
    expect(typedCommand(['train'], from({}, { cwd: '/', launcher: '/home/a b/scripts/launch.mjs' }))).toBe(
      "node 'home/a b/scripts/launch.mjs' cli train",
    )
  })

  it('quotes what a shell would take apart', () => {
    const args = ['train', 'my agent', '--agent', "./it's.ts#agent"]
    expect(typedCommand(args, from({}))).toBe(`npx aworld-train train 'my agent' --agent './it'\\''s.ts#agent'`)
    expect(typedCommand(args, from({}, { platform: 'win32' }))).toBe(`npx aworld-train train "my agent" --agent "./it's.ts#agent"`)
  })
})

it.each([
  [['train', '--seed', '4'], ['train', '--seed', '4'], false],
  [['train', '--new', '--seed', '4'], ['train', '--seed', '4', '--resume', 'chemist-1'], true],
  [['train', '--resume', 'x'], ['train', '--resume', 'x'], false],
  [['train', '--resume=x'], ['train', '--resume=x'], true],
  [['train'], ['train', '--resume', 'chemist-1'], true],
])('what goes on after %j is %j', (args, expected, startsAnew) => {
  expect(resumeArguments(args, 'runs/chemist-1', startsAnew)).toEqual(expected)
  expect(resumeArguments(args, null, startsAnew)).toEqual(args)
})

it('a path is absolute where npm was started elsewhere', () => {
  expect(typedPath('/projects/runs/a', { env: {}, cwd: '/projects' })).toBe('runs/a')
  expect(typedPath('runs/a', { env: { INIT_CWD: '/projects' }, cwd: '/projects' })).toBe('runs/a')
  expect(typedPath('runs/a', { env: { INIT_CWD: '/projects/deep' }, cwd: '/projects' })).toBe('/projects/runs/a')
})
