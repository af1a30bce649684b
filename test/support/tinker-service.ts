import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalEngine } from '@aworld-train/engines/local'
import { startTinkerServer, type TinkerServer, type TinkerServerOptions } from '@aworld-train/testing'

export interface TinkerService extends TinkerServer, AsyncDisposable {}

/** A double of a Tinker service on this machine. Its adapters are embedded policies over a model folder. */
export async function openTinkerService(model: string, options: Partial<TinkerServerOptions> = {}): Promise<TinkerService> {
  const directory = await mkdtemp(join(tmpdir(), 'tinker-service-'))
  const server = await startTinkerServer({
    createPolicy: () => createLocalEngine({ model, threads: 1, simd: 'plain' }),
    baseModel: 'tiny',
    directory,
    ...options,
  })
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      await server.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
