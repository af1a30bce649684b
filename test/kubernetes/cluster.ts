import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { repository } from '../support/run-cli.ts'
import { writeKubeconfig } from './control-plane.ts'
import { type Image, imageFile } from './node-agent.ts'

const run = promisify(execFile)
const deadlineMs = 90_000

export const manifests = join(repository, 'packages/executor-kubernetes/manifests')
/** Packages that this suite has installed: the client of Kubernetes. */
export const clientPackages = fileURLToPath(new URL('node_modules', import.meta.url))

/** Runs kubectl as an account that may do everything, and resolves to what it printed. */
export async function kubectl(...args: readonly string[]): Promise<string> {
  const { kubernetes, adminKubeconfig } = inject('cluster')
  const { stdout } = await run(kubernetes, ['kubectl', '--kubeconfig', adminKubeconfig, ...args], { timeout: deadlineMs })
  return stdout.trim()
}

/** An image under a name that nobody else has: a folder of this machine, and variables. */
export function pushImage(image: Image): string {
  const name = `registry.test/${randomUUID().slice(0, 8)}:1`
  writeFileSync(join(inject('cluster').registry, imageFile(name)), JSON.stringify(image))
  return name
}

/** An image with a project in which `aworld-train` runs from source. `folder` is for that program. */
export function pushProject(folder: string, project: string): string {
  const command = join(folder, 'aworld-train')
  writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${join(repository, 'packages/cli/src/main.ts')} "$@"\n`, { mode: 0o755 })
  return pushImage({ workingDirectory: project, env: { PATH: `${folder}:/usr/bin:/bin`, ...sources } })
}

/** Variables with which our programs run from source, with the same arithmetic everywhere. */
export const sources = { NODE_OPTIONS: '--conditions=@aworld-train/source', AWORLD_TRAIN_SIMD: 'plain', NO_COLOR: '1' }

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
