import { randomUUID } from 'node:crypto'
import type { ServerToolContext } from './tool-server.ts'

/** What the path of every temporary folder begins with. */
export const temporaryFolder = '/workspace/.temporary-'

/** Has `work` use a folder that exists only meanwhile. */
export async function inTemporaryFolder<Value>(
  { workspace, signal }: Pick<ServerToolContext, 'workspace' | 'signal'>,
  work: (folder: string) => Promise<Value>,
): Promise<Value> {
  const folder = `${temporaryFolder}${randomUUID()}`
  const change = (program: 'mkdir' | 'rm', option: string, signal: AbortSignal) =>
    workspace.run({ command: [program, option, folder], timeoutMs: 30_000 }, signal)
  try {
    await change('mkdir', '-p', signal)
    return await work(folder)
  } finally {
    // A call that is cancelled leaves nothing behind either. A workspace that is gone has no files.
    await change('rm', '-rf', AbortSignal.timeout(30_000)).catch(() => {})
  }
}
