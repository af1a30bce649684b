import { createSlots, type Slots, ToolError, type Workspace } from '@aworld-train/core'
import { needsPrograms } from '../sandbox/needs-programs.ts'
import { inTemporaryFolder } from '../temporary-folder.ts'
import type { ServerToolContext } from '../tool-server.ts'
import { type FileKind, fileKind, type OfficeFormat } from './file-kind.ts'

/** Formats that LibreOffice converts, and Debian's package of the part that does so. */
const programs: Readonly<Record<OfficeFormat, { readonly reads: readonly FileKind[]; readonly package: string }>> = {
  docx: { reads: ['doc', 'odt', 'rtf'], package: 'libreoffice-writer-nogui' },
  xlsx: { reads: ['xls', 'ods'], package: 'libreoffice-calc-nogui' },
  pptx: { reads: ['ppt', 'odp'], package: 'libreoffice-impress-nogui' },
}

/** One conversion at a time in each workspace. */
const turns = new WeakMap<Workspace, Slots>()

/** A busy machine takes ten times what a conversion takes by itself. */
const timeoutMs = 120_000
/** Largest converted document. */
const maxBytes = 50 * 2 ** 20

/**
 * What LibreOffice makes of a document in another format, in a jail of the lease's; a document of any other kind as it is. Rejects with a
 * ToolError if LibreOffice is missing, is out of time or cannot read the document.
 */
export async function toOfficeFormat(file: string, bytes: Buffer, format: OfficeFormat, context: ServerToolContext): Promise<Buffer> {
  const kind = fileKind(bytes)
  const { reads, package: name } = programs[format]
  if (!reads.includes(kind)) return bytes
  const { workspace, tier, signal } = context
  if (tier === 'simulated') throw new ToolError(needsPrograms(`LibreOffice, which reads the format .${kind} of ${file},`, [name]))
  const turn = turns.get(workspace) ?? createSlots(1)
  turns.set(workspace, turn)
  await turn.take(signal)
  return await inTemporaryFolder(context, async (folder) => {
    const source = `${folder}/document.${kind}`
    await workspace.put(source, bytes, signal)
    const deadline = AbortSignal.timeout(timeoutMs)
    // Each takes some 300 MB, and comes after all other work of the machine.
    const late = ['nice', '-n', '10'] as const
    const converting = ['-env:UserInstallation=file:///dev/shm/profile', '--headless', '--norestore', '--convert-to', format]
    const program = await workspace.program(
      { command: [...late, 'soffice', ...converting, '--outdir', `${folder}/converted`, source], profile: 'graphical' },
      AbortSignal.any([signal, deadline]),
    )
    program.stdout.resume()
    const exitCode = await program.ended
    signal.throwIfAborted()
    if (exitCode === 127)
      throw new ToolError(`LibreOffice is not installed where the environment runs; its operator runs: apt-get install ${name}`)
    if (deadline.aborted)
      throw new ToolError(`${file} takes LibreOffice longer than ${timeoutMs / 1_000} s to convert; try a smaller document.`)
    if (exitCode === 137) throw new ToolError(`${file} takes more memory to convert than the workspace has; try a smaller document.`)
    try {
      return await workspace.get(`${folder}/converted/document.${format}`, maxBytes, signal)
    } catch (error) {
      if (!(error instanceof ToolError) || !/^There is no file/.test(error.message)) throw error
      throw new ToolError(
        `LibreOffice could not convert ${file}: it is damaged, protected by a password, or its operator lacks the package ${name}. Try another copy.`,
      )
    }
  }).finally(() => turn.give())
}
