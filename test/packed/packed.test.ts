// @module-tag quick
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findNpm } from '../support/run-npm.ts'

const workspace = fileURLToPath(new URL('../..', import.meta.url))

interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly exports?: unknown
  readonly dependencies?: Readonly<Record<string, string>>
}

let folder: string
let tool: string
let project: string
let npm: string
/** Path of the tarball of each package, by name. */
const tarballs = new Map<string, string>()
const abort = new AbortController()

const readManifest = (path: string): Manifest => JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs Node as a user of the packages has it: this Node before all others, no configuration of this workspace. */
async function run(args: readonly string[], cwd: string, extra: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const variables = Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_|NODE_OPTIONS$|INIT_CWD$|VITEST|FORCE_COLOR$|NODE_ENV$)/i.test(name),
  )
  const env = {
    ...Object.fromEntries(variables),
    PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
    NO_COLOR: '1',
    ...extra,
  }
  const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], signal: abort.signal })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      output += text
    })
  }
  const { promise, resolve, reject } = Promise.withResolvers<Ended>()
  child.on('error', reject)
  child.on('close', (code) => resolve({ code, output }))
  return await promise
}

async function runWell(args: readonly string[], cwd: string, extra?: NodeJS.ProcessEnv): Promise<string> {
  const { code, output } = await run(args, cwd, extra)
  if (code !== 0) throw new Error(`"${args.join(' ')}" ended with ${code} in ${cwd}:\n${output}`)
  return output
}

const cli = (from: string) => join(from, 'node_modules', '@aworld-train', 'cli', 'dist', 'main.js')

/** Installs a package.json whose packages of ours come from the tarballs, as they would from a registry. */
async function install(at: string, manifest: Manifest): Promise<void> {
  const files = Object.fromEntries([...tarballs].map(([name, path]) => [name, pathToFileURL(path).href.replace('file://', 'file:')]))
  const dependencyEntries = Object.keys(manifest.dependencies ?? {}).map((name) => [name, files[name] ?? manifest.dependencies?.[name]])
  const overrides = Object.fromEntries(Object.entries(files).filter(([name]) => !(name in (manifest.dependencies ?? {}))))
  const dependencies = Object.fromEntries(dependencyEntries)
  writeFileSync(join(at, 'package.json'), `${JSON.stringify({ ...manifest, dependencies, overrides }, null, 2)}\n`)
  await runWell([npm, 'install', '--ignore-scripts', '--prefer-offline', '--no-fund', '--no-audit', '--loglevel=error'], at)
}

beforeAll(async () => {
  npm = findNpm()
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'aworld-train-packed-')))
  tool = join(folder, 'a tool')
  project = join(folder, 'work', 'my-agent')
  for (const path of [tool, join(folder, 'work'), join(folder, 'tarballs')]) mkdirSync(path)
  await runWell([join(workspace, 'scripts', 'pack.ts'), join(folder, 'tarballs')], workspace, { npm_execpath: npm })
  for (const name of readdirSync(join(workspace, 'packages'))) {
    const manifest = readManifest(join(workspace, 'packages', name))
    if (manifest.private) continue
    const file = `${manifest.name.replace('@', '').replace('/', '-')}-${manifest.version}.tgz`
    tarballs.set(manifest.name, join(folder, 'tarballs', file))
  }
  const { version } = readManifest(join(workspace, 'packages', 'cli'))
  await install(tool, { name: 'a-tool', version: '1.0.0', private: true, dependencies: { '@aworld-train/cli': version } })
  await runWell([cli(tool), 'init', 'my-agent'], dirname(project))
  await install(project, readManifest(project))
})

afterAll(() => {
  abort.abort()
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

const runOf = () => {
  const [name] = readdirSync(join(project, 'runs'))
  return join('runs', name as string)
}

describe('the packages, packed and installed in an empty folder', () => {
  it('are all there', () => {
    expect([...tarballs].filter(([, path]) => !existsSync(path))).toEqual([])
  })

  it('hold compiled files alone, and the kernels', () => {
    const installed = [...tarballs.keys()].map((name) => join(project, 'node_modules', name)).filter((path) => existsSync(path))
    expect(installed.length).toBeGreaterThanOrEqual(12)
    for (const path of installed) {
      const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
      expect(names.filter((name) => name.startsWith('dist') && /\.test\.|test-support|(?<!\.d)\.ts$/.test(name))).toEqual([])
      expect(names).toContain('LICENSE')
      expect(JSON.stringify(readManifest(path).exports)).not.toContain('source')
    }
    const kernels = join(project, 'node_modules', '@aworld-train', 'engines', 'dist', 'kernels')
    expect(readdirSync(kernels).filter((name) => name.endsWith('.wasm'))).toEqual(['plain.wasm', 'relaxed.wasm'])
  })

  it('have types that a project checks against', async () => {
    await runWell([join(workspace, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', '.'], project)
  })

  it('train: the reward on held-out tasks climbs', async () => {
    await runWell([npm, 'run', 'train', '--', '--seed', '1'], project)
    const report = JSON.parse(readFileSync(join(project, runOf(), 'report.json'), 'utf8'))
    expect(report.before.reward).toBeGreaterThan(0.1)
    expect(report.before.reward).toBeLessThan(0.5)
    expect(report.after.reward).toBeGreaterThanOrEqual(0.85)
    expect(report.counts.toolCalls.functions).toBeGreaterThan(report.counts.rollouts / 2)
    expect(report.ledger.unexplained).toBe(0)
  })

  it('pass the tests of the project', async () => {
    expect(await runWell([npm, 'test'], project)).toMatch(/Tests .*3 passed/)
  })

  it('find no problem in the project', async () => {
    expect(await runWell([cli(project), 'doctor', '.'], project)).toContain('no problems')
  })

  it('pass the test of a new tool server', async () => {
    await runWell([cli(project), 'env', 'new-server', 'weather'], project)
    const guide = readFileSync(join(workspace, 'docs', '3.guides', 'tool-environment.md'), 'utf8')
    const [, command] = /Run that with `node ([^`]*)`/.exec(guide)!
    expect(await runWell(command!.split(' '), project)).toContain('pass 1')
  })

  it('evaluate, replay and export a run', async () => {
    const evaluated = await runWell([cli(project), 'eval', '--model', runOf(), '--samples', '2'], project)
    expect(Number(/pass@k\s+2: (?<value>[\d.]+)/.exec(evaluated)?.groups?.['value'])).toBeGreaterThan(0.75)
    expect(await runWell([cli(project), 'replay', runOf()], project)).toMatch(/How many \w+ are in \w+\?[\s\S]*stock\(/)
    await runWell([cli(project), 'export', runOf(), '--to', 'samples.jsonl'], project)
    await runWell([cli(project), 'export', runOf(), '--to', 'samples.parquet'], project)
    expect(readFileSync(join(project, 'samples.parquet')).subarray(0, 4).toString()).toBe('PAR1')
    const samples = readFileSync(join(project, 'samples.jsonl'), 'utf8').trim().split('\n')
    expect(JSON.parse(samples[0] as string)).toMatchObject({ tokenIds: expect.anything(), lossMask: expect.anything() })
    await runWell([cli(project), 'view', runOf(), '--export', 'run.html'], project)
    expect(readFileSync(join(project, 'run.html'), 'utf8')).toContain('id="data"')
  })

  it('refuse what is misused, with exit code 2', async () => {
    expect(await run([cli(tool), 'init', project], tool)).toMatchObject({ code: 2, output: expect.stringContaining('is not empty') })
    expect(await run([cli(tool), 'tarin'], tool)).toMatchObject({ code: 2, output: expect.stringContaining('train') })
    expect(await run([cli(tool), 'train', '--stpes', '2'], tool)).toMatchObject({ code: 2, output: expect.stringContaining('--steps') })
  })
})
