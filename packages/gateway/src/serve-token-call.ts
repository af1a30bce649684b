import type { RunWork } from '@aworld-train/chat'
import { CallAborted } from './active-call.ts'
import { add } from './counters.ts'
import { refuseAlternatives } from './dialects/token-logprobs.ts'
import { bodyTooLarge } from './failure.ts'
import type { TokenModel } from './models/model-table.ts'
import { chooseModel } from './models/model-table.ts'
import { maxBodyBytes } from './models/size-limits.ts'
import { largeBodyBytes } from './pacer.ts'
import { type SampledTurn, sampleTurn } from './sample-turn.ts'
import { type ServedCall, settleDelivery } from './served-call.ts'
import { constrain } from './stages/constrain.ts'
import { decode } from './stages/decode.ts'
import { sendNothing } from './stages/encode.ts'

/** Serves a call to a model that takes token ids. It is decoded, rendered, sampled, parsed and recorded before its answer ends. */
export async function serveTokenCall({ options, active, progress }: ServedCall, tokenModel: TokenModel | null): Promise<void> {
  const { parts, session, agent, dialect, body, response, observed } = options
  const { counters, gate, limits, models, pacer } = parts
  if (tokenModel && limits.maxBodyBytes === null && body.length > maxBodyBytes(tokenModel)) throw bodyTooLarge(maxBodyBytes(tokenModel))
  const run: RunWork = (work) => (body.length > largeBodyBytes ? pacer.run(session, active.signal, work) : work())
  const call = await run(() => decode(dialect, body, agent.memory))
  // If all models take token ids, the model's name is read here, with the rest of the request.
  const model = tokenModel ?? (chooseModel(models, agent, call.model ?? undefined) as TokenModel)
  observed.routed(model.name)
  const constraint = constrain(call, model)
  refuseAlternatives(call.wants.logprobs)
  parts.hosted.leaveOut(agent.name, call.hosted)
  for (const name of call.ignored) add(counters.ignored, name)
  for (const oddity of call.oddities) add(counters.tolerated, oddity)
  progress.stream = call.stream
  active.keepAwake(() => sendNothing(dialect, response, call.stream))
  const arrival = agent.arrivals++
  await gate.enter(active.signal)
  observed.admitted()
  let sampledTurn: SampledTurn
  try {
    sampledTurn = await sampleTurn(options, { model, call, constraint, active, arrival, run, progress })
  } finally {
    gate.leave()
  }
  const loss = active.lost()
  if (loss) throw new CallAborted(loss)
  active.startSending()
  sampledTurn.answer.end(sampledTurn.completion)
  if (!(await active.sent)) throw new CallAborted('client-closed')
  if (progress.turn) settleDelivery(options, progress.turn, true)
}
