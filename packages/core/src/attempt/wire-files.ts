import type { WorkspaceFile } from '../contracts/sandbox.ts'
import type { CollectedFile } from '../protocol/collected-files.ts'

export const toCollectedFile = ({ path, executable, bytes }: WorkspaceFile): CollectedFile => ({
  path,
  executable,
  content: Buffer.from(bytes).toString('base64'),
})

export const fromCollectedFile = ({ path, executable, content }: CollectedFile): WorkspaceFile => ({
  path,
  executable,
  bytes: Buffer.from(content, 'base64'),
})
