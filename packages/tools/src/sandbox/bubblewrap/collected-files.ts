import { chooseFiles, type FileEntry, filesRefused, ToolError, type WorkspaceFile } from '@aworld-train/core'
import { packTar, unpackTar } from 'modern-tar'
import { toJailPath } from './workspace-files.ts'

/** Runs a script of bash to its end, and hands its output on as it comes. */
export type RunScript = (
  script: string,
  input: Uint8Array,
  onOutput: (chunk: Buffer) => void,
) => Promise<{ readonly exitCode: number; readonly errors: string }>

/** Longest list of a workspace's entries. */
const maxListBytes = 16 * 2 ** 20

const kinds: Readonly<Record<string, FileEntry['kind']>> = { f: 'file', d: 'folder', l: 'link', p: 'pipe', s: 'socket' }

/** Prints type, mode, size and path of every entry, each ended by NUL. Links are not followed. */
const listScript = `find /workspace -mindepth 1 -printf '%y %m %s %P\\0' 2>/dev/null | head -c ${maxListBytes + 1}`

/** Archives the files whose paths are on standard input, each ended by NUL. A file of several names is archived under each. */
const packScript = 'exec tar -c -C /workspace --format=pax --hard-dereference --no-recursion --no-unquote --null --verbatim-files-from -T -'

/** Reads the files that fit a pattern. Nothing else may run in the workspace meanwhile. Rejects with FILES_REFUSED. */
export async function collectFiles(patterns: readonly string[], run: RunScript): Promise<readonly WorkspaceFile[]> {
  const list = await output(run, listScript, '', maxListBytes)
  const chosen = chooseFiles(list.bytes.toString().split('\0').slice(0, -1).map(toEntry), patterns)
  if (chosen.length === 0) return []
  const names = chosen.map(({ path }) => path)
  const size = chosen.reduce((sum, { bytes }) => sum + bytes, 0)
  // A header, an extended header and the rest of a block are a few kilobytes for each file.
  const archive = await output(run, packScript, names.map((name) => `${name}\0`).join(''), size + (names.length + 1) * 16_384)
  const entries = archive.exitCode === 0 ? await unpackTar(archive.bytes, { strict: true }).catch(() => []) : []
  return chosen.map(({ path, bytes, executable }) => {
    const found = entries.find(({ header }) => header.name === path)
    if (found?.header.type !== 'file' || found.data?.length !== bytes)
      throw filesRefused(
        `${JSON.stringify(path)} changed or could not be read: ${archive.errors.split('\n').at(-1) || 'its size is another'}`,
      )
    return { path, executable, bytes: found.data }
  })
}

function toEntry(line: string): FileEntry {
  const [type = '', mode = '', size = '', ...path] = line.split(' ')
  return { path: path.join(' '), kind: kinds[type] ?? 'device', bytes: Number(size), executable: (Number.parseInt(mode, 8) & 0o100) !== 0 }
}

async function output(run: RunScript, script: string, input: string, maxBytes: number) {
  const chunks: Buffer[] = []
  let length = 0
  const end = await run(`{ ${script}; exit; }`, Buffer.from(input), (chunk) => {
    length += chunk.length
    if (length <= maxBytes) chunks.push(chunk)
  })
  if (length > maxBytes) throw filesRefused('the workspace has too many files, or one of them grew while it was read')
  return { ...end, bytes: Buffer.concat(chunks) }
}

/** Writes files with the folders on their way. */
export async function unpackFiles(files: readonly WorkspaceFile[], run: RunScript): Promise<void> {
  const archive = await packTar(
    files.map(({ path, executable, bytes }) => ({
      header: { name: toJailPath(path).slice('/workspace/'.length), size: bytes.length, mode: executable ? 0o755 : 0o644, type: 'file' },
      body: bytes,
    })),
  )
  const { exitCode, errors } = await run('{ exec tar -x -C /workspace; }', archive, () => {})
  if (exitCode !== 0) throw new ToolError(`The files could not be written: ${errors.split('\n').at(-1) || `exit code ${exitCode}`}.`)
}
