import {
  type AnyConversation,
  type AnyMessage,
  type AnyTool,
  type AssistantMessage,
  type ResultMessage,
  stringText,
} from './arbitrary-conversation.ts'

/** JSON of a string. */
type Write = (value: string) => string

/** JSON of an object; a member that is `null` is left out. */
const object = (members: Readonly<Record<string, string | null>>): string =>
  `{${Object.entries(members)
    .flatMap(([name, text]) => (text === null ? [] : [`"${name}":${text}`]))
    .join(',')}}`
const list = (items: readonly string[]): string => `[${items.join(',')}]`
const listOrNone = (items: readonly string[]): string | null => (items.length === 0 ? null : list(items))

/** A text in two where it has more than one character. */
function halves(text: string): string[] {
  const characters = Array.from(text)
  const middle = characters.length >> 1
  return middle === 0 ? [text] : [characters.slice(0, middle).join(''), characters.slice(middle).join('')]
}

const part = (text: string, type: string, s: Write): string =>
  object({ type: s(type), text: s(text), cache_control: type === 'text' ? '{"type":"ephemeral"}' : null })
const partsOf = (text: string, type: string, s: Write): string => list(halves(text).map((half) => part(half, type, s)))

/** A text as `way` says: plain, or in parts; none of it as anything that means so. */
function content(text: string, way: number, type: string, s: Write): string | null {
  if (text === '') return ['""', 'null', '[]', null, list([part('', type, s)]), '""', '""', '""'][way]!
  if (way % 3 === 0) return s(text)
  return way % 3 === 1 ? list([part(text, type, s)]) : partsOf(text, type, s)
}

const nameOf = (message: AnyMessage): string | null => (message.role === 'assistant' ? null : message.name)
const callsOf = (message: AnyMessage): AssistantMessage['calls'] => (message.role === 'assistant' ? message.calls : [])
const reasoningOf = (message: AnyMessage): string => (message.role === 'assistant' ? message.reasoning : '')
const allMessages = ({ system, messages }: AnyConversation): readonly AnyMessage[] => (system ? [system, ...messages] : messages)

const chatTools = (tools: readonly AnyTool[], s: Write): string | null =>
  listOrNone(
    tools.map(({ name, description, parameters, strict }) => {
      const described = description === null ? null : s(description)
      return object({
        type: s('function'),
        function: object({ name: s(name), description: described, parameters, strict: strict === null ? null : String(strict) }),
      })
    }),
  )

const chatCalls = (message: AnyMessage, s: Write): string | null =>
  listOrNone(
    callsOf(message).map(({ id, name, arguments: text }) =>
      object({ id: s(id), type: s('function'), function: object({ name: s(name), arguments: s(text) }) }),
    ),
  )

/** Members of a message that Chat Completions has in one form only. */
function chatMessage(message: AnyMessage, s: Write) {
  const name = nameOf(message)
  return {
    role: s(message.role),
    name: name === null ? null : s(name),
    tool_calls: chatCalls(message, s),
    tool_call_id: message.role === 'tool' ? s(message.id) : null,
  }
}

const spelled =
  (conversation: AnyConversation): Write =>
  (value) =>
    stringText(conversation, value)

/** The request as OpenAI's form says it most plainly: what transformers is given. */
export function plainRequest(conversation: AnyConversation): string {
  const s = spelled(conversation)
  const messages = allMessages(conversation).map((message) => {
    const reasoning = reasoningOf(message)
    return object({ ...chatMessage(message, s), content: s(message.content), reasoning_content: reasoning === '' ? null : s(reasoning) })
  })
  return object({ messages: list(messages), tools: chatTools(conversation.tools, s) })
}

/** A way to send a conversation; `arriving` is what of it the dialect can say. */
export interface WireForm {
  readonly write: (conversation: AnyConversation) => string
  readonly arriving: (conversation: AnyConversation) => AnyConversation
}

const chatCompletions: WireForm = {
  arriving: (conversation) => conversation,
  write(conversation) {
    const s = spelled(conversation)
    const messages = allMessages(conversation).map((message) => {
      const { way } = message
      const reasoning = reasoningOf(message)
      return object({
        content: content(message.content, way, 'text', s),
        ...chatMessage(message, s),
        [way % 2 === 0 ? 'reasoning_content' : 'reasoning']: reasoning === '' ? null : s(reasoning),
      })
    })
    return object({ model: s('any'), messages: list(messages), tools: chatTools(conversation.tools, s) })
  },
}

/** Only Chat Completions has a place for names. */
const withoutName = <T extends AnyMessage>(message: T): T => ({ ...message, name: null })
const withoutNames = ({ system, messages, ...rest }: AnyConversation): AnyConversation => ({
  ...rest,
  system: system && withoutName(system),
  messages: messages.map(withoutName),
})

function reasoningItem(text: string, way: number, s: Write): string {
  const type = s('reasoning')
  if (way % 3 === 0) return object({ type, summary: '[]', content: partsOf(text, 'reasoning_text', s) })
  if (way % 3 === 1) return object({ type, summary: partsOf(text, 'summary_text', s) })
  return object({ type, summary: '[]', encrypted_content: s(`aworld-train.1.${Buffer.from(text).toString('base64')}`) })
}

function responsesItems(message: AnyMessage, s: Write): string[] {
  const { role, way } = message
  if (role === 'tool') {
    return [object({ type: s('function_call_output'), call_id: s(message.id), output: content(message.content, way, 'input_text', s) })]
  }
  if (role !== 'assistant') {
    return [object({ type: way > 3 ? s('message') : null, role: s(role), content: content(message.content, way, 'input_text', s) })]
  }
  const { reasoning, calls } = message
  const hasContent = message.content !== '' || calls.length === 0 || way > 3
  return [
    ...(reasoning === '' ? [] : [reasoningItem(reasoning, way, s)]),
    ...(hasContent ? [object({ type: s('message'), role: s('assistant'), content: content(message.content, way, 'output_text', s) })] : []),
    ...calls.map(({ id, name, arguments: text }) =>
      object({ type: s('function_call'), call_id: s(id), name: s(name), arguments: s(text) }),
    ),
  ]
}

const responses: WireForm = {
  arriving: withoutNames,
  write(conversation) {
    const s = spelled(conversation)
    const { system } = conversation
    const isItem = system !== null && (system.role === 'developer' || system.content === '' || system.way > 3)
    const tools = conversation.tools.map(({ name, description, parameters, strict }) =>
      object({
        type: s('function'),
        strict: strict === null ? null : String(strict),
        parameters,
        name: s(name),
        description: description === null ? null : s(description),
      }),
    )
    return object({
      model: s('any'),
      instructions: system && !isItem ? s(system.content) : null,
      tools: listOrNone(tools),
      input: list((isItem ? allMessages(conversation) : conversation.messages).flatMap((message) => responsesItems(message, s))),
    })
  },
}

function assistantBlocks({ content: text, reasoning, calls, way }: AssistantMessage, s: Write): string | null {
  const thoughts = reasoning === '' ? [] : way % 2 === 0 ? [reasoning] : halves(reasoning)
  if (thoughts.length + calls.length === 0) return content(text, way, 'text', s)
  return list([
    ...thoughts.map((thinking) => object({ type: s('thinking'), thinking: s(thinking), signature: s('x') })),
    ...(text === '' ? [] : way % 3 === 0 ? [text] : halves(text)).map((half) => part(half, 'text', s)),
    ...calls.map(({ id, name, arguments: input }) => object({ id: s(id), input, type: s('tool_use'), name: s(name) })),
  ])
}

function resultBlock({ id, content: text, way }: ResultMessage, s: Write): string {
  const failed = way > 5 && text !== ''
  return object({ type: s('tool_result'), tool_use_id: s(id), is_error: failed ? 'true' : null, content: content(text, way, 'text', s) })
}

/** Turns of user and assistant: results of tools stand in a user's turn, and what the user says behind them may too. */
function wireTurns(conversation: AnyConversation, s: Write): string[] {
  const turns: string[] = []
  let results: string[] = []
  const turn = (role: string, text: string | null) => turns.push(object({ role: s(role), content: text }))
  const endResults = () => {
    if (results.length > 0) turn('user', list(results))
    results = []
  }
  for (const message of conversation.messages) {
    const { role, way } = message
    if (role === 'tool') {
      results.push(resultBlock(message, s))
      if (way > 5) endResults()
      continue
    }
    const isBehindResults = role === 'user' && results.length > 0 && way % 2 === 0
    if (isBehindResults) results.push(part(message.content, 'text', s))
    endResults()
    if (role === 'assistant') turn(role, assistantBlocks(message, s))
    else if (!isBehindResults) turn(role === 'user' ? role : 'system', content(message.content, way, 'text', s))
  }
  endResults()
  return turns
}

/** A system prompt that is empty is none; `developer` and `strict` have no place. */
const messages: WireForm = {
  arriving(conversation) {
    const { system, tools, messages: plainMessages } = withoutNames(conversation)
    return {
      ...conversation,
      system: system && system.content !== '' ? { ...system, role: 'system' } : null,
      messages: plainMessages.map((message) => (message.role === 'developer' ? { ...message, role: 'system' } : message)),
      tools: tools.map((tool) => ({ ...tool, strict: null })),
    }
  },
  write(conversation) {
    const s = spelled(conversation)
    const { system } = conversation
    const tools = conversation.tools.map(({ name, description, parameters }) =>
      object({ name: s(name), input_schema: parameters, description: description === null ? null : s(description) }),
    )
    return object({
      model: s('any'),
      system: system && content(system.content, system.way, 'text', s),
      messages: list(wireTurns(conversation, s)),
      tools: listOrNone(tools),
    })
  },
}

/** By the name of a dialect. */
export const wireForms = { 'chat-completions': chatCompletions, responses, messages } as const satisfies Record<string, WireForm>
