import type { RelayHeaders } from '@aworld-train/core'

/** Headers of a connection between two, of which each has its own. */
const ofConnection = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']

/** What the request itself says, and what would make the answer depend on what the program has kept. */
const notSent: ReadonlySet<string> = new Set([
  ...ofConnection,
  ...['host', 'content-length', 'expect', 'accept-encoding', 'proxy-authorization'],
  ...['range', 'if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since'],
])

/**
 * What is true of another connection, of packed or partial bytes, of one moment, or leads past a proxy. Without the moment, what a program
 * keeps is as fresh in a replay as it was at first.
 */
const notPassed: ReadonlySet<string> = new Set([
  ...ofConnection,
  ...['content-length', 'content-encoding', 'accept-ranges', 'proxy-authenticate', 'proxy-authentication-info'],
  ...['date', 'age', 'expires'],
  ...['strict-transport-security', 'alt-svc', 'nel', 'report-to', 'reporting-endpoints'],
])

function without(
  refused: ReadonlySet<string>,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string | readonly string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string | readonly string[]] => entry[1] !== undefined && !refused.has(entry[0]),
    ),
  )
}

/** The headers of a program's request that are sent on. */
export const requestHeaders = (headers: RelayHeaders) => without(notSent, headers)

/** The headers of an answer that its program gets. */
export const answerHeaders = (headers: Readonly<Record<string, string | string[] | undefined>>): RelayHeaders => without(notPassed, headers)
