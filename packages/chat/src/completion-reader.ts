import type { TextPiece } from './token-text.ts'

/** Reads the pieces of one completion, each once, and delivers what they say. */
export interface CompletionReader {
  read(piece: TextPiece): void
  /** `reallyStopped`: the model ended its turn itself. */
  finish(reallyStopped: boolean): void
}
