import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { writeKubeconfig } from './control-plane.ts'
import { type Image, imageFile } from './node-agent.ts'

const run = promisify(execFile)
const deadlineMs = 90_000

export const manifests = fileURLToPath(new URL('../../packages/executor-kubernetes/manifests', import.meta.url))

/** Runs kubectl as an account that may do everything, and resolves to what it printed. */
export async function kubectl(...args: readonly string[]): Promise<string> {
  const { kubernetes, adminKubeconfig } = inject('cluster')
  const { stdout } = await run(kubernetes, ['kubectl', '--kubeconfig', adminKubeconfig, ...args], { timeout: deadlineMs })
  return stdout.trim()
}

/** An image under a name that nobody else has: a folder of this machine, and variables. */
export async function pushImage(image: Image): Promise<string> {
  const name = `registry.test/${randomUUID().slice(0, 8)}:1`
  await writeFile(join(inject('cluster').registry, imageFile(name)), JSON.stringify(image))
  return name
}

export interface TestNamespace {
  readonly name: string
  /** Kubeconfig of the coordinator's account: of the manifests' base, with its role and no other. */
  readonly kubeconfig: string
  /** Objects of a kind, as `kubectl get` shows them in JSON. */
  get<Item>(kind: string): Promise<readonly Item[]>
  /** What a pod printed. */
  log(pod: string): Promise<string>
  /** Process of a pod. */
  pid(pod: string): Promise<number>
  evict(pod: string): Promise<void>
}

/** A namespace with the base of the manifests applied. `folder` is for its kubeconfig. */
export async function createNamespace(folder: string): Promise<TestNamespace> {
  const name = `test-${randomUUID().slice(0, 8)}`
  await kubectl('create', 'namespace', name)
  await kubectl('apply', '-n', name, '-k', join(manifests, 'base'))
  const { pods, ...cluster } = inject('cluster')
  const token = await kubectl('create', 'token', 'aworld-train', '-n', name)
  const file = (pod: string, kind: string) => readFile(join(pods, `${name}_${pod}.${kind}`), 'utf8')
  return {
    name,
    kubeconfig: await writeKubeconfig(join(folder, `${name}.kubeconfig`), cluster, token, name),
    async get<Item>(kind: string) {
      return (JSON.parse(await kubectl('get', kind, '-n', name, '-o', 'json')) as { items: readonly Item[] }).items
    },
    log: (pod) => file(pod, 'log'),
    pid: async (pod) => Number(await file(pod, 'pid')),
    async evict(pod) {
      const eviction = join(folder, `${pod}.json`)
      await writeFile(eviction, JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace: name } }))
      await kubectl('create', '--raw', `/api/v1/namespaces/${name}/pods/${pod}/eviction`, '-f', eviction)
    },
  }
}
