import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { expectedBranches } from './continuity/expected-branches.ts'
import { branchMeasurement, openModel, probeClock } from './load-chat-model.ts'
import type { OpenedModel } from './opened-model.ts'
import { selfTest } from './probe/self-test.ts'
import type { TemplateArguments } from './render/chat-template.ts'
import { readTokenizerFiles } from './tokenizer-files.ts'
import type { TemplateCheck } from './types.ts'

export interface CheckTemplateOptions {
  /** Arguments of the template, such as `{ enable_thinking: false }`. */
  readonly templateArguments?: TemplateArguments | undefined
}

/**
 * Checks whether the template of a Hugging Face folder can be used, and where it would branch. Rejects only for errors
 * that the folder did not cause.
 */
export async function checkTemplate(directory: string, { templateArguments = {} }: CheckTemplateOptions = {}): Promise<TemplateCheck> {
  try {
    const model = openModel(await readTokenizerFiles(directory), { now: probeClock(), templateArguments })
    return {
      problems: [...selfTest(model), ...syntaxProblems(model)],
      probe: model.probe,
      branches: expectedBranches(branchMeasurement(model)),
    }
  } catch (error) {
    if (!(error instanceof TrainError)) throw error
    return { problems: [error.message], probe: null, branches: {} }
  }
}

function syntaxProblems({ directory, probe }: OpenedModel): string[] {
  if (probe.arguments === 'none' || probe.syntax !== null) return []
  if (!existsSync(join(directory, 'generation_config.json')))
    return [
      `The chat template of ${directory} writes tool calls in a way that is not understood, perhaps because the folder has no generation_config.json, which names the tokens that end a call; add it from the model's repository.`,
    ]
  return [
    `The chat template of ${directory} writes tool calls in a way that is not understood; use it without tools, or with a chat engine.`,
  ]
}
