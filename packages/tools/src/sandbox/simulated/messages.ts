import type { ErrorCode, WorkspaceFile } from '@aworld-train/core'

/** A request to the thread of a workspace. `stop` holds 0, and 1 once the command is to end. */
export type WorkspaceRequest =
  | {
      readonly kind: 'run'
      readonly command: readonly [string, ...string[]]
      readonly stdin: string
      readonly readOnly: boolean
      readonly stop: Int32Array
    }
  | { readonly kind: 'execute'; readonly shell: number; readonly command: string; readonly stop: Int32Array }
  | { readonly kind: 'close-shell'; readonly shell: number }
  | { readonly kind: 'put'; readonly path: string; readonly bytes: Uint8Array }
  | { readonly kind: 'get'; readonly path: string; readonly maxBytes: number }
  | { readonly kind: 'put-all'; readonly files: readonly WorkspaceFile[] }
  | { readonly kind: 'collect'; readonly patterns: readonly string[] }
  | { readonly kind: 'pack' }
  | { readonly kind: 'unpack'; readonly entries: readonly PackedEntry[] }

/** A file, a link (with a target) or a folder (with neither), by its absolute path. */
export interface PackedEntry {
  readonly path: string
  readonly mode: number
  readonly bytes?: Uint8Array | undefined
  readonly target?: string | undefined
}

export type WorkspaceMessage =
  /** Begins a workspace with these limits, and forgets everything of the one before. */
  | { readonly begin: WorkspaceThreadData }
  | { readonly id: number; readonly request: WorkspaceRequest }
  /** Wakes a waiting command after `stop` was set. */
  | { readonly id: number; readonly stopped: true }

export type WorkspaceReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly isToolError: boolean; readonly code: ErrorCode | null; readonly message: string } }

export interface WorkspaceThreadData {
  readonly diskBytes: number
  readonly outputBytes: number
}

/** The end of a command. */
export interface CommandOutcome {
  readonly exitCode: number
  readonly output: string
  readonly omittedBytes: number
}
