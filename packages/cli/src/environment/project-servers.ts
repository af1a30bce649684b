import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { errorMessage, TrainError } from '@aworld-train/core'
import type { ToolServer } from '@aworld-train/tools'

/** Folder of a project with tool servers that `env start` mounts beside ours. */
const folder = 'tool-servers'
const template = fileURLToPath(new URL('../../templates/tool-server', import.meta.url))
const entries = ['server.ts', 'server.js', 'server.mjs']

/**
 * Writes a runnable tool server with its test, and resolves to the paths of its files from the directory on. Throws CONFIG_INVALID for a
 * name that is invalid or taken.
 */
export async function writeProjectServer(directory: string, name: string): Promise<readonly string[]> {
  if (!/^[a-z][a-z0-9-]{0,39}$/.test(name)) {
    const shown = name === '' ? 'A tool server needs a name' : `"${name}" cannot be the name of a tool server`
    throw new TrainError('CONFIG_INVALID', `${shown}; write small letters, digits and hyphens: aworld-train env new-server weather.`)
  }
  const target = join(directory, folder, name)
  if (existsSync(target))
    throw new TrainError('CONFIG_INVALID', `${join(folder, name)} is there already; choose another name, or edit what it holds.`)
  await mkdir(target, { recursive: true })
  const files = readdirSync(template)
  for (const file of files) {
    const text = await readFile(join(template, file), 'utf8')
    await writeFile(join(target, file), text.replaceAll('example-server', `${name}-server`))
  }
  return files.map((file) => join(folder, name, file))
}

/** Loads the tool servers of the project in a directory. Throws MODULE_INVALID for one that cannot be loaded. */
export async function loadProjectServers(directory: string): Promise<readonly ToolServer[]> {
  const servers = join(directory, folder)
  if (!existsSync(servers)) return []
  const files = readdirSync(servers)
    .sort()
    .flatMap((name) => entries.map((entry) => resolve(servers, name, entry)).find((file) => existsSync(file)) ?? [])
  return await Promise.all(files.map(load))
}

async function load(file: string): Promise<ToolServer> {
  const module = await import(pathToFileURL(file).href).catch((cause: unknown) => {
    const reason = errorMessage(cause)
    throw new TrainError('MODULE_INVALID', `The tool server ${file} could not be loaded: ${reason}`, { cause })
  })
  const server = module.default as Partial<ToolServer> | undefined
  if (typeof server?.name === 'string' && Array.isArray(server.tools) && Array.isArray(server.needs)) return server as ToolServer
  throw new TrainError(
    'MODULE_INVALID',
    `${file} exports no tool server; write "export default server", a ToolServer with name, scope, needs and tools.`,
  )
}
