// Writes the tarball of every package to a folder (`npm run pack -- FOLDER`, default: dist/tarballs). `npm publish` takes each as it is.
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = resolve(process.argv[2] ?? join(root, 'dist', 'tarballs'))

interface Manifest {
  readonly private?: boolean
  readonly files: readonly string[]
  readonly exports: Readonly<Record<string, string>>
  readonly devDependencies?: unknown
}

/** What is published names the compiled files: the sources are for this repository. */
function publishedManifest({ exports, devDependencies: _, ...rest }: Manifest): object {
  const compiled = (source: string, ending: string) => source.replace(/^\.\/src\//, './dist/').replace(/\.ts$/, ending)
  const published = Object.entries(exports).map(
    ([path, source]) => [path, { types: compiled(source, '.d.ts'), default: compiled(source, '.js') }] as const,
  )
  return { ...rest, exports: Object.fromEntries(published) }
}

const npm = process.env['npm_execpath']
if (!npm) {
  console.error('npm is not known; run this as "npm run pack".')
  process.exit(1)
}

const build = spawnSync(process.execPath, [...process.execArgv, join(root, 'scripts', 'build.ts')], { stdio: 'inherit' })
if (build.status !== 0) process.exit(build.status ?? 1)

// The launcher builds the page where it is stale; a checkout without the launcher has none yet.
const page = spawnSync(process.execPath, [join(root, 'packages', 'dashboard', 'scripts', 'build-page.mjs')], { stdio: 'inherit' })
if (page.status !== 0) process.exit(page.status ?? 1)

const stage = mkdtempSync(join(tmpdir(), 'aworld-train-pack-'))
try {
  const folders: string[] = []
  for (const name of readdirSync(join(root, 'packages'))) {
    const from = join(root, 'packages', name)
    const manifest = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as Manifest
    if (manifest.private) continue
    const to = join(stage, name)
    for (const part of [...manifest.files, 'README.md']) {
      if (existsSync(join(from, part))) cpSync(join(from, part), join(to, part), { recursive: true })
    }
    copyFileSync(join(root, 'LICENSE'), join(to, 'LICENSE'))
    writeFileSync(join(to, 'package.json'), `${JSON.stringify(publishedManifest(manifest), null, 2)}\n`)
    folders.push(to)
  }
  mkdirSync(target, { recursive: true })
  const { NODE_OPTIONS: _, ...env } = process.env
  const packed = spawnSync(process.execPath, [npm, 'pack', '--silent', '--ignore-scripts', '--pack-destination', target, ...folders], {
    cwd: stage,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  process.exitCode = packed.status ?? 1
} finally {
  rmSync(stage, { recursive: true, force: true })
}
