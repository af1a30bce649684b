import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { questionOf } from './elements.ts'
import { packageFile, runHarness } from './run-harness.ts'

const platform = process.platform === 'win32' ? 'windows' : process.platform

/** OpenCode over Chat Completions. It asks for a title beside its work, which is not trained. */
export async function agent(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext) {
  const config = {
    model: `policy/${model}`,
    small_model: `policy/${model}`,
    autoupdate: false,
    share: 'disabled',
    provider: {
      policy: {
        npm: '@ai-sdk/openai-compatible',
        name: 'policy',
        options: { baseURL: baseUrl, apiKey },
        models: { [model]: { name: model, tool_call: true, limit: { context: 131_072, output: 4_096 } } },
      },
    },
  }
  const printed = await runHarness(() => ({
    command: packageFile(`opencode-${platform}-${process.arch}/bin/opencode`),
    args: ['run', questionOf(task), '--format', 'json'],
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    },
    signal,
  }))
  return lastText(printed)
}

interface OpenCodeEvent {
  readonly type: string
  readonly part?: { readonly text?: string }
}

const lastText = (printed: string): string | null =>
  printed
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as OpenCodeEvent)
    .findLast(({ type }) => type === 'text')?.part?.text ?? null
