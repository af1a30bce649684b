import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readSafetensors } from '@aworld-train/engines/local'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repository, runCli } from '../../support/run-cli.ts'
import { makeProject, taskLines } from '../../support/tiny-project.ts'

const model = join(repository, 'examples/periodic-table/model')

export interface AdapterOptions {
  /** The interpreter of the trainer's environment. */
  readonly python: () => Promise<string>
  /** The trainer's section of a configuration, which has it train an adapter. */
  readonly section: Readonly<Record<string, unknown>>
}

/** An adapter that a trainer trained, exported by the command line: the weights of its model with the adapter's added. */
export function describeAdapter(trainer: string, { python, section }: AdapterOptions): void {
  let folder: string
  let env: Record<string, string>

  beforeAll(async () => {
    env = { AWORLD_TRAIN_PYTHON: await python() }
    folder = await mkdtemp(join(tmpdir(), `aworld train ${trainer}-`))
  }, 900_000)

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true })
  })

  it(`exports an adapter that ${trainer} trained merged into its model`, async () => {
    const project = await makeProject(folder, model, {
      config: { training: { steps: 1, promptsPerStep: 4, samplesPerPrompt: 4, learningRate: 1e-2 }, [trainer]: section },
      files: {
        'train.jsonl': `${taskLines(8)}\n`,
        'reward.ts': 'export const saysYes = (_dataSource: string, answer: string): number => Math.min(1, answer.length / 20)\n',
      },
    })
    const trained = await runCli(['train', project.folder, '--engine', trainer], { env, deadlineMs: 540_000 })
    expect(trained.code, trained.stdout + trained.stderr).toBe(0)
    const [run] = (await project.runs()) as [string]
    const target = join(folder, 'model')
    const exported = await runCli(['export', run, '--what', 'model', '--to', target], { cwd: folder, env, deadlineMs: 240_000 })
    expect(exported.code, exported.stdout + exported.stderr).toBe(0)
    expect(await readdir(target)).not.toContain('adapter_config.json')
    const [before, after] = await Promise.all([model, target].map((path) => readSafetensors(join(path, 'model.safetensors'))))
    const names = [...before!.tensors.keys()]
    expect([...after!.tensors.keys()].sort()).toEqual(names.toSorted())
    const changed = names.filter((name) =>
      before!.tensors.get(name)!.data.some((value, index) => value !== after!.tensors.get(name)!.data[index]),
    )
    expect(changed).toContain('model.layers.0.self_attn.q_proj.weight')
    // Norms and the embedding have no adapter.
    expect(changed).not.toContain('model.embed_tokens.weight')
    expect(changed).not.toContain('model.norm.weight')
  }, 900_000)
}
