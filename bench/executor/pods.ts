import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { accessTo, clientPackages, startCluster } from '../../test/kubernetes/cluster.ts'
import { startScript } from '../gateway/peers.ts'
import type { BenchSuite } from '../suite.ts'
import { compareEngines, count, type Rates, slots, workers } from './engines.ts'
import { startLoad } from './start-load.ts'

/** Of a pod each; a node has room for 110. */
const podCount = 100
const here = fileURLToPath(new URL('.', import.meta.url))

/** Short rollouts a second, and the start until the first has ended, in pods of workers, beside one pod for each rollout without us. */
export const podRates: BenchSuite = {
  async run(args) {
    const { cluster, close } = await startCluster()
    const folder = await mkdtemp(join(tmpdir(), 'bench-pods-'))
    const { kubectl, pushProject, createNamespace } = accessTo(cluster)
    try {
      // Where the client of Kubernetes is found.
      await symlink(clientPackages, join(folder, 'node_modules'))
      const namespace = await createNamespace(folder)
      process.env['KUBECONFIG'] = namespace.kubeconfig
      const image = pushProject(folder, here)

      async function ours(): Promise<Rates> {
        const executor = { engineName: 'k8s', options: { image, agent: './agent.ts#agent' } }
        const load = { count, seed: Number(args[0] ?? 1), scale: 0 }
        // The CPU of pods is the cluster's, as with actors of Ray.
        return { ...(await startLoad({ load, slots, workers, executor, directory: folder })), cpuSeconds: undefined }
      }

      /** Seconds until all pods of a Job have ended. */
      async function runJob(name: string, completions: number, port: number): Promise<number> {
        const command = [process.execPath, join(here, 'plain-pod.ts'), `http://127.0.0.1:${port}`]
        const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'rollout', image, command }] } }
        const job = { completions, parallelism: Math.min(slots, completions), backoffLimit: 0, template }
        const file = join(folder, `${name}.json`)
        await writeFile(file, JSON.stringify({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: job }))
        const startedAt = performance.now()
        await kubectl('create', '-n', namespace.name, '-f', file)
        for (;;) {
          const { status } = JSON.parse(await kubectl('get', 'job', name, '-n', namespace.name, '-o', 'json')) as {
            readonly status: { readonly succeeded?: number; readonly failed?: number }
          }
          if (status.failed) throw new Error(`A pod of ${name} failed: ${await kubectl('describe', 'job', name, '-n', namespace.name)}`)
          if (status.succeeded === completions) break
          await sleep(100)
        }
        const seconds = (performance.now() - startedAt) / 1000
        await kubectl('delete', 'job', name, '-n', namespace.name)
        return seconds
      }

      let round = 0
      async function podEach(): Promise<Rates> {
        await using upstream = await startScript<{ port: number }>('upstream.ts', [])
        const { port } = upstream.line
        round += 1
        const startSeconds = await runJob(`first-${round}`, 1, port)
        const seconds = await runJob(`all-${round}`, podCount, port)
        process.stdout.write(`${podCount} pods: ${seconds.toFixed(1)} s, the first in ${startSeconds.toFixed(1)} s\n`)
        return { count: podCount, seconds, startSeconds }
      }

      return {
        rows: await compareEngines({ 'four pods of workers': ours }, { 'a pod for each': podEach }),
        notes: [
          `pods: ${count} rollouts on workers and ${podCount} with a pod for each, ${slots} at once, with the real API server, scheduler and Job controller; a pod is a process of this machine, without an image that is unpacked or a network that is made, so that pods of a real node start later`,
        ],
      }
    } finally {
      await close()
      await rm(folder, { recursive: true, force: true })
    }
  },
}
