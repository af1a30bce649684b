import { TrainError } from '@aworld-train/core'

export interface WorkerStartOptions {
  /** How long another worker may take to write its first line after Ray reported that one could not be started. Default 30 seconds. */
  readonly graceMs?: number | undefined
  /** Milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

/** Watches whether Ray can start its first worker. Ray itself tries for six minutes and reports only its attempts (ray 2.60). */
export interface WorkerStart {
  /** One line of the console, without colours. */
  read(line: string): void
  /** TRAINER_ENVIRONMENT once no worker can be expected any more; `null` before that, and always after a worker has written a line. */
  failure(): TrainError | null
}

/** A line of a worker: its actor or task, and its process. */
const spoken = /^\((?!raylet\b|gcs_server\b|autoscaler\b)[^)]*\bpid=\d+/
const ofRaylet = /^\(raylet[^)]*\) (.+)/
/** `worker_pool.cc`: a minute after the start of a process that has ended. */
const died = /worker process\(\d+\) have not registered within the timeout\. The process is dead/
/** Bash's message for an interpreter that cannot be executed. */
const notExecuted = /\bbash: line \d+: .+: (?:No such file or directory|command not found|Permission denied|cannot execute\b.*)$/

export function createWorkerStart({ graceMs = 30_000, now = Date.now }: WorkerStartOptions = {}): WorkerStart {
  let running = false
  let complainedAt: number | null = null
  let reason: string | null = null
  return {
    read(line) {
      if (running) return
      if (spoken.test(line)) {
        running = true
        return
      }
      const complaint = ofRaylet.exec(line)?.[1]
      if (complaint === undefined) return
      const isOver = died.test(complaint)
      if (!isOver) reason = complaint
      if (isOver || notExecuted.test(complaint)) complainedAt ??= now()
    },
    failure() {
      if (running || complainedAt === null || now() - complainedAt < graceMs) return null
      const what = reason === null ? 'their processes end at once' : reason.replace(/\.?$/, '')
      return new TrainError(
        'TRAINER_ENVIRONMENT',
        `Ray cannot start its workers: ${what}. Correct the Python that they are started with, or its packages; "aworld-train doctor --engine verl" looks at both, and "aworld-train setup verl" makes one that works.`,
      )
    },
  }
}
