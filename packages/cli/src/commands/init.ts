import { existsSync, readdirSync, statSync } from 'node:fs'
import { cp, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TrainError } from '@aworld-train/protocol'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { writeTarget } from './write-target.ts'

const template = fileURLToPath(new URL('../../templates/project', import.meta.url))

export const init = defineCommand({
  arguments: [{ name: 'folder', description: 'an empty or new folder (default: this folder)' }],
  options: z.object({}),
  async run({ args }) {
    const folder = resolve(args[0] ?? '.')
    if (existsSync(folder) && !statSync(folder).isDirectory()) {
      throw new TrainError('CONFIG_INVALID', `${folder} is a file; name a new folder: aworld-train init my-agent.`)
    }
    if (existsSync(folder) && readdirSync(folder).some((name) => name !== '.git')) {
      throw new TrainError('CONFIG_INVALID', `${folder} is not empty; name a new folder: aworld-train init my-agent.`)
    }
    const manifest = await projectManifest(folder)
    await writeTarget(folder, async () => {
      await mkdir(folder, { recursive: true })
      await cp(template, folder, { recursive: true })
      await rename(join(folder, 'gitignore'), join(folder, '.gitignore'))
      await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    })
    const shown = relative(process.cwd(), folder)
    process.stdout.write(
      `made a project in ${shown || 'this folder'}\n\nnext\n${shown ? `  cd ${shown}\n` : ''}  npm install\n  npm run train\n`,
    )
    return undefined
  },
})

async function projectManifest(folder: string): Promise<Record<string, unknown>> {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  const { cli, node, dependencies, nodeTypes } = import.meta.url.endsWith('.ts') ? fromSources() : await fromRegistry()
  return {
    name: name || 'my-agent',
    private: true,
    type: 'module',
    engines: { node: '>=22.19' },
    scripts: { 'aworld-train': cli, train: `${cli} train`, eval: `${cli} eval`, doctor: `${cli} doctor .`, test: `${node} --test` },
    dependencies,
    devDependencies: { '@types/node': nodeTypes },
  }
}

interface Provision {
  readonly cli: string
  readonly node: string
  readonly dependencies: Readonly<Record<string, string>>
  /** Version or path of the types that the project's tsconfig.json names. */
  readonly nodeTypes: string
}

async function fromRegistry(): Promise<Provision> {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  return {
    cli: 'aworld-train',
    node: 'node',
    dependencies: { '@aworld-train/cli': version, 'aworld-train': version },
    nodeTypes: '^24.10.1',
  }
}

/** A project made by a checkout uses that checkout: its packages are linked, and its launcher runs them unbuilt. */
function fromSources(): Provision {
  const checkout = fileURLToPath(new URL('../../../..', import.meta.url))
  const path = (...parts: string[]) => `file:${join(checkout, ...parts).replaceAll('\\', '/')}`
  const launcher = `node "${join(checkout, 'scripts', 'launch.mjs')}"`
  return {
    cli: `${launcher} cli`,
    node: `${launcher} run`,
    dependencies: { 'aworld-train': path('packages', 'aworld-train') },
    nodeTypes: path('node_modules', '@types', 'node'),
  }
}
