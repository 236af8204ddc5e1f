import { connect, type Socket } from 'node:net'
import { createHeld, type HeldOrder } from './held.ts'
import { createReader, failureOf } from './reader.ts'
import { type LoadReport, noRequests, reportOf } from './report.ts'

/**
 * Load generator, run as a separate process. Implements the minimum of HTTP/1.1 over raw sockets, to be much
 * cheaper than its subject, with one request in flight per connection.
 */

export type LoadOrder =
  | {
      kind: 'run'
      port: number
      /** Requests that the connections send in rotation. */
      requests: string[]
      connections: number
      ending: string
      durationMs: number
      maxRequests: number
    }
  | { kind: 'open'; port: number; request: string; connections: number }
  /** Opens streams and leaves each after a random part of it. */
  | { kind: 'churn'; port: number; request: string; connections: number; durationMs: number }
  /** Sends at a fixed rate. Latency includes the time a due request waits for its connection. */
  | {
      kind: 'steady'
      port: number
      requests: string[]
      connections: number
      ending: string
      durationMs: number
      perSecond: number
    }
  | { kind: 'close' }
  | HeldOrder

type RunOrder = Extract<LoadOrder, { kind: 'run' }>
type Run = RunOrder & {
  latencies: number[]
  failures: number
  firstFailure: string
  deadline: number
  left: number
}

const none = Buffer.alloc(0)
const connections = createHeld()
const held: Socket[] = []

async function run(order: RunOrder): Promise<LoadReport> {
  const started = performance.now()
  const state: Run = {
    ...order,
    latencies: [],
    failures: 0,
    firstFailure: '',
    deadline: started + order.durationMs,
    left: order.maxRequests,
  }
  const requests = order.requests.map((request) => Buffer.from(request, 'latin1'))
  await Promise.all(
    Array.from({ length: order.connections }, (_, index) => drive(state, requests[index % requests.length])),
  )
  return reportOf(state, started)
}

/** One connection, request after request, until time or the number of requests is used up. */
function drive(state: Run, request = Buffer.alloc(0)): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: state.port, host: '127.0.0.1', noDelay: true })
    const reader = createReader()
    let sentAt = 0
    const next = () => {
      if (state.left <= 0 || performance.now() >= state.deadline) {
        socket.destroy()
        resolve()
        return
      }
      state.left -= 1
      sentAt = performance.now()
      socket.write(request)
    }
    const fail = (reason: string) => {
      state.failures += 1
      state.firstFailure ||= reason
      socket.destroy()
      resolve()
    }
    socket.on('connect', next)
    socket.on('error', (error) => fail(error.message))
    socket.on('end', () => fail('connection closed by the server'))
    socket.on('data', (chunk: Buffer) => {
      const complete = reader(chunk)
      if (!complete) return
      const failure = failureOf(complete, chunk, state.ending)
      if (failure !== undefined) return fail(failure)
      state.latencies.push(performance.now() - sentAt)
      next()
    })
  })
}

type SteadyOrder = Extract<LoadOrder, { kind: 'steady' }>
type Steady = SteadyOrder & Pick<Run, 'latencies' | 'failures' | 'firstFailure' | 'deadline'>

async function steady(order: SteadyOrder): Promise<LoadReport> {
  const started = performance.now()
  const state: Steady = {
    ...order,
    latencies: [],
    failures: 0,
    firstFailure: '',
    deadline: started + order.durationMs,
  }
  const everyMs = (1000 * order.connections) / order.perSecond
  const requests = order.requests.map((request) => Buffer.from(request, 'latin1'))
  await Promise.all(
    Array.from({ length: order.connections }, (_, index) => {
      const firstAt = started + (everyMs * index) / order.connections
      return keepPace(state, { request: requests[index % requests.length] ?? none, everyMs, firstAt })
    }),
  )
  return reportOf(state, started)
}

type Pace = { request: Buffer; everyMs: number; firstAt: number }

/** One of several connections. Requests are due at even intervals, independent of earlier responses. */
function keepPace(state: Steady, { request, everyMs, firstAt }: Pace): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: state.port, host: '127.0.0.1', noDelay: true })
    const reader = createReader()
    let dueAt = firstAt
    let since = 0

    function next() {
      const early = dueAt - performance.now()
      if (dueAt >= state.deadline) leave()
      else if (early <= 0) send(dueAt)
      // That a timer of this process is late is not the server's fault.
      else setTimeout(() => send(performance.now()), early)
    }

    function send(from: number) {
      since = from
      dueAt += everyMs
      socket.write(request)
    }

    function leave() {
      socket.destroy()
      resolve()
    }

    function fail(reason: string) {
      state.failures += 1
      state.firstFailure ||= reason
      leave()
    }

    socket.on('connect', next)
    socket.on('error', (error) => fail(error.message))
    socket.on('end', () => fail('connection closed by the server'))
    socket.on('data', (chunk: Buffer) => {
      const complete = reader(chunk)
      if (!complete) return
      const failure = failureOf(complete, chunk, state.ending)
      if (failure !== undefined) return fail(failure)
      state.latencies.push(performance.now() - since)
      next()
    })
  })
}

/** Opens streams and leaves them open; resolves when every one has received its first bytes. */
async function open(order: Extract<LoadOrder, { kind: 'open' }>): Promise<LoadReport> {
  const started = performance.now()
  const report: LoadReport = { ...noRequests }
  for (let opened = 0; opened < order.connections; opened += 50) {
    const batch = Math.min(50, order.connections - opened)
    const answers = await Promise.all(Array.from({ length: batch }, () => openOne(order)))
    for (const answer of answers) {
      if (answer.startsWith('HTTP/1.1 200')) report.requests += 1
      else {
        report.failures += 1
        report.firstFailure ||= answer
      }
    }
  }
  report.seconds = (performance.now() - started) / 1000
  return report
}

function openOne(order: { port: number; request: string }): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port: order.port, host: '127.0.0.1' })
    held.push(socket)
    socket.on('connect', () => socket.write(order.request, 'latin1'))
    socket.on('error', (error) => resolve(error.message))
    socket.on('data', (chunk) => resolve(chunk.toString('latin1').slice(0, 500)))
    socket.on('close', () => resolve('closed without an answer'))
  })
}

async function churn(order: Extract<LoadOrder, { kind: 'churn' }>): Promise<LoadReport> {
  const started = performance.now()
  const report: LoadReport = { ...noRequests }
  const drivers = Array.from({ length: order.connections }, async () => {
    while (performance.now() < started + order.durationMs) {
      const answer = await leaveEarly(order)
      if (answer === '' || answer.startsWith('HTTP/1.1 200')) report.requests += 1
      else {
        report.failures += 1
        report.firstFailure ||= answer
      }
    }
  })
  await Promise.all(drivers)
  report.seconds = (performance.now() - started) / 1000
  return report
}

/** Resolves with the beginning of the answer: empty when this client left before there was any. */
function leaveEarly({ port, request }: { port: number; request: string }): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let received = ''
    let pieces = Math.ceil(Math.random() * 20)
    // Not every stream flows, and some clients leave before the first byte.
    const patience = setTimeout(() => socket.destroy(), Math.random() * 200)
    socket.on('connect', () => socket.write(request, 'latin1'))
    socket.on('error', (error) => {
      received ||= error.message
    })
    socket.on('data', (chunk) => {
      if (received === '') received = chunk.toString('latin1').slice(0, 500)
      pieces -= 1
      if (pieces <= 0) socket.destroy()
    })
    socket.on('close', () => {
      clearTimeout(patience)
      resolve(received)
    })
  })
}

function closeAll(): LoadReport {
  for (const socket of held.splice(0)) socket.destroy()
  connections.close()
  return { ...noRequests }
}

function obey(order: LoadOrder): Promise<LoadReport> | LoadReport {
  switch (order.kind) {
    case 'run':
      return run(order)
    case 'open':
      return open(order)
    case 'churn':
      return churn(order)
    case 'steady':
      return steady(order)
    case 'close':
      return closeAll()
    case 'hold':
    case 'burst':
    case 'pace':
    case 'flood':
      return connections.obey(order)
  }
}

process.on('message', async (order: LoadOrder) => {
  process.send?.(await obey(order))
})

process.on('disconnect', () => process.exit())
