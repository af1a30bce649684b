import { ToolError, TrainError } from '@aworld-train/core'
import type { Room } from './room.ts'

/** Whether a workspace is open, closed, or dead because something ended it from outside. */
export interface WorkspaceState {
  hasDied(): boolean
  /** Whether nothing may start in it any more. */
  isOver(): boolean
  /** Throws if it is closed or dead. */
  check(): void
  /** Handles a jail that was ended from outside or ended with its room: nothing of the workspace goes on. Returns the error of what ran. */
  die(): Error
  /** Wraps a callback of a stream. Its error would otherwise be one of this whole process; so it ends only the workspace. */
  contained<Input>(callback: (input: Input) => void): (input: Input) => void
  close(): void
}

/** `onDeath` ends what is left. */
export function createWorkspaceState(room: Pick<Room, 'hasDied'>, onDeath: () => void): WorkspaceState {
  let closed = false
  let dead = false
  let fault: unknown
  const hasDied = () => dead || room.hasDied()
  const closure = () => new ToolError('The workspace is closed.')
  const death = () => new TrainError('TOOL_SERVER_DIED', 'The jail of the workspace died; its files and shells are gone.', { cause: fault })
  function die(): Error {
    if (closed) return closure()
    dead = true
    onDeath()
    return death()
  }
  return {
    hasDied,
    isOver: () => closed || hasDied(),
    check() {
      if (closed) throw closure()
      if (hasDied()) throw death()
    },
    die,
    contained: (callback) => (input) => {
      try {
        callback(input)
      } catch (cause) {
        fault = cause
        die()
      }
    },
    close() {
      closed = true
    },
  }
}
