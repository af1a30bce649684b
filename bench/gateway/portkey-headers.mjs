// Portkey 1.15.2 under Node answers streams with 500, because the headers of a fetched response cannot be changed
// (https://github.com/Portkey-AI/gateway/issues/1389). This gives it a copy that can.
const { fetch: fetched, Response: Plain } = globalThis
globalThis.fetch = async (...args) => {
  const { body, status, statusText, headers } = await fetched(...args)
  return new Plain(body, { status, statusText, headers: new Headers(headers) })
}
