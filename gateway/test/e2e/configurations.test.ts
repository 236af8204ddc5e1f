import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readConfigurations } from '../support/configurations.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { type MockServer, sendJson, startMockServer } from '../support/mock-server.ts'

// The main configuration of each topic of `gateway/test/golden/configurations`, against a server that returns
// the head of each request, and answers chat completions.

let upstream: MockServer

beforeAll(async () => {
  const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hello' } }]
  const completion = { id: 'c-1', object: 'chat.completion', created: 1, model: 'm', choices }
  upstream = await startMockServer(({ method, path, headers, text }, response) => {
    const body = path.endsWith('/chat/completions') ? completion : { method, path, headers, text }
    sendJson(response, { status: 200, body })
  }, 'file')
})

describe('a configuration in the shape of agentgateway', () => {
  const runnable = readConfigurations().flatMap(({ name, text, calls }) =>
    calls === undefined ? [] : [{ name, text, calls }],
  )

  it.each(runnable)('runs: $name', async ({ text, calls }) => {
    const port = await freePort()
    const expanded = text.replaceAll('$PORT', String(port)).replaceAll('${UPSTREAM}', String(upstream.port))
    await startGateway(parse(expanded))
    for (const { method, path, body, status, contains = '' } of calls) {
      const json = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body ?? '') }
      const options = body === undefined ? {} : { body, headers: json }
      const answered = await call(port, path, { method, ...options })
      expect([method, path, answered.status, answered.text]).toEqual([
        method,
        path,
        status,
        expect.stringContaining(contains),
      ])
    }
  })
})
