import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join, posix } from 'node:path'
import { errorMessage, isRecord } from '@aworld-train/core'
import { parse } from 'smol-toml'
import type { NumberedRow } from './numbered-row.ts'
import type { ProblemList } from './problem-list.ts'

const taskFile = 'task.toml'
const workspace = '/workspace'

/** Images that add nothing to what a workspace has, so that a task that begins with one needs none of its own. */
const plainBase = /^(?:docker\.io\/)?(?:library\/)?(?:alpine|bash|busybox|debian|node|python|ubuntu)(?::[\w.-]+)?$/

/** The folders of tasks in Harbor's form in a folder: itself, or those below it. */
export async function findHarborTasks(folder: string): Promise<readonly string[]> {
  if (existsSync(join(folder, taskFile))) return [folder]
  const entries = await readdir(folder, { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
  return folders.filter((each) => existsSync(join(each, taskFile))).sort()
}

/**
 * Reads tasks in Harbor's form. The prompt is `instruction.md`, the set-up has the files that the Dockerfile copies, and the answer is
 * `{ tests }`, the texts below `tests/` by path. A task that a workspace cannot hold is left out, with a warning that says why.
 */
export async function* readHarborTasks(folders: readonly string[], problems: ProblemList): AsyncIterable<NumberedRow> {
  for (const [index, folder] of folders.entries()) {
    try {
      yield { number: index + 1, row: await readTask(folder) }
    } catch (error) {
      problems.leaveOut(`the task "${basename(folder)}" is left out: ${errorMessage(error).replace(/\.$/, '')}.`)
    }
  }
}

async function readTask(folder: string): Promise<Readonly<Record<string, unknown>>> {
  const { task, metadata, environment, steps } = parse(await readFile(join(folder, taskFile), 'utf8')) as Readonly<Record<string, unknown>>
  const image = isRecord(environment) ? environment['docker_image'] : undefined
  if (image !== undefined) throw new Error(`it needs the image ${String(image)}`)
  if (steps !== undefined) throw new Error('it has several steps')
  const [prompt, context, tests] = [
    await readFile(join(folder, 'instruction.md'), 'utf8'),
    await readTexts(join(folder, 'environment')),
    await readTexts(join(folder, 'tests')),
  ]
  const compose = [...context.keys()].find((path) => /^(?:docker-)?compose\.ya?ml$/.test(path))
  if (compose !== undefined) throw new Error(`it needs the containers of environment/${compose}`)
  const { files, directory } = readDockerfile(context)
  if (tests.size === 0) throw new Error('it has no tests')
  const elsewhere = new RegExp(`(?<![\\w.-])${directory.replaceAll(/[^\w/]/g, '\\$&')}(?![\\w.-])`)
  if (directory !== workspace && [prompt, ...tests.values()].some((text) => elsewhere.test(text)))
    throw new Error(`it names files below ${directory}, and a workspace has ${workspace} alone`)
  const name = isRecord(task) && typeof task['name'] === 'string' ? task['name'] : basename(folder)
  return {
    id: name,
    prompt,
    ...(files.size > 0 && { setup: { files: Object.fromEntries(files) } }),
    answer: { tests: Object.fromEntries(tests) },
    data_source: 'harbor',
    extra_info: isRecord(metadata) ? metadata : {},
  }
}

/** Reads the files that a Dockerfile copies into its working directory. Throws for one that makes more of its base than that. */
function readDockerfile(context: ReadonlyMap<string, string>): { readonly files: Map<string, string>; readonly directory: string } {
  const text = context.get('Dockerfile')
  const files = new Map<string, string>()
  let directory = workspace
  for (const line of (text ?? '').replaceAll(/\\\r?\n/g, ' ').split(/\r?\n/)) {
    const [instruction = '', ...words] = line.trim().split(/\s+/)
    if (instruction === '' || instruction.startsWith('#')) continue
    const needsImage = () => new Error(`it needs an image of its own, for "${line.trim()}" of its Dockerfile`)
    switch (instruction.toUpperCase()) {
      case 'FROM':
        if (words.length !== 1 || !plainBase.test(words[0]!)) throw needsImage()
        break
      case 'WORKDIR':
        if (words.length !== 1 || files.size > 0) throw needsImage()
        directory = posix.resolve('/', words[0]!)
        break
      case 'COPY':
        if (words.length < 2 || words.some((word) => /^--|[[\]*?$"]/.test(word))) throw needsImage()
        for (const [path, content] of copied(
          context,
          words.slice(0, -1),
          posix.relative(directory, posix.resolve(directory, words.at(-1)!)),
          words.at(-1)!.endsWith('/') || words.length > 2,
        )) {
          if (path.startsWith('../')) throw new Error(`its Dockerfile copies "${path}" out of ${directory}`)
          files.set(path, content)
        }
        break
      case 'LABEL':
        break
      default:
        throw needsImage()
    }
  }
  return { files, directory }
}

/** The files of a `COPY`, by their paths below the working directory. */
function copied(context: ReadonlyMap<string, string>, sources: readonly string[], target: string, intoFolder: boolean): [string, string][] {
  return sources.flatMap((source) => {
    const name = posix
      .normalize(source)
      .replace(/^\.?\//, '')
      .replace(/\/$/, '')
    const text = context.get(name)
    if (text !== undefined)
      return [[intoFolder || target === '' ? posix.join(target, posix.basename(name)) : target, text] as [string, string]]
    const prefix = name === '' || name === '.' ? '' : `${name}/`
    const below = [...context].filter(([path]) => path.startsWith(prefix))
    if (below.length === 0) throw new Error(`its Dockerfile copies "${source}", which is not in environment/`)
    return below.map(([path, content]) => [posix.join(target, path.slice(prefix.length)), content] as [string, string])
  })
}

/** The texts below a folder by their paths; none if there is no folder. Throws for a file that is no text. */
async function readTexts(folder: string): Promise<Map<string, string>> {
  const entries = existsSync(folder) ? await readdir(folder, { recursive: true, withFileTypes: true }) : []
  const texts = new Map<string, string>()
  for (const entry of entries) {
    if (entry.isDirectory()) continue
    const path = join(entry.parentPath, entry.name)
    const name = posix.normalize(path.slice(folder.length + 1).replaceAll('\\', '/'))
    if (!entry.isFile()) throw new Error(`"${name}" is no regular file`)
    try {
      texts.set(name, new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path)))
    } catch {
      throw new Error(`"${name}" is no text in UTF-8`)
    }
  }
  return texts
}
