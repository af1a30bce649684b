import { existsSync, readdirSync, statSync } from 'node:fs'
import { cp, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TrainError } from '@aworld-train/core'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { writeTarget } from './write-target.ts'

/** Whether this program runs from a checkout. */
const isSource = import.meta.url.endsWith('.ts')

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
      if (isSource) await writeFile(join(folder, '.npmrc'), npmSettings)
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
  const { test, dependencies, devDependencies } = isSource ? fromSources() : await fromRegistry()
  return {
    name: name || 'my-agent',
    private: true,
    type: 'module',
    engines: { node: '>=22.19' },
    scripts: { train: 'aworld-train train', eval: 'aworld-train eval', doctor: 'aworld-train doctor .', test },
    dependencies,
    devDependencies,
  }
}

interface Provision {
  /** The command that runs the project's tests. */
  readonly test: string
  /** Versions or paths of the packages that the project's files import, and of this program. */
  readonly dependencies: Readonly<Record<string, string>>
  /** The same for its tests and for the types that its tsconfig.json names. */
  readonly devDependencies: Readonly<Record<string, string>>
}

async function fromRegistry(): Promise<Provision> {
  const { version, dependencies } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
    dependencies: { zod: string }
  }
  return {
    test: 'vitest run',
    dependencies: { '@aworld-train/cli': version, 'aworld-train': version, zod: dependencies.zod },
    devDependencies: { '@types/node': '^24.10.1', typescript: '^7.0.2', vitest: '^5.1.0' },
  }
}

/** npm should not warn about the Node that it runs under, because the launcher of the checkout finds one that the packages accept. */
const npmSettings = 'loglevel=error\n'

/**
 * The provision of a project that a checkout makes. The project uses the checkout: its packages are linked, and its launcher runs them
 * unbuilt.
 */
function fromSources(): Provision {
  const checkout = fileURLToPath(new URL('../../../..', import.meta.url))
  const path = (...parts: string[]) => `file:${join(checkout, ...parts).replaceAll('\\', '/')}`
  return {
    test: `node "${join(checkout, 'scripts', 'launch.mjs')}" run "${join(checkout, 'node_modules', 'vitest', 'vitest.mjs')}" run`,
    dependencies: {
      '@aworld-train/cli': path('packages', 'cli'),
      'aworld-train': path('packages', 'aworld-train'),
      zod: path('node_modules', 'zod'),
    },
    devDependencies: {
      '@types/node': path('node_modules', '@types', 'node'),
      typescript: path('node_modules', 'typescript'),
      vitest: path('node_modules', 'vitest'),
    },
  }
}
