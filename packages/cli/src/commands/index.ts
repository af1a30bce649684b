import type { CommandDefinition } from '../define-command.ts'

export interface CommandRow {
  readonly name: string
  readonly description: string
  readonly load: () => Promise<CommandDefinition>
}

/** Every command. The module of a command is loaded only when the command is run. */
export const commands: readonly CommandRow[] = [
  { name: 'init', description: 'make a working project in an empty folder', load: async () => (await import('./init.ts')).init },
  { name: 'train', description: 'train the agent of a project', load: async () => (await import('./train.ts')).train },
  {
    name: 'eval',
    description: 'run the agent over the test set, without training',
    load: async () => (await import('./eval.ts')).evaluate,
  },
  {
    name: 'serve',
    description: 'serve a model folder to any client, or a gateway and a rollout service from a configuration',
    load: async () => (await import('./serve.ts')).serve,
  },
  {
    name: 'worker',
    description: 'run agents of a rollout service (aworld-train serve) on this machine, which needs only outbound connections',
    load: async () => (await import('./worker.ts')).worker,
  },
  {
    name: 'env',
    description: 'start, ask and stop the tool environment of a project',
    load: async () => (await import('./env.ts')).env,
  },
  {
    name: 'doctor',
    description: 'check the machine and a project, all problems at once',
    load: async () => (await import('./doctor.ts')).doctor,
  },
  {
    name: 'setup',
    description: 'make the Python environment of a trainer',
    load: async () => (await import('./setup.ts')).setup,
  },
  {
    name: 'view',
    description: 'show runs in the browser, down to the token, or write them as one page',
    load: async () => (await import('./view.ts')).view,
  },
  {
    name: 'replay',
    description: 'print an episode of a run, or score it with another reward',
    load: async () => (await import('./replay.ts')).replay,
  },
  {
    name: 'export',
    description: 'write the episodes or training samples of a run as JSONL or Parquet',
    load: async () => (await import('./export.ts')).exportRun,
  },
]
