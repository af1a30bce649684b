import { type CommandResult, type RewardInput, TrainError, type Verifier, type VerifyRequest } from '@aworld-train/core'

/** The verifier of a reward, which is opened at its first use. */
export interface Verification {
  verify(request: VerifyRequest, input: RewardInput, signal: AbortSignal): Promise<CommandResult>
  close(): Promise<void>
}

/** Creates the verification of a reward. Without `openVerifier` it rejects with REWARD_FAILED. */
export function createVerification(openVerifier: (() => Promise<Verifier>) | undefined): Verification {
  let opened: Promise<Verifier> | null = null

  function open(): Promise<Verifier> {
    if (!openVerifier) throw new TrainError('REWARD_FAILED', 'There is no sandbox here in which a reward could verify files.')
    if (!opened) {
      const opening = openVerifier()
      opened = opening
      // The next call tries again.
      opening.catch(() => {
        opened = null
      })
    }
    return opened
  }

  return {
    async verify(request, { files = [] }, signal) {
      const verifier = await open()
      return await verifier.verify({ ...request, files: request.files ?? files }, signal)
    },
    async close() {
      await (await opened?.catch(() => null))?.close()
    },
  }
}
