import type { TokenReport } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { renderTokenReport } from './token-report-text.ts'

const quiet: TokenReport = {
  version: 1,
  turns: 20,
  continuations: 12,
  roots: 8,
  branches: {},
  repeated: 0,
  abandoned: 0,
  failed: 0,
  tolerated: {},
  unparsed: {},
  ignored: {},
  frozen: {},
}

it('says nothing where every call began or went on as sampled', () => {
  expect(renderTokenReport(quiet)).toEqual([])
})

it('says what clients did, most frequent first', () => {
  const report: TokenReport = {
    ...quiet,
    branches: { tools: 1, 'no-match': 3 },
    repeated: 2,
    abandoned: 1,
    failed: 4,
    tolerated: { arguments: 9, reasoning: 5, 'empty-content': 11 },
    unparsed: { 'call-invalid': 6 },
    ignored: { temperature: 20 },
  }
  expect(`\n${renderTokenReport(report).join('\n')}`).toMatchInlineSnapshot(`
    "
    record   4 of 20 calls began anew, 12 went on as sampled: no-match 3, tools 1
             differences from the record, none in a sampled token: empty-content 11, arguments 9
             messages that came back without their reasoning: 5
             sampled as a tool call, delivered as text: call-invalid 6
             calls that asked again what was asked before: 2
             answers that did not reach their client, not trained: 1
             calls without an answer, refused at a limit or failed: 4
             request fields without effect: temperature 20"
  `)
})

it('says how calls beside the work of an agent begin', () => {
  expect(renderTokenReport({ ...quiet, turns: 4, continuations: 1, branches: { 'system-prompt': 2 } })).toEqual([
    'record   2 of 4 calls began anew, 1 went on as sampled: under another system prompt 2',
  ])
})

it('says what frozen models were asked for and what that cost', () => {
  const frozen = {
    judge: { calls: 24, promptTokens: 24_000, completionTokens: 2_400, cost: 0.072 },
    planner: { calls: 1, promptTokens: 90, completionTokens: 5, cost: null },
  }
  expect(`\n${renderTokenReport({ ...quiet, frozen }).join('\n')}`).toMatchInlineSnapshot(`
    "
    frozen   judge: 24 calls, 24000 prompt and 2400 completion tokens, $0.0720
             planner: 1 call, 90 prompt and 5 completion tokens, no price"
  `)
})
