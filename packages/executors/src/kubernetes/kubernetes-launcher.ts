import { createHash, randomBytes } from 'node:crypto'
import { isAbsolute, relative, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage, type LaunchedWorker, type Launcher, type LauncherEngine, TrainError, type WorkerLaunch } from '@aworld-train/core'
import { type KubernetesClient, openKubernetesClient } from './kubernetes-client.ts'
import type { KubernetesJob, KubernetesPod } from './kubernetes-objects.ts'
import { parseKubernetesOptions } from './kubernetes-options.ts'
import { coordinatorLabel, missingFields, toJob, tokenKey } from './to-job.ts'
import { type JobWatch, watchJob } from './watch-job.ts'

const pollMs = 500
/** How much longer than its pods' grace a deleted Job is waited for. */
const removalMs = 60_000

const indexOf = ({ metadata }: KubernetesPod): number => Number(metadata?.annotations?.['batch.kubernetes.io/job-completion-index'] ?? -1)
const podsOf = (job: string) => `batch.kubernetes.io/job-name=${job}`

/** Runs workers as the pods of an Indexed Job, which Kubernetes places and restarts. */
function createKubernetesLauncher(launch: WorkerLaunch): Launcher {
  const { workerNum, slots, resources, env, onWarning } = launch
  const options = parseKubernetesOptions(launch.options)
  const name = `aworld-train-${randomBytes(4).toString('hex')}`
  let opened: Promise<KubernetesClient> | undefined
  let watch: JobWatch | undefined
  /** Whether a Job of this launcher may exist. */
  let isCreated = false

  function open(): Promise<KubernetesClient> {
    opened ??= openKubernetesClient({ context: launch.address, namespace: options.namespace, directory: launch.directory })
    return opened
  }

  function jobFor(url: string, agent: string, hasToken: boolean): KubernetesJob {
    const coordinator = createHash('sha256').update(url).digest('hex').slice(0, 16)
    return toJob({ name, coordinator, url, agent, workerNum, slots, resources, env, hasToken }, options)
  }

  /** Path of the agent in the image, whose working directory is the project. */
  function agentInImage(path: string): string {
    if (options.agent !== null) return options.agent
    const inProject = relative(launch.directory, path)
    if (!inProject.startsWith('..') && !isAbsolute(inProject)) return `./${inProject.replaceAll(sep, '/')}`
    throw new TrainError(
      'CONFIG_INVALID',
      `The agent ${path} is not in ${launch.directory}, which is the working directory of the image; set executor.options.agent to its path in the image.`,
    )
  }

  /** Removes Jobs of an earlier life of the same coordinator, because their workers would connect to this one. */
  async function removeEarlier(client: KubernetesClient, { metadata }: KubernetesJob): Promise<void> {
    const earlier = await client.jobs(`${coordinatorLabel}=${metadata!.labels![coordinatorLabel]}`)
    await Promise.all(earlier.map(async (job) => await client.remove(job.metadata!.name!)))
  }

  async function remove(client: KubernetesClient): Promise<void> {
    await client.remove(name)
    const deadline = performance.now() + options.graceSeconds * 1_000 + removalMs
    while (await client.find(name)) {
      if (performance.now() > deadline) {
        onWarning(
          `Job "${name}" of namespace "${client.namespace}" is still there; look why: kubectl describe job ${name} -n ${client.namespace}`,
        )
        return
      }
      await sleep(pollMs)
    }
  }

  async function start(): Promise<void> {
    const client = await open()
    const { url, token, agent } = launch.worker(name)
    const job = jobFor(url, agentInImage(agent), token !== null)
    await removeEarlier(client, job)
    isCreated = true
    const { metadata } = await client.create(job)
    try {
      if (token !== null) {
        const owner = { apiVersion: 'batch/v1', kind: 'Job', name, uid: metadata!.uid! }
        await client.createSecret({ metadata: { name, ownerReferences: [owner] }, stringData: { [tokenKey]: token } })
      }
      await client.patch(name, [{ op: 'replace', path: '/spec/suspend', value: false }])
    } catch (error) {
      await stop()
      throw error
    }
    watch = watchJob({
      client,
      name,
      podLabels: podsOf(name),
      onWarning,
      onFailed(error) {
        // The Job is removed, because it would go on trying.
        void client.remove(name).catch((cause: unknown) => onWarning(errorMessage(cause)))
        launch.onFailed(error)
      },
    })
  }

  async function stop(): Promise<void> {
    watch?.close()
    if (!isCreated) return
    isCreated = false
    await remove(await open())
  }

  return {
    async plan() {
      const client = await open()
      const job = jobFor('https://coordinator.invalid', options.agent ?? './agent.ts', true)
      const kept = await client.create(job, true)
      const unknown = missingFields(job.spec!.template.spec, kept.spec?.template.spec)
      if (unknown.length > 0)
        throw new TrainError(
          'CONFIG_INVALID',
          `Kubernetes knows no ${unknown.map((path) => `"${path}"`).join(', ')} of a pod; correct executor.options.pod, executor.options.container or executor.resources.`,
        )
      const workers = `${workerNum} worker${workerNum === 1 ? '' : 's'}`
      return [`${workers} as pods of a Job in namespace "${client.namespace}" of ${client.server}, with image ${options.image}`]
    },
    start,
    async scale(count) {
      const client = await open()
      await client.patch(
        name,
        count === 0
          ? [{ op: 'replace', path: '/spec/suspend', value: true }]
          : [
              { op: 'replace', path: '/spec/completions', value: count },
              { op: 'replace', path: '/spec/parallelism', value: count },
              { op: 'replace', path: '/spec/suspend', value: false },
            ],
      )
      const deadline = performance.now() + options.graceSeconds * 1_000 + removalMs
      while ((await client.pods(podsOf(name))).some((pod) => isActive(pod) && indexOf(pod) >= count)) {
        if (performance.now() > deadline) return onWarning(`Pods of Job "${name}" that were to leave are still there.`)
        await sleep(pollMs)
      }
    },
    async status() {
      if (!isCreated) return []
      const client = await open()
      const [job, pods] = await Promise.all([client.find(name), client.pods(podsOf(name))])
      if (!job?.spec) return []
      const count = job.spec.suspend ? 0 : job.spec.completions
      return Array.from({ length: count }, (_, index) =>
        workerStatus(
          `${name}-${index}`,
          pods.filter((pod) => indexOf(pod) === index),
        ),
      )
    },
    stop,
  }
}

const isActive = ({ status }: KubernetesPod) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed'

/** Number of earlier pods of the same index, as the Job's controller counts them. */
const failuresBefore = ({ metadata }: KubernetesPod) =>
  ['job-index-failure-count', 'job-index-ignored-failure-count']
    .map((key) => Number(metadata?.annotations?.[`batch.kubernetes.io/${key}`] ?? 0))
    .reduce((sum, count) => sum + count)

/** Status of the worker of one index, judged by its newest pod. */
function workerStatus(fallback: string, pods: readonly KubernetesPod[]): LaunchedWorker {
  const [newest] = pods.toSorted((a, b) => failuresBefore(b) - failuresBefore(a))
  if (!newest) return { name: fallback, state: 'starting', restarts: 0 }
  const phase = newest.status?.phase
  const state = phase === 'Running' ? 'running' : phase === 'Pending' || phase === 'Failed' ? 'starting' : 'ended'
  return { name: newest.metadata?.name ?? fallback, state, restarts: failuresBefore(newest) }
}

/** Engine "k8s", whose workers reach the coordinator from the network of the cluster. */
export const kubernetesEngine: LauncherEngine = { name: 'k8s', isElsewhere: () => true, create: createKubernetesLauncher }
