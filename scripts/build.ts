// Compiles every package to its dist/: JavaScript, declarations and source maps that carry their source.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const projects = join(root, 'dist', 'projects')

interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const folders = new Map<string, string>()
const manifests = new Map<string, Manifest>()
for (const folder of readdirSync(join(root, 'packages'))) {
  const manifest = JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')) as Manifest
  folders.set(manifest.name, folder)
  manifests.set(folder, manifest)
}

rmSync(projects, { recursive: true, force: true })
mkdirSync(projects, { recursive: true })
for (const [folder, { dependencies, peerDependencies }] of manifests) {
  removeOutput(join(root, 'packages', folder, 'dist'))
  const references = Object.keys({ ...dependencies, ...peerDependencies }).flatMap((name) => folders.get(name) ?? [])
  const project = {
    extends: '../../tsconfig.base.json',
    compilerOptions: {
      composite: true,
      inlineSources: true,
      rootDir: `../../packages/${folder}/src`,
      outDir: `../../packages/${folder}/dist`,
      tsBuildInfoFile: `./${folder}.tsbuildinfo`,
    },
    include: ['', '/**/*.json'].map((pattern) => `../../packages/${folder}/src${pattern}`),
    exclude: ['**/*.test.ts', '**/*.test-support.ts', '**/stand-in.ts', '**/testing', '**/goldens'].map(
      (pattern) => `../../packages/${folder}/src/${pattern}`,
    ),
    references: references.map((each) => ({ path: `./${each}.json` })),
  }
  writeFileSync(join(projects, `${folder}.json`), `${JSON.stringify(project, null, 2)}\n`)
}
const all = { files: [], references: [...manifests.keys()].map((folder) => ({ path: `./${folder}.json` })) }
writeFileSync(join(projects, 'tsconfig.json'), `${JSON.stringify(all, null, 2)}\n`)

/** Removes what an earlier build left; the kernels and the page of the dashboard have builds of their own. */
function removeOutput(dist: string): void {
  if (!existsSync(dist)) return
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (/\.(?:js|d\.ts|map)$/.test(name) && !name.startsWith('page')) rmSync(join(dist, name), { force: true })
  }
}

const started = performance.now()
const { status } = spawnSync(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b', projects], {
  cwd: root,
  stdio: 'inherit',
})
if (status === 0) console.log(`built ${manifests.size} packages in ${((performance.now() - started) / 1000).toFixed(1)} s`)
process.exit(status ?? 1)
