import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('..', import.meta.url))
const packages = join(repository, 'packages')

/** A package may import those of lower layers only; siblings never. */
const layers: readonly (readonly string[])[] = [
  ['core'],
  ['chat', 'http'],
  ['agent', 'environment', 'gateway', 'rollout', 'store'],
  ['training'],
  ['dashboard', 'engines', 'executors', 'testing', 'tools', 'trainers'],
  ['aworld-train'],
  ['cli'],
]
const layerOf = new Map(layers.flatMap((names, layer) => names.map((name) => [name, layer] as const)))
const names = readdirSync(packages)

/** Folders of a package with walls between them, and the folders of the same package that each may import. */
const walls: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  core: { protocol: [] },
  engines: { local: [], remote: [], tinker: [] },
  executors: { kubernetes: [], ray: [], spark: [] },
  tools: { sandbox: [] },
  trainers: {
    shared: [],
    'hugging-face': ['shared'],
    areal: ['shared', 'hugging-face'],
    swift: ['shared', 'hugging-face'],
    trl: ['shared', 'hugging-face'],
    verl: ['shared'],
  },
  training: Object.fromEntries(
    ['config', 'dataset', 'loop', 'processor', 'reward'].map((room) => [room, ['config', 'dataset', 'loop', 'processor', 'reward']]),
  ),
}

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
    const declared = new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.peerDependencies }))
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
    for (const path of sources(join(packages, name, 'src')).filter((path) => !isTest(path)))
      for (const target of relativeImportsOf(path))
        if (!target.startsWith(join(packages, name, '/'))) problems.push(`${path.slice(packages.length + 1)} imports ${target}`)
    expect(problems).toEqual([])
  })

  it.each(Object.entries(walls).flatMap(([name, rooms]) => Object.entries(rooms).map(([room, allowed]) => ({ name, room, allowed }))))(
    '$name/src/$room imports no folder beside it but $allowed',
    ({ name, room, allowed }) => {
      const home = join(packages, name, 'src')
      const problems = sources(join(home, room))
        .filter((path) => !isTest(path))
        .flatMap((path) =>
          relativeImportsOf(path)
            .filter((target) => ![room, ...allowed].some((each) => target.startsWith(join(home, each, '/'))))
            .map((target) => `${path.slice(packages.length + 1)} imports ${target.slice(packages.length + 1)}`),
        )
      expect(problems).toEqual([])
    },
  )

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
    const shared = layers.slice(0, 4).flat()
    const problems = shared.flatMap((name) =>
      sources(join(packages, name, 'src'))
        .filter((path) => !isTest(path) && /@aworld-train\/(?:engines|trainers|executors)/.test(readFileSync(path, 'utf8')))
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
      .slice(3)
      .flat()
      .flatMap((name) => sources(join(packages, name, 'src')))
    const elsewhere = rooms
      .filter((path) => !isTest(path) && opens.test(readFileSync(path, 'utf8')))
      .map((path) => dirname(path).slice(packages.length + 1))
    expect([...new Set(elsewhere)]).toEqual(['training/src/agent-side'])
  })

  it.each([
    ['core/src', /blackTool|black_tool|sse_read|aworld-mcp|createServer|node:http/],
    ['training/src', /actor_rollout_ref|adv_estimator|main_ppo|oc\.select/],
    ...['agent-side', 'directory', 'events', 'executor', 'inputs', 'preflight'].map(
      (room) => [`training/src/${room}`, /\b(?:verl|trl|areal|swift|hydra)\b/i] as const,
    ),
    ['trainers/src/hugging-face', /\b(?:verl|trl|areal|swift|hydra)\b/i],
    ['trainers/src/shared', /\b(?:verl|trl|areal|swift|hydra)\b/i],
  ] as const)('%s says no word of a system beside it', (folder, words) => {
    // The schemas of what crosses to AWorld's tool servers name their transports.
    const problems = sources(join(packages, folder))
      .filter((path) => !isTest(path) && !path.includes('/core/src/protocol/') && words.test(readFileSync(path, 'utf8')))
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
