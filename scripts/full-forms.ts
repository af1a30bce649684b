/**
 * Files of heavy suites that have tests outside the quick form, with the minutes that each adds to a run on two cores, as estimates
 * that are rather high: of the trainers, which run two files at once, half of what a file takes. Vitest prints what a file took.
 */
export const fullForms: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  environment: {
    'examples/desk-research/': 1,
    'packages/tools/src/servers/': 8,
    'test/environment/browser-bad-input.test.ts': 5,
    'test/environment/browser-elsewhere.test.ts': 0.5,
    'test/environment/conformance.test.ts': 1,
    'test/environment/damaged-documents.test.ts': 2,
    'test/environment/desktop.test.ts': 1,
    'test/environment/differential.test.ts': 1.5,
    'test/environment/fair-calls.test.ts': 2,
    'test/environment/forged-tokens.test.ts': 1,
    'test/environment/office-documents.test.ts': 1.5,
    'test/environment/plain-user.test.ts': 12,
    'test/environment/ready-browsers.test.ts': 2,
    'test/environment/terminal-example.test.ts': 6,
  },
  executors: {
    'test/executors/in-full.test.ts': 3,
    'test/executors/local-gives-up.test.ts': 1,
    'test/executors/ray-exam.test.ts': 3,
    'test/executors/spark-exam.test.ts': 3,
  },
  frameworks: { 'test/frameworks/harnesses.test.ts': 4, 'test/frameworks/training.test.ts': 6 },
  trainers: {
    'test/trainers/areal/bridge.test.ts': 1,
    'test/trainers/areal/contract.test.ts': 1,
    'test/trainers/areal/learning.test.ts': 2,
    'test/trainers/areal/resume.test.ts': 2,
    'test/trainers/dialects.test.ts': 0.5,
    'test/trainers/local/evaluation-kills.test.ts': 2,
    'test/trainers/local/judges.test.ts': 6,
    'test/trainers/local/policies.test.ts': 1,
    'test/trainers/local/shuffled-rewards.test.ts': 1,
    'test/trainers/local/source-readers.test.ts': 3,
    'test/trainers/local/workers-in-full.test.ts': 1,
    'test/trainers/phoenix.test.ts': 1,
    'test/trainers/swift/adapter.test.ts': 1,
    'test/trainers/swift/contract.test.ts': 1,
    'test/trainers/swift/learning.test.ts': 1.5,
    'test/trainers/swift/resume.test.ts': 2,
    'test/trainers/tinker/learning.test.ts': 1.5,
    'test/trainers/trl/adapter.test.ts': 0.5,
    'test/trainers/trl/contract.test.ts': 0.5,
    'test/trainers/trl/learning.test.ts': 1,
    'test/trainers/trl/resume.test.ts': 1,
    'test/trainers/trl/workers.test.ts': 1,
    'test/trainers/verl/ablations.test.ts': 2,
    'test/trainers/verl/bad-input.test.ts': 1.5,
    'test/trainers/verl/by-hand.test.ts': 1,
    'test/trainers/verl/changing-over.test.ts': 2,
    'test/trainers/verl/contract.test.ts': 1,
    'test/trainers/verl/cpu-sampler.test.ts': 1,
    'test/trainers/verl/learning.test.ts': 2,
    'test/trainers/verl/ray-job.test.ts': 1,
    'test/trainers/verl/resume.test.ts': 2,
    'test/trainers/verl/setup.test.ts': 1,
    'test/trainers/verl/smoke.test.ts': 0.5,
    'test/trainers/verl/swarm.test.ts': 1.5,
    'test/trainers/verl/workers.test.ts': 1.5,
    'test/trainers/warm-up.test.ts': 1,
  },
}

export interface FullForm {
  readonly suite: string
  readonly file: string
  readonly minutes: number
}

/** The full forms in `count` shares that take about the same time; a share is the same whoever asks for it. */
export function sharesOf(forms: typeof fullForms, count: number): readonly (readonly FullForm[])[] {
  const shares = Array.from({ length: count }, (): FullForm[] => [])
  const all = Object.entries(forms).flatMap(([suite, files]) =>
    Object.entries(files).map(([file, minutes]): FullForm => ({ suite, file, minutes })),
  )
  for (const form of all.toSorted((a, b) => b.minutes - a.minutes)) shares.toSorted((a, b) => minutesOf(a) - minutesOf(b))[0]?.push(form)
  return shares
}

export const minutesOf = (share: readonly FullForm[]): number => share.reduce((sum, { minutes }) => sum + minutes, 0)
