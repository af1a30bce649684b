import { dirname, resolve } from 'node:path'
import { errorMessage } from '@aworld-train/core'
import { diagnoseTrainer, type PythonTrainingPlan, type Trainer } from '@aworld-train/trainers/shared'
import { AgentTrainer, type DoctorCheck, type PythonTrainerProcessor, trainerSections } from 'aworld-train'
import { loadProject } from '../load-project.ts'
import type { CheckReport } from './check-report.ts'

export interface TrainerChecksOptions {
  readonly trainer: Trainer
  /** Folder or file of a project. Default: the working directory. */
  readonly project: string | undefined
  /** File of a configuration. Default: the project's. */
  readonly config: string | undefined
  readonly smoke: boolean
  readonly report: CheckReport
  readonly signal: AbortSignal
}

/**
 * Checks the requirements of a framework: the agent, data and reward of a project, then the Python, the configuration and the machine, and
 * then a training.
 */
export async function trainerChecks({ trainer, project, config, smoke, report, signal }: TrainerChecksOptions): Promise<void> {
  const messages = new Set<string>()
  let projectDirectory = process.cwd()
  let source: string | object | undefined = config === undefined ? undefined : resolve(config)
  let planned: PythonTrainingPlan | undefined
  if (project !== undefined) {
    const { file, definition } = await loadProject(project)
    projectDirectory = definition.baseDirectory ?? dirname(file)
    source ??= definition.config
    const checked = await projectChecks({ ...definition, trainEngineName: trainer.name, ...(config ? { config: resolve(config) } : {}) })
    for (const { message } of checked.checks) messages.add(message)
    report.add(...checked.checks)
    planned = checked.plan
  }
  let trains = true
  const options = { env: process.env, projectDirectory, config: source, sections: trainerSections, planned, signal }
  for await (const { name, level, message } of diagnoseTrainer(trainer, options)) {
    if (level === 'problem' && ['python', 'packages', 'imports'].includes(name)) trains = false
    if (!messages.has(message)) report.add({ name, ok: level !== 'problem', warning: level === 'warning', message })
  }
  if (!smoke) return
  if (!trains) return report.add({ name: 'smoke', ok: false, message: `left out: the Python above cannot run ${trainer.name}` })
  const { smokeTraining } = await import('./smoke-training.ts')
  await smokeTraining({ trainer, projectDirectory, onCheck: (check) => report.add(check), signal })
}

interface CheckedProject {
  readonly checks: readonly DoctorCheck[]
  readonly plan: PythonTrainingPlan | undefined
}

/** Every problem of the five modules, or the plan and the warnings about them if there is no problem. */
async function projectChecks(definition: ConstructorParameters<typeof AgentTrainer>[0]): Promise<CheckedProject> {
  const name = 'project'
  try {
    const trainer = new AgentTrainer(definition)
    await trainer.validate()
    const { plan } = trainer.trainProcessor as PythonTrainerProcessor
    const { notes = [], warnings = [] } = plan?.findings ?? {}
    const checks = [
      { name, ok: true, message: 'agent, data, reward and configuration are there' },
      ...warnings.map((message) => ({ name, ok: true, warning: true, message })),
      ...notes.map((message) => ({ name: 'note', ok: true, message })),
    ]
    return { checks, plan }
  } catch (error) {
    const problems = error instanceof Error && error.cause instanceof AggregateError ? error.cause.errors : [error]
    return { checks: problems.map((each: unknown) => ({ name, ok: false, message: errorMessage(each) })), plan: undefined }
  }
}
