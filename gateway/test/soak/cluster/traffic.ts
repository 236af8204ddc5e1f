import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

/** Requests to the address of a Gateway while something else happens. */
export type Traffic = { stop(): Promise<TrafficReport> }

export type TrafficReport = {
  readonly sent: number
  readonly failures: readonly string[]
  /** Slowest response, in milliseconds. */
  readonly slowestMs: number
}

export type Answer = {
  readonly status: number
  readonly text: string
  readonly headers: NodeJS.Dict<unknown>
}

const limitMs = 10_000

export type Call = {
  readonly path?: string
  readonly host?: string
  readonly body?: object
  readonly agent?: Agent
}

/** Sends one request to an address on port 80. */
export function call(
  address: string,
  { path = '/', host = address, body, agent }: Call = {},
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers = { host, ...(text !== undefined && { 'content-type': 'application/json' }) }
  const method = text === undefined ? 'GET' : 'POST'
  const options = { host: address, port: 80, path, method, headers, signal: AbortSignal.timeout(limitMs) }
  const sent = request({ ...options, ...(agent && { agent }) }, async (response) => {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      resolve({
        status: response.statusCode ?? 0,
        text: Buffer.concat(chunks).toString(),
        headers: response.headers,
      })
    } catch (error) {
      reject(error)
    }
  })
  sent.on('error', reject)
  sent.end(text)
  return promise
}

/** Sends requests on new connections and on kept ones until it is stopped; all must have status 200. */
export function steadyTraffic(address: string, host: string): Traffic {
  const kept = new Agent({ keepAlive: true, maxSockets: 4 })
  const failures: string[] = []
  let sent = 0
  let slowestMs = 0
  let isRunning = true

  async function repeat(agent: Agent | undefined): Promise<void> {
    while (isRunning) {
      const startedAt = performance.now()
      sent += 1
      try {
        const answer = await call(address, { host, ...(agent && { agent }) })
        if (answer.status !== 200) failures.push(`${answer.status} ${answer.text.slice(0, 100)}`)
      } catch (error) {
        failures.push(`${agent === undefined ? 'new' : 'kept'}: ${error}`)
      }
      slowestMs = Math.max(slowestMs, performance.now() - startedAt)
      await delay(5)
    }
  }

  const loops = [undefined, undefined, kept, kept].map(repeat)
  return {
    async stop() {
      isRunning = false
      await Promise.all(loops)
      kept.destroy()
      return { sent, failures, slowestMs: Math.round(slowestMs) }
    },
  }
}
