import { spawn } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { repository } from './support/run-cli.ts'

const example = join(repository, 'examples/periodic-table')

/** The first program of the page about the main example. */
async function readProgram(): Promise<string> {
  const [, code] = /```ts\n([\s\S]*?)```/.exec(await readFile(join(repository, 'docs/3.guides/periodic-table.md'), 'utf8')) ?? []
  return code ?? ''
}

it('the program of the page trains the main example, in one step on eight held-out tasks', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-readme-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  await cp(example, folder, { recursive: true, filter: (path) => !/node_modules|\/runs/.test(path) })
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  const tasks = (await readFile(join(folder, 'data/test.jsonl'), 'utf8')).split('\n').slice(0, 8)
  await writeFile(join(folder, 'data/test.jsonl'), `${tasks.join('\n')}\n`)
  const program = await readProgram()
  expect(program).toMatch(/steps: \d+/)
  await writeFile(join(folder, 'train.ts'), `${program.replace(/steps: \d+/, 'steps: 1')}\nconsole.log(JSON.stringify(report))\n`)

  const env = { ...process.env, AWORLD_TRAIN_SIMD: 'plain' }
  const child = spawn(process.execPath, ['train.ts'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text))
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  expect(code, output.stderr).toBe(0)
  const report = JSON.parse(output.stdout.trim().split('\n').at(-1) as string)
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(report.curve).toHaveLength(1)
  expect(report.counts.toolCalls.environment).toBeGreaterThan(0)
  expect(output.stderr).toMatch(
    /^run runs\/\S+\nagents: periodic-table trained\nbefore: reward 0\.\d+ .*\n(?:.*\n)?step 1\/1, reward 0\.\d+\nafter: reward 0\.\d+ .*\n(?:.*\n)?run finished\n$/,
  )
})

/** The anchors that GitHub gives the headings of a page. */
const anchorsOf = (page: string) =>
  Array.from(page.replaceAll(/```[\s\S]*?```/g, '').matchAll(/^#+ (.*)$/gm), ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

it('every page that a page links to is there, with the heading that it names', async () => {
  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    'AGENTS.md',
    ...(await readdir(join(repository, 'packages'))).map((name) => join('packages', name, 'README.md')),
    ...(await readdir(join(repository, 'docs'), { recursive: true })).map((name) => join('docs', name)),
  ]
  const missing: string[] = []
  for (const page of pages.filter((name) => name.endsWith('.md'))) {
    const text = await readFile(join(repository, page), 'utf8')
    for (const [, target = '', anchor] of text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
      const linked = await readFile(target === '' ? join(repository, page) : join(repository, page, '..', target), 'utf8').catch(() => null)
      if (linked === null) missing.push(`${page} -> ${target}`)
      else if (anchor !== undefined && !anchorsOf(linked).includes(anchor)) missing.push(`${page} -> ${target}#${anchor}`)
    }
  }
  expect(missing).toEqual([])
})

it('the index links to every page of docs', async () => {
  const index = await readFile(join(repository, 'docs/README.md'), 'utf8')
  const pages = (await readdir(join(repository, 'docs'), { recursive: true })).filter(
    (name) => name.endsWith('.md') && name !== 'README.md',
  )
  expect(pages.filter((name) => !index.includes(`](${name.replaceAll('\\', '/')})`))).toEqual([])
})

it('every environment variable that is read by name has its row', async () => {
  const page = await readFile(join(repository, 'docs/4.reference/environment-variables.md'), 'utf8')
  const missing: string[] = []
  for (const folder of ['packages', 'scripts']) {
    const files = (await readdir(join(repository, folder), { recursive: true })).filter(
      (name) => /\.(?:ts|mjs)$/.test(name) && !/node_modules|dist\/|\/testing\/|\.test\./.test(name),
    )
    for (const file of files) {
      const text = await readFile(join(repository, folder, file), 'utf8')
      for (const [, name] of text.matchAll(/(?:process\.env|variables)(?:\.|\[')([A-Z][A-Z_]+)\b/g))
        if (!page.includes(`\`${name}\``)) missing.push(`${name} in ${folder}/${file}`)
    }
  }
  expect(missing).toEqual([])
})
