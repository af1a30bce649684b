// A short rollout without us, as all that a pod does.
const response = await fetch(`${process.argv[2]}/v1/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'plan 0' }] }),
})
const { choices } = (await response.json()) as {
  readonly choices: readonly [{ readonly message: { readonly tool_calls?: readonly unknown[] } }]
}
if (choices[0].message.tool_calls?.length) throw new Error('The rollout did not end with its first turn.')
