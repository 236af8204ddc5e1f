import { describe, expect, it } from 'vitest'
import type { RequestDetails } from '../../ledger/query/search/search.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import type { AdminCall } from '../api.ts'
import { celEndpoints } from './cel.ts'
import { celScopes } from './scopes.ts'

const clock = { now: () => Date.UTC(2026, 10, 23), monotonic: () => 0 }

async function ask(
  path: string,
  { body, query = {}, details }: { body?: JsonObject; query?: Record<string, string>; details?: object } = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const queries = { readRequest: async () => details as RequestDetails | undefined }
  const endpoint = celEndpoints({
    queries,
    clock,
    customFunctions: () => 'isPost() { request.method == "POST" }',
  }).find((each) => each.path === path)
  const operation = endpoint?.methods[body === undefined ? 'GET' : 'POST']
  const call = {
    query: new Map(Object.entries(query)),
    readJson: async () => ({ kind: 'read', value: body ?? {} }),
  } as unknown as AdminCall
  const result = await operation?.respond(call)
  if (result?.kind === 'refused') return { status: result.status, body: { message: result.message } }
  if (result?.kind !== 'json') throw new Error('no JSON')
  return { status: 200, body: JSON.parse(JSON.stringify(result.value)) }
}

const check = async (body: JsonObject) => (await ask('/api/cel/check', { body })).body
const evaluate = async (body: JsonObject) => (await ask('/api/cel/evaluate', { body })).body

describe('the check of an expression', () => {
  it('accepts names of its scope and refuses others at their position', async () => {
    expect(await check({ expression: 'llmRequest.model == "x"', scope: 'llm' })).toEqual({ ok: true })
    expect(await check({ expression: '1 == 1 &&\n  llmRequest.model == "x"', scope: 'http' })).toMatchObject({
      ok: false,
      message: expect.stringContaining('unknown variable "llmRequest"'),
      line: 2,
      column: 3,
      offset: 12,
    })
    expect(await check({ expression: 'jwt.sub == "a"', roots: ['request'] })).toMatchObject({ ok: false })
    expect(await check({ expression: 'llm.cost > 1.0', roots: ['llm', 'llm.cost'] })).toEqual({ ok: true })
  })

  it.each([
    [{ expression: 1 }, 'expression'],
    [{ expression: 'true', scope: 'nowhere' }, 'scope must be'],
    [{ expression: 'true', roots: ['<script>'] }, 'roots must be'],
    [{ expression: 'true', more: 1 }, 'unknown member'],
  ])('refuses %j', async (body, message) => {
    const reply = await ask('/api/cel/check', { body: body as JsonObject })
    expect(reply.status).toBe(422)
    expect(reply.body['message']).toContain(message)
  })
})

describe('the evaluation of an expression', () => {
  it('has the custom functions of the configuration', async () => {
    expect(await evaluate({ expression: 'isPost()' })).toMatchObject({ value: true })
    expect(await evaluate({ expression: 'isPut()' })).toMatchObject({ error: { offset: 0 } })
  })

  it('has a value in every scope, over its sample facts', async () => {
    for (const { name, variables } of celScopes) {
      const { body } = await ask('/api/cel/facts', { query: { scope: name } })
      const facts = Object.keys(body['facts'] as object)
      const roots = [...variables].filter((variable) => !variable.includes('.') && variable !== 'now')
      expect(facts.sort()).toEqual(roots.sort())
      expect(await evaluate({ expression: 'request.method == "POST"', scope: name })).toEqual({
        value: true,
        type: 'bool',
      })
    }
  })

  it('returns JSON of any value', async () => {
    const value = async (expression: string) => (await evaluate({ expression, scope: 'llm' }))['value']
    expect(await value('[1, 2.5, "a", null, {"a": true}]')).toEqual([1, 2.5, 'a', null, { a: true }])
    expect(await value('9223372036854775807')).toBe('9223372036854775807')
    expect(await value('now')).toContain('2026-11-23')
    expect(await value('b"ab"')).toBe('YWI=')
    expect(await value('1.0 / 0.0')).toBe('Infinity')
  })

  it('reads the body as bytes', async () => {
    const facts = { request: { body: '{"a":1}' } }
    expect(await evaluate({ expression: 'string(request.body)', scope: 'http', facts })).toMatchObject({
      value: '{"a":1}',
    })
  })

  it('is limited in work and size of the result', async () => {
    const list = Array.from({ length: 1_000 }, (_, at) => at)
    const facts = { jwt: { list, text: 'x'.repeat(300_000) } }
    const loops = 'jwt.list.all(a, jwt.list.all(b, jwt.list.all(c, a + b + c >= 0)))'
    expect(await evaluate({ expression: loops, facts })).toMatchObject({
      error: { message: expect.stringContaining('too many steps') },
    })
    expect(await evaluate({ expression: 'jwt.text', facts })).toMatchObject({
      error: { message: 'the result is larger than 256 KiB' },
    })
    expect(await evaluate({ expression: `${'('.repeat(9_000)}1` })).toHaveProperty('error')
  })

  it('reports missing values and invalid expressions', async () => {
    expect(await evaluate({ expression: 'jwt.nope == 1', facts: { jwt: {} } })).toMatchObject({
      error: { message: 'no such key: nope' },
    })
    expect(await evaluate({ expression: 'jwt.' })).toMatchObject({ error: { line: 1 } })
  })
})

it('facts of a recorded request are those of its entry', async () => {
  const entry = {
    kind: 'mcp',
    method: 'POST',
    path: '/mcp',
    client: '192.0.2.1',
    keyId: 'k1',
    keyName: 'ada',
    group: 'search',
    mcpMethod: 'tools/call',
    mcpItem: 'echo',
    mcpTarget: 'everything',
  }
  const { body } = await ask('/api/cel/facts', {
    query: { scope: 'mcpItem', requestId: 'x' },
    details: { entry, payload: undefined },
  })
  expect(body['facts']).toMatchObject({
    request: { method: 'POST', path: '/mcp' },
    apiKey: { id: 'k1', name: 'ada', group: 'search' },
    mcp: { method: 'tools/call', tool: { name: 'echo', target: 'everything' } },
  })
  expect(body['missing']).toEqual(expect.arrayContaining(['jwt', 'request.headers']))
  expect((await ask('/api/cel/facts', { query: { requestId: 'none' } })).status).toBe(404)
  expect((await ask('/api/cel/facts', { query: { scope: 'x' } })).status).toBe(422)
})

it('variables have members, documentation and functions', async () => {
  const { body } = await ask('/api/cel/variables')
  const { scopes, functions } = body as {
    scopes: { name: string; variables: { name: string; doc: string; members?: { name: string }[] }[] }[]
    functions: { name: string; forms: string[] }[]
  }
  for (const { variables } of scopes) for (const { doc, name } of variables) expect(doc, name).not.toBe('')
  const request = scopes.find(({ name }) => name === 'http')?.variables.find(({ name }) => name === 'request')
  expect(request?.members?.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['method', 'headers', 'body']),
  )
  expect(functions.find(({ name }) => name === 'startsWith')?.forms).toEqual(['x.startsWith(a1)'])
  expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(['has', 'size', 'default']))
})
