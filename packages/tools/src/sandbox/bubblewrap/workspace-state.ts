import { ToolError, TrainError } from '@aworld-train/core'
import type { Room } from './room.ts'

/** Whether a workspace is open, closed, or dead because something ended it from outside. */
export interface WorkspaceState {
  /** Aborts when it is closed or dead, with the error of what runs and of what comes later. */
  readonly signal: AbortSignal
  hasDied(): boolean
  /** Throws if it is closed or dead. */
  check(): void
  /** Handles a jail that was ended from outside or ended with its room: nothing of the workspace goes on. Returns the error of what ran. */
  die(cause?: unknown): Error
  /** Wraps a callback of a stream. Its error would otherwise be one of this whole process; so it ends only the workspace. */
  contained<Input>(callback: (input: Input) => void): (input: Input) => void
  close(): void
}

export function createWorkspaceState(room: Pick<Room, 'hasDied'>): WorkspaceState {
  const end = new AbortController()
  const { signal } = end
  function die(cause?: unknown): Error {
    if (!signal.aborted)
      end.abort(new TrainError('TOOL_SERVER_DIED', 'The jail of the workspace died; its files and shells are gone.', { cause }))
    return signal.reason
  }
  return {
    signal,
    hasDied: () => room.hasDied() || signal.reason instanceof TrainError,
    check() {
      signal.throwIfAborted()
      if (room.hasDied()) throw die()
    },
    die,
    contained: (callback) => (input) => {
      try {
        callback(input)
      } catch (cause) {
        die(cause)
      }
    },
    close: () => end.abort(new ToolError('The workspace is closed.')),
  }
}
