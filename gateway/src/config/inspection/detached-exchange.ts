import { createCancellation } from '../../lib/cancellation.ts'
import type { Clock } from '../../lib/clock.ts'
import { describeConnection, withoutTls } from '../../net/listener/connection.ts'
import { createAuthState, type Exchange, type Facts } from '../../pipeline/exchange.ts'

const loopback = '127.0.0.1'

/** Creates an exchange without a client, for a test of policies. */
export function createDetachedExchange(facts: Partial<Facts>, clock: Clock): Exchange {
  const endpoints = { remoteAddress: loopback, remotePort: 0, localAddress: loopback, localPort: 0 }
  return {
    facts: {
      clock,
      request: {
        method: 'POST',
        scheme: 'http',
        host: 'localhost',
        path: '/v1/chat/completions',
        query: '',
        version: 'HTTP/1.1',
        headers: {},
        arrivedAt: clock.now(),
      },
      source: { address: loopback, port: 0 },
      jwt: undefined,
      apiKey: undefined,
      llmRequest: undefined,
      llm: undefined,
      usage: undefined,
      ...facts,
    },
    body: undefined,
    connection: describeConnection(endpoints, withoutTls),
    pathVariants: undefined,
    peer: undefined,
    cancellation: createCancellation(),
    startedAt: clock.monotonic(),
    upgrade: undefined,
    informational: undefined,
    route: undefined,
    requestId: undefined,
    errorFormat: 'text',
    forwarding: undefined,
    auth: createAuthState(),
    limits: undefined,
    llm: undefined,
    mcp: undefined,
    guards: undefined,
    recording: undefined,
    budgets: undefined,
    charges: undefined,
    payload: undefined,
    log: { refusedBy: undefined, errorCode: undefined, failure: undefined },
  }
}
