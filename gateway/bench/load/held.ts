import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createReader, failureOf } from './reader.ts'
import { type LoadReport, type Observed, reportOf } from './report.ts'

/** Orders over connections that stay open between orders, so that each stays with its worker. */
export type HeldOrder =
  | { kind: 'hold'; port: number; connections: number }
  /** Requests on one connection, one after another. */
  | { kind: 'burst'; connection: number; request: string; ending: string; count: number }
  /** A fixed rate over groups of connections, with a report of each group. */
  | {
      kind: 'pace'
      groups: number[][]
      request: string
      ending: string
      perSecond: number
      durationMs: number
    }
  /** Requests with a large body on one connection, without a pause. `head` ends before `content-length`. */
  | {
      kind: 'flood'
      connection: number
      head: string
      bodyBytes: number
      ending: string
      durationMs: number
    }

type Connection = { socket: Socket; send(request: readonly Buffer[], ending: string): Promise<void> }

/** Connections of this process, by index. */
export function createHeld() {
  const held: Connection[] = []

  async function obey(order: HeldOrder): Promise<LoadReport> {
    const started = performance.now()
    const observed: Observed = { latencies: [], failures: 0, firstFailure: '' }
    switch (order.kind) {
      case 'hold':
        for (let opened = 0; opened < order.connections; opened += 1) held.push(await open(order.port))
        return { ...reportOf(observed, started), requests: order.connections }
      case 'burst':
        await burst(connectionAt(order.connection), order, observed)
        return reportOf(observed, started)
      case 'flood':
        await flood(connectionAt(order.connection), order, observed)
        return reportOf(observed, started)
      case 'pace':
        return paceGroups(order, started)
    }
  }

  function connectionAt(index: number): Connection {
    const found = held[index]
    if (!found) throw new Error(`there is no connection ${index}`)
    return found
  }

  async function paceGroups(
    order: Extract<HeldOrder, { kind: 'pace' }>,
    started: number,
  ): Promise<LoadReport> {
    const request = [Buffer.from(order.request, 'latin1')]
    const count = order.groups.flat().length
    const everyMs = (1000 * count) / order.perSecond
    let index = 0
    const groups = order.groups.map((group) => {
      const observed: Observed = { latencies: [], failures: 0, firstFailure: '' }
      const running = group.map((connection) => {
        const firstAt = started + (everyMs * index++) / count
        const endsAt = started + order.durationMs
        const times = { firstAt, everyMs, endsAt }
        return keepPace(connectionAt(connection), { ...times, request, ending: order.ending }, observed)
      })
      return { observed, running }
    })
    await Promise.all(groups.flatMap(({ running }) => running))
    const all: Observed = {
      latencies: groups.flatMap(({ observed }) => observed.latencies),
      failures: groups.reduce((sum, { observed }) => sum + observed.failures, 0),
      firstFailure: groups.find(({ observed }) => observed.failures > 0)?.observed.firstFailure ?? '',
    }
    const reports = groups.map(({ observed }) => reportOf(observed, started))
    return { ...reportOf(all, started), groups: reports }
  }

  return {
    obey,
    close() {
      for (const { socket } of held.splice(0)) socket.destroy()
    },
  }
}

async function burst(
  { send }: Connection,
  order: Extract<HeldOrder, { kind: 'burst' }>,
  observed: Observed,
): Promise<void> {
  const request = [Buffer.from(order.request, 'latin1')]
  for (let sent = 0; sent < order.count; sent += 1) {
    if (!(await timed(() => send(request, order.ending), observed))) return
  }
}

async function flood(
  { send }: Connection,
  order: Extract<HeldOrder, { kind: 'flood' }>,
  observed: Observed,
): Promise<void> {
  const body = largeBody(order.bodyBytes)
  const head = Buffer.from(`${order.head}\r\ncontent-length: ${body.byteLength}\r\n\r\n`, 'latin1')
  const endsAt = performance.now() + order.durationMs
  while (performance.now() < endsAt) {
    if (!(await timed(() => send([head, body], order.ending), observed))) return
  }
}

/** A chat completion of about so many bytes, in messages of 2 kB. */
function largeBody(bytes: number): Buffer {
  const content = 'What does a "gateway" do between a client and a model?\nExplain it. '.repeat(28)
  const message = { role: 'user', content }
  const each = JSON.stringify(message).length + 1
  const messages = Array.from({ length: Math.floor((bytes - 100) / each) }, () => message)
  return Buffer.from(JSON.stringify({ model: 'bench-model', stream: false, messages }))
}

type Pace = {
  firstAt: number
  everyMs: number
  endsAt: number
  request: readonly Buffer[]
  ending: string
}

/** Requests at even intervals. Latency includes the time a due request waits for the response before it. */
async function keepPace({ send }: Connection, pace: Pace, observed: Observed): Promise<void> {
  for (let dueAt = pace.firstAt; dueAt < pace.endsAt; dueAt += pace.everyMs) {
    const early = dueAt - performance.now()
    if (early > 0) await delay(early)
    // A late timer of this process is not the server's fault.
    const since = early > 0 ? performance.now() : dueAt
    if (!(await timed(() => send(pace.request, pace.ending), observed, since))) return
  }
}

/** False after a failure. */
async function timed(
  action: () => Promise<void>,
  observed: Observed,
  since = performance.now(),
): Promise<boolean> {
  try {
    await action()
    observed.latencies.push(performance.now() - since)
    return true
  } catch (error) {
    observed.failures += 1
    observed.firstFailure ||= error instanceof Error ? error.message : String(error)
    return false
  }
}

function open(port: number): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const reader = createReader()
    let waiting: { resolve(): void; reject(error: Error): void; ending: string } | undefined
    const fail = (error: Error) => {
      waiting?.reject(error)
      waiting = undefined
      reject(error)
    }
    socket.on('error', fail)
    socket.on('close', () => fail(new Error('connection closed by the server')))
    socket.on('data', (chunk: Buffer) => {
      const complete = reader(chunk)
      const current = waiting
      if (!complete || !current) return
      waiting = undefined
      const failure = failureOf(complete, chunk, current.ending)
      if (failure === undefined) current.resolve()
      else current.reject(new Error(failure))
    })
    socket.once('connect', () => resolve({ socket, send }))

    function send(request: readonly Buffer[], ending: string): Promise<void> {
      return new Promise((sent, failed) => {
        if (socket.destroyed) return failed(new Error('connection closed by the server'))
        waiting = { resolve: sent, reject: failed, ending }
        for (const part of request) socket.write(part)
      })
    }
  })
}
