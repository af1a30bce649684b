import { type RolloutContext, TrainError, toTrainError } from '@aworld-train/core'

/** Turns foreign errors into AGENT_FAILED. After an abort the signal's reason counts. */
export async function inContext<Value>({ signal }: RolloutContext, run: () => Promise<Value>, name: string): Promise<Value> {
  try {
    signal.throwIfAborted()
    return await run()
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (error instanceof TrainError) throw error
    const { message } = toTrainError(error, 'AGENT_FAILED')
    throw new TrainError('AGENT_FAILED', `Agent "${name}" threw: ${message}`, { cause: error })
  }
}
