/** Removes secrets from texts that others read. */
export type Redact = (text: string) => string

const mark = '[redacted]'

/** A shorter secret is not removed, because it would occur in ordinary text. */
const minLength = 4

/** Removes each secret in its plain, JSON and URL spelling. */
export function createRedact(secrets: readonly (string | undefined)[]): Redact {
  const values = secrets.filter((secret) => secret !== undefined && secret.length >= minLength) as string[]
  const forms = new Set(values.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]))
  return (text) => {
    let clean = text
    for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, mark)
    return clean
  }
}
