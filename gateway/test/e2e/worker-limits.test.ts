import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { initializeMessage, openSession, post } from '../support/mcp-raw.ts'
import { metricValue } from '../support/metrics.ts'
import { jsonAnswer, sendJson, startMockServer } from '../support/mock-server.ts'
import { namedUpstream, routing } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

// Limits of the process with several worker threads. Connections of one client arrive at all of them.

const workerThreads = 4

/** Whether a connection is served; it remains open. */
async function isServed(port: number): Promise<{ served: boolean; socket: Socket }> {
  const socket = connect({ host: '127.0.0.1', port })
  endAfter('test', () => {
    socket.destroy()
  })
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  const served = await new Promise<boolean>((resolve) => {
    socket.on('data', () => resolve(true))
    socket.on('close', () => resolve(false))
  })
  return { served, socket }
}

describe('limits over worker threads', () => {
  it('admit as many connections of a client as configured', async () => {
    const limits = { maxConnectionsPerClient: 10 }
    const answering = [{ policies: { directResponse: { status: 200, body: 'served' } } }]
    const { port, gateway } = await routing(answering, { config: { workerThreads, limits } })
    const first = await Promise.all(Array.from({ length: 40 }, () => isServed(port)))
    expect(first.filter(({ served }) => served)).toHaveLength(10)
    const text = await gateway.metrics()
    expect(metricValue(text, 'tollgate_admission_in_use', { resource: 'connections' })).toBe(10)
    const refused = { resource: 'connections_per_client' }
    expect(metricValue(text, 'tollgate_admission_refusals_total', refused)).toBe(30)
    for (const { socket } of first) socket.destroy()
    await until('the connections are released', async () => {
      const now = await gateway.metrics()
      return metricValue(now, 'tollgate_admission_in_use', { resource: 'connections' }) === 0
    })
    const again = await Promise.all(Array.from({ length: 20 }, () => isServed(port)))
    expect(again.filter(({ served }) => served)).toHaveLength(10)
  })

  it('call a webhook with as many connections as configured', async () => {
    let active = 0
    let most = 0
    const webhook = await startMockServer((_, response) => {
      active += 1
      most = Math.max(most, active)
      setTimeout(() => {
        active -= 1
        sendJson(response, { status: 200, body: { action: {} } })
      }, 20)
    })
    const guard = { webhook: { target: { host: `127.0.0.1:${webhook.port}` } } }
    const gateway = await startGateway(
      { ...llmConfig({}, { guardrails: { request: [guard] } }), config: { workerThreads } },
      { env: { GUARDRAIL_WEBHOOK_MAX_CONNECTIONS: '3' } },
    )
    const answers = await Promise.all(Array.from({ length: 60 }, () => chat(gateway)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(most).toBe(3)
  })

  it('exclude a backend for all threads after its failures at some of them', async () => {
    const good = await namedUpstream('good')
    const bad = await startMockServer(jsonAnswer(500, {}))
    const health = { eviction: { consecutiveFailures: 3, duration: '1h' } }
    const backends = [{ name: 'bad', host: `127.0.0.1:${bad.port}`, policies: { health } }]
    const route = { backends: [{ host: good.host }, { backend: '/bad' }] }
    const { port } = await routing([route], { backends, config: { workerThreads } })
    await until('the backend fails three times', async () => {
      await call(port, '/')
      return bad.seen.length === 3
    })
    const answers = await Promise.all(Array.from({ length: 60 }, () => call(port, '/')))
    expect(new Set(answers.map(({ text }) => text))).toEqual(new Set(['good']))
    expect(bad.seen).toHaveLength(3)
  })

  it('admit as many MCP sessions of a client as configured, and count each once', async () => {
    const limits = { maxMcpSessionsPerClient: 5 }
    const gateway = await startGateway({
      config: { workerThreads, limits },
      mcp: { targets: [programTarget('program')] },
    })
    const sessions = await Promise.all(Array.from({ length: 5 }, () => openSession(gateway.mcpUrl)))
    for (const session of sessions) {
      for (let count = 0; count < 4; count++) await session.request('tools/list')
    }
    expect((await post(gateway.mcpUrl, initializeMessage)).status).toBe(429)
    const text = await gateway.metrics()
    expect(metricValue(text, 'tollgate_admission_in_use', { resource: 'mcp_sessions' })).toBe(5)
    expect(metricValue(text, 'tollgate_admission_in_use', { resource: 'mcp_programs' })).toBe(5)
    expect(await sessions[0]?.end()).toBe(204)
    await openSession(gateway.mcpUrl)
  })
})
