import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Episode } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { AgentTrainer, type AgentTrainerOptions } from 'aworld-train'
import { repository } from './run-cli.ts'

/** A test's changes of the project: parts of the definition, and files by path. */
export interface ProjectChanges {
  readonly definition?: Readonly<Record<string, unknown>>
  /** Merged into the sections of the configuration. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly files?: Readonly<Record<string, string | Uint8Array>>
}

export interface TinyProject {
  readonly folder: string
  readonly runPath: string
  /** Folders of runs, oldest first. Empty if the parent does not exist either. */
  runs(): Promise<string[]>
}

const agentText = `import { Agent } from 'aworld-train'

export const agent = new Agent({ name: 'tiny', systemPrompt: 'Answer.' })
`

const rewardText = `export function saysYes(_dataSource: string, solutionStr: string): number {
  return solutionStr.trim() === 'yes' ? 1 : 0
}
`

export const taskLines = (count: number, first = 10) =>
  Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      id: `task-${first + index}`,
      prompt: `Is ${first + index} even?`,
      answer: index % 2 === 0 ? 'yes' : 'no',
      data_source: 'parity',
    }),
  ).join('\n')

/** Makes a project in a folder of its own below `parent`: one agent, a reward by path, four tasks, two steps of two groups. */
export async function makeProject(parent: string, model: string, changes: ProjectChanges = {}): Promise<TinyProject> {
  const folder = await mkdtemp(join(parent, 'project-'))
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  const definition = {
    agent: './agent.ts#agent',
    trainDataset: './train.jsonl',
    rewardFunc: './reward.ts#saysYes',
    trainEngineName: 'local',
    runPath: join(folder, 'runs'),
    config: {
      model: { path: model },
      engine: { threads: 1 },
      training: { steps: 2, promptsPerStep: 2, samplesPerPrompt: 4, checkpointEvery: 1, ...section(changes, 'training') },
      sampling: { maxTokens: 6, ...section(changes, 'sampling') },
      limits: { maxTurns: 2, ...section(changes, 'limits') },
      evaluation: { greedy: false, ...section(changes, 'evaluation') },
      ...others(changes),
    },
    ...changes.definition,
  }
  const files = {
    'package.json': '{ "type": "module", "private": true }\n',
    'agent.ts': agentText,
    'reward.ts': rewardText,
    'train.jsonl': `${taskLines(4)}\n`,
    'aworld-train.config.ts': `export default ${JSON.stringify(definition, null, 2)}\n`,
    ...changes.files,
  }
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, content)
  }
  const runPath = String(definition.runPath)
  return {
    folder,
    runPath,
    runs: async () => (existsSync(runPath) ? (await readdir(runPath)).sort().map((name) => join(runPath, name)) : []),
  }
}

const merged = ['training', 'sampling', 'limits', 'evaluation'] as const

const section = ({ config }: ProjectChanges, name: (typeof merged)[number]) => config?.[name] as object | undefined

const others = ({ config = {} }: ProjectChanges) =>
  Object.fromEntries(Object.entries(config).filter(([name]) => !(merged as readonly string[]).includes(name)))

/** Opens the project's training in this process. Options of the run win over those of its file. */
export async function openTrainer({ folder }: TinyProject, options: Partial<AgentTrainerOptions> = {}): Promise<AgentTrainer> {
  const { default: definition } = (await import(join(folder, 'aworld-train.config.ts'))) as { default: AgentTrainerOptions }
  return new AgentTrainer({ ...definition, baseDirectory: folder, onEvent() {}, ...options })
}

/** Every episode of the newest run. */
export async function episodesOf(project: TinyProject): Promise<Episode[]> {
  const run = readRun((await project.runs()).at(-1) as string)
  try {
    return [...run.episodes()]
  } finally {
    run.close()
  }
}
