import type { RawData } from 'ws'
import type { FrameSocket } from '../frames/framed-socket.ts'
import type { SimulatedProcess } from './process.test-support.ts'
import type { World } from './world.test-support.ts'

type Listener = (...facts: never[]) => void

/** One end of a connection. */
class LinkEnd implements FrameSocket {
  readonly bufferedAmount = 0
  readonly process: SimulatedProcess
  /** Time when the last message to this end arrives. */
  arrival = 0
  isClosed = false
  #link: Link
  #listeners = new Map<string, Listener>()

  constructor(link: Link, process: SimulatedProcess) {
    this.#link = link
    this.process = process
  }

  on(event: string, listener: Listener): void {
    this.#listeners.set(event, listener)
  }

  emit(event: string, ...facts: unknown[]): void {
    if (this.isClosed) return
    if (event === 'close') this.isClosed = true
    this.#listeners.get(event)?.(...(facts as never[]))
    if (event === 'ping') this.#link.carry(this, 'pong')
  }

  send(frame: string | Uint8Array, { binary }: { readonly binary: boolean }): void {
    if (!this.isClosed) this.#link.carry(this, 'message', Buffer.from(this.#link.alter(frame as string)) satisfies RawData, binary)
  }

  ping(): void {
    if (!this.isClosed) this.#link.carry(this, 'ping')
  }

  close(code: number): void {
    if (!this.isClosed) this.#link.carry(this, 'close', code)
  }

  terminate(): void {
    if (this.isClosed) return
    this.#link.carry(this, 'close', lostCode)
    this.isClosed = true
  }
}

/** Close code of a connection that was not closed by its other side. */
const lostCode = 1006

/** A connection. Its messages arrive in order, after a delay each, unless it breaks before. */
export class Link {
  readonly near: LinkEnd
  readonly far: LinkEnd
  #world: World
  #isBroken = false

  constructor(world: World, near: SimulatedProcess, far: SimulatedProcess) {
    this.#world = world
    this.near = new LinkEnd(this, near)
    this.far = new LinkEnd(this, far)
    near.onKill(() => this.break())
    far.onKill(() => this.break())
  }

  /** Whether messages get from one end to the other. */
  isWhole(): boolean {
    return !this.#isBroken && !this.near.isClosed && !this.far.isClosed
  }

  alter(frame: string): string {
    return this.#world.alter(frame)
  }

  carry(from: LinkEnd, event: string, ...facts: unknown[]): void {
    const { now, at, random, latency, isMislaid } = this.#world
    const to = from === this.near ? this.far : this.near
    if (this.#isBroken || (event === 'message' && isMislaid(facts[0] as Buffer))) return
    to.arrival = Math.max(to.arrival, now() + random() * latency())
    at(to.arrival, () => this.#isBroken || to.process.take(() => to.emit(event, ...facts)))
  }

  /** Loses what is under way. Each side hears of it, except where the connection is half-open. */
  break(): void {
    if (!this.isWhole()) return
    this.#isBroken = true
    const { after, random, isFaulty, reach } = this.#world
    for (const end of [this.near, this.far]) {
      if (isFaulty() && random() < 0.3) reach('half-open connection')
      else after(random() * 2, () => end.process.take(() => end.emit('close', lostCode)))
    }
  }

  /** Tells both ends, after the life that is over. */
  bury(): void {
    for (const end of [this.near, this.far]) end.emit('close', lostCode)
  }
}
