import type { HistoryMode, TemplateCheck, TemplateProbe } from '@aworld-train/chat'
import type { DoctorCheck } from 'aworld-train'

const historyModes = ['template', 'loop', 'as-sampled'] as const satisfies readonly HistoryMode[]

/** Checks of a model folder for people: problems first, then the inputs, the output and the losses of its template. */
export function templateChecks({ problems, probe, branches }: TemplateCheck): DoctorCheck[] {
  const checks = problems.map((message) => ({ name: 'template', ok: false, message }))
  if (!probe) return checks
  if (checks.length === 0) {
    checks.push({
      name: 'template',
      ok: true,
      message: `renders, and its text survives the tokenizer; digest ${probe.digest.slice(0, 12)}`,
    })
  }
  const facts = [
    ['turn ends', turnText(probe)],
    ['roles', roleText(probe)],
    ['tool calls', toolText(probe)],
    ['reasoning', reasoningText(probe)],
    ['lost', lostText(probe)],
    ...historyModes.map((history) => ['history', historyText(history, branches)] as const),
  ] as const
  return [...checks, ...facts.map(([name, message]) => ({ name, ok: true, message }))]
}

function turnText({ stops, finalStop }: TemplateProbe): string {
  const plain =
    stops.plain === null ? 'an answer has no closing token, so every request is a sample of its own' : `an answer ends with ${stops.plain}`
  const last = finalStop !== null && finalStop !== stops.plain ? ` (${finalStop} where it is the last message)` : ''
  const call = stops.call === null || stops.call === stops.plain ? '' : `, a call with ${stops.call}`
  return plain + last + call
}

function roleText({ systemRole, developerRole, contentParts }: TemplateProbe): string {
  const system = systemRole ? 'system is known' : 'system is refused: put instructions in the first user message'
  const developer = developerRole ? 'developer is known' : systemRole ? 'developer is handed over as system' : 'developer is refused too'
  return `${system}; ${developer}${contentParts ? '; content is handed over as a list of parts' : ''}`
}

function toolText({ syntax, callError, arguments: argumentForm, toolsPrinted, parallelCalls, idsInPrompt, idForm }: TemplateProbe): string {
  if (argumentForm === 'none')
    return `the template ${callError === null ? 'does not print calls' : `refuses calls (${callError})`}: requests with tools are refused`
  const parts = [
    syntax === null ? 'calls are written in a way that is not understood' : `calls are read as ${syntax}`,
    argumentForm === 'object' ? 'arguments are handed over as an object' : 'arguments are handed over as text',
    toolsPrinted ? null : 'the list of tools is not printed: describe them in the system message',
    idsInPrompt ? `ids are in the prompt${idForm === 'any' ? '' : ` (${idForm})`}` : null,
    { all: null, first: 'of parallel calls the first is printed', raises: 'parallel calls are refused', none: null }[parallelCalls],
  ]
  return parts.filter((part) => part !== null).join('; ')
}

function reasoningText({ reasoningField, reasoningOpen }: TemplateProbe): string {
  const field = {
    reasoning_content: 'handed over as reasoning_content',
    thinking: 'handed over as thinking',
    inline: 'handed over between tags in the content',
    none: 'not part of the history',
  }[reasoningField]
  return `${field}${reasoningOpen ? '; the generation prompt opens it' : ''}`
}

/** The parts of a conversation that its next prompt lacks. */
function lostText({ arguments: argumentForm, contentWithCalls, reasoningField, parallelCalls }: TemplateProbe): string {
  const lost = [
    argumentForm !== 'none' && !contentWithCalls ? 'text beside a call' : null,
    reasoningField === 'none' ? 'reasoning' : null,
    parallelCalls === 'first' ? 'every call of a turn but the first' : null,
  ].filter((part) => part !== null)
  return lost.length === 0 ? 'nothing' : lost.join(', ')
}

const inWords: Readonly<Record<string, string>> = {
  prefix: 'earlier text changes',
  'dropped:reasoning': 'its reasoning is dropped',
  'dropped:content': 'its text is dropped',
  'dropped:arguments': 'arguments are dropped',
  order: 'parts change places',
  closer: 'it is closed with another token',
  'no-closer': 'it has no closing token',
  'no-sentinel': 'the turn is not printed',
  raise: 'the template refuses it',
}

function historyText(history: HistoryMode, branches: TemplateCheck['branches']): string {
  const rewritten = Object.entries(branches).flatMap(([scenario, reasons]) =>
    reasons[history].length === 0 ? [] : [`\n  ${scenario}: ${reasons[history].map((reason) => inWords[reason] ?? reason).join(', ')}`],
  )
  const total = Object.keys(branches).length
  if (rewritten.length === 0) return `${history}: in all ${total} situations that were tried a request continues the turn before`
  return `${history}: in ${rewritten.length} of ${total} situations a request begins a sample of its own${rewritten.join('')}`
}
