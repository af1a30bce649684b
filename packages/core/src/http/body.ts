/** Why a body could not be had. */
export class BodyError extends Error {
  readonly reason: 'too-large' | 'incomplete'

  constructor(reason: 'too-large' | 'incomplete', message: string) {
    super(message)
    this.name = 'BodyError'
    this.reason = reason
  }
}

export const tooLarge = (maxBytes: number) => new BodyError('too-large', `The body is larger than ${maxBytes} bytes`)

export const incompleteBody = () => new BodyError('incomplete', 'The connection closed before the whole body had come')

/** How long what is left of a refused body is discarded, so that its client gets to read the answer. */
export const lingerMs = 5_000

/** Memory of at least `length` bytes for a body, `null` where it is to be made. */
export type BodyMemory = (length: number) => Buffer | null

/** Hears the whole body, or why it could not be had. */
export type BodyEnd = (body: Buffer | null, error: BodyError | null) => void
