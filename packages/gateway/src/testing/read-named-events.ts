import type { PolicyEndpoint } from '@aworld-train/core'

/** Asks for a stream under `path` and returns the data of its events. Throws if an event's name is not its type. */
export async function readNamedEvents({ baseUrl }: PolicyEndpoint, path: string, body: object): Promise<Record<string, unknown>[]> {
  const response = await fetch(baseUrl + path, { method: 'POST', body: JSON.stringify({ ...body, stream: true }) })
  const texts = (await response.text()).split('\n\n').filter((event) => event !== '')
  return texts.map((text) => {
    const [, name, data = ''] = /^event: (.*)\ndata: (.*)$/.exec(text) ?? []
    const value = JSON.parse(data) as Record<string, unknown>
    if (value['type'] !== name) throw new Error(`Event "${name}" is of type ${value['type']}.`)
    return value
  })
}
