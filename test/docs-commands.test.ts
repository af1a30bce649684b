import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { expect, it } from 'vitest'
import { commands } from '../packages/cli/src/commands/index.ts'
import { applyDefinition } from '../packages/cli/src/define-command.ts'
import { repository } from './support/run-cli.ts'
import { runNpm } from './support/run-npm.ts'

const read = (path: string) => readFile(join(repository, path), 'utf8')

/** Every page that people read. */
async function pages(): Promise<string[]> {
  const of = async (folder: string) =>
    (await readdir(join(repository, folder), { withFileTypes: true })).map(({ name }) => join(folder, name, 'README.md'))
  const docs = (await readdir(join(repository, 'docs'), { recursive: true })).map((name) => join('docs', name))
  const all = ['README.md', 'CONTRIBUTING.md', 'AGENTS.md', 'packages/cli/templates/project/README.md', ...docs]
  const some = [...(await of('packages')), ...(await of('examples'))].filter((path) => existsSync(join(repository, path)))
  return [...all.filter((path) => path.endsWith('.md')), ...some]
}

/** Texts set as code: lines of blocks for a shell, indented lines, and spans. */
function* codeOf(page: string): Iterable<string> {
  for (const [, block = ''] of page.matchAll(/```sh\n([\s\S]*?)```/g)) yield* block.split('\n')
  for (const line of page.replaceAll(/```[\s\S]*?```/g, '').split('\n')) {
    if (line.startsWith('    ')) yield line.trim()
    else for (const [, span = ''] of line.matchAll(/`([^`]+)`/g)) yield span
  }
}

const started = /^(npx @aworld-train\/cli|npx aworld-train|aworld-train|npm run|npm(?= start| test)|node scripts\/launch\.mjs) (.*)/

/** The commands of ours in a line: what is started and its words, without what is said about them. */
function* commandsIn(line: string): Iterable<{ readonly program: string; readonly words: readonly string[] }> {
  for (const part of line.split(/ && | \| /)) {
    const [, program, rest = ''] = started.exec(part) ?? []
    const words = (rest.split(/ {2,}|\s#|…| > /)[0] ?? '').split(' ').filter(Boolean)
    if (program && words.length > 0) yield { program, words }
  }
}

type Problem = string | null

/** What is wrong with the arguments of the command line. Alone, the name of a command is no call of it. */
async function problemOfCommand([name = '', ...rest]: readonly string[]): Promise<Problem> {
  if (name.startsWith('-')) return null
  const command = commands.find((each) => each.name === name)
  if (!command) return `there is no command "${name}"`
  if (rest.length === 0) return null
  const parser = new Command(name).exitOverride().configureOutput({ writeErr: () => {} })
  applyDefinition(parser, await command.load(), async () => {})
  return await parser.parseAsync(rest, { from: 'user' }).then(
    () => null,
    (error: Error) => error.message,
  )
}

it('every command that a page names is one, with the flags that it has', async () => {
  const { scripts } = JSON.parse(await read('package.json')) as { scripts: Record<string, string> }
  const [, ofProject = ''] = /scripts: \{([^}]*)\}/.exec(await read('packages/cli/src/commands/init.ts')) ?? []
  const scriptNames = new Set([...Object.keys(scripts), ...Array.from(ofProject.matchAll(/(\w+):/g), ([, name]) => name)])
  const launcher = await read('scripts/launch.mjs')

  const problemOfScript = async ([name = '', , ...rest]: readonly string[]): Promise<Problem> => {
    if (!scriptNames.has(name)) return `there is no script "${name}"`
    const words = { start: ['train', ...rest], 'aworld-train': rest }[name]
    return words?.length ? await problemOfCommand(words) : null
  }
  const problemOfLaunch = ([name = '']: readonly string[]): Problem =>
    new RegExp(`^  '?${name}'?: \\[`, 'm').test(launcher) ? null : `the launcher has no command "${name}"`
  const problemOf = async (program: string, words: readonly string[]): Promise<Problem> => {
    const missing = words.find((word) => word.startsWith('examples/') && !existsSync(join(repository, word.split('#')[0] as string)))
    if (missing) return `there is no ${missing}`
    if (program.startsWith('npm')) return await problemOfScript(words)
    return program.startsWith('node ') ? problemOfLaunch(words) : await problemOfCommand(words)
  }

  const problems: string[] = []
  let checked = 0
  for (const path of await pages()) {
    for (const line of codeOf(await read(path))) {
      for (const { program, words } of commandsIn(line)) {
        checked += 1
        const problem = await problemOf(program, words)
        if (problem) problems.push(`${path}: ${line}: ${problem}`)
      }
    }
  }
  expect(problems).toEqual([])
  expect(checked).toBeGreaterThan(80)
})

it('npx finds the command in a clone too, in any of its folders', async () => {
  const { version } = JSON.parse(await read('packages/cli/package.json'))
  expect(await runNpm(['exec', '--offline', '--', 'aworld-train', '--version'], join(repository, 'docs'))).toEqual({
    code: 0,
    output: `${version}\n`,
  })
})

it('every file of a package that a page names is there', async () => {
  const named = (await Promise.all(['README.md', 'CONTRIBUTING.md', 'AGENTS.md'].map(read))).flatMap((text) =>
    [...text.matchAll(/`(packages\/[\w./-]+)`/g)].map(([, path = '']) => path),
  )
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter((path) => !existsSync(join(repository, path)))).toEqual([])
})
