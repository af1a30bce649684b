// Shows the desktop that the address names: `lease=`, `rollout=` or neither for the newest, with `token=` where one is needed.
import RFB from './novnc/core/rfb.js'

const query = new URLSearchParams(location.search)
const [status, connectButton, admission, screen] = ['status', 'connect', 'admission', 'screen'].map((id) => document.getElementById(id))
/** Whether the page goes on to the next desktop when one has ended. */
const followsNewest = !query.has('lease') && !query.has('rollout')
/** How long it waits before it looks again, in milliseconds. */
const pauseMs = 2_000

const say = (text) => {
  status.textContent = text
}
const again = (text) => {
  say(text)
  setTimeout(show, pauseMs)
}

async function show() {
  const response = await fetch(`desktop?${query}`).catch(() => null)
  if (!response) return again('The environment does not answer.')
  const answer = await response.json()
  if (response.ok) return connect(answer)
  admission.hidden = response.status !== 401
  const { message } = answer.error
  if (response.status === 404 && followsNewest) again(`${message} This page shows the next one.`)
  else say(message)
}

function connect({ id, rollout, attempt, task, mayControl, password }) {
  const address = new URL('desktop', location.href)
  address.protocol = address.protocol.replace('http', 'ws')
  address.search = new URLSearchParams({ ...Object.fromEntries(query), lease: id })
  const socket = new WebSocket(address)
  const isWatching = !mayControl || query.get('view_only') === 'true'
  screen.replaceChildren()
  const desktop = new RFB(screen, socket, { credentials: { password }, shared: true })
  desktop.viewOnly = isWatching
  desktop.scaleViewport = true
  desktop.addEventListener('connect', () => {
    document.title = `Desktop of ${rollout}`
    say(`${rollout}, attempt ${attempt + 1}, task ${task} · ${isWatching ? 'you watch' : 'you have keyboard and mouse'}`)
  })
  socket.addEventListener('close', ({ reason }) => {
    const text = reason || 'The connection was lost.'
    if (followsNewest) again(text)
    else say(text)
  })
}

admission.addEventListener('submit', (event) => {
  event.preventDefault()
  query.set('token', new FormData(admission).get('token'))
  admission.hidden = true
  show()
})
connectButton.addEventListener('click', () => {
  connectButton.hidden = true
  show()
})

// A token in the address would stay in the history of the browser.
if (query.has('token')) {
  const shown = new URL(location.href)
  shown.searchParams.delete('token')
  history.replaceState(null, '', shown)
}
if (query.get('autoconnect') === 'true') show()
else {
  connectButton.hidden = false
  say('not connected')
}
