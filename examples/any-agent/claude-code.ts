import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { questionOf } from './elements.ts'
import { packageFile, runHarness } from './run-harness.ts'

/** Claude Code over Messages. Its base URL ends before `/v1`. */
export async function agent(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext) {
  const printed = await runHarness((home) => ({
    command: process.execPath,
    args: [
      packageFile('@anthropic-ai/claude-code/cli-wrapper.cjs'),
      ...['--print', questionOf(task), '--model', model, '--output-format', 'json', '--allowedTools', 'Bash,Read'],
    ],
    env: {
      ANTHROPIC_BASE_URL: baseUrl.replace(/\/v1$/, ''),
      ANTHROPIC_API_KEY: apiKey,
      // Its side calls go to the policy too, and are not trained.
      ANTHROPIC_SMALL_FAST_MODEL: model,
      CLAUDE_CONFIG_DIR: home,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    signal,
  }))
  return (JSON.parse(printed) as { result: string }).result
}
