import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { compileOpenApi, type OpenApiConfig } from '../../src/backends/mcp/targets/openapi/openapi.ts'
import type { TargetSession } from '../../src/backends/mcp/targets/target.ts'
import { parseYaml } from '../../src/config/yaml/yaml.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createWorkQueue } from '../../src/lib/scheduling/work-queue.ts'
import { createHttpClient } from '../../src/net/http-client/http-client.ts'
import { endAfter } from '../support/cleanup.ts'
import { jsonAnswer, type MockServer, startMockServer } from '../support/mock-server.ts'
import { call, callContext, collect, messageOf, reasonOf, resultOf } from '../support/target-session.ts'
import { until } from '../support/wait.ts'

// The OpenAPI target against a real server, with its document in a file, on that server, or in place.

const document = `
openapi: 3.0.3
info: { title: Pets, version: 1.0 }
servers: [{ url: '/api/{stage}', variables: { stage: { default: v1 } } }]
paths:
  /pets/{petId}:
    get:
      operationId: getPet
      summary: One pet
      parameters:
        - { name: petId, in: path, required: true, schema: { $ref: '#/components/schemas/Id' } }
        - { name: tags, in: query, schema: { type: array, items: { type: string } } }
        - { name: X-Trace, in: header, schema: { type: string } }
  /pets:
    post:
      operationId: addPet
      requestBody:
        required: true
        content: { application/json: { schema: { type: object } } }
components:
  schemas:
    Id: { type: integer, nullable: true }
`

async function start(schema: (server: MockServer) => OpenApiConfig['schema']) {
  const server = await startMockServer((request, response) => {
    if (request.path === '/openapi.yaml') response.end(document)
    else jsonAnswer(200, { path: request.path })(request, response)
  })
  const client = createHttpClient({
    connectTimeoutMs: 1000,
    keepAliveMs: 1000,
    firstByteTimeoutMs: 5000,
    idleTimeoutMs: 5000,
  })
  endAfter('test', () => client.close())
  const target = compileOpenApi(
    'pets',
    { host: server.url, schema: schema(server) },
    {
      send: client.send,
      clock: systemClock,
      log: { debug() {}, info() {}, warn() {}, error() {}, audit() {} },
      readFile: (path) => readFileSync(path, 'utf8'),
      parseYaml,
      threads: { run: () => Promise.reject(new Error('no threads here')), close() {} },
      workQueue: createWorkQueue(systemClock),
    },
  )
  return { server, target }
}

function callTool(session: TargetSession, name: string, args: string) {
  const sink = collect()
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`
  const flow = session.request({ text, value: JSON.parse(text) }, callContext({ 'x-team': 'blue' }), sink)
  return { ...sink, flow }
}

function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-openapi-'))
  endAfter('test', () => rmSync(folder, { recursive: true }))
  const file = join(folder, 'openapi.yaml')
  writeFileSync(file, text)
  return file
}

describe('an OpenAPI target', () => {
  it.each([
    ['a file', () => ({ file: fileWith(document) })],
    ['a server', (server: MockServer) => ({ url: `${server.url}/openapi.yaml` })],
    ['text in place', () => document],
  ])('offers the operations of a document in %s', async (_, schema) => {
    const { target, server } = await start(schema)
    const session = target.open()
    const initialized = await resultOf(call(session, 'initialize', { protocolVersion: '2025-06-18' }))
    expect(initialized).toEqual({
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'Pets', version: '1' },
    })
    const { tools } = await resultOf(call(session, 'tools/list'))
    expect(tools).toEqual([
      expect.objectContaining({ name: 'getPet', title: 'One pet', description: 'One pet' }),
      expect.objectContaining({ name: 'addPet' }),
    ])
    const sink = callTool(
      session,
      'getPet',
      '{"path":{"petId":7},"query":{"tags":["a","b&c"]},"header":{"X-Trace":"t"}}',
    )
    const result = await resultOf(sink)
    expect(result['structuredContent']).toEqual({ path: '/api/v1/pets/7?tags=a&tags=b%26c' })
    expect(server.seen.at(-1)?.headers).toMatchObject({ 'x-trace': 't', 'x-team': 'blue' })
  })

  it('sends a body exactly as it was written and passes on the answer in the same way', async () => {
    const { target, server } = await start(() => document)
    server.next((_, response) => response.writeHead(201).end('{"id": 90071992547409931}'))
    const sink = callTool(target.open(), 'addPet', '{"body": {"n":12345678901234567890, "s":"\\u00e9"}}')
    expect(await sink.ended).toBe(undefined)
    expect(server.seen[0]).toMatchObject({ method: 'POST', path: '/api/v1/pets' })
    expect(server.seen[0]?.text).toBe('{"n":12345678901234567890, "s":"\\u00e9"}')
    expect(sink.texts[0]).toContain('"structuredContent":{"id": 90071992547409931}')
  })

  it('makes no call with arguments that would leave their position', async () => {
    const { target, server } = await start(() => document)
    for (const args of [
      '{"path":{"petId":"../users"}}',
      '{"path":{"petId":"1"},"header":{"X-Trace":"a\\r\\nb: c"}}',
    ]) {
      const result = await resultOf(callTool(target.open(), 'getPet', args))
      expect(result['isError']).toBe(true)
    }
    expect(server.seen).toEqual([])
  })

  it('ends a call that the client cancels', async () => {
    const { target, server } = await start(() => document)
    server.next(() => {})
    const session = target.open()
    callTool(session, 'getPet', '{"path":{"petId":7}}')
    await until('the API is called', () => server.seen.length === 1)
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    await session.deliver(messageOf(cancel), callContext())
    await until('the call is ended', () => server.seen[0]?.aborted)
  })

  it('reports that the document cannot be fetched, and fetches it later', async () => {
    const { target, server } = await start(({ url }) => ({ url: `${url}/openapi.yaml` }))
    server.next(jsonAnswer(500, {}))
    const failure = await call(target.open(), 'tools/list').ended
    expect(reasonOf(failure)).toContain('its server returned status 500')
    expect(server.seen).toHaveLength(1)
  })
})
