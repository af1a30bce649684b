import { errorMessage, TrainError } from '@aworld-train/core'
import type { KubernetesClient } from './kubernetes-client.ts'
import type { KubernetesJob, KubernetesPod } from './kubernetes-objects.ts'
import { podProblem } from './pod-problem.ts'

const watchMs = 1_000
/** How long a passing problem, such as a registry that is briefly away, may keep a pod from starting. */
const patienceMs = 10_000
/** Time after which a Job without pods is reported. Only its events tell the reason. */
const podlessMs = 30_000

export interface JobWatchOptions {
  readonly client: Pick<KubernetesClient, 'find' | 'pods'>
  readonly name: string
  readonly podLabels: string
  readonly onWarning: (message: string) => void
  /** Called once, when no worker will come any more. */
  readonly onFailed: (error: TrainError) => void
}

export interface JobWatch {
  close(): void
}

/** Checks a Job and its pods every second, and reports each problem once. */
export function watchJob({ client, name, podLabels, onWarning, onFailed }: JobWatchOptions): JobWatch {
  const startedAt = performance.now()
  const reported = new Set<string>()
  /** Times since when pods have been unable to start. */
  const blockedAt = new Map<string, number>()
  let hasRun = false
  let lastProblem = ''
  let failedIndexes = ''
  let isSilent = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  function once(id: string, message: string): void {
    if (reported.has(id)) return
    reported.add(id)
    onWarning(message)
  }

  function fail(message: string): void {
    isClosed = true
    onFailed(new TrainError('CONFIG_INVALID', message))
  }

  function look(job: KubernetesJob | null, pods: readonly KubernetesPod[]): void {
    if (!job) {
      fail(`Job "${name}" was deleted by somebody else; start again.`)
      return
    }
    hasRun ||= pods.some(({ status }) => status?.phase === 'Running' || status?.phase === 'Succeeded')
    for (const pod of pods) {
      const problem = podProblem(pod)
      if (!problem) continue
      lastProblem = problem.message
      const id = `${pod.metadata?.uid} ${problem.kind}`
      // A running pod shows that the configuration is right, so that the problem of another may pass.
      if (problem.blocks && !hasRun) {
        const since = blockedAt.get(id) ?? performance.now()
        blockedAt.set(id, since)
        if (performance.now() - since < patienceMs) continue
        fail(problem.message)
        return
      }
      once(id, problem.message)
    }
    const failed = job.status?.conditions?.find(({ type, status }) => type === 'Failed' && status === 'True')
    if (failed) {
      fail(`Job "${name}" has failed (${failed.reason}): ${lastProblem || failed.message}`)
      return
    }
    const ended = job.status?.failedIndexes ?? ''
    if (ended !== failedIndexes) {
      failedIndexes = ended
      onWarning(`Workers ${ended} of Job "${name}" failed more often than executor.options.backoffLimit allows; the others go on.`)
    }
    if (pods.length === 0 && performance.now() - startedAt > podlessMs && !job.spec?.suspend)
      once('podless', `Job "${name}" has no pods yet; look why: kubectl describe job ${name}`)
  }

  async function lookAgain(): Promise<void> {
    try {
      const [job, pods] = [await client.find(name), await client.pods(podLabels)]
      isSilent = false
      if (!isClosed) look(job, pods)
    } catch (error) {
      // Workers go on without the cluster's API server.
      if (!isSilent && !isClosed) onWarning(errorMessage(error))
      isSilent = true
    }
    if (!isClosed) timer = setTimeout(lookAgain, watchMs)
  }

  timer = setTimeout(lookAgain, watchMs)
  return {
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
