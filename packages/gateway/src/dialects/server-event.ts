/** A server-sent event that carries its name, as Responses and Messages send them. */
export const namedEvent = (type: string, json: string): string => `event: ${type}\ndata: ${json}\n\n`
