import { hostname } from 'node:os'
import { TrainError } from '@aworld-train/core'
import { runAgentWorker } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'

export const worker = defineCommand({
  arguments: [],
  options: z.object({
    coordinator: z.string().describe('address of the coordinator, as it prints it: http://machine:8090'),
    agent: z.string().describe('the agent that the coordinator has: ./agent.ts#agent, or an agent.yaml'),
    slots: z.int().min(1).default(16).describe('attempts at once'),
    name: z.string().optional().describe('name of this worker, which no other has (default: host and process)'),
    tokenEnv: z.string().optional().describe("environment variable with the coordinator's token"),
    wait: z.int().min(0).default(60).describe('seconds that a coordinator which does not answer is waited for'),
    away: z.int().min(0).optional().describe('the same for one that was there, as while it starts again (default: --wait)'),
    signalExitCode: z
      .int()
      .min(0)
      .max(255)
      .default(0)
      .describe('exit code when a signal has drained it, for schedulers that start nothing again that ended with 0'),
  }),
  async run({ options, signal }) {
    const { coordinator, agent, slots, tokenEnv } = options
    if (!URL.canParse(coordinator) || !/^https?:$/.test(new URL(coordinator).protocol))
      throw new TrainError('CONFIG_INVALID', `--coordinator "${coordinator}" is no address; write it as http://machine:8090.`)
    const token = tokenEnv === undefined ? undefined : process.env[tokenEnv]
    if (tokenEnv !== undefined && !token)
      throw new TrainError(
        'CONFIG_INVALID',
        `The environment variable ${tokenEnv}, which --token-env names, is not set; put the token of the coordinator there.`,
      )
    // Tools and commands of the agent do not need it.
    if (tokenEnv !== undefined) delete process.env[tokenEnv]
    const name = options.name ?? `${hostname()}-${process.pid}`
    const say = (text: string) => void process.stderr.write(`worker ${name}: ${text}\n`)
    await runAgentWorker({
      url: coordinator,
      agent,
      directory: process.cwd(),
      name,
      slots,
      signal,
      waitMs: options.wait * 1_000,
      ...(options.away !== undefined && { awayMs: options.away * 1_000 }),
      ...(token !== undefined && { token }),
      onWarning: ({ message }) => say(message),
      onState: (state) => say(states[state]),
    })
    say('left')
    return signal.aborted ? options.signalExitCode : undefined
  },
})

const states = {
  connected: 'connected',
  lost: 'the connection is lost; trying again',
  draining: 'finishing what it has, taking nothing more',
}
