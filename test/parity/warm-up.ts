import type { WarmUpRequest } from 'aworld-train'
import { makeTinyModel } from '../support/tiny-model.ts'

/** The starting policy of the moved project: it says yes or no. */
export async function warmUp({ directory }: WarmUpRequest): Promise<void> {
  await makeTinyModel(directory)
}
