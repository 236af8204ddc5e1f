import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { endAfter } from './cleanup.ts'
import { call, http2Client } from './http-call.ts'

/** Requests that go on while something else happens. */
export type SteadyTraffic = {
  /** Ends it. Returns the failures with their reasons, and the latencies in milliseconds, ascending. */
  stop(): Promise<{ failures: string[]; durationsMs: number[] }>
}

export type SteadyTarget = {
  /** HTTP without TLS, asked in both versions. */
  port: number
  /** With TLS: asked on connections of its own and on kept ones. */
  secure?: { port: number; ca: string; name: string } | undefined
  path: string
  /** The text of every response. */
  text: string
}

/**
 * Asks without a pause on kept HTTP/1.1 connections, on new ones, and over HTTP/2; with TLS where there is
 * some.
 */
export function steadyTraffic({ port, secure, path, text }: SteadyTarget): SteadyTraffic {
  const failures: string[] = []
  const durationsMs: number[] = []
  let going = true

  async function repeat(what: string, ask: () => Promise<{ status: number; text: string }>, pauseMs: number) {
    while (going) {
      const started = performance.now()
      try {
        const answer = await ask()
        durationsMs.push(performance.now() - started)
        if (answer.status !== 200 || answer.text !== text)
          failures.push(`${what}: ${answer.status} ${answer.text.slice(0, 100)}`)
      } catch (error) {
        failures.push(`${what}: ${error}`)
        await delay(20)
      }
      await delay(pauseMs)
    }
  }

  const kept = new HttpAgent({ keepAlive: true, maxSockets: 2 })
  const keptTls = new HttpsAgent({ keepAlive: true, maxSockets: 2 })
  endAfter('test', () => {
    going = false
    kept.destroy()
    keptTls.destroy()
  })
  const multiplexed = http2Client(port)
  const tls = secure && { ca: secure.ca, name: secure.name }
  const loops = [
    repeat('kept', () => call(port, path, { agent: kept }), 1),
    repeat('kept post', () => call(port, path, { agent: kept, method: 'POST', body: 'x'.repeat(2000) }), 1),
    repeat('new', () => call(port, path), 10),
    repeat('h2', () => multiplexed.ask(path), 1),
  ]
  if (secure && tls) {
    const host = secure.name
    const multiplexedTls = http2Client(secure.port, tls)
    loops.push(
      repeat('kept tls', () => call(secure.port, path, { tls, host, agent: keptTls }), 1),
      repeat('new tls', () => call(secure.port, path, { tls, host }), 10),
      repeat('h2 tls', () => multiplexedTls.ask(path, { authority: host }), 1),
    )
  }
  return {
    async stop() {
      going = false
      await Promise.all(loops)
      return { failures, durationsMs: durationsMs.sort((one, other) => one - other) }
    },
  }
}
