/** Removes a secret from texts that leave the gateway. */
export type Redact = (text: string) => string

const mark = '[redacted]'

/** A secret shorter than this would be found everywhere. */
const minLength = 4

/** Removes `secret` as it is, as JSON writes it and as a URL does. */
export function createRedact(secret: string | undefined): Redact {
  if (secret === undefined || secret.length < minLength) return (text) => text
  const forms = new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
  return (text) => {
    let clean = text
    for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, mark)
    return clean
  }
}
