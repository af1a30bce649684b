import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createVllmChatEngine } from '@aworld-train/engines/remote'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { openRunStore } from '@aworld-train/store'

/** A run store and a gateway before an engine that is reached over HTTP. */
export async function openParts(stack: AsyncDisposableStack, upstreamPort: number, maxInFlight: number) {
  const directory = stack.adopt(await mkdtemp(join(tmpdir(), 'bench-executor-')), (each) => rm(each, { recursive: true, force: true }))
  const path = join(directory, 'run')
  const store = stack.adopt(await openRunStore({ path, thread: true }), (each) => each.close())
  const replicas = [`http://127.0.0.1:${upstreamPort}`]
  const engine = await createVllmChatEngine({ replicas, model: { name: 'bench', contextLength: 131_072 }, maxInFlight })
  stack.adopt(engine, (each) => each.close())
  const models = { bench: { kind: 'chat', engine } } as const
  const gateway = stack.adopt(await createGateway({ models, aliases: { '*': 'bench' }, seed: 1 }), (each) => each.close())
  const environment = stack.adopt(createEnvironment({ baseDirectory: directory }), (each) => each.close())
  return { path, store, gateway, environment }
}
