import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('..', import.meta.url))
const packages = join(repository, 'packages')

/** A package may import those of lower layers only; siblings never. */
const layers: readonly (readonly string[])[] = [
  ['protocol'],
  ['core'],
  ['chat', 'http'],
  ['agent', 'environment', 'gateway', 'python-bridge', 'rollout', 'store', 'training'],
  ['run'],
  [
    'dashboard',
    'engine-local',
    'engine-remote',
    'engine-tinker',
    'executor-kubernetes',
    'executor-ray',
    'executor-spark',
    'sandbox',
    'testing',
    'tool-servers',
    'trainer-areal',
    'trainer-swift',
    'trainer-trl',
    'trainer-verl',
  ],
  ['aworld-train'],
  ['cli'],
]
const layerOf = new Map(layers.flatMap((names, layer) => names.map((name) => [name, layer] as const)))
const names = readdirSync(packages)

function workspaceName(specifier: string): string | undefined {
  return /^(?:@aworld-train\/)?(?<name>[a-z-]+)/.exec(
    specifier.startsWith('@aworld-train/') || /^aworld-train(\/|$)/.test(specifier) ? specifier : '',
  )?.groups?.['name']
}

function sources(folder: string, kind = /\.ts$/): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' || entry.name === 'dist' ? [] : sources(path, kind)
    return kind.test(entry.name) ? [path] : []
  })
}

function importsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8')
  return [...text.matchAll(/(?<!\.)(?:from|import)\s*\(?\s*'([^'.][^']*)'/g)].map((match) => match[1] as string)
}

const relativeImportsOf = (path: string) =>
  [...readFileSync(path, 'utf8').matchAll(/from '(\.[^']*)'/g)].map((match) => join(dirname(path), match[1] as string))

const isTest = (path: string) => /\.(test|fixture|test-support)\.ts$|\/(testing|fixtures|goldens)\//.test(path)

describe('topology', () => {
  it('has a layer for every package', () => {
    expect(names.filter((name) => !layerOf.has(name))).toEqual([])
  })

  it.each(names)('%s imports lower layers only, and what its manifest names', (name) => {
    const manifest = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8'))
    const declared = new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))
    const problems: string[] = []
    for (const path of sources(join(packages, name, 'src'))) {
      for (const specifier of importsOf(path)) {
        if (specifier.startsWith('node:')) continue
        const file = path.slice(packages.length + 1)
        const target = workspaceName(specifier)
        if (target && target !== name && !isTest(path) && (layerOf.get(target) ?? 99) >= (layerOf.get(name) ?? -1))
          problems.push(`${file} imports ${specifier}`)
        const dependency = specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : (specifier.split('/')[0] as string)
        const provided = dependency === manifest.name || declared.has(dependency) || isTest(path)
        if (!provided) problems.push(`${file} imports ${specifier}, which its manifest does not name`)
      }
    }
    expect(problems).toEqual([])
  })

  it('speaks of no package of ours that is not there, in messages, documents and examples', () => {
    const manifests = ['packages', 'examples'].flatMap((folder) => sources(join(repository, folder), /^package\.json$/))
    const packageNames = new Set(manifests.map((path) => (JSON.parse(readFileSync(path, 'utf8')) as { name: string }).name))
    const texts = ['packages', 'examples', 'docs'].flatMap((folder) => sources(join(repository, folder), /\.(?:ts|md|py|ya?ml)$/))
    const problems = [...texts, join(repository, 'README.md')].flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/@aworld-train\/[a-z][a-z-]*/g)]
        .filter(([name]) => !packageNames.has(name))
        .map(([name]) => `${path.slice(repository.length)} names ${name}`),
    )
    expect(problems).toEqual([])
  })

  it('names no adapter in shared packages', () => {
    const shared = layers.slice(0, 5).flat()
    const problems = shared.flatMap((name) =>
      sources(join(packages, name, 'src'))
        .filter((path) => !isTest(path) && /@aworld-train\/(?:engine|trainer|executor)-/.test(readFileSync(path, 'utf8')))
        .map((path) => path.slice(packages.length + 1)),
    )
    expect(problems).toEqual([])
  })

  it('gives the name of a type to one package alone', () => {
    const owners = new Map<string, Set<string>>()
    for (const owner of names)
      for (const path of sources(join(packages, owner, 'src')).filter((path) => !isTest(path)))
        for (const [, type] of readFileSync(path, 'utf8').matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm))
          owners.set(type as string, (owners.get(type as string) ?? new Set()).add(owner))
    expect(
      [...owners].filter(([, packages]) => packages.size > 1).map(([type, packages]) => `${type}: ${[...packages].join(', ')}`),
    ).toEqual([])
  })

  it('opens the side of the agent in one room', () => {
    const opens = /create(?:RolloutRunner|RolloutService|ChannelServer)\(/
    const rooms = layers
      .slice(4)
      .flat()
      .flatMap((name) => sources(join(packages, name, 'src')))
    const elsewhere = rooms
      .filter((path) => !isTest(path) && opens.test(readFileSync(path, 'utf8')))
      .map((path) => dirname(path).slice(packages.length + 1))
    expect([...new Set(elsewhere)]).toEqual(['run/src/agent-side'])
  })

  it.each([
    ['core', /blackTool|black_tool|sse_read|aworld-mcp|createServer|node:http/],
    ['training', /actor_rollout_ref|adv_estimator|main_ppo|oc\.select/],
    ['python-bridge', /\b(?:verl|trl|areal|swift|hydra)\b/i],
    ['run', /\b(?:verl|trl|areal|swift|hydra)\b/i],
  ])('%s says no word of a system beside it', (name, words) => {
    const problems = sources(join(packages, name, 'src'))
      .filter((path) => !isTest(path) && words.test(readFileSync(path, 'utf8')))
      .map((path) => path.slice(packages.length + 1))
    expect(problems).toEqual([])
  })

  it('names what is declared by nouns, not by what somebody did with it', () => {
    const word = '(?:asked|given|held|known|said|told)'
    const declared = [
      `(?:const|let|function\\*?|interface|type) ${word}\\b`,
      // A parameter or a field with its type, and parameters of an arrow function without one.
      `(?:^|[({,;]) *(?:readonly )?${word}\\??: (?:readonly|string|number|boolean|[A-Z({])`,
      `\\(${word}(?:, \\w+)*\\) =>`,
      `(?:const|let) [[{](?:[^=\\n]*[ [,])?${word}[,\\]} ][^=\\n]*=`,
    ].join('|')
    const problems = names.flatMap((name) =>
      sources(join(packages, name, 'src')).flatMap((path) =>
        [
          ...readFileSync(path, 'utf8')
            .replace(/^ *(?:\/\/|\/?\*).*$/gm, '')
            .matchAll(new RegExp(declared, 'gm')),
        ].map(([text]) => `${path.slice(packages.length + 1)} has "${text.trim()}"`),
      ),
    )
    expect(problems, 'rename each to what the value is, such as `request` or `options`').toEqual([])
  })

  it.each(names)('no file of %s imports itself by way of others', (name) => {
    const files = new Map(sources(join(packages, name, 'src')).map((path) => [path, relativeImportsOf(path)]))
    const done = new Set<string>()
    const circles: string[] = []
    const visit = (path: string, way: readonly string[]): void => {
      if (way.includes(path))
        circles.push([...way.slice(way.indexOf(path)), path].map((each) => each.slice(packages.length + 1)).join(' → '))
      if (done.has(path) || way.includes(path)) return
      for (const target of files.get(path) ?? []) visit(target, [...way, path])
      done.add(path)
    }
    for (const path of files.keys()) if (!isTest(path)) visit(path, [])
    expect(circles).toEqual([])
  })
})
