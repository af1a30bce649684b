import type { FrozenUse, TokenReport } from '@aworld-train/core'
import { dollars } from './dollars.ts'

/**
 * Lines about the record of tokens and about each frozen model. There are none if every call began or continued a conversation as it was
 * sampled and no frozen model was called.
 */
export function renderTokenReport(report: TokenReport): string[] {
  const { turns, continuations, branches, repeated, abandoned, failed, tolerated, unparsed, ignored, frozen } = report
  const { reasoning, ...rewritten } = tolerated
  const begun = sum(branches)
  const lines = [
    ...(begun > 0 ? [`${begun} of ${turns} calls began anew, ${continuations} went on as sampled: ${list(named(branches))}`] : []),
    ...(sum(rewritten) > 0 ? [`differences from the record, none in a sampled token: ${list(rewritten)}`] : []),
    ...(reasoning ? [`messages that came back without their reasoning: ${reasoning}`] : []),
    ...(sum(unparsed) > 0 ? [`sampled as a tool call, delivered as text: ${list(unparsed)}`] : []),
    ...(repeated > 0 ? [`calls that asked again what was asked before: ${repeated}`] : []),
    ...(abandoned > 0 ? [`answers that did not reach their client, not trained: ${abandoned}`] : []),
    ...(failed > 0 ? [`calls without an answer, refused at a limit or failed: ${failed}`] : []),
    ...(sum(ignored) > 0 ? [`request fields without effect: ${list(ignored)}`] : []),
  ]
  return [...underHeading('record', lines), ...underHeading('frozen', Object.entries(frozen).map(frozenLine))]
}

const underHeading = (heading: string, lines: readonly string[]) =>
  lines.map((line, index) => `${(index === 0 ? heading : '').padEnd(9)}${line}`)

function frozenLine([model, { calls, promptTokens, completionTokens, cost }]: [string, FrozenUse]): string {
  const price = cost === null ? 'no price' : dollars(cost)
  return `${model}: ${calls} call${calls === 1 ? '' : 's'}, ${promptTokens} prompt and ${completionTokens} completion tokens, ${price}`
}

/** The reasons of branches, in words that a user can act on. */
const named = ({ 'system-prompt': other, ...branches }: Readonly<Record<string, number>>): Readonly<Record<string, number>> =>
  other === undefined ? branches : { ...branches, 'under another system prompt': other }

const sum = (tally: Readonly<Record<string, number>>) => Object.values(tally).reduce((total, count) => total + count, 0)

const list = (tally: Readonly<Record<string, number>>) =>
  Object.entries(tally)
    .sort(([, left], [, right]) => right - left)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
